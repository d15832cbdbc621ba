//! Answers that break off, stall, or say nothing.

use std::time::{Duration, Instant};

use hermes::provider::FailureKind;
use hermes_tests::Behaviour;

use crate::support::Pair;

#[test]
fn a_reset_in_mid_stream_keeps_what_had_arrived() {
    let pair = Pair::new();
    for behaviour in [
        Behaviour::text("one two three four").reset_after(3),
        Behaviour::text("one two three four").close_after(3),
        Behaviour::text("one two three four").half_event_after(3),
    ] {
        let told = format!("{behaviour:?}");
        let came = pair.ask(behaviour);
        assert_eq!(came.text, "one two three ", "{told}");
        let failure = came.failure();
        assert_eq!(failure.kind, FailureKind::Connection, "{told}: {failure}");
        let partial = failure.partial.as_ref().expect("what had arrived");
        assert_eq!(partial.text(), "one two three ", "{told}");
        assert!(failure.message.contains("broke off"), "{failure}");
    }
    // And the next request goes through.
    assert_eq!(
        pair.ask(Behaviour::text("fine")).reply().message.text(),
        "fine"
    );
}

#[test]
fn of_the_calls_only_complete_ones_are_kept() {
    let pair = Pair::new();
    let calls = [("a", "f", "{\"x\":1}"), ("b", "g", "{\"y\": 2, \"z\": 3}")];
    // Pieces: the head and the arguments of the first, the head and one word of the second.
    let failure = pair.ask(Behaviour::calls(&calls).reset_after(4)).failure();
    let partial = failure.partial.expect("what had arrived");
    let names: Vec<_> = partial
        .tool_calls()
        .iter()
        .map(|call| call.name.to_string())
        .collect();
    assert_eq!(names, ["f"]);
    let failure = pair
        .ask(Behaviour::calls(&calls[1..]).reset_after(2))
        .failure();
    assert_eq!(
        failure.partial, None,
        "a call that is cut off alone is nothing"
    );
}

#[test]
fn a_connection_that_never_answers_is_lost() {
    let pair = Pair::new();
    let failure = pair.ask(Behaviour::refuse()).failure();
    assert_eq!(failure.kind, FailureKind::Connection, "{failure}");
    assert!(failure.kind.is_transient() && failure.partial.is_none());
    let url = pair.server.url();
    drop(pair);
    let gone = Pair::with(|options| options.base_url = url);
    let failure = gone.send(&hermes::provider::Cancel::new()).failure();
    assert_eq!(failure.kind, FailureKind::Connection, "{failure}");
    assert!(
        failure.message.contains("is the server running"),
        "{failure}"
    );
}

#[test]
fn silence_ends_at_its_limit() {
    let pair = Pair::with(|options| {
        // Long enough that a busy machine sends what it has to send in between.
        options.timeouts.first_byte = Duration::from_secs(1);
        options.timeouts.idle = Duration::from_secs(1);
    });
    for (behaviour, partial) in [
        (Behaviour::stall(), None),
        (Behaviour::text("a b c").stall_after(2), Some("a b ")),
    ] {
        let start = Instant::now();
        let failure = pair.ask(behaviour).failure();
        assert_eq!(failure.kind, FailureKind::Stalled, "{failure}");
        assert!(start.elapsed() < Duration::from_secs(15));
        assert_eq!(
            failure.partial.map(|m| m.text().into_owned()).as_deref(),
            partial
        );
    }
    // The answer is there, only its figures are missing: nothing is lost.
    let reply = pair.ask(Behaviour::text("a b").stall_after(3)).reply();
    assert_eq!(
        (reply.message.text().into_owned(), reply.usage),
        ("a b".into(), None)
    );
}

#[test]
fn signs_of_life_alone_do_not_hold_forever() {
    let pair = Pair::with(|options| options.timeouts.whole = Duration::from_millis(200));
    for sign in [": still there\n\n", "\n", " ", "event: ping\n"] {
        let start = Instant::now();
        let failure = pair.ask(Behaviour::alive(sign.as_bytes())).failure();
        assert_eq!(failure.kind, FailureKind::Stalled, "{sign:?}: {failure}");
        assert!(start.elapsed() < Duration::from_secs(15));
    }
}

#[test]
fn a_whole_answer_that_is_cut_is_none() {
    let pair = Pair::with(|options| options.stream = false);
    let failure = pair
        .ask(Behaviour::text("one two").reset_after(0))
        .failure();
    assert_eq!(failure.kind, FailureKind::Connection, "{failure}");
    assert_eq!(failure.partial, None);
}

// case: 28
#[test]
fn an_answer_that_says_nothing_is_none() {
    let pair = Pair::new();
    for behaviour in [
        Behaviour::empty(),
        Behaviour::empty().in_one_piece(),
        Behaviour::text("   \n"),
        Behaviour::empty().thinking("only a thought"),
        Behaviour::body("{}"),
        Behaviour::body("[]"),
        Behaviour::body(r#"{"choices":[]}"#),
        Behaviour::body(r#"{"choices":[{"message":{"content":null}}]}"#),
        Behaviour::body(
            r#"{"choices":[{"message":{"content":"x","tool_calls":[{"function":{}}]}}]"#,
        ),
        Behaviour::body("null"),
        Behaviour::status(200, ""),
        Behaviour::events(&["[DONE]"]),
        Behaviour::events(&["not json", "[DONE]"]),
        Behaviour::raw(b"\xff\xfe\x00"),
    ] {
        let told = format!("{behaviour:?}");
        let failure = pair.ask(behaviour).failure();
        assert!(
            matches!(failure.kind, FailureKind::BadAnswer | FailureKind::Server),
            "{told}: {:?} {failure}",
            failure.kind
        );
        assert_eq!(failure.partial, None, "{told}");
    }
    let long = pair.ask(Behaviour::empty().finish("length")).failure();
    assert!(long.message.contains("model.max_tokens"), "{long}");
}

#[test]
fn junk_between_good_events_is_left_out_and_told() {
    let pair = Pair::new();
    let reply = pair
        .ask(Behaviour::events(&[
            r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
            "{\"choices\": [",
            "17",
            r#"{"choices":[{"index":0,"delta":{"content":"b \ud83d"},"finish_reason":"stop"}]}"#,
            "[DONE]",
            "behind the end",
        ]))
        .reply();
    assert_eq!(reply.message.text(), "ab \u{fffd}");
    assert_eq!(reply.notes.len(), 1, "{:?}", reply.notes);
}
