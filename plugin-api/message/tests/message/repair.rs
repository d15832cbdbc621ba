//! A valid request out of any list.

use hermes_message::build::{assistant, calling, system, tool, user};
use hermes_message::format::{read, write_conversation};
use hermes_message::repair::{NO_OUTPUT, NO_RESULT, OPENING, fold, repair};
use hermes_message::sequence::{Policy, Rule, check};
use hermes_message::{Identity, Message, Role, WirePolicy, flags};
use proptest::prelude::*;

use crate::inputs::recorded;
use crate::texts::msg;

fn known(message: Message, uid: &str) -> Message {
    message.replaced_identity(Identity::of_uid(uid))
}

fn repaired(list: &[Message]) -> (Vec<Message>, Vec<(usize, Rule)>) {
    let repaired = repair(list);
    assert_eq!(
        check(&repaired.messages, Policy::Request),
        [],
        "{:?}",
        repaired.messages
    );
    let again = repair(&repaired.messages);
    assert!(
        again.notes.is_empty()
            && again
                .messages
                .iter()
                .zip(&repaired.messages)
                .all(|(a, b)| a.same(b))
    );
    (
        repaired.messages,
        repaired
            .notes
            .into_iter()
            .map(|note| (note.message, note.rule))
            .collect(),
    )
}

fn told(messages: &[Message]) -> Vec<(Role, String)> {
    messages
        .iter()
        .map(|m| (m.role(), m.text().into_owned()))
        .collect()
}

fn names(message: &Message) -> (Option<&str>, Vec<&str>) {
    let identity = message.identity();
    (
        identity.uid.as_deref(),
        identity.absorbed.iter().map(|uid| &**uid).collect(),
    )
}

#[test]
fn a_valid_list_is_its_own_repair() {
    let list = [
        system("s"),
        user("u"),
        calling(None, &[("a", "f", "{}")]),
        tool("a", "r"),
        assistant("b"),
    ];
    let (out, notes) = repaired(&list);
    assert!(notes.is_empty());
    assert!(out.iter().zip(&list).all(|(a, b)| a.same(b)));
}

// case: 7
// contract: UID-5, UID-16
#[test]
fn empty_assistant_turns_go_and_the_users_beside_them_are_joined() {
    let empties = [
        r#"{"role":"assistant","content":null}"#,
        r#"{"role":"assistant","content":""}"#,
        r#"{"role":"assistant","content":"  \n"}"#,
        r#"{"role":"assistant","content":[]}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":""}]}"#,
        r#"{"role":"assistant","content":null,"reasoning":"thinking…"}"#,
    ];
    for empty in empties {
        let list = [
            known(user("a"), "1"),
            msg(empty),
            known(user("b"), "2"),
            known(assistant("c"), "3"),
        ];
        let (out, notes) = repaired(&list);
        assert_eq!(
            told(&out),
            [(Role::User, "a\n\nb".into()), (Role::Assistant, "c".into())]
        );
        assert_eq!(names(&out[0]), (Some("1"), vec!["2"]));
        assert_eq!(notes, [(1, Rule::EmptyContent), (2, Rule::AdjacentUsers)]);
        assert!(out[1].same(&list[3]));
        assert_eq!(&**list[1].stored(), empty, "what is stored stays as it was");
    }
}

