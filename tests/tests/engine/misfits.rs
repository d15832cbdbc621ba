//! The table: each way to misbehave in a slot, and what comes of it.

use hermes::engine::{
    CompressRequest, Emission, EngineHandle, FaultKind, ModelInfo, PassControl, Serving,
    SessionInfo, Slot, ToolRequest, TurnInfo, Usage,
};

use crate::support::{Host, PATIENCE, conversation};

/// Calls a slot and gives the fault it came to, in words; empty if there was none.
fn call(engine: &mut EngineHandle, slot: Slot) -> Result<String, (FaultKind, String)> {
    let list = conversation();
    let delivered = |delivery| match delivery {
        hermes::engine::Delivery::Failed(fault) => Err(fault),
        other => Ok(format!("{other:?}")),
    };
    let result = match slot {
        Slot::SelectContext => engine
            .select_context(&list, &list, Some(3), 200_000, 0, 0)
            .map(|emission| show(&emission)),
        Slot::Compress => engine
            .compress(
                CompressRequest {
                    messages: list,
                    pass_id: "pass-1".to_owned(),
                    ..CompressRequest::default()
                },
                &PassControl::new(Some(PATIENCE), Some(PATIENCE)),
            )
            .map(|emission| show(&emission)),
        Slot::UpdateModel => delivered(engine.update_model(&ModelInfo {
            context_length: 100_000,
            ..ModelInfo::default()
        })),
        Slot::UpdateFromResponse => delivered(engine.update_from_response(&Usage {
            prompt_tokens: Some(11),
            ..Usage::default()
        })),
        Slot::SessionReset => delivered(engine.session_reset()),
        Slot::SessionStart => delivered(engine.session_start(&session("s1"))),
        Slot::SessionEnd => delivered(engine.session_end(&session("s1"))),
        Slot::ToolSchemas => engine.tool_schemas().map(|schemas| format!("{schemas:?}")),
        Slot::Command => engine.command(&["help".to_owned()]),
        Slot::ShouldCompress => Ok(format!("{:?}", engine.should_compress(Some(190_000)))),
        Slot::Preflight => Ok(engine.preflight(Some(1), &list).to_string()),
        Slot::TurnComplete => {
            engine.turn_complete(TurnInfo {
                messages: list,
                ..TurnInfo::default()
            });
            Ok(String::new())
        }
        Slot::ToolCall => Ok(engine.tool_call(ToolRequest {
            name: "misfit_tool".to_owned(),
            arguments: "{}".to_owned(),
            ..ToolRequest::default()
        })),
        Slot::Status => Ok(engine.status().to_string()),
        other => panic!("{other} is not called by this table"),
    };
    result.map_err(|fault| {
        assert_eq!(fault.engine, "misfit");
        assert_eq!(fault.slot, slot);
        (fault.kind, fault.to_string())
    })
}

fn session(id: &str) -> SessionInfo {
    SessionInfo {
        session_id: id.to_owned(),
        ..SessionInfo::default()
    }
}

fn show(emission: &Emission) -> String {
    match emission {
        Emission::Unchanged { reason } => format!("unchanged: {reason}"),
        Emission::Messages(items) => format!("{} messages", items.len()),
    }
}

/// Slots of which a fault comes back as a value, rather than as a default.
const TELLING: [Slot; 9] = [
    Slot::SelectContext,
    Slot::Compress,
    Slot::UpdateModel,
    Slot::UpdateFromResponse,
    Slot::SessionReset,
    Slot::SessionStart,
    Slot::SessionEnd,
    Slot::ToolSchemas,
    Slot::Command,
];

/// One misbehaviour in one slot: the kind of fault, words in its text, and the engine serves on.
fn expect(slot: Slot, does: &str, kind: FaultKind, words: &[&str]) {
    let host = Host::new();
    let mut engine = host.engine(slot.name(), does);
    let (got, text) = call(&mut engine, slot).expect_err(does);
    assert_eq!(got, kind, "{slot}: {does}: {text}");
    for word in words {
        assert!(
            text.contains(word),
            "{slot}: {does}: no '{word}' in: {text}"
        );
    }
    // What happened, where, and what happens next; told once, and the conversation goes on.
    assert!(
        text.starts_with(&format!("context engine 'misfit': {slot} ")),
        "{text}"
    );
    assert!(text.contains("; "), "{text}");
    let notices = engine.take_notices();
    assert_eq!(notices.len(), 1, "{slot}: {does}: {notices:?}");
    let _ = call(&mut engine, slot);
    assert!(
        engine.take_notices().is_empty(),
        "{slot}: {does}: told twice"
    );
    assert_eq!(engine.state().context_length, 200_000);
}

