//! Calls that outlive their budget: the conversation goes on, and what was given up changes nothing.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use hermes::engine::{
    CompressRequest, Delivery, EngineHandle, FaultKind, IdleOutcome, ModelInfo, Notice,
    PassControl, PassOutcome, Serving, SessionInfo, Slot, Template, ToolRequest, TurnInfo, Usage,
};

use crate::support::{BUDGET, Host, LIMIT, Variant, conversation, module};

fn pass(engine: &mut EngineHandle, id: &str) -> Result<hermes::engine::Emission, FaultKind> {
    let request = CompressRequest {
        messages: conversation(),
        pass_id: id.to_owned(),
        ..CompressRequest::default()
    };
    engine
        .compress(request, &PassControl::new(Some(BUDGET), Some(BUDGET)))
        .map_err(|fault| fault.kind)
}

fn tool() -> ToolRequest {
    ToolRequest {
        name: "misfit_tool".to_owned(),
        ..ToolRequest::default()
    }
}

fn usage(prompt: i64) -> Usage {
    Usage {
        prompt_tokens: Some(prompt),
        ..Usage::default()
    }
}

fn session(id: &str) -> SessionInfo {
    SessionInfo {
        session_id: id.to_owned(),
        ..SessionInfo::default()
    }
}

#[test]
fn a_call_that_sleeps_is_given_up_in_every_slot() {
    // contract: HOOK-2, PASS-4, TOOL-3, SAFE-2
    // case: 34
    let list = conversation();
    type Call = fn(&mut EngineHandle, &hermes::engine::MessageList);
    let calls: [(&str, Call); 14] = [
        ("update_model", |e, _| {
            drop(e.update_model(&ModelInfo::default()))
        }),
        ("update_from_response", |e, _| {
            drop(e.update_from_response(&usage(1)))
        }),
        ("session_reset", |e, _| drop(e.session_reset())),
        ("session_start", |e, _| drop(e.session_start(&session("s")))),
        ("session_end", |e, _| drop(e.session_end(&session("s")))),
        ("should_compress", |e, _| {
            assert!(!e.should_compress(Some(199_000)).yes)
        }),
        ("preflight", |e, list| assert!(!e.preflight(None, list))),
        ("compress", |e, _| {
            assert_eq!(pass(e, "p"), Err(FaultKind::Timeout))
        }),
        ("select_context", |e, list| {
            let fault = e.select_context(list, list, None, 0, 0, 0).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Timeout);
        }),
        ("turn_complete", |e, _| e.turn_complete(TurnInfo::default())),
        ("tool_schemas", |e, _| {
            assert_eq!(e.tool_schemas().unwrap_err().kind, FaultKind::Timeout)
        }),
        ("tool_call", |e, _| {
            assert!(e.tool_call(tool()).contains("\"error\""))
        }),
        ("status", |e, _| {
            assert_eq!(e.status()["context_length"], 200_000)
        }),
        ("command", |e, _| {
            assert_eq!(e.command(&[]).unwrap_err().kind, FaultKind::Timeout)
        }),
    ];
    thread::scope(|scope| {
        for (slot, call) in calls {
            let list = &list;
            scope.spawn(move || {
                let host = Host::hasty();
                let mut engine = host.engine(slot, "sleep");
                let start = Instant::now();
                call(&mut engine, list);
                let took = start.elapsed();
                assert!(took >= BUDGET && took < LIMIT, "{slot}: {took:?}");
                // The conversation goes on at once: nothing that is only shown waits for the engine.
                let start = Instant::now();
                assert!(engine.is_busy(), "{slot}");
                let _ = (engine.state(), engine.has(Slot::Compress), engine.name().len());
                assert!(start.elapsed() < Duration::from_millis(100), "{slot}");
                assert!(
                    matches!(&engine.take_notices()[..], [Notice::Warning(text)] if text.contains("given up")),
                    "{slot}"
                );
            });
        }
    });
}

