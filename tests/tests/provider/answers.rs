//! Answers in every form that servers give them.

use std::time::{Duration, Instant};

use hermes::provider::Finish;
use hermes_message::{Role, flags};
use hermes_tests::Behaviour;
use serde_json::json;

use crate::support::{KEY, Pair};

#[test]
fn a_stream_and_a_whole_answer_give_the_same_message() {
    let pair = Pair::new();
    let answer = || {
        Behaviour::text("Good day to you, \u{e4}\u{1f600}!")
            .thinking("who is it")
            .and_calls(&[("a", "look", "{\"at\": 1}"), ("b", "look", "{\"at\": 2}")])
    };
    let streamed = pair.ask(answer());
    assert_eq!(streamed.text, "Good day to you, \u{e4}\u{1f600}!");
    assert_eq!(streamed.reasoning, "who is it");
    assert_eq!(streamed.tools, ["look", "look"]);
    let streamed = streamed.reply();
    let whole = pair.ask(answer().in_one_piece());
    assert_eq!(
        (&*whole.text, &*whole.reasoning),
        ("Good day to you, \u{e4}\u{1f600}!", "who is it")
    );
    let whole = whole.reply();
    let bytewise = pair.ask(answer().in_portions(1).with_comments()).reply();
    for reply in [&streamed, &whole, &bytewise] {
        assert_eq!(reply.message.role(), Role::Assistant);
        assert_eq!(
            &**reply.message.stored(),
            r#"{"role":"assistant","content":"Good day to you, ä😀!","reasoning_content":"who is it","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\": 1}"}},{"id":"b","type":"function","function":{"name":"look","arguments":"{\"at\": 2}"}}]}"#
        );
        assert_eq!(reply.finish, Finish::ToolCalls);
        assert!(reply.notes.is_empty(), "{:?}", reply.notes);
        let usage = reply.usage.as_ref().expect("usage");
        assert_eq!(
            usage.prompt_tokens,
            Some(i64::try_from(pair.body().len().div_ceil(4)).expect("small"))
        );
    }
}

/// Without this each turn pays for a new connection, over https with several round trips.
#[test]
fn a_connection_is_used_again_after_every_form_of_answer() {
    let text = || Behaviour::text("one two");
    for behaviour in [
        text(),
        text().in_one_piece(),
        text().in_portions(1).with_comments(),
        text().without_done(),
        Behaviour::status(400, "no"),
        // The end of the body comes a while after the last word.
        text().slowly(Duration::from_millis(50)),
    ] {
        let pair = Pair::new();
        // When a connection is free again is for the machine to say; never is too late.
        let used_again = (1..=20).any(|requests| {
            let _ = pair.ask(behaviour.clone());
            pair.server.connections() < requests
        });
        assert!(used_again, "{behaviour:?}");
    }
}

