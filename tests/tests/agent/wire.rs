//! What reaches the provider, and how its bytes keep to themselves.

use hermes::context::Outcome;
use hermes::store::ImportReport;
use hermes_message::{Message, Role, build};
use hermes_tests::input;
use serde_json::{Value, json};

use crate::support::{Setup, World, count_of, list_of, messages_of, talk, texts, tools_of, turn};

/// Puts a session of these messages into the store.
fn import(world: &World, id: &str, messages: &[Value]) -> ImportReport {
    let lines: Vec<String> = messages.iter().map(ToString::to_string).collect();
    let store = world.store();
    let report = store
        .import(lines.join("\n").as_bytes(), &mut |_, _, _| {})
        .unwrap();
    assert_eq!(report.imported.len(), 1, "{id}: {report:?}");
    report
}

// contract: HOOK-6, HOOK-9, UID-9, TOOL-4
// case: 64
#[test]
fn the_front_of_every_request_stays_the_same_bytes() {
    let mut expected: Option<Vec<String>> = None;
    for setup in [
        Setup::engine("compressor"),
        Setup::engine("newest"),
        Setup::witness("select: equal"),
        Setup::witness("select: all"),
        Setup::witness("select: none"),
        Setup::witness("select: empty"),
        Setup::witness("select: junk"),
    ] {
        let world = setup.world();
        let (host, mut agent) = world.agent();
        talk(&mut agent, 4, 3);
        agent.switch_model("another");
        talk(&mut agent, 1, 3);
        agent.switch_model("test-model");
        talk(&mut agent, 1, 3);
        let session = agent.session_id().to_owned();
        agent.close("done");
        drop(host);
        let host = world.host();
        let mut agent = world.resume(&host, &session);
        talk(&mut agent, 4, 3);
        // One segment: across the switch, the way back and the new program too.
        world.check(&agent);
        let bodies = world.script.texts();
        assert_eq!(bodies.len(), 10);
        assert!(bodies[4].starts_with(r#"{"model":"another","messages":["#));
        assert!(bodies[5].starts_with(r#"{"model":"test-model","messages":["#));
        match &expected {
            None => expected = Some(bodies),
            Some(expected) => assert_eq!(*expected, bodies),
        }
    }
}

// contract: HOOK-9
// case: 64
#[test]
fn a_real_pass_changes_the_front_once_and_the_system_prompt_never() {
    let world = Setup::witness("every: 4\ntail: 1").world();
    let (_host, mut agent) = world.agent();
    world.script.free();
    let (mut system, mut before, mut passes) = (None, None, 0);
    for number in 0..12 {
        turn(&mut agent, &format!("question {number}"));
        let body = world.script.last();
        let first = messages_of(&body)[0].stored().to_string();
        assert_eq!(*system.get_or_insert(first.clone()), first);
        let list = list_of(&body);
        if let Some(before) = before.replace(list.clone()) {
            let grown = agent.status().compressions > passes;
            assert_eq!(
                !list.starts_with(&before),
                grown,
                "{number}: {before}\n{list}"
            );
        }
        passes = agent.status().compressions;
    }
    assert!(passes >= 2, "{passes}");
    world.check(&agent);
}

// contract: PASS-6
// case: 5
#[test]
fn there_is_one_system_message_first_and_always_the_same() {
    let engines = [Setup::engine("compressor"), Setup::witness("tail: 1")];
    for (setup, name) in engines.into_iter().zip(["compressor", "witness"]) {
        let world = setup
            .compression("protect_first_n: 1\nprotect_last_n: 2")
            .window(8_000)
            .world();
        let (_host, mut agent) = world.agent();
        world.script.free();
        talk(&mut agent, 10, 150);
        let first = messages_of(&world.script.texts()[0])[0]
            .stored()
            .to_string();
        for round in 0..5 {
            world.script.cut();
            let outcome = agent.compress(None, &mut |_| {});
            assert!(
                matches!(outcome, Outcome::Committed { .. }),
                "{name} {round}: {outcome:?}"
            );
            talk(&mut agent, 10, 30);
            let sent = messages_of(&world.script.last());
            assert_eq!(count_of(&sent, Role::System), 1, "{name} {round}");
            assert_eq!(**sent[0].stored(), *first, "{name} {round}");
            world.check(&agent);
        }
    }
}

// contract: PASS-6
// case: 5
#[test]
fn a_session_that_brings_its_own_system_message_keeps_it() {
    for content in [
        json!("You are Hermes. RULE-7: never push."),
        json!([{"type": "text", "text": "RULE-7"}]),
    ] {
        let world = Setup::engine("compressor")
            .compression("protect_first_n: 1\nprotect_last_n: 2")
            .world();
        let mut messages = vec![json!({"role": "system", "content": content})];
        for number in 0..30 {
            messages.push(json!({"role": "user", "content": format!("question {number} {}", "word ".repeat(40))}));
            messages.push(json!({"role": "assistant", "content": format!("answer {number} {}", "word ".repeat(40))}));
        }
        let report = import(&world, "system", &messages);
        let (host, agent) = world.agent();
        drop(agent);
        let mut agent = world.resume(&host, &report.imported[0]);
        for round in 0..3 {
            world.script.cut();
            let outcome = agent.compress(None, &mut |_| {});
            assert!(
                matches!(outcome, Outcome::Committed { .. }),
                "{round}: {outcome:?}"
            );
            talk(&mut agent, 5, 30);
            let sent = messages_of(&world.script.last());
            assert_eq!(count_of(&sent, Role::System), 1, "{round}");
            let body: Value = serde_json::from_str(&world.script.last()).unwrap();
            assert_eq!(body["messages"][0]["content"], content, "{round}");
            world.check(&agent);
        }
    }
}

// contract: UID-9, UID-5, UID-16
// case: 7
#[test]
fn empty_answers_are_kept_and_never_sent() {
    let empties = [
        json!({"role": "assistant", "content": null}),
        json!({"role": "assistant", "content": ""}),
        json!({"role": "assistant", "content": "  \n"}),
        json!({"role": "assistant", "content": []}),
        json!({"role": "assistant", "content": [{"type": "text", "text": ""}]}),
        json!({"role": "assistant", "content": null, "reasoning": "thinking…"}),
    ];
    let mut messages = Vec::new();
    for (number, empty) in empties.iter().enumerate() {
        messages.push(json!({"role": "user", "content": format!("question {number}")}));
        messages.push(empty.clone());
    }
    messages.push(json!({"role": "user", "content": "call"}));
    messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "a", "arguments": "{}"}},
        {"id": "c2", "type": "function", "function": {"name": "b", "arguments": "{}"}},
    ]}));
    messages.push(json!({"role": "tool", "tool_call_id": "c1", "content": ""}));
    messages.push(json!({"role": "tool", "tool_call_id": "c2", "content": null}));
    messages.push(json!({"role": "assistant", "content": "done"}));
    for engine in ["compressor", "witness"] {
        let setup = if engine == "witness" {
            Setup::witness("tail: 1")
        } else {
            Setup::engine(engine)
        };
        let world = setup.world();
        let id = import(&world, "empty", &messages).imported[0].clone();
        let (host, agent) = world.agent();
        drop(agent);
        let mut agent = world.resume(&host, &id);
        let stored: Vec<Value> = agent
            .messages()
            .iter()
            .map(|m| serde_json::from_str(m.stored()).unwrap())
            .collect();
        for (number, empty) in empties.iter().enumerate() {
            assert_eq!(
                stored[2 * number + 1]["content"],
                empty["content"],
                "null and \"\" stay apart"
            );
        }
        turn(&mut agent, "and now?");
        let body: Value = serde_json::from_str(&world.script.last()).unwrap();
        let sent = body["messages"].as_array().unwrap();
        for message in sent {
            let calls = message["tool_calls"].is_array();
            assert!(
                calls
                    || !texts(&[Message::parse(&message.to_string()).unwrap()])[0]
                        .trim()
                        .is_empty()
                    || message["role"] == "tool",
                "{message}"
            );
        }
        let caller = sent
            .iter()
            .find(|message| message["tool_calls"].is_array())
            .unwrap();
        assert_eq!(caller["content"], json!(null), "null stays null");
        assert_eq!(
            sent.iter().filter(|m| m["role"] == "user").count(),
            2,
            "joined: {sent:#?}"
        );
        world.check(&agent);
        world.script.cut();
        agent.compress(None, &mut |_| {});
        talk(&mut agent, 1, 3);
        world.check(&agent);
    }
}

