//! What a request costs on this side; printed, with bounds that only a blunder breaks.

use std::time::{Duration, Instant};

use hermes::provider::{Cancel, Delta, HttpOptions, HttpProvider, Provider};
use hermes_tests::{Behaviour, FakeProvider};

#[test]
fn the_first_word_comes_soon() {
    let start = Instant::now();
    let secure = HttpProvider::new(HttpOptions::new("https://127.0.0.1:9/v1")).expect("a provider");
    secure.warm_up();
    println!("a client for https: {:?}", start.elapsed());

    let server = FakeProvider::start();
    server.default(Behaviour::text("one two three"));
    let start = Instant::now();
    let provider = HttpProvider::new(HttpOptions::new(server.url())).expect("a provider");
    provider.warm_up();
    println!("a client for http: {:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(5));

    let messages = r#"{"role":"user","content":"0123456789"}"#;
    for (name, count) in [("first", 1), ("next", 1), ("next", 1), ("1 MB", 26_000)] {
        let list = vec![messages; count].join(",");
        let body = format!("{{\"messages\":[{list}],{}}}", provider.parameters());
        let start = Instant::now();
        let mut first = None;
        provider
            .send(&body, &Cancel::new(), &mut |delta| {
                if let Delta::Text(_) = delta {
                    first.get_or_insert(start.elapsed());
                }
            })
            .expect("an answer");
        println!(
            "{name}: first word {:?}, end {:?}",
            first.expect("a word"),
            start.elapsed()
        );
    }
}
