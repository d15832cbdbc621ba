//! One engine per agent: clones, recovery, and what happens to an engine that keeps failing.

use std::thread;

use hermes::engine::{
    CompressRequest, Delivery, EngineHandle, ModelInfo, Notice, PassControl, Serving, SessionInfo,
    Slot, TurnInfo, Usage,
};

use crate::support::{Host, PATIENCE, Variant, conversation, logged};

fn model(window: u64) -> ModelInfo {
    ModelInfo {
        context_length: window,
        ..ModelInfo::default()
    }
}

fn session(id: &str) -> SessionInfo {
    SessionInfo {
        session_id: id.to_owned(),
        ..SessionInfo::default()
    }
}

fn compress(engine: &mut EngineHandle) {
    let request = CompressRequest {
        messages: conversation(),
        ..CompressRequest::default()
    };
    let control = PassControl::new(Some(PATIENCE), None);
    engine.compress(request, &control).unwrap();
}

#[test]
fn a_childs_model_never_changes_its_parents_budget() {
    // contract: CLONE-1, CLONE-2, CLONE-3
    // case: 38
    for variant in [Variant::Plain, Variant::WithoutClone, Variant::Old] {
        let host = Host::new();
        let template = host.template(variant, "", "");
        let mut parent = template.clone_for_agent().unwrap();
        parent.update_model(&model(1_000_000));
        parent.update_from_response(&Usage {
            prompt_tokens: Some(7),
            completion_tokens: Some(8),
            total_tokens: Some(15),
            ..Usage::default()
        });
        let before = parent.state();
        assert_eq!(
            (before.context_length, before.threshold_tokens),
            (1_000_000, 750_000)
        );
        thread::scope(|scope| {
            for window in [8_192, 204_800, 1_000_000] {
                let template = &template;
                scope.spawn(move || {
                    let mut child = template.clone_for_agent().unwrap();
                    child.update_model(&model(window));
                    child.session_start(&session("child"));
                    compress(&mut child);
                    child.session_end(&session("child"));
                    assert_eq!(child.state().context_length, window);
                    assert_eq!(child.state().compression_count, 1);
                });
            }
        });
        assert_eq!(parent.state(), before, "{variant:?}");
        parent.should_compress(None);
        assert_eq!(
            parent.state(),
            before,
            "{variant:?}: as the engine itself says"
        );
        assert_eq!(
            template.state().context_length,
            200_000,
            "the registered one serves nobody"
        );
    }
}

#[test]
fn an_agent_whose_engine_cannot_be_copied_gets_the_built_in_and_one_line() {
    // contract: CLONE-4
    // case: 39
    for (does, cause) in [
        ("null", "gave no instance"),
        ("same", "exists already"),
        ("fail", "boom"),
        ("panic", "panicked: a panic was caught"),
        ("unknown status", "status 77"),
    ] {
        let host = Host::new();
        let template = host.template(Variant::Plain, "clone", does);
        let (mut engine, log) = logged(|| host.agent_of(template.clone()));
        let line = "Context engine 'misfit' could not be safely copied for this agent: ";
        assert_eq!(log.matches(line).count(), 1, "{does}: {log}");
        assert_eq!(log.matches("WARN").count(), 1, "{does}: {log}");
        assert!(log.contains(cause), "{does}: {log}");
        assert!(!log.contains("not found"), "{log}");
        assert_eq!(engine.name(), "compressor", "{does}");
        assert!(
            engine.tool_schemas().unwrap().is_empty(),
            "not offered its tools"
        );
        assert!(
            matches!(engine.serving(), Serving::FallenBack { wanted, .. } if wanted == "misfit")
        );
        assert_eq!(engine.take_notices().len(), 1);
        // The registered instance is as it was, and destroyed once, by itself.
        drop(engine);
        drop(template);
        host.wait_for_log("destroyed");
        thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(
            host.log().iter().filter(|l| *l == "destroyed").count(),
            1,
            "{does}"
        );
    }
}