#[test]
fn an_answer_is_not_held_back_by_a_body_that_does_not_end() {
    let pair = Pair::new();
    let endless = || Behaviour::text("one two").stall_at_end();
    let start = Instant::now();
    for _ in 0..3 {
        assert_eq!(pair.ask(endless()).reply().message.text(), "one two");
    }
    // The server would be silent for as long as it is there.
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn the_request_is_the_body_byte_for_byte() {
    let pair = Pair::with(|options| options.max_tokens = Some(77));
    pair.ask(Behaviour::text("x")).reply();
    let requests = pair.server.requests();
    let request = &requests[0];
    assert_eq!(request.text(), pair.body());
    assert_eq!(request.json()["max_tokens"], 77);
    assert_eq!(request.json()["stream_options"]["include_usage"], true);
    assert_eq!(
        (request.method(), request.path()),
        ("POST", "/v1/chat/completions")
    );
    assert_eq!(
        request.header("authorization"),
        Some(&*format!("Bearer {KEY}"))
    );
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert!(
        request
            .header("user-agent")
            .is_some_and(|name| name.starts_with("hermes/"))
    );
}

#[test]
fn without_streaming_nothing_of_it_is_asked_for() {
    let pair = Pair::with(|options| options.stream = false);
    assert_eq!(pair.ask(Behaviour::text("x")).reply().message.text(), "x");
    assert!(!pair.server.requests()[0].text().contains("stream"));
    // A server that streams all the same is understood.
    let streams = Behaviour::events(&[
        r#"{"choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]);
    assert_eq!(pair.ask(streams).reply().message.text(), "yes");
}

#[test]
fn usage_is_taken_wherever_it_comes() {
    let pair = Pair::new();
    let told = json!({"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107,
        "prompt_tokens_details": {"cached_tokens": 64}});
    let at_end = pair
        .ask(Behaviour::text("a b c").usage(told.clone()))
        .reply();
    let whole = pair
        .ask(Behaviour::text("a b c").usage(told).in_one_piece())
        .reply();
    for reply in [at_end, whole] {
        let usage = reply.usage.expect("usage");
        assert_eq!(usage.cache_read_tokens, Some(64));
        assert_eq!(usage.input_tokens, Some(36));
        assert_eq!(usage.total_tokens, Some(107));
        assert!(usage.json.contains("\"cache_read_tokens\":64"));
        assert!(usage.json.contains("prompt_tokens_details"));
    }
    assert!(
        pair.ask(Behaviour::text("a b c").usage_in_every_event())
            .reply()
            .usage
            .is_some()
    );
    assert_eq!(
        pair.ask(Behaviour::text("a b c").without_usage())
            .reply()
            .usage,
        None
    );
    let odd = json!({"prompt_tokens": -4, "completion_tokens": "x", "total_tokens": 1e300});
    assert_eq!(
        pair.ask(Behaviour::text("a").usage(odd)).reply().usage,
        None
    );
}

// contract: UID-8, UID-12, UID-20
#[test]
fn ids_of_calls_stay_as_they_came_and_missing_ones_are_made() {
    let pair = Pair::new();
    let same = pair
        .ask(Behaviour::calls(&[
            ("c", "f", "{}"),
            ("c", "f", "{}"),
            ("c", "g", "{}"),
        ]))
        .reply();
    let ids: Vec<_> = same
        .message
        .tool_calls()
        .iter()
        .map(|call| call.id.to_string())
        .collect();
    assert_eq!(ids, ["c", "c", "c"]);
    let none = || {
        let calls = [
            ("", "f", "{\"a\":1}"),
            ("", "f", "{\"a\":1}"),
            ("", "g", "{}"),
        ];
        let reply = pair.ask(Behaviour::calls(&calls)).reply();
        let ids = reply
            .message
            .tool_calls()
            .iter()
            .map(|call| call.id.to_string());
        ids.collect::<Vec<_>>()
    };
    let ids = none();
    assert_eq!(
        ids,
        none(),
        "the same name, arguments and position give the same id"
    );
    for id in &ids {
        let hex = id.strip_prefix("call_").expect("call_");
        assert!(
            hex.len() == 12
                && hex
                    .chars()
                    .all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c)),
            "{id}"
        );
    }
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    assert_eq!(ids[0], hermes_message::made_call_id("f", "{\"a\":1}", 0));
}

#[test]
fn cut_arguments_are_kept_as_they_came() {
    let pair = Pair::new();
    let reply = pair
        .ask(Behaviour::calls(&[("a", "f", "{\"path\": \"/tm")]).finish("length"))
        .reply();
    assert_eq!(
        &*reply.message.tool_calls()[0].arguments(),
        "{\"path\": \"/tm"
    );
    assert_eq!(reply.finish, Finish::Length);
    assert!(
        reply.notes.iter().any(|note| note.contains("arguments")),
        "{:?}",
        reply.notes
    );
    assert!(reply.message.has(flags::TOOL_CALLS));
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_told() {
    let pair = Pair::new();
    let reply = pair.ask(Behaviour::invalid_utf8()).reply();
    assert_eq!(reply.message.text(), "caf\u{fffd}\u{fffd}!");
    assert_eq!(reply.notes.len(), 1);
}

#[test]
fn every_end_has_its_reason() {
    let pair = Pair::new();
    for (reason, want) in [
        ("stop", Finish::Stop),
        ("end_turn", Finish::Stop),
        ("length", Finish::Length),
        ("max_tokens", Finish::Length),
        ("content_filter", Finish::Filter),
    ] {
        assert_eq!(
            pair.ask(Behaviour::text("a").finish(reason)).reply().finish,
            want,
            "{reason}"
        );
    }
    assert_eq!(
        pair.ask(Behaviour::text("a b").without_done())
            .reply()
            .message
            .text(),
        "a b"
    );
}

#[test]
fn lists_refusals_and_second_choices_are_read() {
    let pair = Pair::new();
    let parts = r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"},{"type":"text","text":"b"}]},"finish_reason":"stop"}]}"#;
    let came = pair.ask(Behaviour::body(parts));
    assert_eq!(came.reasoning, "hm");
    assert_eq!(came.reply().message.text(), "ab");
    let refusal = r#"{"choices":[{"message":{"content":null,"refusal":"I will not"},"finish_reason":"stop"}]}"#;
    let came = pair.ask(Behaviour::body(refusal));
    assert_eq!(came.text, "I will not");
    assert_eq!(came.reply().message.text(), "I will not");
    let two = r#"{"choices":[{"index":1,"message":{"content":"second"}},{"index":0,"message":{"content":"first"},"finish_reason":"stop"}]}"#;
    assert_eq!(
        pair.ask(Behaviour::body(two)).reply().message.text(),
        "first"
    );
    // Identity is the host's own: a server cannot put any on a message.
    let uid = r#"{"choices":[{"message":{"content":"x","message_uid":"0123","_tool_call_uids":{}},"finish_reason":"stop"}]}"#;
    let reply = pair.ask(Behaviour::body(uid)).reply();
    assert_eq!(
        reply.message.to_json_with_identity(),
        r#"{"role":"assistant","content":"x"}"#
    );
}
