//! Assembling a request step by step gives what mending the whole list gives.

use hermes::context::assembly::Assembly;
use hermes_message::sequence::{Policy, Rule, check};
use hermes_message::{Message, repair};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{assistant, message, turns, user};

fn any_message() -> impl Strategy<Value = Value> {
    let text = prop_oneof![Just(""), Just("  "), Just("some words"), Just("日本語")];
    let id = prop_oneof![Just("a"), Just("b"), Just("c|x")];
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    prop_oneof![
        1 => text.clone().prop_map(|text| json!({"role": "system", "content": text})),
        4 => text.clone().prop_map(|text| json!({"role": "user", "content": text})),
        4 => text.clone().prop_map(|text| json!({"role": "assistant", "content": text})),
        4 => (id.clone(), text.clone()).prop_map(move |(id, text)| {
            json!({"role": "assistant", "content": text, "tool_calls": [call(id)]})
        }),
        1 => Just(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}]})),
        6 => (id, text).prop_map(|(id, text)| json!({"role": "tool", "tool_call_id": id, "content": text})),
        1 => Just(json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,x"}}]})),
        1 => Just(json!({"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "data:,x"}}]})),
        1 => Just(json!({"role": "assistant", "content": null})),
        1 => Just(json!({"content": "no role"})),
    ]
}

fn list() -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(any_message(), 0..40)
        .prop_map(|values| values.into_iter().map(message).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    // contract: HOOK-5, HOOK-9
    #[test]
    fn step_by_step_or_at_once(messages in list(), cut in 0usize..40, other in list()) {
        let mut assembly = Assembly::default();
        for end in 0..=messages.len() {
            assembly.assemble(&messages[..end]);
            let whole = repair::repair(&messages[..end]);
            prop_assert_eq!(assembly.messages(), &whole.messages[..], "of {} messages", end);
            prop_assert_eq!(assembly.repairs(), &whole.notes[..]);
            let broken = check(assembly.messages(), Policy::Request);
            prop_assert!(broken.iter().all(|broken| broken.rule == Rule::NoUser), "{:?}", broken);
        }
        // A commit replaces a part: what is still there counts, what is not does not.
        let mixed: Vec<Message> = messages.iter().take(cut).chain(&other).cloned().collect();
        assembly.assemble(&mixed);
        prop_assert_eq!(assembly.messages(), &repair::repair(&mixed).messages[..]);
    }
}

// contract: HOOK-9
#[test]
fn messages_that_need_no_repair_stay_the_objects_they_are() {
    let mut messages = turns(20);
    messages.push(user("one"));
    messages.push(user("two"));
    let mut assembly = Assembly::default();
    assembly.assemble(&messages);
    let first = assembly.messages().to_vec();
    assert!(first.iter().zip(&messages).take(81).all(|(a, b)| a.same(b)));
    messages.push(assistant("an answer"));
    messages.push(user("three"));
    assembly.assemble(&messages);
    assert!(
        assembly
            .messages()
            .iter()
            .zip(&first)
            .all(|(a, b)| a.stored() == b.stored())
    );
}
