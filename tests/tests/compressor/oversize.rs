//! What must stay is larger than the window: it is cut inside the tail, visibly, and the request fits.

use hermes_compressor::Settings;
use hermes_compressor::pass::{Cause, Request};
use hermes_message::{Message, Role, build};
use hermes_plugin_api::abi;
use serde_json::{Value, json};

use crate::support::{
    SUMMARY, Scripted, assert_sound, compressed, kit, numbered, prose, request, round, says,
    session, tokens,
};

const WINDOWS: [u64; 3] = [2_048, 8_192, 32_768];

/// A text of about so many tokens, as an edit tool gets it: code with line breaks, tabs and quotes.
fn code(tokens: u64) -> String {
    let lines = usize::try_from(tokens / 15).expect("small");
    (0..lines.max(1))
        .map(|n| format!("\tlet value_{n} = parse(\"part {n}\", &mut state)?;\n"))
        .collect()
}

/// An edit with both its texts long: neither alone is more than the whole may have.
fn edit(tokens: u64) -> String {
    let half = code(tokens / 2);
    json!({"path": "src/interactive.rs", "oldText": half, "newText": half.replace("parse", "read"), "line": 17})
        .to_string()
}

/// A list of thousands of short values: no text in it is long.
fn many(tokens: u64) -> String {
    let values: Vec<Value> = (0..tokens / 8)
        .map(|n| json!({"id": n, "name": format!("item {n}")}))
        .collect();
    json!({ "items": values }).to_string()
}

fn huge_call(arguments: &str) -> Vec<Message> {
    let mut messages = vec![
        build::system("You are Hermes."),
        build::user("rewrite it all"),
    ];
    messages.extend(round("a", "edit", arguments, "edited"));
    messages.extend(round(
        "b",
        "run",
        "{\"command\":\"make test\"}",
        "all passed",
    ));
    messages
}

/// The kinds, each larger than the window by itself.
fn kinds(window: u64) -> Vec<(&'static str, Vec<Message>)> {
    let big = window * 3;
    let mut kinds = vec![
        ("huge arguments", huge_call(&edit(big))),
        ("arguments of many small values", huge_call(&many(big))),
        (
            "arguments that are no JSON",
            huge_call(&format!("{{\"path\": \"x\", \"text\": {}", code(big))),
        ),
    ];

    let mut result = session(2);
    result.push(build::user("read it"));
    result.extend(round("a", "read", "{}", &code(big)));
    kinds.push(("huge result", result));

    let mut parallel = vec![build::system("s"), build::user("read them")];
    let calls = [
        ("a", "read", "{}"),
        ("b", "read", "{}"),
        ("c", "read", "{}"),
    ];
    parallel.push(build::calling(None, &calls));
    parallel.extend(["a", "b", "c"].map(|id| build::tool(id, &code(big))));
    kinds.push(("three huge parallel results", parallel));

    let mut open = session(2);
    open.push(build::user("rewrite it"));
    open.push(build::calling(
        Some("I rewrite it."),
        &[("a", "edit", &edit(big)), ("b", "look", "{}")],
    ));
    open.push(build::tool("b", "seen"));
    open.push(build::user("stop"));
    kinds.push(("a huge call that was interrupted", open));

    let mut users = vec![build::system("s"), build::user("first")];
    users.push(build::assistant("yes"));
    users.push(build::user(&code(big)));
    users.push(build::user("and what is this?"));
    kinds.push(("a huge user message beside the newest one", users));
    kinds
        .into_iter()
        .map(|(name, messages)| (name, numbered(messages)))
        .collect()
}

fn note_of_size(message: &Message) -> bool {
    let text = message.stored();
    text.contains("characters were cut") || text.contains("characters left out")
}

fn forced(cause: Cause, window: u64, current: u64) -> Request<'static> {
    Request {
        cause,
        current_tokens: Some(current),
        ..request(window)
    }
}

// case: 26
// contract: ENG-4, PASS-6, PASS-8
#[test]
fn whatever_must_stay_is_cut_inside_the_tail_until_the_request_fits() {
    let mut stayed = 0;
    for window in WINDOWS {
        for (name, messages) in kinds(window) {
            for cause in [Cause::Automatic, Cause::Overflow, Cause::Manual] {
                let what = format!("{name}, window {window}, {cause:?}");
                assert!(tokens(&messages) > window, "{what}: too small to show");
                let asked = forced(cause, window, tokens(&messages));
                let next = compressed(&messages, &Settings::default(), None, &asked);
                assert_sound(&messages, &next, &what);
                assert!(
                    tokens(&next) < window,
                    "{what}: {} in {window}",
                    tokens(&next)
                );
                for message in next.iter().filter(|m| shortened(&messages, m)) {
                    assert!(note_of_size(message), "{what}: a visible note: {message:?}");
                }
                stayed += next.iter().filter(|m| shortened(&messages, m)).count();
                assert_identity_stays(&messages, &next, &what);
                assert_json_stays(&messages, &next, &what);

                // Never an endless loop: what fits already is not cut once more.
                let again = forced(Cause::Overflow, window, tokens(&next));
                let third = compressed(&next, &Settings::default(), None, &again);
                assert!(tokens(&third) <= tokens(&next), "{what}: again");
            }
        }
    }
    assert!(
        stayed > 3 * WINDOWS.len() * 5,
        "most are cut where they stand: {stayed}"
    );
}

