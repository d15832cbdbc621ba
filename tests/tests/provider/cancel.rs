//! Cancelling a request.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use hermes::provider::{Cancel, Delta, FailureKind, Provider};
use hermes_tests::Behaviour;

use crate::support::Pair;

/// Far more than it takes, and less than [`Pair`]'s patience with a silent server.
const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn a_cancelled_request_returns_at_once_with_what_had_arrived() {
    let pair = Pair::new();
    for (number, (behaviour, partial)) in [
        (Behaviour::stall(), None),
        (
            Behaviour::text("one two three").stall_after(2),
            Some("one two "),
        ),
        (Behaviour::text("x").after(Duration::from_secs(60)), None),
    ]
    .into_iter()
    .enumerate()
    {
        pair.server.push(behaviour);
        let cancel = Cancel::new();
        let (heard, hears) = mpsc::channel::<String>();
        let (cancelled, failure) = std::thread::scope(|scope| {
            let (server, cancel) = (&pair.server, &cancel);
            let canceller = scope.spawn(move || {
                // When the request is under way, and what will come of its answer has come.
                assert!(server.wait_for_requests(number + 1, LIMIT));
                let mut text = String::new();
                while text != partial.unwrap_or_default() {
                    text += &hears.recv_timeout(LIMIT).expect("a part of the answer");
                }
                let now = Instant::now();
                cancel.cancel();
                now
            });
            let result = pair.provider.send(&pair.body(), cancel, &mut |delta| {
                if let Delta::Text(part) = delta {
                    let _ = heard.send(part.to_owned());
                }
            });
            let failure = result.expect_err("cancelled");
            (canceller.join().expect("no panic").elapsed(), failure)
        });
        // The server would be silent for longer.
        assert!(cancelled < LIMIT, "{cancelled:?}");
        assert_eq!(failure.kind, FailureKind::Cancelled);
        assert_eq!(
            failure.partial.map(|m| m.text().into_owned()).as_deref(),
            partial
        );
    }
}

#[test]
fn the_one_who_hears_may_cancel() {
    let pair = Pair::new();
    pair.server
        .push(Behaviour::text("one two three").stall_after(1));
    let cancel = Cancel::new();
    let failure = pair
        .provider
        .send(&pair.body(), &cancel, &mut |delta| {
            if let Delta::Text(_) = delta {
                cancel.cancel();
            }
        })
        .expect_err("cancelled");
    assert_eq!(failure.kind, FailureKind::Cancelled);
    assert_eq!(failure.partial.expect("a part").text(), "one ");
}

#[test]
fn what_is_cancelled_before_is_not_sent() {
    let pair = Pair::new();
    let cancel = Cancel::new();
    cancel.cancel();
    assert_eq!(pair.send(&cancel).failure().kind, FailureKind::Cancelled);
    assert!(pair.server.all_requests().is_empty());
}

#[test]
fn twenty_threads_share_one_provider() {
    let pair = Pair::new();
    pair.server.default(Behaviour::by(|request| {
        Behaviour::text(&format!("you said {}", request.messages()[0]["content"]))
            .slowly(Duration::from_millis(1))
    }));
    let answers: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..20)
            .map(|number| {
                let pair = &pair;
                scope.spawn(move || {
                    let body = format!(
                        r#"{{"messages":[{{"role":"user","content":{number}}}],{}}}"#,
                        pair.provider.parameters()
                    );
                    let reply = pair.provider.send(&body, &Cancel::new(), &mut |_| {});
                    reply.expect("an answer").message.text().into_owned()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, format!("you said {number}"));
    }
}