// case: 7
#[test]
fn null_beside_calls_stays_null_and_empty_results_say_so() {
    let call = msg(
        r#"{"role":"assistant","content":null,"reasoning":"r","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
    );
    let stray = msg(r#"{"role":"tool","tool_call_id":"c2","content":null}"#);
    let list = [user("u"), call, tool("c1", ""), stray];
    let (out, notes) = repaired(&list);
    assert!(out[1].same(&list[1]) && out[1].wire().contains("\"content\":null"));
    assert_eq!(out[2].text(), NO_OUTPUT);
    assert_eq!(
        notes,
        [(2, Rule::EmptyContent), (3, Rule::ResultWithoutCall)]
    );
    assert_eq!(out.len(), 3);
}

// case: 10
#[test]
fn a_system_message_in_the_middle_stays_in_order_as_a_notice() {
    let list = [
        user("hi"),
        assistant("yo"),
        known(system("user was idle 10 min"), "s"),
        user("go"),
        assistant("ok"),
    ];
    let (out, notes) = repaired(&list);
    assert_eq!(
        told(&out),
        [
            (Role::User, "hi".into()),
            (Role::Assistant, "yo".into()),
            (
                Role::User,
                "[system notice]\nuser was idle 10 min\n\ngo".into()
            ),
            (Role::Assistant, "ok".into()),
        ]
    );
    assert_eq!(names(&out[2]).0, Some("s"));
    assert!(!out[2].has(flags::SYNTHETIC), "a person speaks in it");
    assert_eq!(notes, [(2, Rule::SystemNotFirst), (3, Rule::AdjacentUsers)]);

    let prompt = system("You are Hermes.");
    let (out, _) = repaired(&[
        prompt.clone(),
        user("a"),
        assistant("b"),
        system("idle"),
        assistant("c"),
    ]);
    assert!(out[0].same(&prompt));
    assert_eq!(out.iter().filter(|m| m.role() == Role::System).count(), 1);
    assert!(out[3].has(flags::SYNTHETIC));
}

// case: 1
#[test]
fn calls_and_results_come_in_pairs() {
    let call = calling(Some("both"), &[("a", "f", "{}"), ("b", "g", "{}")]);
    let call = call.replaced_identity(
        Identity::from_json(r#"{"_tool_call_uids":{"b":"B"}}"#).expect("an object"),
    );
    let list = [
        user("u"),
        tool("x", "no call"),
        call,
        tool("a", "1"),
        tool("a", "again"),
        user("v"),
        tool("b", "late"),
    ];
    let (out, notes) = repaired(&list);
    assert_eq!(
        told(&out),
        [
            (Role::User, "u".into()),
            (Role::Assistant, "both".into()),
            (Role::Tool, "1".into()),
            (Role::Tool, NO_RESULT.into()),
            (Role::User, "v".into()),
        ]
    );
    assert_eq!(out[3].tool_call_id(), Some("b"));
    assert_eq!(out[3].identity().tool_call_uid.as_deref(), Some("B"));
    assert!(out[3].has(flags::SYNTHETIC));
    use Rule::{CallWithoutResult, ResultWithoutCall};
    assert_eq!(
        notes,
        [
            (1, ResultWithoutCall),
            (4, ResultWithoutCall),
            (2, CallWithoutResult),
            (6, ResultWithoutCall)
        ]
    );
}

#[test]
fn notices_and_empty_turns_do_not_part_a_call_from_its_result() {
    let list = [
        user("u"),
        calling(None, &[("a", "f", "{}")]),
        system("note"),
        assistant(""),
        tool("a", "r"),
        assistant("z"),
    ];
    let (out, notes) = repaired(&list);
    assert_eq!(out[2].text(), "r");
    assert_eq!(out[3].text(), "[system notice]\nnote");
    assert_eq!(notes, [(2, Rule::SystemNotFirst), (3, Rule::EmptyContent)]);
}

// contract: UID-20
#[test]
fn a_result_without_an_id_takes_the_call_that_is_left() {
    let call = msg(
        r#"{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}]}"#,
    );
    let nameless = msg(r#"{"role":"tool","content":"of f"}"#);
    let (out, notes) = repaired(&[user("u"), call, nameless, tool("b", "of g")]);
    assert_eq!(out[2].tool_call_id(), Some(&*out[1].tool_calls()[0].id));
    assert_eq!(out[2].text(), "of f");
    assert_eq!(notes, [(2, Rule::ResultIdDiffers)]);
}

#[test]
fn an_assistant_that_begins_is_introduced_and_a_list_without_users_says_so() {
    let (out, notes) = repaired(&[system("s"), assistant("welcome"), user("hi")]);
    assert_eq!(out[1].text(), OPENING);
    assert_eq!(out[2].text(), "welcome");
    assert_eq!(notes, [(1, Rule::FirstNotUser)]);
    for list in [
        vec![],
        vec![system("s")],
        vec![assistant("a")],
        vec![user(" ")],
    ] {
        assert!(repair(&list).no_user, "{list:?}");
    }
    assert!(!repair(&[user("u")]).no_user);
}

// contract: UID-5, UID-16
#[test]
fn users_join_texts_by_a_blank_line_and_lists_end_to_end() {
    let image = r#"{"type":"image_url","image_url":{"url":"u"}}"#;
    let list = |parts: &str| {
        msg(&format!(
            r#"{{"role":"user","content":[{parts}],"message_uid":"l"}}"#
        ))
    };
    let text_part = r#"{"type":"text","text":"b"}"#;
    let fold_of = |a: &Message, b: &Message| fold(a, b).raw_content().map(str::to_owned);
    assert_eq!(
        fold_of(&user("a"), &user("b")).as_deref(),
        Some(r#""a\n\nb""#)
    );
    assert_eq!(
        fold_of(&list(image), &user("b")),
        Some(format!("[{image},{text_part}]"))
    );
    assert_eq!(
        fold_of(&user("b"), &list(image)),
        Some(format!("[{text_part},{image}]"))
    );
    assert_eq!(
        fold_of(&list(image), &list(text_part)),
        Some(format!("[{image},{text_part}]"))
    );
    let (out, _) = repaired(&[known(user("a"), "1"), known(user("b"), "2"), list(image)]);
    assert_eq!(names(&out[0]), (Some("1"), vec!["2", "l"]));
}

// contract: UID-16
#[test]
fn assistants_join_texts_and_calls() {
    let call = calling(None, &[("a", "f", "{}")]);
    let call = call.replaced_identity(
        Identity::from_json(r#"{"message_uid":"2","_tool_call_uids":{"a":"A"}}"#)
            .expect("an object"),
    );
    let (out, notes) = repaired(&[
        user("u"),
        known(assistant("text"), "1"),
        call,
        tool("a", "r"),
    ]);
    assert_eq!(out[1].text(), "text");
    assert_eq!(&*out[1].tool_calls()[0].id, "a");
    assert_eq!(names(&out[1]), (Some("1"), vec!["2"]));
    assert_eq!(out[1].identity().tool_call_uids.to_json(), r#"{"a":"A"}"#);
    assert_eq!(notes, [(2, Rule::AdjacentAssistants)]);
}

// contract: UID-13
#[test]
fn a_fold_of_two_calling_turns_keeps_a_uid_for_each_call() {
    let turn = |uid: &str| {
        calling(None, &[("k", "f", "{}")]).replaced_identity(
            Identity::from_json(&format!(r#"{{"_tool_call_uids":{{"k":"{uid}"}}}}"#))
                .expect("an object"),
        )
    };
    let both = fold(&turn("1"), &turn("2"));
    assert_eq!(both.tool_calls().len(), 2);
    assert_eq!(
        both.identity().tool_call_uids.to_json(),
        r#"{"k":["1","2"]}"#
    );
}

// contract: UID-17
#[test]
fn an_assistant_text_beside_media_is_left_out_and_not_recorded() {
    let media = || {
        known(
            msg(r#"{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"u"}}]}"#),
            "m",
        )
    };
    for list in [
        [known(assistant("text"), "t"), media()],
        [media(), known(assistant("text"), "t")],
    ] {
        let (out, notes) = repaired(&[&[user("u")], &list[..]].concat());
        assert_eq!(out[1].raw_content(), media().raw_content());
        assert_eq!(names(&out[1]), (Some("m"), vec![]));
        assert_eq!(
            notes,
            [(2, Rule::AdjacentAssistants), (2, Rule::TextBesideMedia)]
        );
    }
    let speaking_call = calling(Some("text"), &[("a", "f", "{}")]);
    let speaking_call = speaking_call.replaced_identity(
        Identity::from_json(r#"{"message_uid":"t","_tool_call_uids":{"a":"A"}}"#)
            .expect("an object"),
    );
    let (out, _) = repaired(&[user("u"), media(), speaking_call, tool("a", "r")]);
    assert_eq!(names(&out[1]), (Some("m"), vec![]));
    assert_eq!(
        out[1].identity().tool_call_uids.to_json(),
        r#"{"a":"A"}"#,
        "the call is still in it"
    );
    assert_eq!(out[1].tool_calls().len(), 1);
}

// case: 6
#[test]
fn arguments_go_out_as_they_came() {
    for arguments in ["", "null", "[1,2]", "{not json", r#"{"a":{"b":{"c":1}}}"#] {
        let call = calling(None, &[("a", "f", arguments)]);
        let (out, _) = repaired(&[user("u"), user("v"), call.clone(), tool("a", "r")]);
        assert!(out[1].same(&call));
        assert_eq!(out[1].tool_calls()[0].arguments(), arguments);
    }
}

// case: 1, 7, 12
#[test]
fn every_recorded_conversation_becomes_a_valid_request_and_loses_no_stored_byte() {
    for (name, bytes) in recorded() {
        let file = read(&bytes).expect(&name);
        let mut fixed = 0;
        for (index, conversation) in file.conversations.iter().enumerate() {
            let before: Vec<String> = conversation
                .messages
                .iter()
                .map(|m| m.stored().to_string())
                .collect();
            let (out, notes) = repaired(&conversation.messages);
            fixed += notes.len();
            for message in &out {
                assert_only_allowed_keys(message);
            }
            let after: Vec<String> = conversation
                .messages
                .iter()
                .map(|m| m.stored().to_string())
                .collect();
            assert!(
                before == after
                    && write_conversation(&file, index, &conversation.messages).as_bytes() == bytes
            );
            let written = write_conversation(&file, index, &out);
            let again = read(written.as_bytes()).expect("what was written can be read");
            assert_eq!(
                check(&again.conversations[index].messages, Policy::Request),
                [],
                "{name}"
            );
        }
        println!("{name}: {fixed} repairs");
    }
}

fn assert_only_allowed_keys(message: &Message) {
    let wire: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(message.wire()).expect("an object");
    for key in wire.keys() {
        assert!(WirePolicy::Plain.allows(key), "{key} reaches the wire");
    }
}

/// Messages of every kind that real and broken lists have; each visible text is `<number>`.
fn any_message() -> impl Strategy<Value = u8> {
    0..21_u8
}

fn numbered(kind: u8, n: usize) -> Message {
    let id = ["k", "m"][n % 2];
    let text = match kind {
        0..=3 => return known(user(&format!("<{n}>")), &n.to_string()),
        4..=6 => return known(assistant(&format!("<{n}>")), &n.to_string()),
        7 | 8 => return known(system(&format!("<{n}>")), &n.to_string()),
        9..=11 => return known(tool(id, &format!("<{n}>")), &n.to_string()),
        12 => return calling(None, &[(id, "f", "{}")]),
        13 => return calling(Some(&format!("<{n}>")), &[("k", "f", "{}"), ("m", "g", "{bad"), ("k", "f", "")]),
        14 => r#"{"role":"assistant","content":null}"#.to_owned(),
        15 => r#"{"role":"user","content":[]}"#.to_owned(),
        16 => format!(r#"{{"role":"user","content":[{{"type":"text","text":"<{n}>"}},{{"type":"image_url","image_url":{{"url":"x"}}}}],"message_uid":"{n}"}}"#),
        17 => format!(r#"{{"role":"assistant","content":[{{"type":"image_url","image_url":{{"url":"x"}}}}],"message_uid":"{n}","tool_calls":[]}}"#),
        18 => format!(r#"{{"role":"tool","content":{{"a":"<{n}>"}}}}"#),
        19 => format!(r#"{{"role":"critic","content":"<{n}>","tool_calls":[{{}}],"usage":1}}"#),
        _ => r#"{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{}}}]}"#.to_owned(),
    };
    msg(&text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    // contract: UID-5, UID-17
    // case: 1, 6, 7, 10
    #[test]
    fn any_list_becomes_valid_and_keeps_its_texts(kinds in prop::collection::vec(any_message(), 0..14)) {
        let list: Vec<Message> = kinds.iter().enumerate().map(|(n, &kind)| numbered(kind, n)).collect();
        let result = repair(&list);
        let faults = check(&result.messages, Policy::Request);
        prop_assert!(faults.is_empty() || (result.no_user && faults.iter().all(|v| v.rule == Rule::NoUser)), "{faults:?}");

        let same = repair(&list);
        prop_assert!(same.messages == result.messages && same.notes == result.notes, "not deterministic");
        if faults.is_empty() {
            let again = repair(&result.messages);
            prop_assert!(again.notes.is_empty() && again.messages == result.messages, "not idempotent");
        }

        let whole: String = result.messages.iter().map(|m| m.wire().to_string()).collect();
        let may_go = |n: usize| result.notes.iter().any(|note| {
            (note.message == n && note.rule == Rule::ResultWithoutCall) || note.rule == Rule::TextBesideMedia
        });
        for (n, message) in list.iter().enumerate() {
            let visible = format!("<{n}>");
            prop_assert!(!message.stored().contains(&visible) || whole.contains(&visible) || may_go(n), "{n} is lost");
        }
        for message in &result.messages {
            assert_only_allowed_keys(message);
            // The uids stand in the order of the texts they name.
            let (uid, absorbed) = names(message);
            let text = message.stored();
            let places: Vec<_> = uid.into_iter().chain(absorbed).filter_map(|uid| text.find(&format!("<{uid}>"))).collect();
            prop_assert!(places.is_sorted(), "{places:?}");
        }
    }
}
