//! Which message is which, before and after a pass.

use std::collections::{BTreeMap, BTreeSet};

use hermes_compressor::Settings;
use hermes_message::sequence::{Policy, callers, check};
use hermes_message::{Message, Role, build, flags};

use crate::support::{assert_sound, compressed, kit, numbered, prose, request, round, session};

fn uids(messages: &[Message]) -> Vec<String> {
    messages
        .iter()
        .filter_map(|m| m.identity().uid.as_deref().map(str::to_owned))
        .collect()
}

// contract: UID-5, UID-17, UID-18, UID-19
#[test]
fn kept_and_shortened_messages_keep_all_of_their_identity_and_the_summary_claims_none() {
    let messages = session(50);
    let mut engine = kit(16_384).create().expect("an engine");
    let emitted = engine.compress(&messages).expect("a new list").messages;
    let by_uid: BTreeMap<&str, &Message> = messages
        .iter()
        .filter_map(|m| m.identity().uid.as_deref().map(|uid| (uid, m)))
        .collect();
    let mut kept = 0;
    for message in &emitted {
        match message.identity().uid.as_deref() {
            Some(uid) => {
                kept += 1;
                assert_eq!(
                    message.identity(),
                    by_uid[uid].identity(),
                    "uid, absorbed, call uids"
                );
            }
            None => assert!(
                message.identity().is_empty() && message.has(flags::SUMMARY),
                "only the summary is new"
            ),
        }
    }
    assert!(kept > 5);
    let all = uids(&emitted);
    assert_eq!(
        all.iter().collect::<BTreeSet<_>>().len(),
        all.len(),
        "no uid twice"
    );
}

// case: 12
// contract: UID-8, UID-20
#[test]
fn one_id_for_all_calls_parts_no_result_from_its_call() {
    let mut messages = vec![build::system("s")];
    for n in 0..40 {
        messages.push(build::user(&prose(n, 30)));
        // The same id every time, as some servers do.
        messages.extend(round(
            "k",
            "create",
            &format!("{{\"n\":{n}}}"),
            &format!("result {n} {}", prose(n + 50, 80)),
        ));
        messages.push(build::assistant(&prose(n + 100, 40)));
    }
    messages.extend([build::user("make three")]);
    messages.extend(round("k", "create", "{\"name\":\"a\"}", "A ok"));
    messages.extend(round("k", "create", "{\"name\":\"b\"}", "B ok"));
    messages.extend(round("k", "read", "{}", "ALPHA BETA"));
    messages.push(build::user("join"));
    let mut messages = numbered(messages);
    // A true replay: a result with no open call.
    let replay = messages.len();
    messages.insert(replay - 1, build::tool("k", "ALPHA BETA"));
    let mut list = messages.clone();
    for depth in 0..4 {
        let next = compressed(&list, &Settings::default(), None, &request(8_192));
        let old = check(&list, Policy::Transcript).len();
        assert!(
            check(&next, Policy::Transcript).len() <= old,
            "depth {depth}"
        );
        for (at, caller) in callers(&next).into_iter().enumerate() {
            let Some(caller) = caller else { continue };
            let call = next[caller]
                .identity()
                .tool_call_uids
                .get("k")
                .and_then(|uid| uid.nth(0));
            assert_eq!(
                next[at].identity().tool_call_uid.as_deref(),
                call,
                "the result of this call"
            );
        }
        for text in ["A ok", "B ok", "ALPHA BETA"] {
            let there = next.iter().filter(|m| {
                m.role() == Role::Tool && m.text() == text && m.identity().tool_call_uid.is_some()
            });
            assert_eq!(there.count(), 1, "depth {depth}: {text}");
        }
        assert!(
            next.iter()
                .flat_map(|m| m.tool_calls())
                .all(|call| &*call.id == "k"),
            "the provider's ids stay"
        );
        list = next;
    }
}

// contract: UID-20
#[test]
fn calls_without_ids_stay_with_their_results() {
    let mut messages = vec![build::user("start")];
    for n in 0..40 {
        let call = format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"type":"function","function":{{"name":"look","arguments":"{{\"n\":{n}}}"}}}}]}}"#
        );
        messages.push(Message::parse(&call).expect("a message"));
        messages.push(
            Message::parse(&format!(
                r#"{{"role":"tool","content":"{}"}}"#,
                prose(n, 90)
            ))
            .expect("a message"),
        );
    }
    let ids: Vec<String> = messages
        .iter()
        .flat_map(|m| m.tool_calls())
        .map(|call| call.id.to_string())
        .collect();
    assert!(
        ids.iter()
            .all(|id| id.starts_with("call_") && id.len() == 17)
    );
    let next = compressed(&messages, &Settings::default(), None, &request(4_096));
    assert!(next.len() < messages.len());
    assert_sound(&messages, &next, "calls without ids");
    assert!(
        next.iter()
            .flat_map(|m| m.tool_calls())
            .all(|call| ids.contains(&call.id.to_string()))
    );
}

// contract: UID-2, UID-10
#[test]
fn messages_without_identity_are_no_error() {
    let messages: Vec<Message> = session(40)
        .into_iter()
        .map(|m| Message::parse(m.stored()).expect("a message"))
        .collect();
    let next = compressed(&messages, &Settings::default(), None, &request(8_192));
    assert!(next.len() < messages.len());
    assert!(uids(&next).is_empty(), "none is invented");
}

// contract: UID-4, UID-7
#[test]
fn two_rows_of_one_message_stay_two_rows() {
    let mut messages = session(40);
    let at = messages.len() - 3;
    let twin = build::with_content(&messages[at], "a newer version of the same result");
    let before = messages[at].identity().uid.clone();
    messages.push(build::user("go on"));
    messages.extend(round("again", "read_file", "{}", "x"));
    let last = messages.len() - 1;
    messages[last] = build::tool("again", &twin.text()).replaced_identity(twin.identity().clone());
    let next = compressed(&messages, &Settings::default(), None, &request(65_536));
    assert_sound(&messages, &next, "twins");
    assert_eq!(
        next.iter().filter(|m| m.identity().uid == before).count(),
        2
    );
}
