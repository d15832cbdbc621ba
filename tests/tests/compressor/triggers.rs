//! When a pass runs: thresholds, usage, models, and what keeps passes from running for nothing.

use std::sync::Arc;
use std::time::Duration;

use hermes_compressor::Settings;
use hermes_compressor::clock::ManualClock;
use hermes_compressor::guards::Guards;
use hermes_compressor::helper::{Class, Failure};
use hermes_compressor::pass::{Outcome, Request};
use hermes_compressor::threshold::{Term, resolve};
use hermes_message::{Role, build};
use hermes_plugin_api::abi;
use serde_json::{Value, json};

use crate::support::{
    SUMMARY, Scripted, assert_sound, compressed, kit, list, numbered, prose, request, round, run,
    says, session, tokens,
};

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

// case: 24
#[test]
fn the_tail_of_a_chinese_talk_keeps_to_its_budget() {
    let mut messages = vec![build::system("s")];
    for n in 0..20 {
        let text: String = "我们今天讨论解析器的迁移问题以及测试的结果和下一步的安排"
            .chars()
            .cycle()
            .skip(n)
            .take(2_000)
            .collect();
        messages.extend([build::user(&text), build::assistant(&text)]);
    }
    let messages = numbered(messages);
    // A window of 400,000 has a tail of 10,000; of a million, 25,000.
    for (window, budget) in [(400_000, 10_000), (1_000_000, 25_000)] {
        let ask = Request {
            target_tokens: Some(30_000),
            ..request(window)
        };
        let settings = Settings {
            protect_last_n: 3,
            ..Settings::default()
        };
        let mut helper = Scripted::new(0, |_, _| says(SUMMARY));
        let Outcome::Made(made) = run(&messages, &settings, Some(&mut helper), &ask) else {
            panic!("no pass")
        };
        let next = list(&messages, &made);
        let from = next
            .iter()
            .position(|m| m.text().contains("CONTEXT COMPACTION"))
            .expect("a carrier");
        let tail = tokens(&next[from + 1..]);
        assert!(
            tail <= budget * 17 / 10 && tail > 1_000,
            "window {window}: a tail of {tail}"
        );
    }
}

fn huge(result: &str, question: &str) -> Vec<hermes_message::Message> {
    let mut messages = vec![build::system("s"), build::user("read it")];
    messages.extend(round("c", "read_file", "{\"path\":\"big.log\"}", result));
    messages.push(build::user(question));
    numbered(messages)
}

// case: 26
// contract: ENG-3, PASS-8
#[test]
fn one_huge_result_in_five_messages_is_cut_with_a_note_and_the_pair_stays() {
    let text = format!(
        "FIRST LINE 漢字\n{}\nLAST LINE 🎉",
        "0123456789 abcdefghij ".repeat(81_000)
    );
    let messages = huge(&text, "and?");
    let mut engine = kit(131_072)
        .config(json!({"protect_last_n": 20}))
        .create()
        .expect("an engine");
    let size = tokens(&messages);
    assert!(size > 300_000);
    assert!(
        engine.should_compress(Some(size)).expect("an answer").0,
        "fires on tokens alone"
    );
    let emitted = engine
        .compress_with(&messages, |args| {
            args.current_tokens = i64::try_from(size).expect("small")
        })
        .expect("a list");
    let next = emitted.messages;
    assert_sound(&messages, &next, "huge result");
    assert!(
        tokens(&next) < 131_072 * 3 / 4,
        "under the trigger: {}",
        tokens(&next)
    );
    let result = next
        .iter()
        .find(|m| m.role() == Role::Tool)
        .expect("the result stays with its call");
    let cut = result.text();
    assert!(
        cut.starts_with("FIRST LINE 漢字") && cut.ends_with("LAST LINE 🎉"),
        "head and tail"
    );
    assert!(
        cut.contains("characters were cut") && cut.contains("session store"),
        "a visible note"
    );
    assert_eq!(next.last(), messages.last());

    // Never an endless loop: what is left has nothing more to give.
    let again = engine
        .compress_with(&next, |args| args.trigger = abi::TRIGGER_MANUAL)
        .expect("an answer");
    assert!(again.is_unchanged(), "{}", again.text);
}

