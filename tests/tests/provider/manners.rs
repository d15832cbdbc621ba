//! What a server refuses about the form of a request is left out at once, and from then on.

use hermes::provider::FailureKind;
use hermes_tests::Behaviour;

use crate::support::Pair;

#[test]
fn a_server_without_stream_options_is_asked_once() {
    let pair = Pair::new();
    pair.server.default(Behaviour::by(|request| {
        if request.text().contains("stream_options") {
            Behaviour::status(
                400,
                r#"{"error":{"message":"Unrecognized request argument: stream_options"}}"#,
            )
        } else {
            Behaviour::text("fine")
        }
    }));
    for _ in 0..2 {
        let reply = pair.send(&hermes::provider::Cancel::new()).reply();
        assert_eq!(reply.message.text(), "fine");
    }
    let requests = pair.server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[0].text().contains("stream_options"));
    assert_eq!(
        requests[1].text(),
        r#"{"model":"m","messages":[{"role":"user","content":"hello"}],"stream":true}"#
    );
    assert_eq!(requests[2].text(), requests[1].text());
}

#[test]
fn a_limit_goes_by_the_name_that_the_server_knows() {
    let pair = Pair::with(|options| options.max_tokens = Some(5));
    pair.server.default(Behaviour::by(|request| {
        if request.json().get("max_tokens").is_some() {
            Behaviour::status(400, r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","code":"unsupported_parameter"}}"#)
        } else {
            Behaviour::text("fine")
        }
    }));
    assert_eq!(
        pair.send(&hermes::provider::Cancel::new())
            .reply()
            .message
            .text(),
        "fine"
    );
    assert_eq!(pair.server.requests()[1].json()["max_completion_tokens"], 5);
}

#[test]
fn a_server_that_always_refuses_is_not_asked_for_ever() {
    let pair = Pair::with(|options| options.max_tokens = Some(5));
    pair.server.default(Behaviour::status(
        400,
        r#"{"error":{"message":"unsupported: stream_options, stream, max_tokens"}}"#,
    ));
    let failure = pair.send(&hermes::provider::Cancel::new()).failure();
    assert_eq!(failure.kind, FailureKind::Refused);
    assert!(pair.server.requests().len() <= 4);
}