#[test]
fn making_reading_and_ending_an_instance_may_hang_too() {
    // contract: SEL-5, CLONE-4, PASS-10
    // case: 39
    thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            let fault = Template::create(
                &module(Variant::Plain),
                Host::settings("create", "sleep"),
                Host::hasty().services(),
            )
            .err()
            .unwrap();
            assert_eq!(fault.kind, FaultKind::Timeout);
            assert!(start.elapsed() < LIMIT);
        });
        scope.spawn(|| {
            let template = Host::hasty().template(Variant::Plain, "clone", "sleep");
            let start = Instant::now();
            let fault = template.clone_for_agent().unwrap_err();
            assert!(fault.cause.contains("given up"), "{fault}");
            assert!(start.elapsed() < LIMIT);
            // While that call is inside, the next agent does not wait at all.
            let start = Instant::now();
            let fault = template.clone_for_agent().unwrap_err();
            assert!(fault.cause.contains("still inside"), "{fault}");
            assert!(start.elapsed() < Duration::from_millis(100));
        });
        scope.spawn(|| {
            // The call's own result is taken, though the state behind it does not come.
            let mut engine = Host::hasty().engine("state", "sleep");
            engine.update_model(&ModelInfo {
                context_length: 300_000,
                ..ModelInfo::default()
            });
            let start = Instant::now();
            let answer = engine.tool_call(tool());
            assert!(start.elapsed() < LIMIT + BUDGET);
            assert_eq!(answer, "{\"ok\":true}");
            assert!(engine.is_busy());
            assert_eq!(engine.state().context_length, 300_000);
        });
        scope.spawn(|| {
            let host = Host::hasty();
            let engine = host.engine("destroy", "sleep");
            let start = Instant::now();
            drop(engine);
            assert!(start.elapsed() < Duration::from_millis(100));
            host.wait_for_log("destroyed");
        });
    });
}

#[test]
fn nothing_enters_while_a_call_is_inside_and_what_must_not_be_missed_waits() {
    // contract: PASS-10
    let host = Host::hasty();
    let mut engine = host.engine("compress", "sleep");
    let list = conversation();
    assert_eq!(pass(&mut engine, "p1"), Err(FaultKind::Timeout));
    let shown = engine.state();

    // Hooks and passes are skipped, decisions are no, tool calls get a JSON error; none of them waits.
    let start = Instant::now();
    assert_eq!(pass(&mut engine, "p2"), Err(FaultKind::Busy));
    let fault = engine
        .select_context(&list, &list, None, 0, 0, 0)
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Busy);
    assert!(
        fault.to_string().contains("compress is still inside"),
        "{fault}"
    );
    assert!(!engine.should_compress(Some(199_999)).yes);
    assert!(!engine.preflight(None, &list));
    assert!(engine.tool_call(tool()).contains("still inside"));
    engine.turn_complete(TurnInfo::default());
    // What the engine must not miss waits for it, in order.
    assert_eq!(engine.update_from_response(&usage(42)), Delivery::Waiting);
    let model = ModelInfo {
        context_length: 50_000,
        ..ModelInfo::default()
    };
    assert_eq!(engine.update_model(&model), Delivery::Waiting);
    assert_eq!(engine.session_start(&session("next")), Delivery::Waiting);
    assert_eq!(engine.session_reset(), Delivery::Waiting);
    assert_eq!(engine.state(), shown);
    assert!(
        start.elapsed() < Duration::from_millis(300),
        "{:?}",
        start.elapsed()
    );

    host.wait_for_log("session_reset");
    let order: Vec<String> = host.log();
    let at = |line: &str| {
        order
            .iter()
            .position(|l| l.starts_with(line))
            .unwrap_or_else(|| panic!("{line}: {order:?}"))
    };
    // First of all it is told that its late pass was not taken, and then the rest as it came.
    assert!(at("pass p1 discarded") < at("update_from_response"));
    assert!(at("update_from_response") < at("update_model"));
    assert!(at("update_model") < at("session_start next"));
    assert!(at("session_start next") < at("session_reset"));
    while engine.is_busy() {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(engine.state().context_length, 50_000);
    assert!(engine.should_compress(Some(49_000)).yes, "it serves again");
}

