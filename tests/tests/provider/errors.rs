//! Answers that are errors.

use std::time::Duration;

use hermes::provider::{FailureKind, RetryPolicy};
use hermes_tests::{Behaviour, OverflowError};

use crate::support::Pair;

// case: 34
#[test]
fn a_request_that_is_too_long_is_known_whoever_says_it() {
    let pair = Pair::new();
    for kind in OverflowError::ALL {
        let failure = pair.ask(Behaviour::overflow(*kind, 8192, 9215)).failure();
        let FailureKind::Overflow {
            limit,
            requested,
            payload,
        } = failure.kind
        else {
            panic!("{kind:?}: {:?} {failure}", failure.kind);
        };
        if kind.names_figures() {
            assert_eq!((limit, requested), (Some(8192), Some(9215)), "{kind:?}");
        }
        assert_eq!(payload, *kind == OverflowError::PayloadTooLarge, "{kind:?}");
        // Again without a pass would change nothing.
        assert_eq!(RetryPolicy::default().wait(0, &failure), None, "{kind:?}");
    }
}

#[test]
fn a_rate_limit_says_when_to_come_back() {
    let pair = Pair::new();
    let limited = |header: Option<(&str, &str)>| {
        let body = r#"{"error":{"message":"Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000."}}"#;
        let mut behaviour = Behaviour::status(429, body);
        if let Some((name, value)) = header {
            behaviour = behaviour.header(name, value);
        }
        let failure = pair.ask(behaviour).failure();
        assert_eq!(failure.kind, FailureKind::RateLimited, "{failure}");
        assert_eq!(failure.status, Some(429));
        failure
    };
    let policy = RetryPolicy::default();
    let plain = limited(None);
    assert_eq!(plain.retry_after, None);
    assert!(policy.wait(0, &plain).is_some());
    let seconds = limited(Some(("Retry-After", "7")));
    assert_eq!(seconds.retry_after, Some(Duration::from_secs(7)));
    assert!(policy.wait(0, &seconds) >= Some(Duration::from_secs(7)));
    let milliseconds = limited(Some(("retry-after-ms", "250")));
    assert_eq!(milliseconds.retry_after, Some(Duration::from_millis(250)));
    let date = limited(Some(("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT")));
    assert_eq!(date.retry_after, Some(Duration::ZERO));
    // Nobody waits for an hour; the sentence says so.
    let hour = limited(Some(("Retry-After", "3600")));
    assert_eq!(policy.wait(0, &hour), None);
    assert!(hour.message.contains("60 min"), "{hour}");
}

#[test]
fn statuses_are_kinds_with_a_sentence() {
    let pair = Pair::new();
    let failed = |status, body: &str| pair.ask(Behaviour::status(status, body)).failure();
    for (status, body, kind) in [
        (500, "oops", FailureKind::Server),
        (
            502,
            "<html><h1>Bad Gateway</h1></html>",
            FailureKind::Server,
        ),
        (
            529,
            r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            FailureKind::Server,
        ),
        (
            401,
            r#"{"error":{"message":"bad key sk-fake-0123456789abcdef"}}"#,
            FailureKind::Auth,
        ),
        (
            402,
            r#"{"error":{"message":"insufficient credits"}}"#,
            FailureKind::Quota,
        ),
        (
            403,
            r#"{"error":{"message":"x","metadata":{"reasons":["y"],"flagged_input":"z"}}}"#,
            FailureKind::Blocked,
        ),
        (
            404,
            r#"{"error":{"message":"model not found"}}"#,
            FailureKind::Refused,
        ),
        (
            400,
            r#"{"error":{"message":"tools.0 is bad"}}"#,
            FailureKind::Refused,
        ),
        (302, "", FailureKind::Refused),
    ] {
        let failure = failed(status, body);
        assert_eq!(failure.kind, kind, "{status}: {failure}");
        assert_eq!(failure.status, Some(status));
        assert!(failure.message.contains(&status.to_string()), "{failure}");
    }
    let page = failed(502, "<html><h1>Bad Gateway</h1></html>");
    assert!(page.message.ends_with("Bad Gateway"), "{page}");
}

#[test]
fn an_error_in_mid_stream_keeps_what_had_arrived() {
    let pair = Pair::new();
    let error = r#"{"error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#;
    let failure = pair
        .ask(Behaviour::text("one two three").error_after(2, error))
        .failure();
    assert_eq!(failure.kind, FailureKind::Server, "{failure}");
    assert_eq!(failure.status, Some(502));
    assert_eq!(failure.partial.as_ref().expect("a part").text(), "one two ");
    assert!(
        failure.message.contains("Provider disconnected"),
        "{failure}"
    );
    let bare = pair
        .ask(Behaviour::raw(
            b"{\"error\":{\"message\":\"rate limit\",\"code\":429}}\n\n",
        ))
        .failure();
    assert_eq!(bare.kind, FailureKind::RateLimited, "{bare}");
}

// A redirect would carry the key and the conversation elsewhere.
#[test]
fn redirects_are_not_followed() {
    let pair = Pair::new();
    let elsewhere = hermes_tests::FakeProvider::start();
    let to = format!("{}/chat/completions", elsewhere.url());
    let failure = pair
        .ask(Behaviour::status(307, "").header("Location", &to))
        .failure();
    assert_eq!(failure.kind, FailureKind::Refused);
    assert!(failure.message.contains(&to), "{failure}");
    assert!(elsewhere.all_requests().is_empty());
}