// contract: UID-9
// case: 7
#[test]
fn real_sessions_with_empty_answers_go_on() {
    for name in [
        "02_pi_large_session.openai.jsonl",
        "03_pi_two_compactions_interrupts.openai.jsonl",
    ] {
        let Some(bytes) = input(name) else {
            continue;
        };
        let world = Setup::engine("compressor").window(1_000_000).world();
        let report = world.store().import(&bytes, &mut |_, _, _| {}).unwrap();
        let (host, agent) = world.agent();
        drop(agent);
        let mut agent = world.resume(&host, &report.imported[0]);
        turn(&mut agent, "where were we?");
        world.check(&agent);
        world.script.cut();
        let outcome = agent.compress(None, &mut |_| {});
        assert!(
            matches!(outcome, Outcome::Committed { .. }),
            "{name}: {outcome:?}"
        );
        turn(&mut agent, "and on");
        world.check(&agent);
    }
}

// contract: PASS-6, UID-3
// case: 11
#[test]
fn the_newest_question_survives_every_pass_and_a_summary_is_never_a_turn() {
    let setup = Setup::engine("compressor")
        .compression("threshold: 0.3\nprotect_last_n: 2")
        .window(6_000);
    let world = setup.world();
    let (_host, mut agent) = world.agent();
    world.script.cut();
    for number in 0..30 {
        world.script.cut();
        turn(
            &mut agent,
            &format!("task {number} {}", "rename x ".repeat(100)),
        );
    }
    world.script.cut();
    let report = turn(&mut agent, "task 9: what is 2+2?");
    let sent = messages_of(&world.script.last());
    assert_eq!(sent.last().unwrap().text(), "task 9: what is 2+2?");
    assert!(agent.status().compressions > 0, "{report:?}");
    world.check(&agent);
    // The talk is finished: what a pass leaves ends with the answer, not with work to be done.
    world.script.cut();
    agent.compress(None, &mut |_| {});
    let last = agent.messages().last().unwrap();
    assert_eq!(last.role(), Role::Assistant);
    world.check(&agent);
    let rewound = agent.rewind(1).unwrap();
    assert_eq!(
        rewound.target.text(),
        "task 9: what is 2+2?",
        "a summary is no turn"
    );
    world.script.cut();
    turn(&mut agent, "another question");
    world.check(&agent);
}

// contract: UID-9, UID-8, TOOL-3
#[test]
fn a_call_without_an_answer_in_the_store_is_no_open_call_on_the_wire() {
    let world = Setup::witness("").world();
    let mut messages = vec![json!({"role": "user", "content": "call"})];
    messages.push(
        serde_json::from_str(build::calling(None, &[("k", "a", "{}"), ("k", "b", "{}")]).stored())
            .unwrap(),
    );
    messages.push(json!({"role": "tool", "tool_call_id": "k", "content": "one of two"}));
    let id = import(&world, "open", &messages).imported[0].clone();
    let (host, agent) = world.agent();
    drop(agent);
    let mut agent = world.resume(&host, &id);
    turn(&mut agent, "what came of it?");
    world.check(&agent);
    assert!(list_of(&world.script.last()).contains("one of two"));
    assert_eq!(tools_of(&world.script.last()), "null");
}
