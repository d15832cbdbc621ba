//! The model behind an engine's `complete`.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use hermes::config::{Config, HermesHome};
use hermes::engine::Completer;
use hermes::provider::{
    HttpOptions, HttpProvider, ModelCompleter, Opened, RetryPolicy, Wishes, open,
};
use hermes_tests::{Behaviour, FakeProvider, Home, OverflowError};
use serde_json::{Value, json};

const QUESTION: &str = r#"{"messages":[{"role":"user","content":"sum up"}],"purpose":"summary"}"#;

fn completer(server: &FakeProvider) -> ModelCompleter {
    let provider = HttpProvider::new(HttpOptions::new(server.url())).expect("a provider");
    let policy = RetryPolicy {
        scale: 0.01,
        ..RetryPolicy::default()
    };
    ModelCompleter::new(std::sync::Arc::new(provider), "helper", Some(4096)).with_policy(policy)
}

fn ask(completer: &dyn Completer, question: &str) -> Value {
    let answer = completer.complete(question, None, &|| false, &mut |_| {});
    serde_json::from_str(&answer).expect("an answer is JSON")
}

fn opened(home: &Path, config: &str) -> Opened {
    let config = Config::from_text(config.as_bytes(), &home.join("config.yaml"));
    open(&config, &HermesHome::at(home), &Wishes::default()).expect("opened")
}

#[test]
fn an_answer_is_given_as_it_arrives() {
    let server = FakeProvider::start();
    server.push(
        Behaviour::text("a short summary")
            .usage(json!({"prompt_tokens": 5, "completion_tokens": 3})),
    );
    let mut heard = String::new();
    let completer = completer(&server);
    let answer = completer.complete(QUESTION, None, &|| false, &mut |part| heard.push_str(part));
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(heard, "a short summary");
    assert_eq!(answer["text"], "a short summary");
    assert_eq!(
        (&answer["finish_reason"], &answer["model"]),
        (&json!("stop"), &json!("helper"))
    );
    assert_eq!(answer["usage"]["total_tokens"], 8);
    assert_eq!(completer.context_length(), 4096);
    server.push(Behaviour::text("cut").finish("length"));
    assert_eq!(ask(&completer, QUESTION)["finish_reason"], "length");
}

// contract: UID-9
#[test]
fn no_identity_reaches_a_provider_in_a_question() {
    let server = FakeProvider::start();
    let question = json!({"messages": [{
        "role": "assistant", "content": "x", "message_uid": "u", "_absorbed_message_uids": ["v"],
        "_tool_call_uids": {"c": "w"}, "timestamp": 1.5, "_compressed_summary": true,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }, {"role": "tool", "tool_call_id": "c", "content": "y", "_tool_call_uid": "w"}], "max_tokens": 99});
    ask(&completer(&server), &question.to_string());
    let request = &server.requests()[0];
    for word in ["uid", "timestamp", "_compressed_summary", "purpose"] {
        assert!(!request.text().contains(word), "{word}: {}", request.text());
    }
    assert_eq!(request.messages().len(), 2);
    assert_eq!(
        (&request.json()["max_tokens"], &request.json()["model"]),
        (&json!(99), &json!("helper"))
    );
}

#[test]
fn what_may_pass_is_tried_again_and_what_will_not_is_told() {
    let server = FakeProvider::start();
    let completer = completer(&server);
    server.push_all([
        Behaviour::status(429, "slow").header("Retry-After", "1"),
        Behaviour::status(503, "busy"),
        Behaviour::text("one two").reset_after(1),
        Behaviour::text("one two"),
    ]);
    assert_eq!(ask(&completer, QUESTION)["text"], "one two");
    assert_eq!(server.take_requests().len(), 4);
    for (behaviour, class, requests) in [
        (Behaviour::status(401, "no"), "auth", 1),
        (Behaviour::status(402, "no"), "quota", 1),
        (
            Behaviour::overflow(OverflowError::OpenAi, 100, 200),
            "context",
            1,
        ),
        (Behaviour::status(400, "what"), "other", 1),
        (Behaviour::status(500, "no"), "overload", 5),
        (Behaviour::status(429, "no"), "overload", 5),
        (Behaviour::refuse(), "network", 5),
        (Behaviour::empty(), "empty", 5),
        (Behaviour::text(" \n"), "empty", 5),
        (Behaviour::empty().thinking("hm"), "empty", 5),
        (Behaviour::calls(&[("a", "f", "{}")]), "empty", 5),
        (Behaviour::body("{}"), "empty", 5),
    ] {
        let told = format!("{behaviour:?}");
        server.default(behaviour);
        let answer = ask(&completer, QUESTION);
        assert_eq!(answer["error"]["class"], class, "{told}: {answer}");
        assert_eq!(server.take_requests().len(), requests, "{told}");
    }
    let hour = Behaviour::status(429, "no").header("Retry-After", "3600");
    server.default(hour);
    let answer = ask(&completer, QUESTION);
    assert_eq!(answer["error"]["retry_after_ms"], 3_600_000);
    assert_eq!(server.take_requests().len(), 1);
}

