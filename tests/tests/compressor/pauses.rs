//! When a pass may not start: what keeps passes from running for nothing.

use std::sync::Arc;
use std::time::Duration;

use hermes_compressor::clock::ManualClock;
use hermes_compressor::guards::Guards;
use hermes_compressor::helper::{Class, Failure};
use hermes_message::build;
use hermes_plugin_api::abi;
use serde_json::json;

use crate::support::{kit, prose, session};

// contract: ENG-4, PASS-6
#[test]
fn a_pass_that_was_not_committed_leaves_the_figures_of_before() {
    let mut engine = kit(16_384).create().expect("an engine");
    engine.update_from_response(15_000, 10).expect("taken");
    let before = engine.state().compression_count;
    let emitted = engine.compress(&session(60)).expect("a new list");
    assert_eq!(engine.state().compression_count, before + 1);
    engine.pass_result(false, &emitted.messages).expect("taken");
    assert_eq!(engine.state().compression_count, before);
    assert_eq!(engine.state().last_prompt_tokens, 15_000);
    let again = engine.compress(&session(60)).expect("an answer");
    assert!(
        again.is_unchanged(),
        "what was refused is not tried again at once"
    );
    let forced = engine
        .compress_with(&session(60), |args| args.trigger = abi::TRIGGER_MANUAL)
        .expect("a new list");
    engine.pass_result(true, &forced.messages).expect("taken");
    assert_eq!(engine.state().compression_count, before + 1);
}

// case: 27
// contract: PASS-8
#[test]
fn two_useless_passes_make_a_pause_that_names_what_is_fixed_and_is_not_for_ever() {
    let clock = ManualClock::default();
    let mut guards = Guards::new(Arc::new(clock.clone()));
    assert_eq!(guards.blocked(20_000), None);
    guards.pass_done(20_000, 19_900, false, 18_000);
    assert_eq!(guards.blocked(20_000), None, "one may be bad luck");
    guards.pass_done(20_000, 19_900, false, 18_000);
    let reason = guards.blocked(20_000).expect("a pause");
    assert!(
        reason.starts_with("ineffective") && reason.contains("18000 tokens are fixed"),
        "{reason}"
    );
    assert_eq!(
        guards.blocked(20_500).as_deref(),
        Some(&*reason),
        "one sentence, so one notice"
    );
    clock.advance(Duration::from_secs(901));
    assert_eq!(guards.blocked(20_000), None, "one more try after a while");
    guards.pass_done(20_000, 19_900, false, 18_000);
    assert!(guards.blocked(20_000).is_some());
    guards.usage(9_000, 16_384);
    assert_eq!(guards.blocked(20_000), None, "real usage has dropped");
    for _ in 0..2 {
        guards.pass_done(20_000, 10_000, false, 9_000);
        guards.usage(19_000, 16_384);
    }
    assert!(
        guards.blocked(20_000).is_some(),
        "passes whose effect the provider does not see"
    );
    guards.clear();
    assert_eq!(guards.blocked(20_000), None, "another model, or a person");
}

// case: 27
// contract: PASS-8
#[test]
fn failures_wait_longer_and_longer_by_kind() {
    let waits = |class: Class, message: &str, times: usize| -> Vec<u64> {
        let mut guards = Guards::new(Arc::new(ManualClock::default()));
        (0..times)
            .map(|_| {
                guards.helper_failed(&Failure::new(class, message));
                guards.cooldown_left().map_or(0, |left| left.as_secs())
            })
            .collect()
    };
    assert_eq!(waits(Class::Network, "timed out", 4), [60, 300, 900, 900]);
    assert_eq!(waits(Class::Truncated, "cut", 3), [60, 300, 900]);
    assert_eq!(waits(Class::Network, "closed", 2), [30, 30]);
    assert_eq!(waits(Class::Empty, "", 1), [30]);
    assert_eq!(waits(Class::Auth, "", 1), [600]);
    assert_eq!(waits(Class::Overload, "", 1), [60]);
    assert_eq!(
        waits(Class::TooLong, "", 1),
        [0],
        "a question of size is no failure of the model"
    );
    assert_eq!(waits(Class::Cancelled, "", 1), [0]);
    let mut guards = Guards::new(Arc::new(ManualClock::default()));
    let asked = Failure {
        retry_after: Some(Duration::from_secs(77)),
        ..Failure::new(Class::Overload, "busy")
    };
    guards.helper_failed(&asked);
    assert_eq!(
        guards.cooldown_left(),
        Some(Duration::from_secs(77)),
        "the provider's own word counts"
    );
}

// case: 27
// contract: PASS-8
#[test]
fn a_fixed_part_above_the_trigger_ends_in_a_pause_and_not_in_a_loop() {
    let messages = [build::system(&prose(1, 9_000)), build::user("hi")];
    let size = 18_500;
    let mut engine = kit(32_768)
        .config(json!({"threshold_tokens": 16_384}))
        .create()
        .expect("an engine");
    let mut passes = 0;
    let mut reasons = std::collections::BTreeSet::new();
    for _ in 0..10 {
        let (yes, reason) = engine.should_compress(Some(size)).expect("an answer");
        if yes {
            passes += 1;
            let emitted = engine
                .compress_with(&messages, |args| args.current_tokens = 18_500)
                .expect("an answer");
            assert!(emitted.is_unchanged());
        } else {
            reasons.insert(reason);
        }
    }
    assert!(passes <= 2, "{passes}");
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert_eq!(engine.state().compression_count, 0);
}
