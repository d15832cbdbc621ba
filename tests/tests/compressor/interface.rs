//! What every engine has, as the built-in one has it.

use hermes_message::{Role, build};
use serde_json::json;

use crate::support::{SUMMARY, assert_sound, kit, session};

// contract: TEST-1, ENG-1, ENG-18
#[test]
fn it_answers_before_any_session_or_model_call() {
    let engine = kit(200_000).create().expect("an engine");
    let state = engine.state();
    assert_eq!(state.context_length, 200_000);
    assert!(state.threshold_tokens > 0 && state.threshold_tokens < 200_000);
    assert_eq!((state.last_prompt_tokens, state.compression_count), (0, 0));
}

// contract: TEST-2, TEST-3
#[test]
fn compress_with_a_greeting_alone_gives_messages_with_roles() {
    let mut engine = kit(200_000).create().expect("an engine");
    let input = [build::user("hello")];
    let emitted = engine.compress(&input).expect("no failure");
    let list = if emitted.is_unchanged() {
        input.to_vec()
    } else {
        emitted.messages
    };
    assert!(list.iter().all(|message| message.role() != Role::Other));
    assert_eq!(list.len(), 1);
}

// contract: HOOK-1
#[test]
fn it_implements_neither_hook() {
    let engine = kit(8_192).create().expect("an engine");
    assert!(engine.vtable().select_context.is_none());
    assert!(engine.vtable().turn_complete.is_none());
    assert!(engine.vtable().tool_schemas.is_none());
}

// contract: ENG-4
#[test]
fn a_long_session_becomes_shorter_and_stays_valid() {
    let messages = session(60);
    for helper in [true, false] {
        let mut host = kit(16_384);
        if helper {
            host = host.scripted([SUMMARY]);
        }
        let mut engine = host.create().expect("an engine");
        let emitted = engine.compress(&messages).expect("a new list");
        assert!(!emitted.is_unchanged(), "{}", emitted.text);
        assert_sound(&messages, &emitted.messages, "session");
        assert!(emitted.messages.len() < messages.len() / 2);
        assert_eq!(engine.state().compression_count, 1);
        assert_eq!(
            engine.state().last_prompt_tokens,
            -1,
            "real usage is awaited"
        );
    }
}

// contract: CFG-1
#[test]
fn odd_settings_are_named_and_do_no_harm() {
    let engine = kit(65_536)
        .config(json!({"threshold": 50, "protect_last_n": -3}))
        .create()
        .expect("an engine");
    let warnings: Vec<String> = engine
        .logs()
        .into_iter()
        .filter(|(level, _)| *level == 2)
        .map(|(_, text)| text)
        .collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].contains("compression.threshold")
            && warnings[0].contains("50")
            && warnings[0].contains("0.5")
    );
}

// contract: ENG-11, ENG-12
#[test]
fn it_has_no_tools_and_no_preflight_of_its_own() {
    let engine = kit(8_192).create().expect("an engine");
    assert!(engine.vtable().tool_call.is_none() && engine.vtable().preflight.is_none());
}
