//! Passes and calls that do not come back in time.

use std::time::{Duration, Instant};

use hermes::context::Outcome;
use hermes::engine::TurnOutcome;
use hermes::provider::FailureKind;

use crate::script::Say;
use crate::support::{Setup, World, listen, own_uids, talk, turn};

/// That a call was not waited for is told by the call, which is still inside, and not by a clock: on a busy machine
/// everything takes longer.
fn is_inside(world: &World, slot: &str) -> bool {
    world.diary().count(&format!("{slot} over")) == 0
}

/// Until the witness has written so many lines of a slot.
fn wait_for(world: &World, slot: &str, count: usize) {
    let until = Instant::now() + Duration::from_secs(60);
    while world.diary().count(slot) < count {
        assert!(Instant::now() < until, "no {slot}: {:#?}", world.diary());
        std::thread::sleep(Duration::from_millis(10));
    }
}

// contract: PASS-1, PASS-4, PASS-10, PASS-11, LIFE-5
// case: 34
#[test]
fn a_pass_that_is_late_is_given_up_and_its_result_is_void() {
    let world = Setup::witness("tail: 1\nsleep:\n  compress: 8000")
        .compression("context_timeout_seconds: 1")
        .world();
    let (host, mut agent) = world.agent();
    talk(&mut agent, 4, 20);
    let session = agent.session_id().to_owned();
    let rows = world.store().messages(&session, true).unwrap();
    let ids = own_uids(agent.messages());
    let counters = agent.status().state;
    let outcome = agent.compress(None, &mut |_| {});
    let Outcome::Failed { reason } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(reason.contains("given up"), "{reason}");
    // After its second, and a second of grace.
    assert!(is_inside(&world, "compress"));
    let warnings = agent.take_warnings();
    assert_eq!(warnings.len(), 1, "told once: {warnings:?}");

    // The conversation goes on at once, while the engine is still at work: no hook enters it.
    let report = turn(&mut agent, "go on");
    assert_eq!(report.outcome, TurnOutcome::Completed);
    assert!(is_inside(&world, "compress"));
    let inside = world.diary();
    assert_eq!(inside.count("select_context"), 4, "skipped");
    assert_eq!(inside.count("should_compress"), 4, "counts as no");

    // A second pass says that one is still inside; the first one's lock is not in its way.
    let outcome = agent.compress(None, &mut |_| {});
    let Outcome::Failed { reason } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        reason.contains("a call of compress is still inside"),
        "{reason}"
    );
    assert_eq!(
        world.store().pass_holder(&session).unwrap(),
        None,
        "nobody holds the session"
    );

    // What came of it is void when it arrives, and the engine is told so; then come the calls it missed.
    wait_for(&world, "compress over", 1);
    wait_for(&world, "update_from_response", 5);
    let diary = world.diary();
    assert_eq!(
        diary.of("compress over")[0]["cancelled"],
        true,
        "it could see it"
    );
    let told = diary.of("pass_result");
    assert!(
        told.iter().all(|line| line["committed"] == false),
        "{told:#?}"
    );
    let starts = diary.of("session_start");
    assert!(
        starts.iter().all(|line| line["reason"] != "Compression"),
        "no boundary: {starts:#?}"
    );
    let order = diary.slots(&diary.instances()[0]);
    let place = |slot: &str| order.iter().rposition(|other| *other == slot).unwrap();
    assert!(
        place("compress over") < place("update_from_response"),
        "delivered after it: {order:?}"
    );
    assert_eq!(own_uids(agent.messages())[..8], ids);
    assert_eq!(world.store().messages(&session, true).unwrap()[..8], rows);
    assert_eq!(world.store().session(&session).unwrap().last_pass_id, None);
    assert_eq!(agent.status().compressions, 0);
    assert_eq!(
        agent.status().state.compression_count,
        counters.compression_count
    );
    world.check(&agent);
    drop(agent);
    drop(host);
}

// contract: PASS-4, PASS-10, PASS-8
// case: 34
#[test]
fn an_overflow_while_a_late_pass_is_inside_neither_wipes_the_session_nor_ends_it() {
    let world = Setup::witness("should: 700\ntail: 1\nsleep:\n  compress: 60000")
        .compression("context_timeout_seconds: 0.3")
        .world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 4, 20);
    world.script.cut();
    world.script.prompt_tokens(Some(800));
    talk(&mut agent, 1, 20);
    let (report, heard) = listen(&mut agent, "this one asks for a pass");
    assert_eq!(report.outcome, TurnOutcome::Completed);
    assert!(is_inside(&world, "compress"));
    assert_eq!(heard.warnings.len(), 1, "{heard:?}");
    let (session, rows) = (agent.session_id().to_owned(), agent.messages().len());
    world.script.say([Say::Fail(FailureKind::Overflow {
        limit: None,
        requested: None,
        payload: false,
    })]);
    let report = turn(&mut agent, "and this one does not fit");
    assert_ne!(report.outcome, TurnOutcome::Interrupted);
    assert_eq!(agent.session_id(), session, "never reset");
    assert!(
        agent
            .messages()
            .iter()
            .any(|m| m.text() == "and this one does not fit")
    );
    let all = world.store().messages(&session, true).unwrap();
    assert!(all.len() > rows, "every message is still there");
    world.check(&agent);
}