#[test]
fn a_question_ends_when_nobody_waits_or_its_time_is_over() {
    let server = FakeProvider::start();
    let completer = completer(&server);
    server.default(Behaviour::text("one two three").stall_after(1));
    let start = Instant::now();
    let heard = Cell::new(false);
    let answer = completer.complete(QUESTION, None, &|| heard.get(), &mut |_| heard.set(true));
    assert!(answer.contains("\"cancelled\""), "{answer}");
    let limit = Duration::from_millis(150);
    let answer = completer.complete(QUESTION, Some(limit), &|| false, &mut |_| {});
    assert!(
        answer.contains("\"network\"") && answer.contains("time"),
        "{answer}"
    );
    let quiet = completer.with_timeout(limit);
    assert!(
        quiet
            .complete(QUESTION, None, &|| false, &mut |_| {})
            .contains("\"network\"")
    );
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
    // Progress keeps it alive beyond that. The limit is long beside the pauses, for a machine that is busy.
    let quiet = quiet.with_timeout(Duration::from_secs(1));
    server.push(Behaviour::text("a b c d e f g h").slowly(Duration::from_millis(130)));
    assert_eq!(ask(&quiet, QUESTION)["text"], "a b c d e f g h");
}

#[test]
fn questions_that_are_none_are_told() {
    let server = FakeProvider::start();
    let completer = completer(&server);
    for question in ["", "{}", "[]", r#"{"messages":[]}"#, r#"{"messages":[3]}"#] {
        assert_eq!(
            ask(&completer, question)["error"]["class"],
            "other",
            "{question}"
        );
    }
    assert!(server.requests().is_empty());
}

#[test]
fn the_helper_comes_first_then_its_fallbacks_then_the_main_model() {
    let (main, helper, spare) = (
        FakeProvider::start(),
        FakeProvider::start(),
        FakeProvider::start(),
    );
    let home = Home::new();
    let config = format!(
        "{}auxiliary:\n  compression:\n    model: small\n    base_url: {}\n    api_key: helper-key\n    context_length: 2048\n    extra_body:\n      temperature: 0.2\n      stream: false\n    fallback_chain:\n      - provider: custom\n        model: spare\n        base_url: {}\n",
        main.config(9000),
        helper.url(),
        spare.url()
    );
    let opened = opened(&home.path(), &config);
    let completer = opened.completer.expect("a completer");
    assert_eq!(completer.context_length(), 2048);
    assert_eq!(ask(&*completer, QUESTION)["model"], "small");
    let request = &helper.requests()[0];
    assert_eq!(request.header("authorization"), Some("Bearer helper-key"));
    assert_eq!(
        (&request.json()["temperature"], &request.json()["stream"]),
        (&json!(0.2), &json!(false))
    );
    helper.default(Behaviour::status(401, "no"));
    assert_eq!(ask(&*completer, QUESTION)["model"], "spare");
    assert_eq!(spare.requests()[0].header("authorization"), None);
    spare.default(Behaviour::status(403, "no"));
    assert_eq!(ask(&*completer, QUESTION)["model"], "fake");
    assert_eq!(
        main.requests()[0].header("authorization"),
        Some("Bearer fake-key")
    );
    main.default(Behaviour::status(402, "no"));
    assert_eq!(ask(&*completer, QUESTION)["error"]["class"], "quota");
}

#[test]
fn without_a_section_the_main_model_is_asked() {
    let main = FakeProvider::start();
    let home = Home::new();
    let plain = opened(&home.path(), &main.config(9000))
        .completer
        .expect("a completer");
    assert_eq!(plain.context_length(), 9000);
    assert_eq!(ask(&*plain, QUESTION)["model"], "fake");
    let other = format!(
        "{}auxiliary:\n  compression:\n    provider: auto\n    model: small\n    context_length: 77\n",
        main.config(9000)
    );
    let other = opened(&home.path(), &other).completer.expect("a completer");
    assert_eq!(other.context_length(), 77);
    assert_eq!(ask(&*other, QUESTION)["model"], "small");
    let bad = format!(
        "{}auxiliary:\n  compression:\n    provider: groq\n    api_key_env: NO_SUCH_VARIABLE_HERE\n",
        main.config(9000)
    );
    let bad = opened(&home.path(), &bad);
    assert!(
        bad.warnings[0].contains("NO_SUCH_VARIABLE_HERE"),
        "{:?}",
        bad.warnings
    );
    assert_eq!(
        ask(&*bad.completer.expect("a completer"), QUESTION)["model"],
        "fake"
    );
    // What a dry run says is no summary.
    assert!(
        opened(&home.path(), "model:\n  provider: scripted\n")
            .completer
            .is_none()
    );
}