#[test]
fn the_same_instance_for_two_agents_is_found_out() {
    // contract: CLONE-4
    // case: 39
    let host = Host::new();
    let template = host.template(Variant::Plain, "clone", "sibling");
    let mut first = template.clone_for_agent().unwrap();
    let fault = template.clone_for_agent().unwrap_err();
    assert!(fault.cause.contains("exists already"), "{fault}");
    assert_eq!(
        first.update_model(&model(5)),
        Delivery::Done,
        "the first agent keeps it"
    );
}

#[test]
fn an_engine_without_clone_is_created_again() {
    // contract: ENG-16
    // case: 39, 44
    for variant in [Variant::WithoutClone, Variant::Old] {
        let host = Host::new();
        let template = host.template(variant, "", "");
        assert!(!Slot::Clone.is_in(template.module().vtable()));
        let engine = template.clone_for_agent().unwrap();
        assert_eq!(engine.state().context_length, 200_000, "the same settings");
        let fails = host.template(variant, "create for agent", "fail");
        let fault = fails.clone_for_agent().unwrap_err();
        assert_eq!(
            fault.to_string(),
            format!(
                "Context engine '{}' could not be safely copied for this agent: create failed: boom",
                fails.name()
            )
        );
    }
}

#[test]
fn tables_of_older_and_newer_authors_work() {
    // contract: ENG-18
    // case: 44
    let mut old = Host::new()
        .template(Variant::Old, "", "")
        .clone_for_agent()
        .unwrap();
    for slot in [
        Slot::SelectContext,
        Slot::TurnComplete,
        Slot::ToolCall,
        Slot::SessionStart,
    ] {
        assert!(!old.has(slot), "{slot} lies beyond its table");
    }
    let list = conversation();
    assert!(old.select_context(&list, &list, None, 0, 0, 0).is_ok());
    old.turn_complete(TurnInfo::default());
    assert_eq!(old.session_start(&session("s")), Delivery::Absent);
    let request = CompressRequest {
        messages: list.clone(),
        focus: Some("database schema".to_owned()),
        ..CompressRequest::default()
    };
    old.compress(request, &PassControl::new(Some(PATIENCE), None))
        .unwrap();

    let mut new = Host::new()
        .template(Variant::New, "", "")
        .clone_for_agent()
        .unwrap();
    assert!(new.has(Slot::Idle));
    compress(&mut new);
}

#[test]
fn an_old_engines_own_failure_is_called_once_and_shown() {
    // case: 44
    let host = Host::new();
    let mut engine = host
        .template(Variant::Old, "compress", "fail")
        .clone_for_agent()
        .unwrap();
    let request = CompressRequest {
        messages: conversation(),
        focus: Some("database schema".to_owned()),
        ..CompressRequest::default()
    };
    let fault = engine
        .compress(request, &PassControl::new(Some(PATIENCE), None))
        .unwrap_err();
    assert!(fault.to_string().contains("boom"), "{fault}");
}

#[test]
fn a_dead_instance_is_replaced_and_told_what_it_missed() {
    // contract: SAFE-2, LIFE-1
    // case: 52
    let host = Host::new();
    let mut engine = host.engine("turn_complete", "panic once");
    engine.update_model(&model(64_000));
    engine.session_start(&session("s1"));
    engine.turn_complete(TurnInfo::default());
    assert_eq!(engine.name(), "misfit");
    assert_eq!(*engine.serving(), Serving::Itself);
    assert_eq!(engine.state().context_length, 64_000);
    let log = host.log();
    let line = log.iter().rposition(|l| l == "session_start s1 reason 6");
    let model = log.iter().rposition(|l| l == "update_model");
    assert!(model.is_some() && model < line, "{log:?}");
    host.wait_for_log("destroyed");
    engine.turn_complete(TurnInfo::default());
    assert!(
        matches!(&engine.take_notices()[..], [Notice::Warning(text)] if text.contains("a panic was caught"))
    );
}

