//! The window of a model.

use std::path::Path;
use std::time::{Duration, Instant};

use hermes::config::{Config, HermesHome};
use hermes::provider::{WindowSource, Wishes, open, window};
use hermes_tests::{Behaviour, FakeProvider, Home};

fn found(config: &str, home: &Path) -> (u64, WindowSource, Option<String>) {
    let config = Config::from_text(config.as_bytes(), &home.join("config.yaml"));
    let opened = open(&config, &HermesHome::at(home), &Wishes::default()).expect("opened");
    let window = window(&config, &*opened.provider, &opened.model);
    (window.tokens, window.source, window.warning)
}

#[test]
fn the_server_s_list_is_asked_only_when_the_configuration_says_nothing() {
    let home = Home::new();
    let server = FakeProvider::start();
    server.models(&[("other", 1), ("fake", 5555)]);
    let (tokens, source, _) = found(&server.config(777), &home.path());
    assert_eq!((tokens, source), (777, WindowSource::Config));
    assert!(
        server.all_requests().is_empty(),
        "a start must not wait for the network"
    );
    let config = format!("model:\n  default: fake\n  base_url: {}\n", server.url());
    assert_eq!(
        found(&config, &home.path()),
        (5555, WindowSource::Provider, None)
    );
    let asked = server.all_requests();
    assert_eq!(
        (asked.len(), asked[0].method(), asked[0].path()),
        (1, "GET", "/v1/models")
    );
}

#[test]
fn llama_cpp_tells_the_window_that_it_was_started_with() {
    let home = Home::new();
    let server = FakeProvider::start();
    server.at("/v1/models", Behaviour::body(r#"{"object":"list","data":[{"id":"x.gguf","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}"#));
    server.at(
        "/props",
        Behaviour::body(r#"{"default_generation_settings":{"n_ctx":8192}}"#),
    );
    let config = format!("model:\n  default: gemma\n  base_url: {}\n", server.url());
    assert_eq!(
        found(&config, &home.path()),
        (8192, WindowSource::Provider, None)
    );
}

#[test]
fn a_server_that_does_not_say_costs_no_more_than_three_seconds() {
    let home = Home::new();
    let server = FakeProvider::start();
    let config = format!("model:\n  default: novel\n  base_url: {}\n", server.url());
    let (tokens, source, warning) = found(&config, &home.path());
    assert_eq!((tokens, source), (128_000, WindowSource::Default));
    assert!(warning.expect("a warning").contains("model.context_length"));
    server.at("/v1/models", Behaviour::stall());
    let start = Instant::now();
    let (tokens, source, _) = found(&config.replace("novel", "gpt-4o"), &home.path());
    assert_eq!((tokens, source), (128_000, WindowSource::Family));
    // Three, and what a busy machine adds; the server would be silent for good.
    assert!(
        start.elapsed() < Duration::from_secs(15),
        "{:?}",
        start.elapsed()
    );
}