/// Whether a message is an old one with a much shorter text.
fn shortened(before: &[Message], message: &Message) -> bool {
    let uid = &message.identity().uid;
    uid.is_some()
        && before.iter().any(|old| {
            old.identity().uid == *uid && old.stored().len() > message.stored().len() + 1_000
        })
}

/// Every message with a uid is a version of the old one with it, in the old order, and the newest user message is there.
fn assert_identity_stays(before: &[Message], after: &[Message], what: &str) {
    let places: Vec<usize> = after
        .iter()
        .filter(|m| m.identity().uid.is_some())
        .map(|m| {
            let old = before
                .iter()
                .position(|old| old.identity() == m.identity() && old.role() == m.role());
            old.unwrap_or_else(|| panic!("{what}: an identity of nowhere: {m:?}"))
        })
        .collect();
    assert!(places.is_sorted(), "{what}: {places:?}");
    let newest = before.iter().rposition(|m| m.role() == Role::User);
    assert!(
        newest.is_some_and(|at| places.contains(&at)),
        "{what}: newest user"
    );
}

/// Arguments that were JSON are JSON with the same keys, or say that all of them were left out.
fn assert_json_stays(before: &[Message], after: &[Message], what: &str) {
    for message in after.iter().filter(|m| m.identity().uid.is_some()) {
        let old = before
            .iter()
            .find(|old| old.identity().uid == message.identity().uid)
            .expect("an old version");
        for (new, old) in message.tool_calls().iter().zip(old.tool_calls()) {
            assert_eq!((&new.id, &new.name), (&old.id, &old.name), "{what}");
            assert_eq!(
                new.arguments_are_json(),
                old.arguments_are_json(),
                "{what}: {}",
                new.arguments()
            );
            let (Ok(new), Ok(old)) = (
                serde_json::from_str::<Value>(&new.arguments()),
                serde_json::from_str::<Value>(&old.arguments()),
            ) else {
                continue;
            };
            let keys = |value: &Value| value.as_object().map(|o| o.keys().cloned().collect());
            let keys: (Option<Vec<String>>, Option<Vec<String>>) = (keys(&new), keys(&old));
            assert!(
                keys.0 == keys.1 || new.get("left_out").is_some_and(Value::is_string),
                "{what}: {keys:?}"
            );
            if new.get("left_out").is_none() {
                assert_eq!(new.get("path"), old.get("path"), "{what}: short values");
                assert_eq!(new.get("line"), old.get("line"), "{what}: numbers");
            }
        }
    }
}

// case: 26
#[test]
fn older_messages_give_way_before_the_newest_and_the_newest_user_message_last() {
    let mut messages = vec![build::system("s"), build::user("read all, and mind RULE-9")];
    let calls = ["a", "b", "c", "d"].map(|id| (id, "read", "{}"));
    messages.push(build::calling(None, &calls));
    messages.push(build::tool("a", &prose(1, 6_000)));
    let fresh = prose(2, 900);
    messages.extend(["b", "c", "d"].map(|id| build::tool(id, &fresh)));
    let messages = numbered(messages);
    let asked = forced(Cause::Overflow, 8_192, tokens(&messages));
    let next = compressed(&messages, &Settings::default(), None, &asked);
    assert_sound(&messages, &next, "order");
    assert_eq!(next.len(), messages.len(), "all of it must stay");
    assert!(note_of_size(&next[3]), "the oldest result is cut");
    for at in 4..7 {
        assert_eq!(next[at], messages[at], "the newest results are whole");
    }
    assert_eq!(next[1], messages[1], "the newest user message is untouched");
}

// case: 26, 27
// contract: PASS-8
#[test]
fn a_pause_does_not_leave_a_request_over_the_window_that_a_forced_pass_can_cut() {
    let window = 8_192;
    let mut engine = kit(8_192).create().expect("an engine");
    // Two passes that free nothing make the engine pause.
    let small = numbered(vec![build::system("s"), build::user(&prose(5, 9_000))]);
    for _ in 0..3 {
        let _ = engine.compress_with(&small, |args| args.current_tokens = 60_000);
    }
    let messages = numbered(huge_call(&edit(window * 2)));
    let size = i64::try_from(tokens(&messages)).expect("small");
    let emitted = engine
        .compress_with(&messages, |args| {
            args.trigger = abi::TRIGGER_OVERFLOW;
            args.current_tokens = size;
            args.target_tokens = 6_000;
        })
        .expect("a list");
    assert!(!emitted.is_unchanged(), "{}", emitted.text);
    assert_sound(&messages, &emitted.messages, "after a pause");
    assert!(tokens(&emitted.messages) <= 6_000);
}

// case: 26
#[test]
fn a_long_session_before_the_oversize_call_is_summed_up_and_the_call_cut() {
    for window in WINDOWS {
        let mut messages = session(30);
        messages.push(build::user("rewrite it"));
        messages.extend(round("a", "edit", &edit(window * 2), "edited"));
        let messages = numbered(messages);
        let mut helper = Scripted::new(0, |_, _: &str| says(SUMMARY));
        let asked = forced(Cause::Overflow, window, tokens(&messages));
        let next = compressed(&messages, &Settings::default(), Some(&mut helper), &asked);
        assert_sound(&messages, &next, "summed up");
        assert!(tokens(&next) < window, "{} in {window}", tokens(&next));
        assert!(next.len() < messages.len(), "summed up");
        let call = next
            .iter()
            .rev()
            .find(|m| !m.tool_calls().is_empty())
            .expect("the call stays");
        assert!(call.tool_calls()[0].arguments_are_json() && note_of_size(call));
        assert_eq!(next.last(), messages.last());
    }
}