// contract: PASS-4
#[test]
fn an_interrupt_ends_a_pass_at_once_and_the_turn_with_it() {
    let world = Setup::witness("every: 3\ntail: 1\nsleep:\n  compress: 6000").world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 2, 20);
    let before = own_uids(agent.messages());
    let interrupt = agent.interrupt();
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for(&world, "compress", 1);
            assert!(interrupt.interrupt(), "there is something to stop");
        });
        turn(&mut agent, "stop this")
    });
    assert_eq!(report.outcome, TurnOutcome::Interrupted, "{report:?}");
    assert_eq!(report.api_calls, 0);
    assert!(is_inside(&world, "compress"));
    assert_eq!(own_uids(agent.messages())[..4], before);
    assert!(
        report.warnings.iter().all(|w| !w.contains("failed")),
        "the user knows: {:?}",
        report.warnings
    );
    world.script.cut();
    wait_for(&world, "compress over", 1);
    let report = turn(&mut agent, "and now");
    assert_eq!(report.outcome, TurnOutcome::Completed);
    world.check(&agent);
}

// contract: PASS-4
#[test]
fn quitting_does_not_wait_for_an_engine_that_hangs() {
    let world = Setup::witness("tail: 1\nsleep:\n  compress: 60000")
        .compression("context_timeout_seconds: 0.2")
        .world();
    let (host, mut agent) = world.agent();
    talk(&mut agent, 3, 20);
    agent.compress(None, &mut |_| {});
    let session = agent.session_id().to_owned();
    agent.close("done");
    drop(host);
    assert!(is_inside(&world, "compress"));
    let row = world.store().session(&session).unwrap();
    assert_eq!(row.end_reason.as_deref(), Some("done"));
}

// contract: HOOK-2, PASS-10, SAFE-4
#[test]
fn a_call_that_does_not_return_costs_its_time_once() {
    let world = Setup::witness("select: tail\nkeep: 1\nsleep:\n  select_context: 60000")
        .timeouts("hooks: 0.1")
        .world();
    let (_host, mut agent) = world.agent();
    let report = turn(&mut agent, "one");
    assert_eq!(report.outcome, TurnOutcome::Completed);
    assert_eq!(report.warnings.len(), 1, "{:?}", report.warnings);
    for text in ["two", "three"] {
        assert_eq!(turn(&mut agent, text).warnings.len(), 0);
    }
    assert!(is_inside(&world, "select_context"));
    assert_eq!(world.diary().count("select_context"), 1, "then skipped");
    assert_eq!(agent.messages().len(), 6);
    world.check(&agent);
}

// contract: PASS-10, HOOK-2, PASS-8, SAFE-4
#[test]
fn while_an_engine_hangs_the_built_in_keeps_the_context_and_says_so_once() {
    for slot in ["should_compress", "turn_complete"] {
        let world = Setup::witness(&format!("sleep:\n  {slot}: 600000"))
            .timeouts("hooks: 0.1")
            .compression("protect_first_n: 1\nprotect_last_n: 2")
            .window(2_000)
            .world();
        let (_host, mut agent) = world.agent();
        assert_eq!(agent.status().manager.engine, "witness", "{slot}");
        assert_eq!(agent.status().manager.why, None, "{slot}");
        let mut told = Vec::new();
        let mut most = 0;
        for number in 0..40 {
            world.script.cut();
            let report = turn(
                &mut agent,
                &format!("{number} {}", "some words ".repeat(40)),
            );
            assert_eq!(report.outcome, TurnOutcome::Completed, "{slot}: {report:?}");
            told.extend(report.warnings);
            most = most.max(agent.status().tokens);
        }
        assert!(agent.status().compressions > 0, "{slot}: {told:#?}");
        assert!(most < 3_000, "{slot}: it stays near the window: {most}");
        let stands_in =
            |text: &&String| text.contains("the built-in engine compresses in the place");
        let sentences: Vec<&String> = told.iter().filter(stands_in).collect();
        assert_eq!(sentences.len(), 1, "{slot}: {told:#?}");
        assert!(
            sentences[0].contains("'witness'") && sentences[0].contains(slot),
            "{slot}: {}",
            sentences[0]
        );
        let status = agent.status();
        assert_eq!(
            (&*status.engine, &*status.manager.engine),
            ("witness", "compressor")
        );
        let why = status.manager.why.expect("a reason");
        assert!(why.contains("'witness'") && why.contains(slot), "{why}");
        world.check(&agent);
    }
}
