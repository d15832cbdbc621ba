//! Passes: what is asked, what is refused, what is told, and when to stop.

use hermes::context::{AgentEngine, Conversation, Engine, Outcome};
use hermes::engine::{ModelInfo, StartReason, Trigger, Usage};
use hermes_message::{Identity, Message};

use super::actor::{actor, script, take_log};
use super::{assistant, call, conversation, message, result, system, turns, user};

/// Gives every message a uid, as a store does.
fn stamped(messages: &[Message]) -> Vec<Message> {
    let stamp = |(at, message): (usize, &Message)| {
        if message.identity().uid.is_some() {
            return message.clone();
        }
        message.replaced_identity(Identity::of_uid(&format!("uid-{at}")))
    };
    messages.iter().enumerate().map(stamp).collect()
}

fn store(_: &str, messages: Vec<Message>) -> Result<Vec<Message>, String> {
    Ok(stamped(&messages))
}

fn force(talk: &mut Conversation, engine: &mut dyn Engine) -> Outcome {
    talk.force(engine, None, None, &mut store)
}

/// Ten turns and an open question.
fn long_talk() -> Conversation {
    let mut messages = turns(10);
    messages.push(user("what is 2+2?"));
    conversation(&stamped(&messages), 8000)
}

// contract: PASS-6, PASS-3, PASS-11
// case: 33
#[test]
fn a_result_that_breaks_a_rule_is_refused_and_the_transcript_stays() {
    let rules = [
        ("empty", "empty"),
        ("longer", "larger"),
        ("no-system", "system-lost"),
        ("no-user", "newest-user-lost"),
        ("orphan", "result-without-call"),
        ("split", "call-without-result"),
        ("no-role", "unknown-role"),
        ("uid-twice", "uid-twice"),
    ];
    for (mode, rule) in rules {
        let id = format!("refused-{mode}");
        let mut talk = long_talk();
        let before = talk.transcript().messages().to_vec();
        let mut engine = actor(&id);
        script(&id, |script| script.compress = mode);
        for _ in 0..2 {
            match force(&mut talk, &mut engine) {
                Outcome::Refused { violations } => {
                    assert!(
                        violations
                            .iter()
                            .any(|violation| violation.broken.name() == rule),
                        "{mode}: {violations:?}"
                    );
                }
                other => panic!("{mode}: {other:?}"),
            }
        }
        assert_eq!(
            talk.take_warnings().len(),
            1,
            "{mode}: the user is told once"
        );
        assert!(
            talk.transcript()
                .messages()
                .iter()
                .zip(&before)
                .all(|(a, b)| a.same(b)),
            "{mode}"
        );
        let log = take_log(&id);
        assert!(
            log[1].starts_with("pass_result p1 committed=false"),
            "{mode}: {log:?}"
        );
        assert!(
            !log.iter().any(|line| line.starts_with("session_start")),
            "{mode}: {log:?}"
        );
    }
}

// contract: PASS-6
// case: 33
#[test]
fn the_same_list_is_no_operation_and_no_fault() {
    for mode in ["same", "equal", "none", "with-identity"] {
        let id = format!("no-op-{mode}");
        let mut talk = long_talk();
        let mut engine = actor(&id);
        script(&id, |script| script.compress = mode);
        let outcome = force(&mut talk, &mut engine);
        assert!(
            matches!(outcome, Outcome::Unchanged { .. }),
            "{mode}: {outcome:?}"
        );
        assert_eq!(engine.take_notices(), Vec::<String>::new());
        let boundary = take_log(&id)
            .iter()
            .any(|line| line.starts_with("session_start"));
        assert!(!boundary, "{mode}");
    }
}

// contract: PASS-6
#[test]
fn failures_of_the_engine_and_of_the_store_leave_everything_as_it_was() {
    for mode in ["error", "panic", "no-object"] {
        let id = format!("failed-{mode}");
        let mut talk = long_talk();
        let before = talk.transcript().len();
        let mut engine = actor(&id);
        script(&id, |script| script.compress = mode);
        assert!(
            matches!(force(&mut talk, &mut engine), Outcome::Failed { .. }),
            "{mode}"
        );
        assert_eq!(talk.transcript().len(), before);
    }
    let mut talk = long_talk();
    let mut engine = actor("store-fails");
    script("store-fails", |script| script.compress = "cut");
    let mut locked = |_: &str, _: Vec<Message>| -> Result<Vec<Message>, String> {
        Err("database is locked".to_owned())
    };
    let outcome = talk.force(&mut engine, None, None, &mut locked);
    assert_eq!(
        outcome,
        Outcome::Failed {
            reason: "database is locked".to_owned()
        }
    );
    assert_eq!(talk.transcript().len(), 42);
    assert!(take_log("store-fails")[1].contains("committed=false"));
}