// case: 26
#[test]
fn three_huge_results_of_one_call_are_all_cut_and_all_stay() {
    let text = "line of a log with words and numbers 12345\n".repeat(20_000);
    let mut messages = vec![build::system("s"), build::user("read them")];
    messages.push(build::calling(
        Some("reading"),
        &[
            ("a", "read", "{}"),
            ("b", "read", "{}"),
            ("c", "read", "{}"),
        ],
    ));
    messages.extend(["a", "b", "c"].map(|id| build::tool(id, &text)));
    let messages = numbered(messages);
    for window in [8_192, 131_072] {
        let next = compressed(&messages, &Settings::default(), None, &request(window));
        assert_sound(&messages, &next, "three results");
        assert_eq!(next.iter().filter(|m| m.role() == Role::Tool).count(), 3);
        assert!(tokens(&next) < window, "window {window}: {}", tokens(&next));
    }
}

// case: 26
// contract: PASS-6
#[test]
fn a_huge_newest_user_message_stays_whole_while_it_fits_and_is_cut_visibly_when_nothing_else_helps()
{
    let question = format!("Look at this: {}", prose(3, 30_000));
    let mut messages = session(20);
    messages.push(build::user(&question));
    let messages = numbered(messages);
    let newest = messages.last().expect("a message").clone();
    let size = u64::from(newest.tokens());

    let fits = compressed(
        &messages,
        &Settings::default(),
        None,
        &request(size * 3 / 2),
    );
    assert_eq!(fits.last(), Some(&newest), "verbatim while it fits");

    let window = size / 2;
    let cut = compressed(&messages, &Settings::default(), None, &request(window));
    assert!(tokens(&cut) < window, "{} in {window}", tokens(&cut));
    let last = cut.last().expect("a message");
    assert_eq!(last.identity(), newest.identity());
    let text = last.text();
    assert!(
        text.starts_with(&newest.text()[..1_000]) && text.contains("characters were cut"),
        "never silently"
    );
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

// contract: ENG-11, ENG-12
#[test]
fn it_has_no_tools_and_no_preflight_of_its_own() {
    let engine = kit(8_192).create().expect("an engine");
    assert!(engine.vtable().tool_call.is_none() && engine.vtable().preflight.is_none());
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

// contract: ENG-17
#[test]
fn a_prune_pass_shortens_old_results_only_and_must_be_worth_it() {
    let mut messages = vec![build::system("s"), build::user("go")];
    for n in 0..30 {
        // Every third result repeats another one.
        let text = if n % 3 == 0 {
            prose(7, 900)
        } else {
            format!("result {n}\n{}", prose(n, 2_500))
        };
        messages.extend(round(
            &format!("c{n}"),
            "read",
            &format!("{{\"n\":{n}}}"),
            &text,
        ));
    }
    messages.push(build::assistant("done"));
    let messages = numbered(messages);
    let mut engine = kit(200_000)
        .config(json!({"proactive_prune_min_result_chars": 4_000}))
        .create()
        .expect("an engine");
    let emitted = engine
        .compress_with(&messages, |args| args.trigger = abi::TRIGGER_PRUNE)
        .expect("a list");
    let next = emitted.messages;
    assert_eq!(next.len(), messages.len(), "no message goes");
    assert_sound(&messages, &next, "prune");
    let changed = next
        .iter()
        .zip(&messages)
        .filter(|(new, old)| new.stored() != old.stored());
    for (new, old) in changed.clone() {
        assert_eq!((old.role(), new.identity()), (Role::Tool, old.identity()));
    }
    assert!(changed.count() > 10);
    assert!(
        next.iter()
            .any(|m| m.text().contains("same output as that of a later call"))
    );
    let mut small = kit(200_000).create().expect("an engine");
    let few = &messages[..4];
    assert!(
        small
            .compress_with(few, |args| args.trigger = abi::TRIGGER_PRUNE)
            .expect("an answer")
            .is_unchanged()
    );
}
