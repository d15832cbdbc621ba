use super::*;

fn peer() -> Peer {
    Peer {
        host: "api.example.com".into(),
        url: "https://api.example.com/v1/chat/completions".into(),
        key_variable: Some("EXAMPLE_API_KEY".into()),
        has_key: true,
        key: Some("secret-key-12345".into()),
        section: "model".into(),
    }
}

fn of(status: Option<u16>, body: &str) -> Failure {
    *failure(
        &Refusal {
            status,
            body,
            ..Refusal::default()
        },
        &peer(),
    )
}

#[test]
fn each_status_is_its_kind() {
    use FailureKind as K;
    for (status, body, want) in [
        (400, "{}", K::Refused),
        (
            400,
            r#"{"error":{"message":"API key not valid. Please pass a valid API key."}}"#,
            K::Auth,
        ),
        (400, r#"{"error":{"code":"content_filter"}}"#, K::Blocked),
        (
            400,
            r#"{"error":{"message":"Your credit balance is too low"}}"#,
            K::Quota,
        ),
        (401, "", K::Auth),
        (402, "", K::Quota),
        (403, "", K::Auth),
        (
            403,
            r#"{"error":{"metadata":{"flagged_input":"x"}}}"#,
            K::Blocked,
        ),
        (404, "", K::Refused),
        (408, "", K::Server),
        (429, "", K::RateLimited),
        (429, r#"{"error":{"code":"insufficient_quota"}}"#, K::Quota),
        (500, "", K::Server),
        (529, r#"{"error":{"type":"overloaded_error"}}"#, K::Server),
        (301, "", K::Refused),
    ] {
        assert_eq!(of(Some(status), body).kind, want, "{status} {body}");
    }
    for (body, want) in [
        (
            r#"{"error":{"code":429,"message":"slow down"}}"#,
            K::RateLimited,
        ),
        (r#"{"error":{"message":"Overloaded"}}"#, K::Server),
        (r#"{"error":{"code":"502","message":"x"}}"#, K::Server),
        (r#"{"error":"rate limit exceeded"}"#, K::RateLimited),
        (
            r#"{"error":{"type":"invalid_request_error","message":"x"}}"#,
            K::Refused,
        ),
    ] {
        assert_eq!(of(None, body).kind, want, "{body}");
        assert_eq!(of(Some(200), body).kind, want, "{body}");
    }
}

#[test]
fn sentences_say_who_what_and_what_to_do() {
    let told = |status, body| of(Some(status), body).message;
    let auth = told(
        401,
        r#"{"error":{"message":"Incorrect API key provided: secret-key-12345."}}"#,
    );
    assert_eq!(
        auth,
        "api.example.com does not accept the key (401): Incorrect API key provided: [key]; \
         check EXAMPLE_API_KEY, or `hermes config get model`"
    );
    assert!(
        told(404, r#"{"error":{"message":"model x not found"}}"#).contains("choose another model")
    );
    assert!(told(404, "<html>404</html>").contains("/v1"));
    let page = told(502, "<html><body><h1>Bad Gateway</h1>\n</body></html>");
    assert_eq!(page, "api.example.com failed (502): Bad Gateway");
    let nested = told(
        400,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"tools.0: bad\"}}"}}}"#,
    );
    assert_eq!(
        nested,
        "api.example.com refused the request (400): tools.0: bad"
    );
    assert!(
        told(400, r#"{"error":{"message":"max_tokens is too large: 9"}}"#)
            .contains("lower model.max_tokens")
    );
}

#[test]
fn a_wait_is_read_wherever_it_stands() {
    let wait = |body| of(Some(429), body).retry_after;
    assert_eq!(
        wait("Please try again in 8.5s."),
        Some(Duration::from_millis(8500))
    );
    assert_eq!(
        wait("Please try again in 1m2s."),
        Some(Duration::from_secs(62))
    );
    assert_eq!(wait("try again in 250ms"), Some(Duration::from_millis(250)));
    assert_eq!(
        wait(r#"{"retryDelay": "34s"}"#),
        Some(Duration::from_secs(34))
    );
    assert_eq!(wait("try again in a while"), None);
    let headers = |ms: Option<&'static str>, s: Option<&'static str>| {
        asked_in_headers(|name| if name == "retry-after" { s } else { ms })
    };
    assert_eq!(
        headers(Some("1500"), Some("9")),
        Some(Duration::from_millis(1500))
    );
    assert_eq!(headers(None, Some("9")), Some(Duration::from_secs(9)));
    assert_eq!(headers(Some("x"), None), None);
}