#[test]
fn a_late_result_changes_nothing() {
    // contract: PASS-4, HOOK-2
    // case: 34
    let host = Host::hasty();
    let mut engine = host.engine("compress", "sleep, then write");
    let messages = conversation();
    let before: Vec<_> = messages.messages().to_vec();
    let request = CompressRequest {
        messages: messages.clone(),
        pass_id: "late".to_owned(),
        ..CompressRequest::default()
    };
    let control = PassControl::new(Some(BUDGET), Some(BUDGET));
    assert_eq!(
        engine.compress(request, &control).unwrap_err().kind,
        FaultKind::Timeout
    );
    let shown = engine.state();
    let line = host.wait_for_log("pass late discarded");
    assert!(line.contains("did not end in time"));
    for told in [
        "late cancelled answered 1",
        "late keep answered -3",
        "late push answered -3",
    ] {
        assert!(
            host.log().contains(&told.to_owned()),
            "{told}: {:?}",
            host.log()
        );
    }
    while engine.is_busy() {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(messages.messages(), before);
    assert_eq!(shown.compression_count, 0);
    // Told of the discard by the host already; the caller's own word comes too late.
    let late = engine.pass_result("late", PassOutcome::Discarded(String::new()));
    assert_eq!(late, Delivery::Absent);
}

#[test]
fn progress_extends_a_pass_up_to_the_ceiling() {
    // contract: PASS-4
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut engine = Host::hasty().engine("compress", "progress");
            let control = PassControl::new(Some(BUDGET), Some(Duration::from_secs(20)));
            let request = CompressRequest {
                messages: conversation(),
                ..CompressRequest::default()
            };
            let start = Instant::now();
            engine.compress(request, &control).unwrap();
            assert!(start.elapsed() > BUDGET * 2);
            assert_eq!(control.progress(), (24, 24));
        });
        scope.spawn(|| {
            let mut engine = Host::hasty().engine("compress", "progress");
            let control = PassControl::new(Some(BUDGET), Some(BUDGET));
            let request = CompressRequest {
                messages: conversation(),
                ..CompressRequest::default()
            };
            let start = Instant::now();
            let fault = engine.compress(request, &control).unwrap_err();
            assert_eq!(
                fault.kind,
                FaultKind::Timeout,
                "no progress beyond the ceiling"
            );
            assert!(start.elapsed() < LIMIT);
        });
    });
}

#[test]
fn a_cancelled_pass_stops_and_is_no_failure() {
    // contract: PASS-4
    for _ in 0..4 {
        let mut engine = Host::hasty().engine("compress", "stop when cancelled");
        let control = PassControl::new(Some(Duration::from_secs(30)), None);
        let request = CompressRequest {
            messages: conversation(),
            ..CompressRequest::default()
        };
        let switch = control.clone();
        let start = Instant::now();
        let stopper = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            switch.cancel();
        });
        let fault = engine.compress(request, &control).unwrap_err();
        stopper.join().unwrap();
        assert_eq!(fault.kind, FaultKind::Cancelled);
        assert!(start.elapsed() < LIMIT);
        assert_eq!(*engine.serving(), Serving::Itself);
        assert!(engine.take_notices().is_empty());
    }
}

#[test]
fn without_a_timeout_a_pass_runs_on_the_callers_thread() {
    // contract: PASS-1, PASS-2
    let mut engine = Host::hasty().engine("compress", "progress");
    let request = CompressRequest {
        messages: conversation(),
        ..CompressRequest::default()
    };
    let start = Instant::now();
    engine
        .compress(request, &PassControl::new(None, None))
        .unwrap();
    assert!(start.elapsed() > BUDGET * 2, "nobody gave it up");
}

