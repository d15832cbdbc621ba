//! One engine per agent: children, siblings, and engines that cannot be copied.

use hermes::agent::{AgentOptions, Begin};
use hermes::context::Outcome;
use hermes::engine::TurnOutcome;
use serde_json::json;

use crate::support::{Setup, options, talk, turn};

fn child_of(model: &str) -> AgentOptions {
    AgentOptions {
        model: Some(model.to_owned()),
        quiet: true,
        ..options()
    }
}

// contract: CLONE-1, CLONE-2, CLONE-3, LIFE-3
// case: 38
#[test]
fn children_have_their_own_instance_and_never_touch_their_parents_budget() {
    let world = Setup::witness("tail: 1").window(None).world();
    for (model, window) in [
        ("test-model", 1_000_000),
        ("a", 8_192),
        ("b", 204_800),
        ("c", 1_000_000),
    ] {
        world.script.window(model, window);
    }
    let (_host, mut parent) = world.agent();
    world.script.free();
    talk(&mut parent, 3, 5);
    let before = parent.status();
    let own_status = parent.engine_status();
    let mut children: Vec<_> = ["a", "b", "c"]
        .map(|model| parent.child(child_of(model)).unwrap())
        .into();
    std::thread::scope(|scope| {
        for (number, child) in children.iter_mut().enumerate() {
            scope.spawn(move || {
                for question in 0..3 {
                    let report =
                        child.turn(&format!("child {number} asks {question}"), &mut |_| {});
                    assert_eq!(report.outcome, TurnOutcome::Completed);
                }
                let outcome = child.compress(None, &mut |_| {});
                assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
            });
        }
    });
    assert_eq!(parent.status(), before, "while they live");
    let windows: Vec<u64> = children
        .iter()
        .map(|child| child.status().state.context_length)
        .collect();
    assert_eq!(windows, [8_192, 204_800, 1_000_000]);
    let diary = world.diary();
    assert_eq!(diary.count("clone"), 4, "once per agent");
    assert_eq!(
        diary
            .of("create")
            .iter()
            .filter(|line| line["purpose"] == "template")
            .count(),
        1,
        "the registered one"
    );
    let template = diary.of("create").last().unwrap()["instance"].clone();
    assert!(
        diary
            .slots(&template)
            .iter()
            .all(|slot| *slot == "create" || *slot == "clone"),
        "it serves nobody"
    );
    for (child, instance) in children.iter().zip(&diary.instances()[1..]) {
        let starts = diary.of("session_start");
        let start = starts
            .iter()
            .find(|line| line["session"] == child.session_id())
            .unwrap();
        assert_eq!(start["instance"], *instance);
        assert_eq!(start["reason"], "Delegate");
        assert_eq!(
            (&start["parent"], &start["root"]),
            (&json!(before.session_id), &json!(before.session_id))
        );
        // Nothing of another conversation has reached this instance.
        let lines = diary.0.iter().filter(|line| line["instance"] == *instance);
        let sessions: Vec<_> = lines
            .map(|line| &line["session"])
            .filter(|id| **id != json!(""))
            .collect();
        assert!(
            sessions.iter().all(|id| **id == child.session_id()),
            "{sessions:?}"
        );
        world.store().session(child.session_id()).unwrap();
    }
    world.script.cut();
    for child in children {
        let id = child.session_id().to_owned();
        child.close("done");
        let ends = world.diary();
        let ends: Vec<_> = ends
            .of("session_end")
            .into_iter()
            .filter(|l| l["session"] == id)
            .cloned()
            .collect();
        assert_eq!(ends.len(), 1);
    }
    assert_eq!(parent.status(), before, "after they have gone");
    assert_eq!(parent.engine_status(), own_status);
    turn(&mut parent, "still here");
    world.check(&parent);
    // A sub-agent's session is not the one that a person goes on with.
    let session = parent.session_id().to_owned();
    parent.close("done");
    let latest = world
        .host()
        .agent(AgentOptions {
            begin: Begin::Latest,
            ..options()
        })
        .unwrap();
    assert_eq!(latest.session_id(), session);
}

