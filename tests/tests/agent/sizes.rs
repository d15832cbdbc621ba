//! Windows, triggers and what does not fit, with the built-in engine unless said otherwise.

use hermes::agent::Agent;
use hermes::context::Outcome;
use hermes::engine::TurnOutcome;
use hermes_message::{Role, build};

use crate::script::{Say, tokens_of};
use crate::support::{Setup, World, listen, messages_of, own_uids, talk, texts, turn, uids};

/// A number with the words to fill so many tokens, each word another one.
fn words(tokens: usize) -> String {
    (0..tokens / 2).fold(String::new(), |mut text, number| {
        text.push_str(&format!("w{} ", number % 997));
        text
    })
}

// contract: ENG-5, CFG-1
// case: 20
#[test]
fn a_small_window_has_a_trigger_that_can_be_reached_and_it_is_the_one_that_is_shown() {
    for (window, ratio) in [
        (4_096, "0.5"),
        (8_192, "0.85"),
        (32_768, "0.3"),
        (64_000, "0.5"),
        (65_536, "50"),
        (4_096, "1.0"),
    ] {
        let setup = Setup::engine("compressor")
            .compression(&format!("threshold: {ratio}"))
            .window(window);
        let world = setup.world();
        let host = world.host();
        let warned = host.take_warnings();
        assert_eq!(
            warned
                .iter()
                .filter(|text| text.contains("threshold"))
                .count(),
            usize::from(ratio == "50"),
            "{warned:?}"
        );
        let mut agent = host.agent(crate::support::options()).unwrap();
        let status = agent.status();
        let trigger = status.state.threshold_tokens;
        assert!(
            0 < trigger && trigger < window,
            "{window} {ratio}: {trigger}"
        );
        let shown = agent.engine_status();
        assert_eq!(shown["threshold_tokens"], trigger);
        assert_eq!(shown["context_length"], window);
        if window > 10_000 {
            continue;
        }
        // And passes do come, before the window is full.
        world.script.limit(Some(window));
        for number in 0..30 {
            world.script.cut();
            let report = turn(&mut agent, &format!("question {number} {}", words(600)));
            assert_eq!(
                report.outcome,
                TurnOutcome::Completed,
                "{window} {ratio} {number}: {report:?}"
            );
        }
        assert!(agent.status().compressions > 0, "{window} {ratio}");
        let refused = world
            .script
            .texts()
            .iter()
            .filter(|body| tokens_of(body) > window)
            .count();
        assert_eq!(refused, 0, "{window} {ratio}: no request was ever too long");
        world.check(&agent);
    }
}

fn large(world: &World) -> (hermes::agent::Host, Agent) {
    world.script.window("test-model", 1_000_000);
    world.script.window("small", 32_768);
    let (host, mut agent) = world.agent();
    for number in 0..40 {
        let text = format!("question {number} {}", words(7_000));
        let (first, second) = text.split_at(text.len() / 2);
        world
            .script
            .say([Say::Text(format!("answer {number} {second}"))]);
        assert_eq!(turn(&mut agent, first).error, None);
    }
    assert!(agent.status().tokens > 120_000, "{}", agent.status().tokens);
    (host, agent)
}

// contract: LIFE-3, ENG-9, PASS-9
// case: 23
#[test]
fn a_switch_to_a_smaller_model_compresses_before_its_first_request() {
    let world = Setup::engine("compressor").window(None).world();
    let (_host, mut agent) = large(&world);
    let before = own_uids(agent.messages());
    let session = agent.session_id().to_owned();
    agent.switch_model("small");
    world.script.limit(Some(32_768));
    let sent = world.script.bodies().len();
    world.script.cut();
    let report = turn(&mut agent, "hi");
    assert_eq!(report.outcome, TurnOutcome::Completed, "{report:?}");
    let bodies = world.script.texts();
    assert_eq!(bodies.len(), sent + 1, "none was refused");
    assert!(
        tokens_of(&bodies[sent]) < 32_768,
        "{}",
        tokens_of(&bodies[sent])
    );
    assert!(report.compressions > 0);
    let state = agent.status().state;
    assert!(state.threshold_tokens < 32_768 && state.context_length == 32_768);
    world.check(&agent);
    // The originals are still there.
    let all = world.store().messages(&session, true).unwrap();
    let kept: std::collections::HashSet<_> = all
        .iter()
        .filter_map(|row| row.message.identity().uid.clone())
        .collect();
    assert!(before.iter().all(|uid| kept.contains(uid.as_str())));
    // Back again: nothing to compress.
    let passes = agent.status().compressions;
    agent.switch_model("test-model");
    world.script.limit(None);
    turn(&mut agent, "back");
    assert_eq!(agent.status().compressions, passes);
    world.check(&agent);
}

