//! When a pass starts: thresholds, models, usage.

use hermes_compressor::threshold::{Term, resolve};
use serde_json::{Value, json};

use crate::support::{kit, session};

// case: 20
// contract: CFG-1, ENG-5
#[test]
fn the_trigger_lies_inside_every_window_and_grows_with_window_and_ratio() {
    let windows = [
        1, 2, 4_096, 8_192, 32_768, 64_000, 65_536, 131_072, 1_048_576,
    ];
    let ratios = [0.01, 0.3, 0.5, 0.75, 0.85, 1.0];
    for reserve in [0, 1_024, 1 << 40] {
        let mut by_ratio: Vec<Vec<u64>> = Vec::new();
        for window in windows {
            let row: Vec<u64> = ratios
                .iter()
                .map(|ratio| resolve(window, reserve, *ratio, None).tokens)
                .collect();
            assert!(row.is_sorted(), "window {window}: {row:?}");
            for (ratio, tokens) in ratios.iter().zip(&row) {
                let usable = window - reserve.min(window / 2);
                assert!(
                    *tokens > 0 && (*tokens < usable || window < 4),
                    "window {window}, ratio {ratio}: {tokens}"
                );
                let made = resolve(window, reserve, *ratio, None);
                match made.term {
                    _ if window < 4 => {}
                    Term::Ratio => assert_eq!(*tokens, (usable as f64 * ratio) as u64),
                    Term::Floor => {
                        assert_eq!(*tokens, (usable as f64 * 0.75).min(384_000.0) as u64)
                    }
                    Term::Ceiling => assert_eq!(*tokens, ((usable as f64 * 0.85) as u64).max(1)),
                    other => assert!(window < 4, "{other:?}"),
                }
            }
            by_ratio.push(row);
        }
        for ratio in 0..ratios.len() {
            assert!(
                by_ratio
                    .iter()
                    .map(|row| row[ratio])
                    .collect::<Vec<_>>()
                    .is_sorted()
            );
        }
    }
    assert_eq!(resolve(0, 10, 0.5, None).tokens, 0, "no window is known");
    assert_eq!(resolve(1_000_000, 0, 0.9, Some(256_000)).term, Term::Cap);
}

// case: 20
// contract: CFG-1, ENG-13
#[test]
fn values_that_cannot_be_used_are_named_once_and_the_status_shows_what_counts() {
    let cases = [
        (json!(0.3), 0.3, 0),
        (json!(0.5), 0.5, 0),
        (json!(0.85), 0.85, 0),
        (json!(1.0), 1.0, 0),
        (json!("0.5"), 0.5, 0),
        (json!(null), 0.5, 0),
        (json!(50), 0.5, 1),
        (json!(0), 0.5, 1),
        (json!(-1), 0.5, 1),
        (json!("half"), 0.5, 1),
        (json!([1]), 0.5, 1),
        (json!(true), 0.5, 1),
    ];
    for (value, used, warnings) in cases {
        for window in [4_096, 65_536, 1_048_576] {
            let mut engine = kit(window)
                .config(json!({"threshold": value}))
                .create()
                .expect("an engine");
            let told: Vec<String> = engine
                .logs()
                .into_iter()
                .filter(|(level, _)| *level == 2)
                .map(|(_, text)| text)
                .collect();
            assert_eq!(told.len(), warnings, "{value}: {told:?}");
            if warnings == 1 {
                let line = &told[0];
                assert!(
                    line.contains("compression.threshold")
                        && line.contains(&value.to_string())
                        && line.contains("0.5")
                );
            }
            assert_eq!(engine.state().threshold_percent, used);
            let status: Value =
                serde_json::from_str(&engine.status().expect("a status")).expect("JSON");
            assert_eq!(status["threshold_tokens"], engine.state().threshold_tokens);
            assert!(
                status["threshold_reason"]
                    .as_str()
                    .expect("a text")
                    .contains(&engine.state().threshold_tokens.to_string())
            );
            assert!(
                ["ratio", "floor", "ceiling", "threshold_tokens"]
                    .contains(&status["threshold_term"].as_str().expect("a word"))
            );
            for key in [
                "last_prompt_tokens",
                "context_length",
                "usage_percent",
                "compression_count",
            ] {
                assert!(status[key].is_number(), "{key}");
            }
        }
    }
}

