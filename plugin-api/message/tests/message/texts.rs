//! The two texts of a message and what is read from them.

use std::sync::Arc;

use hermes_message::{Content, Identity, Message, MessageError, Role, WirePolicy, flags};

pub(crate) fn msg(json: &str) -> Message {
    Message::parse(json).expect("a message")
}

// contract: UID-9
#[test]
fn identity_leaves_the_text_and_other_keys_stay_as_written() {
    let text = r#"{ "role":"user" , "message_uid":"u1","x": 1.50e+3,"content":"a\u0041", "_tool_call_uid":"t" }"#;
    let message = msg(text);
    assert_eq!(
        &**message.stored(),
        r#"{ "role":"user","x": 1.50e+3,"content":"a\u0041" }"#
    );
    assert_eq!(
        &**message.wire(),
        r#"{ "role":"user","content":"a\u0041" }"#
    );
    assert_eq!(message.identity().uid.as_deref(), Some("u1"));
    assert_eq!(message.identity().tool_call_uid.as_deref(), Some("t"));
    assert_eq!(message.text(), "aA");
    assert_eq!(message.original(), None);
    assert_eq!(
        message.to_json_with_identity(),
        r#"{ "role":"user","x": 1.50e+3,"content":"a\u0041" ,"message_uid":"u1","_tool_call_uid":"t"}"#
    );
}