// contract: LIFE-5, LIFE-1, PASS-3, ENG-2, ENG-3, ENG-4
#[test]
fn a_commit_is_told_with_its_uids_and_then_as_a_boundary() {
    let mut talk = long_talk();
    let mut engine = actor("commit");
    script("commit", |script| {
        script.compress = "cut";
        script.should = true;
    });
    talk.start(&mut engine, StartReason::New);
    let outcomes = talk.prepare(&mut engine, Trigger::Preflight, &mut store);
    assert!(
        matches!(outcomes[0], Outcome::Committed { tokens_before, tokens_after } if tokens_after < tokens_before)
    );
    let request = talk.request(&mut engine, 0);
    talk.answered(
        &mut engine,
        &request,
        Usage {
            prompt_tokens: Some(20),
            ..Usage::default()
        },
    );
    talk.end(&mut engine);
    let log = take_log("commit");
    let expected = [
        "session_start New last=",
        "should_compress true",
        "compress p1 Preflight focus=None",
        "pass_result p1 committed=true uids=2",
        "session_start Compression last=p1",
        // Another pass would be of use by its tokens; it finds nothing left to cut.
        "should_compress true",
        "compress p2 Preflight focus=None",
        "pass_result p2 committed=false uids=0",
        "select_context attempt 0 budget Some(8000)",
        "usage true",
        "session_end 2",
    ];
    assert_eq!(log, expected);
}

// contract: PASS-9, ENG-12
#[test]
fn each_trigger_names_itself_and_preflight_asks_for_one_pass_only() {
    let mut talk = long_talk();
    let mut engine = actor("triggers");
    script("triggers", |script| {
        script.preflight = true;
        script.compress = "one-shorter";
    });
    assert_eq!(
        talk.prepare(&mut engine, Trigger::Preflight, &mut store)
            .len(),
        1
    );
    assert_eq!(
        talk.prepare(&mut engine, Trigger::Tools, &mut store).len(),
        0,
        "preflight is for the start of a turn"
    );
    assert!(talk.overflow(&mut engine, 9000, 6000, &mut store).is_some());
    talk.force(
        &mut engine,
        Some("database schema".to_owned()),
        None,
        &mut store,
    );
    let compress: Vec<String> = take_log("triggers")
        .into_iter()
        .filter(|line| line.starts_with("compress"))
        .collect();
    assert_eq!(
        compress,
        [
            "compress p1 Preflight focus=None",
            "compress p2 Overflow focus=None",
            "compress p3 Manual focus=Some(\"database schema\")",
        ]
    );
}

// contract: PASS-8
// case: 27
#[test]
fn passes_without_effect_pause_with_one_notice_and_the_user_can_force_one() {
    for mode in ["none", "one-shorter"] {
        let id = format!("thrash-{mode}");
        let mut messages = turns(60);
        messages.push(user("hi"));
        let mut talk = conversation(&stamped(&messages), 8000);
        let mut engine = actor(&id);
        script(&id, |script| {
            script.should = true;
            script.compress = mode;
        });
        let mut notices = Vec::new();
        for _ in 0..10 {
            talk.prepare(&mut engine, Trigger::Preflight, &mut store);
            notices.extend(talk.take_warnings());
        }
        let ran = |log: Vec<String>| {
            log.iter()
                .filter(|line| line.starts_with("compress"))
                .count()
        };
        assert_eq!(ran(take_log(&id)), 2, "{mode}");
        let paused: Vec<_> = notices
            .iter()
            .filter(|text| text.contains("compression pauses"))
            .collect();
        assert_eq!(paused.len(), 1, "{mode}: {notices:?}");
        assert!(
            paused[0].contains(&format!("{} are tool schemas", talk.account().fixed())),
            "{paused:?}"
        );
        script(&id, |script| script.compress = "cut");
        assert!(
            matches!(force(&mut talk, &mut engine), Outcome::Committed { .. }),
            "{mode}"
        );
    }
}

// case: 27
#[test]
fn real_usage_below_the_trigger_ends_a_pause() {
    let mut talk = long_talk();
    let mut engine = actor("pause-ends");
    engine.handle.update_model(&ModelInfo {
        context_length: 8000,
        ..Default::default()
    });
    script("pause-ends", |script| script.should = true);
    for _ in 0..4 {
        talk.prepare(&mut engine, Trigger::Tools, &mut store);
    }
    take_log("pause-ends");
    let request = talk.request(&mut engine, 0);
    talk.answered(
        &mut engine,
        &request,
        Usage {
            prompt_tokens: Some(100),
            ..Usage::default()
        },
    );
    assert!(
        talk.next_tokens() < 200,
        "the provider's figure outranks the estimate"
    );
    assert_eq!(
        talk.prepare(&mut engine, Trigger::Tools, &mut store).len(),
        1,
        "a new start"
    );
}