#[test]
fn failures_of_every_slot_are_values_with_the_engines_words() {
    // contract: HOOK-2, SAFE-2, LIFE-1
    // case: 52
    for slot in TELLING {
        expect(slot, "fail", FaultKind::Error, &["failed: boom"]);
        expect(slot, "fail silently", FaultKind::Error, &["gave no reason"]);
        expect(slot, "unknown status", FaultKind::Error, &["status 77"]);
        expect(slot, "unknown error", FaultKind::Error, &["status -77"]);
        expect(
            slot,
            "cancelled",
            FaultKind::Error,
            &["nobody had cancelled it"],
        );
        expect(slot, "error not utf-8", FaultKind::Error, &["b\u{fffd}d"]);
    }
}

#[test]
fn unchanged_is_success_only_where_it_means_something() {
    // contract: HOOK-4, ENG-17
    for slot in [Slot::Compress, Slot::SelectContext] {
        let mut engine = Host::new().engine(slot.name(), "unchanged");
        let shown = call(&mut engine, slot).unwrap();
        assert_eq!(shown, "unchanged: nothing to do here");
        assert!(engine.take_notices().is_empty(), "unchanged is no fault");
    }
    expect(
        Slot::SessionReset,
        "unchanged",
        FaultKind::Error,
        &["status 1"],
    );
    expect(
        Slot::ToolSchemas,
        "unchanged",
        FaultKind::Error,
        &["status 1"],
    );
}

#[test]
fn a_wrong_emission_is_refused_as_a_whole() {
    // contract: HOOK-4, PASS-6
    let wrong = [
        ("invalid utf-8", "not UTF-8", -4),
        ("null push", "NULL", -4),
        ("garbage", "not JSON", -4),
        ("a list", "found a list", -4),
        ("nothing in it", "found nothing", -4),
        ("bad range", "has 4", -4),
        ("huge range", "has 4", -4),
        ("unknown list", "list 7", -4),
        ("huge output", "64 MiB", -4),
        ("good after bad", "list 7", -4),
    ];
    for (does, word, answer) in wrong {
        for slot in [Slot::Compress, Slot::SelectContext] {
            let host = Host::new();
            let mut engine = host.engine(slot.name(), does);
            let (kind, text) = call(&mut engine, slot).expect_err(does);
            assert_eq!(kind, FaultKind::InvalidOutput, "{slot}: {does}");
            assert!(text.contains(word), "{slot}: {does}: {text}");
            // The engine was told at once, though it did not listen.
            let answers = host.log();
            let last = answers
                .iter()
                .rev()
                .find(|line| line.contains(" answered "));
            assert_eq!(
                last.map(|line| line.ends_with(&format!("answered {answer}"))),
                Some(true),
                "{does}: {answers:?}"
            );
        }
    }
    for (slot, does, word) in [
        (Slot::Compress, "backwards", "must increase"),
        (Slot::Compress, "twice", "must increase"),
        (Slot::SelectContext, "twice", "twice"),
        (Slot::SelectContext, "nothing", "no message at all"),
    ] {
        expect(slot, does, FaultKind::InvalidOutput, &[word]);
    }
}

#[test]
fn a_failure_after_half_an_emission_drops_that_half() {
    // contract: HOOK-2, PASS-6
    for slot in [Slot::Compress, Slot::SelectContext] {
        expect(slot, "failure after half", FaultKind::Error, &["boom"]);
    }
}

#[test]
fn a_selection_may_run_in_any_order_but_a_pass_may_not() {
    let mut engine = Host::new().engine("select_context", "backwards");
    assert_eq!(
        call(&mut engine, Slot::SelectContext).unwrap(),
        "2 messages"
    );
}

#[test]
fn the_engine_is_told_when_the_border_refuses_its_pass() {
    // contract: PASS-4, PASS-11
    let host = Host::new();
    let mut engine = host.engine("compress", "bad range");
    call(&mut engine, Slot::Compress).unwrap_err();
    let line = host.wait_for_log("pass pass-1 discarded");
    assert!(line.contains("keep of 1 messages from 4 on"), "{line}");
}