#[test]
fn the_wire_text_is_the_stored_one_when_nothing_has_to_go() {
    let message = msg(r#"{"message_uid":"u","role":"user","content":"hi"}"#);
    assert!(Arc::ptr_eq(message.stored(), message.wire()));
    assert!(Arc::ptr_eq(
        message.stored(),
        &message.wire_with(WirePolicy::Reasoning)
    ));
}

#[test]
fn a_key_that_is_null_stays_at_home_except_content() {
    let message = msg(
        r#"{"role":"assistant","content":null,"tool_calls":null,"function_call":null,"refusal":null}"#,
    );
    assert_eq!(&**message.wire(), r#"{"role":"assistant","content":null}"#);
}

// contract: UID-9
#[test]
fn persistence_keys_never_reach_the_wire_however_they_are_written() {
    for key in hermes_message::PERSISTENCE_ONLY_MESSAGE_FIELDS {
        let escaped = key.replacen('_', "\\u005f", 1);
        for key in [(*key).to_owned(), escaped] {
            let message = msg(&format!(
                r#"{{"{key}":"x","role":"user","content":"c","{key}":["y"]}}"#
            ));
            assert_eq!(
                &**message.wire(),
                r#"{"role":"user","content":"c"}"#,
                "{key}"
            );
            assert_eq!(
                &*message.wire_with(WirePolicy::Reasoning),
                r#"{"role":"user","content":"c"}"#,
                "{key}"
            );
            let bare = msg(r#"{"role":"user","content":"c"}"#);
            assert_eq!(
                message.tokens(),
                bare.tokens(),
                "{key} counts in the estimate"
            );
        }
    }
}

#[test]
fn reasoning_goes_out_only_where_the_policy_says_so() {
    let text = r#"{"role":"assistant","content":"c","reasoning_content":"r","usage":{}}"#;
    assert_eq!(&**msg(text).wire(), r#"{"role":"assistant","content":"c"}"#);
    assert_eq!(
        &*msg(text).wire_with(WirePolicy::Reasoning),
        r#"{"role":"assistant","content":"c","reasoning_content":"r"}"#
    );
}

#[test]
fn of_a_doubled_key_the_last_one_counts_everywhere() {
    let message = msg(r#"{"role":"user","content":"first","content":"second"}"#);
    assert_eq!(message.text(), "second");
    assert_eq!(&**message.wire(), r#"{"role":"user","content":"second"}"#);
}

#[test]
fn identity_can_be_replaced_without_a_copy_of_the_text() {
    let message = msg(r#"{"role":"user","content":"c","message_uid":"a"}"#);
    let other = message.replaced_identity(Identity::of_uid("b"));
    assert!(Arc::ptr_eq(message.stored(), other.stored()));
    assert_eq!(other.identity().uid.as_deref(), Some("b"));
    assert_eq!(message.identity().uid.as_deref(), Some("a"));
}

// contract: UID-4
#[test]
fn a_rewrite_keeps_identity_and_is_another_version() {
    let message = msg(r#"{"role":"user","content":"c","message_uid":"a"}"#);
    let newer = message
        .rewritten(r#"{"role":"user","content":"d","message_uid":"zzz"}"#)
        .expect("valid");
    assert_eq!(newer.identity(), message.identity());
    assert_ne!(newer.version(), message.version());
    assert_eq!(
        newer.version(),
        xxhash_rust::xxh3::xxh3_64(newer.stored().as_bytes())
    );
}

#[test]
fn roles_flags_and_calls_are_read() {
    let message = msg(
        r#"{"role":"assistant","content":null,"_compressed_summary":true,"tool_calls":[
        {"id":"a|x","type":"function","function":{"name":"f","arguments":"{\"p\":1}"}}]}"#,
    );
    assert_eq!(message.role(), Role::Assistant);
    assert!(message.has(flags::TOOL_CALLS | flags::SUMMARY));
    let call = &message.tool_calls()[0];
    assert_eq!((&*call.id, call.key(), &*call.name), ("a|x", "a", "f"));
    assert_eq!(call.arguments(), r#"{"p":1}"#);
    assert_eq!(
        &message.stored()[call.arguments_range()],
        call.raw_arguments()
    );
    assert!(matches!(message.content(), Content::Null));
    assert_eq!(msg(r#"{"role":"developer"}"#).role(), Role::System);
    assert_eq!(msg(r#"{"content":1}"#).role(), Role::Other);
    assert_eq!(
        msg(r#"{"role":"user","tool_calls":[{}]}"#).flags() & flags::TOOL_CALLS,
        0
    );
    assert_eq!(
        msg(r#"{"role":"user","_absorbed_message_uids":["a"]}"#).flags(),
        flags::ABSORBED
    );
}

// case: 7
#[test]
fn blank_content_is_known_in_every_spelling_and_stays_as_it_was() {
    let blank = [
        r#"{"role":"assistant"}"#,
        r#"{"role":"assistant","content":null}"#,
        r#"{"role":"assistant","content":""}"#,
        r#"{"role":"assistant","content":"  \n"}"#,
        r#"{"role":"assistant","content":[]}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":""}]}"#,
        r#"{"role":"assistant","content":null,"reasoning":"thinking…"}"#,
    ];
    for text in blank {
        let message = msg(text);
        assert!(message.is_blank() && message.says_nothing(), "{text}");
        assert_eq!(&**message.stored(), text);
        assert!(message.tokens() > 0);
    }
    let speaking = [
        r#"{"role":"assistant","content":null,"refusal":"no"}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":""}}]}"#,
    ];
    for text in speaking {
        assert!(msg(text).is_blank() && !msg(text).says_nothing(), "{text}");
    }
    assert!(
        !msg(r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}"#)
            .is_blank()
    );
}

#[test]
fn what_is_no_message_is_refused_with_its_place_and_without_its_text() {
    let position = |text: &str| Message::parse(text).map(|_| ()).map_err(|e| e.position());
    assert_eq!(position("  [1]"), Err(2));
    assert_eq!(position(""), Err(0));
    assert_eq!(position("{\"a\":\n  secret}"), Err(8));
    assert_eq!(position("{\"a\":1} x"), Err(8));
    for text in [
        "\"secret\"",
        "{\"a\":secret}",
        "secret",
        "{\"secret\"}",
        "{\"a\":1}secret",
    ] {
        let shown = Message::parse(text).expect_err("no message").to_string();
        assert!(!shown.contains("secret"), "{shown}");
    }
    assert!(matches!(
        Message::parse("3"),
        Err(MessageError::NotAnObject {
            found: "a number",
            ..
        })
    ));
}

#[test]
fn deep_nesting_is_no_danger() {
    let depth = 100_000;
    let text = format!(
        r#"{{"role":"user","content":{}{}}}"#,
        "[".repeat(depth),
        "]".repeat(depth)
    );
    let message = msg(&text);
    assert!(!message.is_blank());
    assert!(message.tokens() > 0);
}