// contract: UID-18
#[test]
fn kept_and_edited_messages_have_all_their_identity_after_a_commit() {
    let identity = |n: usize| {
        Identity::from_json(&format!(
            r#"{{"message_uid":"m{n}","_absorbed_message_uids":["a{n}"],"_tool_call_uids":{{"c":"t{n}"}},"_tool_call_uid":"r{n}"}}"#
        ))
        .expect("an identity")
    };
    let mut messages = turns(6);
    messages.push(user("the last one"));
    let messages: Vec<Message> = messages
        .iter()
        .enumerate()
        .map(|(n, m)| m.replaced_identity(identity(n)))
        .collect();
    let mut talk = conversation(&messages, 8000);
    let mut engine = actor("identity");
    script("identity", |script| script.compress = "edit");
    assert!(matches!(
        force(&mut talk, &mut engine),
        Outcome::Committed { .. }
    ));
    let kept: Vec<&Identity> = talk
        .transcript()
        .messages()
        .iter()
        .map(Message::identity)
        .collect();
    let expected: Vec<Identity> = [0, 1, 2, 3, 4, messages.len() - 1].map(identity).into();
    assert!(kept.into_iter().eq(&expected));
    assert!(
        talk.transcript().messages()[0]
            .text()
            .ends_with("[compacted]")
    );
}

// contract: PASS-6
// case: 11
#[test]
fn a_newest_user_message_folded_into_another_is_not_lost() {
    let mut talk = long_talk();
    let mut engine = actor("folded");
    script("folded", |script| script.compress = "fold");
    assert!(matches!(
        force(&mut talk, &mut engine),
        Outcome::Committed { .. }
    ));
    let last = talk.transcript().messages().last().expect("a message");
    assert_eq!(last.identity().uid.as_deref(), Some("eee"));
    assert!(last.text().ends_with("what is 2+2?"));
}

// contract: PASS-6
// case: 5, 10
#[test]
fn only_the_first_message_can_be_the_system_prompt() {
    let parts = message(
        serde_json::json!({"role": "system", "content": [{"type": "text", "text": "You are Hermes."}]}),
    );
    for first in [None, Some(system("You are Hermes.")), Some(parts)] {
        let mut messages: Vec<Message> = first.into_iter().collect();
        let prompts = messages.len();
        for turn in 0..10 {
            messages.push(user(&format!("question {turn} with some words in it")));
            if turn == 5 {
                messages.push(call("c", "read"));
                messages.push(result("c", "found"));
                messages.push(system("user was idle 10 min"));
            }
            messages.push(assistant("an answer"));
        }
        messages.push(user("and?"));
        let mut talk = conversation(&stamped(&messages), 8000);
        let mut engine = actor("system");
        let mode = if prompts == 0 { "no-system" } else { "cut" };
        script("system", |script| script.compress = mode);
        assert!(matches!(
            force(&mut talk, &mut engine),
            Outcome::Committed { .. }
        ));
        let after = talk.transcript().messages();
        assert_eq!(after.len(), prompts + 1);
        assert_eq!(
            after[0].stored(),
            messages[if prompts == 0 { messages.len() - 1 } else { 0 }].stored()
        );
    }
}

// contract: CFG-1, CFG-2, CFG-3, LIFE-1
// case: 22
#[test]
fn the_thresholds_of_the_models_are_there_before_anything_else_happens() {
    let engine = actor("thresholds");
    let model = ModelInfo {
        model: "z/glm-5-1m".to_owned(),
        context_length: 100_000,
        threshold_percent: Some(0.25),
        model_thresholds: r#"{"glm-5":0.7,"glm-5-1m":0.25}"#.to_owned(),
        ..ModelInfo::default()
    };
    let mut engine = AgentEngine::new(engine.handle, &model, None, None);
    let talk = conversation(&turns(1), 100_000);
    talk.start(&mut engine, StartReason::New);
    assert_eq!(
        take_log("thresholds"),
        ["update_model Some(0.25) of 2", "session_start New last="]
    );
    assert_eq!(engine.state().threshold_tokens, 25_000);
    let other = ModelInfo {
        threshold_percent: None,
        ..model
    };
    engine.handle.update_model(&other);
    assert_eq!(engine.state().threshold_tokens, 75_000, "its own again");
}