#[test]
fn a_wrong_text_is_refused() {
    // contract: TOOL-3, ENG-13
    for (does, word) in [
        ("invalid utf-8", "not UTF-8"),
        ("garbage", "no JSON"),
        ("a number", "no array"),
        ("nothing", "no JSON"),
        ("huge output", "more than 8 MiB"),
    ] {
        expect(Slot::ToolSchemas, does, FaultKind::InvalidOutput, &[word]);
    }
    for does in [
        "invalid utf-8",
        "garbage",
        "nothing",
        "huge output",
        "fail",
        "panic",
        "unknown status",
    ] {
        let mut engine = Host::new().engine("tool_call", does);
        let answer = call(&mut engine, Slot::ToolCall).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let text = answer["error"].as_str().unwrap();
        assert!(
            text.starts_with("Context engine tool 'misfit_tool' failed"),
            "{text}"
        );

        let mut engine = Host::new().engine("status", does);
        let status: serde_json::Value =
            serde_json::from_str(&call(&mut engine, Slot::Status).unwrap()).unwrap();
        assert_eq!(status["context_length"], 200_000, "{does}");
        assert_eq!(status["usage_percent"], 0.0);
    }
    // A tool's answer may be any JSON value.
    let mut engine = Host::new().engine("tool_call", "a number");
    assert_eq!(call(&mut engine, Slot::ToolCall).unwrap(), "42");
}

#[test]
fn a_failed_decision_is_no_and_a_reason_is_shown() {
    // contract: ENG-3, ENG-12, ENG-17, HOOK-2
    for does in ["fail", "unknown status", "panic", "cancelled"] {
        let host = Host::new();
        let mut engine = host.engine("should_compress", does);
        let decision = engine.should_compress(Some(190_000));
        assert!(!decision.yes, "{does}");
        let mut engine = host.engine("preflight", does);
        assert!(!engine.preflight(None, &conversation()), "{does}");
    }
    let mut engine = Host::new().engine("should_compress", "block");
    let decision = engine.should_compress(Some(190_000));
    assert_eq!((decision.yes, &*decision.reason), (false, "cooldown:30"));
    let mut engine = Host::new().engine("", "");
    assert!(engine.should_compress(Some(190_000)).yes);
    assert!(!engine.should_compress(Some(1)).yes);
}

#[test]
fn a_turn_ends_whatever_the_engine_says() {
    // contract: HOOK-2, HOOK-8
    for does in ["fail", "panic", "unknown status"] {
        let mut engine = Host::new().engine("turn_complete", does);
        call(&mut engine, Slot::TurnComplete).unwrap();
        assert_eq!(engine.take_notices().len(), 1, "{does}");
    }
}

#[test]
fn state_is_read_as_far_as_the_engine_knows_it() {
    // contract: ENG-5
    // case: 44
    let mut engine = Host::new().engine("state", "small");
    call(&mut engine, Slot::UpdateModel).unwrap();
    let state = engine.state();
    assert_eq!(state.context_length, 100_000, "known to the engine");
    assert_eq!(state.threshold_tokens, 75_000);
    assert_eq!(
        (
            state.threshold_percent,
            state.protect_first_n,
            state.protect_last_n
        ),
        (0.75, 3, 6),
        "not known to it: the contract's own values"
    );

    let mut engine = Host::new().engine("state", "not a number");
    call(&mut engine, Slot::UpdateModel).unwrap();
    assert!(engine.state().threshold_percent.is_finite());
    assert!(engine.status().is_object());

    for does in ["fail", "unknown status"] {
        let mut engine = Host::new().engine("state", does);
        call(&mut engine, Slot::UpdateModel).unwrap();
        assert_eq!(
            engine.state(),
            hermes::engine::EngineState::default(),
            "{does}"
        );
    }
}

#[test]
fn create_is_given_what_the_header_promises() {
    // contract: CFG-4, TEST-1
    // The misfit refuses to be created if anything in the host table, the call or the arguments is amiss.
    let engine = Host::new().engine("", "");
    assert_eq!(engine.name(), "misfit");
    assert_eq!(engine.state().context_length, 200_000);
    assert_eq!(*engine.serving(), Serving::Itself);
}

#[test]
fn a_long_error_is_cut_and_the_rest_is_refused() {
    let host = Host::new();
    let mut engine = host.engine("session_reset", "long error");
    let (_, text) = call(&mut engine, Slot::SessionReset).unwrap_err();
    assert!((4096..4400).contains(&text.len()), "{}", text.len());
    assert!(host.log().contains(&"error answered -6".to_owned()));
}

#[test]
fn a_sink_that_the_slot_does_not_have_is_unsupported() {
    let host = Host::new();
    let mut engine = host.engine("session_reset", "wrong sink");
    call(&mut engine, Slot::SessionReset).unwrap();
    for what in ["write", "keep", "push"] {
        assert!(
            host.log().contains(&format!("{what} answered -5")),
            "{:?}",
            host.log()
        );
    }
}