// case: 22
// contract: CFG-1, CFG-2, CFG-3, ENG-9
#[test]
fn thresholds_per_model_win_by_length_and_never_stick() {
    let map = json!({"glm-5": 0.7, "glm-5-1m": 0.25, "": 0.1, "GLM-5-1M-Turbo": 0.6, "bad": 1.7, "t": true});
    let mut engine = kit(0)
        .config(json!({"threshold": 0.5, "threshold_tokens": null}))
        .create()
        .expect("an engine");
    let mut seen = Vec::new();
    for model in [
        "z/glm-5-1m",
        "z/glm-5",
        "other",
        "z/glm-5-1m-turbo",
        "glm-51m",
        "other",
    ] {
        engine.update_model(model, 2_000_000, &map).expect("taken");
        assert_eq!(engine.state().context_length, 2_000_000);
        let state = engine.state();
        assert_eq!(
            state.threshold_tokens,
            resolve(2_000_000, 0, state.threshold_percent, None).tokens,
            "{model}"
        );
        seen.push(state.threshold_percent);
    }
    assert_eq!(seen, [0.25, 0.7, 0.5, 0.6, 0.5, 0.5]);
}

// case: 22
#[test]
fn the_default_limit_never_beats_a_ratio_in_silence() {
    let mut engine = kit(0)
        .config(json!({"threshold": 0.7}))
        .create()
        .expect("an engine");
    engine
        .update_model("big", 1_000_000, &json!({}))
        .expect("taken");
    assert_eq!(engine.state().threshold_tokens, 256_000);
    assert!(
        engine
            .logs()
            .iter()
            .any(|(_, line)| line.contains("threshold_tokens") && line.contains("256000"))
    );
    let status: Value = serde_json::from_str(&engine.status().expect("a status")).expect("JSON");
    assert_eq!(status["threshold_term"], "threshold_tokens");
}

// contract: ENG-2, ENG-3, ENG-8, ENG-9
#[test]
fn usage_counts_reset_clears_and_the_budget_stays() {
    let mut engine = kit(32_768).create().expect("an engine");
    let threshold = engine.state().threshold_tokens;
    engine.update_from_response(1_200, 300).expect("taken");
    let state = engine.state();
    assert_eq!(
        (
            state.last_prompt_tokens,
            state.last_completion_tokens,
            state.last_total_tokens
        ),
        (1_200, 300, 1_500)
    );
    assert!(
        engine
            .should_compress(Some(threshold))
            .expect("an answer")
            .0,
        "at the threshold"
    );
    assert!(
        !engine
            .should_compress(Some(threshold - 1))
            .expect("an answer")
            .0,
        "below it"
    );
    assert!(
        !engine.should_compress(None).expect("an answer").0,
        "by the last response"
    );
    engine.compress(&session(60)).expect("a new list");
    assert_eq!(engine.state().compression_count, 1);
    engine.session_reset().expect("taken");
    let state = engine.state();
    assert_eq!(
        (
            state.last_prompt_tokens,
            state.last_total_tokens,
            state.compression_count
        ),
        (0, 0, 0)
    );
    assert_eq!(
        (state.threshold_tokens, state.context_length),
        (threshold, 32_768)
    );
}

// case: 27
// contract: ENG-3
#[test]
fn real_usage_outranks_an_estimate_that_is_too_high() {
    let mut engine = kit(0)
        .config(json!({"threshold_tokens": 100_000}))
        .create()
        .expect("an engine");
    engine
        .update_model("m", 200_000, &json!({}))
        .expect("taken");
    let mut passes = 0;
    for turn in 0..30_u64 {
        let estimate = 113_000 + turn * 500;
        if engine.should_compress(Some(estimate)).expect("an answer").0 {
            passes += 1;
        }
        engine
            .update_from_response(i64::try_from(58_000 + turn * 250).expect("small"), 100)
            .expect("taken");
    }
    assert_eq!(passes, 1, "only before anything real was known");
    assert!(
        engine
            .should_compress(Some(101_000 * 2))
            .expect("an answer")
            .0,
        "it still fires when it is really full"
    );
}

// contract: CLONE-2, ENG-9
#[test]
fn a_clone_has_its_own_budget() {
    let mut parent = kit(0).create().expect("an engine");
    parent
        .update_model("big", 1_000_000, &json!({}))
        .expect("taken");
    let before = parent.state();
    let mut child = parent.clone_for_agent().expect("a clone");
    child
        .update_model("small", 8_192, &json!({}))
        .expect("taken");
    child.compress(&session(60)).expect("an answer");
    assert_eq!(parent.state().context_length, before.context_length);
    assert_eq!(parent.state().threshold_tokens, before.threshold_tokens);
    assert_eq!(parent.state().compression_count, 0);
    assert_eq!(child.state().context_length, 8_192);
}