// contract: PASS-6, PASS-9
// case: 26
#[test]
fn a_few_huge_messages_are_cut_to_fit_and_stay_in_the_store() {
    let huge = format!("BEGIN {} END", words(300_000));
    for role in ["tool", "user"] {
        let window = 131_072;
        let world = Setup::engine("compressor")
            .compression("protect_last_n: 20")
            .window(window)
            .world();
        world.script.limit(Some(window));
        let store = world.store();
        let mut lines = vec![build::user("read it")];
        if role == "tool" {
            lines.push(build::calling(None, &[("c", "read", "{}")]));
            lines.push(build::tool("c", &huge));
            lines.push(build::assistant("read"));
        } else {
            lines.push(build::assistant("what?"));
        }
        let text: Vec<String> = lines
            .iter()
            .map(|message| message.stored().to_string())
            .collect();
        let id = store
            .import(text.join("\n").as_bytes(), &mut |_, _, _| {})
            .unwrap()
            .imported[0]
            .clone();
        let (host, agent) = world.agent();
        drop(agent);
        let mut agent = world.resume(&host, &id);
        world.script.cut();
        let question = if role == "tool" { "and?" } else { &huge };
        let report = turn(&mut agent, question);
        assert_eq!(
            report.outcome,
            TurnOutcome::Completed,
            "{role}: {:?}",
            report.error
        );
        let body = world.script.last();
        assert!(tokens_of(&body) < window, "{role}");
        let sent = messages_of(&body);
        let cut = sent
            .iter()
            .find(|message| message.text().contains("BEGIN"))
            .expect("its head is there");
        assert!(cut.text().contains("END"), "{role}: and its tail");
        assert!(cut.text().len() < huge.len() / 2, "{role}");
        if role == "user" {
            assert_eq!(sent.last().unwrap().role(), Role::User, "never dropped");
        }
        let all = world.store().messages(agent.session_id(), true).unwrap();
        assert!(
            all.iter().any(|row| row.message.text() == huge),
            "{role}: the original stays"
        );
        world.check_requests();
    }
}

// contract: PASS-8
// case: 27
#[test]
fn a_fixed_part_that_is_over_the_trigger_pauses_passes_with_one_notice() {
    let window = 32_768;
    let tools: Vec<String> = (0..44)
        .map(|number| {
            format!(
                r#"{{"name": "tool_{number}", "description": "{}"}}"#,
                words(400)
            )
        })
        .collect();
    let setup = Setup::witness(&format!(
        "tools: [{}]\nthreshold_percent: 0.25\nshould: 8192\ncompress: a_little",
        tools.join(", ")
    ));
    let world = setup.window(window).world();
    let (_host, mut agent) = world.agent();
    let mut warnings = Vec::new();
    for number in 0..10 {
        world.script.cut();
        let (report, heard) = listen(&mut agent, &format!("hi {number}"));
        assert_eq!(report.outcome, TurnOutcome::Completed);
        warnings.extend(heard.warnings);
    }
    let diary = world.diary();
    let passes = diary.count("compress");
    let asked: Vec<_> = diary
        .of("compress")
        .iter()
        .map(|line| (line["trigger"].clone(), line["current"].clone()))
        .collect();
    // The first one changes the newest question, which is refused; then two that free nothing.
    assert_eq!(passes, 3, "{asked:?}, {warnings:#?}");
    let notices: Vec<_> = warnings
        .iter()
        .filter(|text| text.contains("compression pauses"))
        .collect();
    assert_eq!(notices.len(), 1, "{warnings:#?}");
    assert!(
        notices[0].contains("tool schemas") && notices[0].contains("/compress"),
        "{notices:?}"
    );
    // The pause ends when the model changes, and when the user says so.
    world.script.cut();
    agent.switch_model("another");
    turn(&mut agent, "hi again");
    assert_eq!(world.diary().count("compress"), passes + 1);
    agent.compress(None, &mut |_| {});
    assert_eq!(world.diary().count("compress"), passes + 2);
    world.check(&agent);
}