// contract: CLONE-4, CLONE-1
// case: 39
#[test]
fn an_engine_that_cannot_be_copied_costs_its_agent_the_engine_and_nothing_else() {
    for (how, budget) in [
        ("fail:\n  clone: true", ""),
        ("panic:\n  clone: true", ""),
        (
            "sleep:\n  clone: 2500",
            "create: 0.8\nclone: 0.8\nsession: 0.8\npass_result: 0.8",
        ),
    ] {
        let tool = r#"tools: [{"name": "note"}]"#;
        let world = Setup::witness(&format!("{how}\n{tool}"))
            .timeouts(budget)
            .world();
        let host = world.host();
        assert_eq!(host.fallback(), None, "it is there: {how}");
        let mut agent = host.agent(options()).unwrap();
        assert_eq!(agent.engine(), "compressor", "{how}");
        assert_eq!(
            agent.tool_names(),
            Vec::<String>::new(),
            "{how}: not offered"
        );
        let report = turn(&mut agent, "hello");
        assert_eq!(report.outcome, TurnOutcome::Completed);
        let line = "Context engine 'witness' could not be safely copied for this agent: ";
        let told: Vec<_> = report
            .warnings
            .iter()
            .filter(|text| text.contains(line))
            .collect();
        assert_eq!(told.len(), 1, "{how}: {:?}", report.warnings);
        assert!(told[0].len() > line.len(), "the cause follows: {told:?}");
        assert!(
            report
                .warnings
                .iter()
                .all(|text| !text.contains("not found"))
        );
        assert_eq!(report.warnings.len(), 1, "{how}: {:?}", report.warnings);
        assert_eq!(agent.status().fallback.unwrap().0, "witness");
        assert_eq!(world.diary().count("session_start"), 0);
        world.check(&agent);
    }
}

// contract: CLONE-4, CLONE-3
// case: 39
#[test]
fn an_engine_without_a_clone_slot_is_copied_or_made_again() {
    // `newest` has no method of its own for it: its type is copied.
    let world = Setup::engine("newest").world();
    let (host, mut agent) = world.agent();
    let mut other = host.agent(options()).unwrap();
    for agent in [&mut agent, &mut other] {
        assert_eq!(agent.engine(), "newest");
        world.script.cut();
        turn(agent, "hello");
        world.check(agent);
    }
}

// contract: PASS-5, PASS-12, CLONE-1
#[test]
fn passes_of_many_agents_run_side_by_side_without_mixing() {
    let world = Setup::witness("tail: 1\nsleep:\n  compress: 150").world();
    let (host, first) = world.agent();
    let mut agents = vec![first];
    agents.extend((0..5).map(|_| host.agent(options()).unwrap()));
    std::thread::scope(|scope| {
        for (number, agent) in agents.iter_mut().enumerate() {
            scope.spawn(move || {
                for question in 0..3 {
                    agent.turn(&format!("agent {number} asks {question}"), &mut |_| {});
                }
                let outcome = agent.compress(None, &mut |_| {});
                assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
                agent.turn(&format!("agent {number} asks once more"), &mut |_| {});
            });
        }
    });
    let diary = world.diary();
    let lines: Vec<_> = diary
        .0
        .iter()
        .filter_map(|line| line["slot"].as_str())
        .filter(|slot| slot.starts_with("compress"))
        .collect();
    assert!(
        lines
            .windows(2)
            .any(|pair| pair == ["compress", "compress"]),
        "some ran at the same time: {lines:?}"
    );
    for (number, agent) in agents.iter().enumerate() {
        let own = format!("agent {number} ");
        for message in agent.messages() {
            let text = message.text();
            assert!(!text.contains("asks") || text.starts_with(&own), "{text}");
        }
        let rows = world.store().messages(agent.session_id(), false).unwrap();
        let live: Vec<_> = rows
            .iter()
            .map(|row| row.message.stored().clone())
            .collect();
        let own: Vec<_> = agent
            .messages()
            .iter()
            .map(|m| m.stored().clone())
            .collect();
        assert_eq!(live, own);
    }
}