#[test]
fn idle_runs_until_there_is_nothing_more_or_a_turn_begins() {
    let mut engine = Host::hasty().engine("idle", "more");
    let control = PassControl::new(None, None);
    assert_eq!(engine.idle(&control), IdleOutcome::More);
    assert_eq!(engine.idle(&control), IdleOutcome::More);
    assert_eq!(engine.idle(&control), IdleOutcome::Done);

    let mut engine = Host::hasty().engine("idle", "stop when cancelled");
    let switch = control.clone();
    let stopper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        switch.cancel();
    });
    let start = Instant::now();
    assert!(
        matches!(engine.idle(&control), IdleOutcome::Stopped(fault) if fault.kind == FaultKind::Cancelled)
    );
    stopper.join().unwrap();
    assert!(start.elapsed() < LIMIT);
}

#[test]
fn a_library_with_three_abandoned_calls_is_out() {
    // contract: SAFE-4
    let host = Host::hasty();
    let template = host.template(Variant::Plain, "turn_complete", "sleep");
    let mut engines: Vec<EngineHandle> = (0..4)
        .map(|_| template.clone_for_agent().unwrap())
        .collect();
    thread::scope(|scope| {
        for engine in &mut engines[..3] {
            scope.spawn(|| engine.turn_complete(TurnInfo::default()));
        }
    });
    // An agent that has seen nothing of it gets the built-in with its next call, and is told once.
    let other = &mut engines[3];
    assert_eq!(other.name(), "misfit");
    other.should_compress(Some(1));
    assert_eq!(other.name(), "compressor");
    assert!(
        matches!(&other.take_notices()[..], [Notice::TakenOut(text)] if text.contains("3 calls"))
    );
    // A new agent does not get it either, until the program is restarted.
    let fault = template.clone_for_agent().unwrap_err();
    assert!(fault.to_string().contains("restart"), "{fault}");
    // Other libraries are untouched.
    assert_eq!(
        host.template(Variant::WithoutClone, "", "").name(),
        "misfit-without-clone"
    );
}

#[test]
fn four_passes_run_at_once_and_a_fifth_waits_its_turn() {
    // contract: PASS-5, PASS-12
    let host = Host::hasty();
    let template = host.template(Variant::Plain, "compress", "progress");
    let barrier = Arc::new(Barrier::new(6));
    let workers: Vec<_> = (0..6)
        .map(|_| {
            let mut engine = template.clone_for_agent().unwrap();
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || {
                barrier.wait();
                let start = Instant::now();
                let request = CompressRequest {
                    messages: conversation(),
                    ..CompressRequest::default()
                };
                let control = PassControl::new(Some(Duration::from_secs(20)), None);
                engine.compress(request, &control).unwrap();
                start.elapsed()
            })
        })
        .collect();
    let mut took: Vec<Duration> = workers.into_iter().map(|w| w.join().unwrap()).collect();
    took.sort();
    // One pass takes 1.2 s, so the fifth and sixth end after the first four have.
    assert!(took[4] > took[0] + Duration::from_millis(600), "{took:?}");
    assert!(took[3] < took[4], "{took:?}");
}

#[test]
fn shutting_down_names_what_was_not_delivered() {
    // contract: PASS-10
    let host = Host::hasty();
    let mut engine = host.engine("session_reset", "sleep");
    engine.session_reset();
    assert_eq!(engine.update_from_response(&usage(1)), Delivery::Waiting);
    let start = Instant::now();
    let report = hermes::engine::shutdown(Duration::from_millis(100));
    assert!(start.elapsed() < Duration::from_millis(600));
    assert!(
        report
            .undelivered
            .contains(&"misfit: update_from_response".to_owned()),
        "{report:?}"
    );
    assert!(
        report
            .still_inside
            .contains(&"misfit: session_reset".to_owned()),
        "{report:?}"
    );
}