#[test]
fn the_third_panic_in_a_session_takes_the_engine_out() {
    // contract: SAFE-2, SAFE-4
    // case: 52
    let mut engine = Host::new().engine("turn_complete", "panic");
    engine.update_model(&model(64_000));
    engine.session_start(&session("s1"));
    for _ in 0..2 {
        engine.turn_complete(TurnInfo::default());
        assert_eq!(engine.name(), "misfit");
    }
    engine.turn_complete(TurnInfo::default());
    assert_eq!(engine.name(), "compressor");
    assert_eq!(engine.state().context_length, 64_000, "brought up to date");
    let notices = engine.take_notices();
    let told: Vec<_> = notices
        .iter()
        .filter(|n| matches!(n, Notice::TakenOut(_)))
        .collect();
    let [told] = &told[..] else {
        panic!("told once: {notices:?}");
    };
    for word in [
        "misfit",
        "panicked 3 times",
        "A new session tries 'misfit' again",
    ] {
        assert!(told.text().contains(word), "{word}: {}", told.text());
    }
}

#[test]
fn three_failures_in_a_row_of_any_call_take_the_engine_out_for_the_session() {
    // contract: SAFE-4
    for slot in [
        Slot::SelectContext,
        Slot::TurnComplete,
        Slot::UpdateFromResponse,
        Slot::ShouldCompress,
        Slot::ToolSchemas,
        Slot::Status,
    ] {
        let mut engine = Host::new().engine(slot.name(), "fail");
        engine.session_start(&session("s1"));
        let list = conversation();
        for round in 0..3 {
            assert_eq!(engine.name(), "misfit", "{slot} {round}");
            // Other calls succeed in between: that does not excuse this one.
            engine.update_model(&model(1000));
            let _ = engine.select_context(&list, &list, None, 0, 0, 0);
            engine.turn_complete(TurnInfo::default());
            engine.update_from_response(&Usage::default());
            engine.should_compress(None);
            let _ = engine.tool_schemas();
            engine.status();
        }
        assert_eq!(engine.name(), "compressor", "{slot}");
        let notices = engine.take_notices();
        let out = notices
            .iter()
            .filter(|n| matches!(n, Notice::TakenOut(_)))
            .count();
        assert_eq!(out, 1, "{slot}: {notices:?}");
        // A new session goes back to it.
        engine.session_start(&session("s2"));
        assert_eq!(engine.name(), "misfit", "{slot}");
        assert_eq!(*engine.serving(), Serving::Itself);
        assert_eq!(engine.state().context_length, 1000);
    }
}

#[test]
fn a_success_in_between_is_no_row() {
    // contract: SAFE-4
    let mut engine = Host::new().engine("turn_complete", "fail once");
    for _ in 0..6 {
        engine.turn_complete(TurnInfo::default());
    }
    assert_eq!(engine.name(), "misfit");
}

#[test]
fn an_agents_end_leaves_the_others_alone() {
    // contract: CLONE-3
    let host = Host::new();
    let template = host.template(Variant::Plain, "", "");
    let mut parent = template.clone_for_agent().unwrap();
    let child = template.clone_for_agent().unwrap();
    drop(child);
    host.wait_for_log("destroyed");
    assert_eq!(parent.update_model(&model(9)), Delivery::Done);
    drop(template);
    assert_eq!(parent.update_model(&model(10)), Delivery::Done);
    assert_eq!(parent.state().context_length, 10);
}

#[test]
fn the_built_in_takes_a_pass_that_the_engine_could_not_do() {
    let mut engine = Host::new().engine("compress", "fail");
    let request = CompressRequest {
        messages: conversation(),
        ..CompressRequest::default()
    };
    let control = PassControl::new(Some(PATIENCE), None);
    engine.compress(request.clone(), &control).unwrap_err();
    engine.compress_with_builtin(request, &control).unwrap();
    assert_eq!(engine.name(), "misfit", "for this pass only");
}