// contract: PASS-8, ENG-3
// case: 27
#[test]
fn the_providers_own_count_outranks_the_estimate() {
    let world = Setup::witness("should: 10000\ntail: 1\nthreshold_percent: 0.1").world();
    let (_host, mut agent) = world.agent();
    world.script.prompt_tokens(Some(3_000));
    // By the estimate these are far above the trigger after some turns.
    for number in 0..30 {
        turn(&mut agent, &format!("question {number} {}", words(900)));
    }
    let asked = world.diary();
    let last = asked.of("should_compress").pop().unwrap()["tokens"]
        .as_u64()
        .unwrap();
    assert!(last < 10_000, "{last}");
    assert_eq!(asked.count("compress"), 0);
    world.script.prompt_tokens(Some(11_000));
    turn(&mut agent, "now it is");
    world.script.cut();
    turn(&mut agent, "and this one");
    assert_eq!(world.diary().count("compress"), 1);
    world.check(&agent);
}

// contract: PASS-9, ENG-9
// case: 26
#[test]
fn a_window_that_an_error_names_is_the_window_from_then_on() {
    let world = Setup::witness("tail: 1").window(100_000).world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 6, 400);
    let limit = tokens_of(&world.script.last()) - 100;
    world.script.limit(Some(limit));
    world.script.free();
    let (report, heard) = listen(&mut agent, "does it fit?");
    assert_eq!(report.outcome, TurnOutcome::Completed, "{report:?}");
    assert_eq!(agent.status().context_length, limit);
    assert_eq!(
        agent.status().state.context_length,
        limit,
        "the engine knows it"
    );
    let told: Vec<_> = heard
        .warnings
        .iter()
        .filter(|text| text.contains("context_length"))
        .collect();
    assert_eq!(told.len(), 1, "{heard:?}");
    let diary = world.diary();
    let model = diary.of("update_model").pop().unwrap();
    assert_eq!(model["window"], limit);
    world.script.cut();
    turn(&mut agent, "and on");
    world.check(&agent);
    agent.new_session();
    assert_eq!(agent.status().context_length, limit);
}

// contract: PASS-9, PASS-8
// case: 34
#[test]
fn what_nothing_can_make_fit_is_one_clear_message_and_the_session_is_whole() {
    let world = Setup::witness("compress: unchanged").window(50_000).world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 3, 20);
    world.script.limit(Some(20));
    world.script.free();
    let report = turn(&mut agent, "does it fit?");
    assert_eq!(report.outcome, TurnOutcome::Failed);
    let error = report.error.unwrap();
    assert!(
        error.contains("/compress") && error.contains("/new"),
        "{error}"
    );
    assert!(report.api_calls <= 5, "{}", report.api_calls);
    let session = agent.session_id().to_owned();
    let all = world.store().messages(&session, true).unwrap();
    assert!(
        texts(
            &all.iter()
                .map(|row| row.message.clone())
                .collect::<Vec<_>>()
        )
        .contains(&"does it fit?".to_owned())
    );
    world.check(&agent);
    world.script.limit(None);
    world.script.cut();
    assert_eq!(turn(&mut agent, "and now?").outcome, TurnOutcome::Completed);
    world.check(&agent);
}

// contract: PASS-11, PASS-6, UID-3
// case: 28
#[test]
fn a_pass_that_is_refused_changes_no_row_and_no_counter() {
    let world = Setup::witness("compress: loses_user").world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 5, 20);
    let before = (
        own_uids(agent.messages()),
        world.store().messages(agent.session_id(), true).unwrap(),
    );
    for _ in 0..2 {
        // The user can try again at once.
        let outcome = agent.compress(None, &mut |_| {});
        assert!(matches!(outcome, Outcome::Refused { .. }), "{outcome:?}");
    }
    assert_eq!(world.diary().count("compress"), 2);
    let after = (
        own_uids(agent.messages()),
        world.store().messages(agent.session_id(), true).unwrap(),
    );
    assert_eq!(before, after);
    assert_eq!(agent.status().compressions, 0);
    let diary = world.diary();
    let last = diary.of("compress").pop().unwrap();
    assert_eq!(uids(&last["messages"]), after.0);
    world.check(&agent);
}
