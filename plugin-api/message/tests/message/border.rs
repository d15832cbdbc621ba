//! What is mended where a text comes in.

use hermes_message::{Message, made_call_id};
use proptest::prelude::*;

use crate::texts::msg;

// case: 62
#[test]
fn half_a_surrogate_pair_becomes_one_replacement_character() {
    let text = |json: &str| msg(json).text().into_owned();
    assert_eq!(
        text(r#"{"role":"tool","content":"a\ud83d b"}"#),
        "a\u{fffd} b"
    );
    assert_eq!(text(r#"{"role":"tool","content":"\udc97"}"#), "\u{fffd}");
    assert_eq!(text(r#"{"role":"tool","content":"\ud83c\udf78"}"#), "🍸");
    assert_eq!(
        text(r#"{"role":"tool","content":"\uD83C\uDF78\ud83c\ud83c\udf78"}"#),
        "🍸\u{fffd}🍸"
    );
    // An escaped backslash before `ud83d` is a backslash.
    assert_eq!(
        text(r#"{"role":"tool","content":"\\ud83d \\\ud83d"}"#),
        "\\ud83d \\\u{fffd}"
    );
    assert_eq!(
        text(r#"{"role":"tool","content":"\u0000\ufffe"}"#),
        "\0\u{fffe}"
    );
}

// case: 62
#[test]
fn keys_reasoning_and_inner_arguments_are_mended_too() {
    let source = r#"{"role":"assistant","reasoning":"\ud800","\udfff":1,"content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\"q\":\"\\ud83d\",\"ok\":\"\\ud83c\\udf78\",\"no\":\"\\\\ud83d\"}"}}]}"#;
    let message = msg(source);
    serde_json::from_str::<serde_json::Value>(message.stored()).expect("strict readers take it");
    let arguments = message.tool_calls()[0].arguments().into_owned();
    let value: serde_json::Value =
        serde_json::from_str(&arguments).expect("strict readers take the arguments");
    assert_eq!(
        value,
        serde_json::json!({"q": "\u{fffd}", "ok": "🍸", "no": "\\ud83d"})
    );
    assert_eq!(message.original(), Some(source.as_bytes()));
    assert_eq!(
        msg(message.stored()).stored(),
        message.stored(),
        "mending twice changes nothing"
    );
}

// case: 62
#[test]
fn invalid_bytes_and_raw_control_characters_are_mended() {
    let message =
        Message::parse_bytes(b"{\"role\":\"tool\",\"content\":\"a\x97\xff b\"}").expect("readable");
    assert_eq!(message.text(), "a\u{fffd}\u{fffd} b");
    assert!(
        message
            .original()
            .is_some_and(|bytes| bytes.contains(&0x97))
    );
    let message = msg("{\"role\":\"tool\",\"content\":\"a\0\x08\n\\\"\tb\"}");
    assert_eq!(message.text(), "a\0\x08\n\"\tb");
    assert!(message.original().is_some());
    // The error of a text that escaping does not save is the one of the text as it came.
    assert_eq!(
        Message::parse("{\"a\":\"\n\" x}")
            .expect_err("broken")
            .position(),
        5
    );
}

// case: 62
#[test]
fn a_million_joined_emoji_are_one_ordinary_message() {
    let text = "👩‍👩‍👧".repeat(1_000_000);
    let message = msg(&format!("{{\"role\":\"user\",\"content\":\"{text}\"}}"));
    assert_eq!(message.text(), text);
    assert!(message.tokens() > 1_000_000);
}

// contract: UID-20
#[test]
fn a_call_without_an_id_gets_one_that_depends_on_the_call_alone() {
    let source = r#"{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}, {"id":null,"function":{"name":"f","arguments":"{}"}},{"id":"","function":{"name":"g","arguments":{"a":1}}},{"id":"own","function":{"name":"f","arguments":"{}"}}],"x":1}"#;
    let (first, again) = (msg(source), msg(&source.replace("\"x\":1", "\"x\":2")));
    let ids: Vec<&str> = first.tool_calls().iter().map(|call| &*call.id).collect();
    assert_eq!(
        ids,
        again
            .tool_calls()
            .iter()
            .map(|call| &*call.id)
            .collect::<Vec<_>>()
    );
    for id in &ids[..3] {
        let digits = id.strip_prefix("call_").expect("call_ first");
        assert!(
            digits.len() == 12
                && digits
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
            "{id}"
        );
    }
    assert_eq!(ids[0], made_call_id("f", "{}", 0));
    assert_ne!(ids[0], ids[1], "the position counts");
    assert_eq!(ids[3], "own");
    assert_eq!(first.tool_calls()[2].arguments(), r#"{"a":1}"#);
    serde_json::from_str::<serde_json::Value>(first.stored()).expect("JSON");
    assert!(first.wire().contains(ids[1]));
    assert_eq!(first.original(), Some(source.as_bytes()));
}

proptest! {
    // case: 62
    #[test]
    fn any_escapes_become_text_that_strict_readers_take(pieces in prop::collection::vec(
        prop::sample::select(vec![r"\ud83d", r"\udc97", r"\\", r"\n", "u", "d83d", r"\u0041", "é", "x", r#"\""#]), 0..12)) {
        let source = format!(r#"{{"role":"user","content":"{0}","{0}":1}}"#, pieces.concat());
        let message = Message::parse(&source).expect("the grammar is right");
        let value: serde_json::Value = serde_json::from_str(message.stored()).expect("strict");
        prop_assert_eq!(value["content"].as_str(), Some(&*message.text()));
        prop_assert_eq!(Message::parse(&source).expect("again").version(), message.version());
    }

    #[test]
    fn no_bytes_make_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), text in "[\\[\\]{}\",:\\\\u0-9a-f\n]{0,40}") {
        let _ = Message::parse_bytes(&bytes);
        let _ = Message::parse(&text);
        let _ = hermes_message::format::read(&bytes);
        let _ = hermes_message::format::read(text.as_bytes());
    }
}
