//! The two hooks of a turn, under the real runtime.

use hermes::agent::{AgentOptions, Host};
use hermes::engine::TurnOutcome;
use hermes::provider::FailureKind;
use hermes_message::Role;
use serde_json::json;

use crate::script::Say;
use crate::support::{
    Setup, World, count_of, jsons, messages_of, options, own_uids, talk, tools_of, turn, uids,
};

const TOOL: &str =
    r#"tools: [{"name": "note", "description": "d", "parameters": {"type": "object"}}]"#;

/// The bodies of five turns, one of them with a tool call.
fn bodies(setup: Setup) -> (World, Vec<String>) {
    let world = setup.world();
    let (_host, mut agent) = world.agent();
    for number in 0..4 {
        turn(&mut agent, &format!("question {number}"));
    }
    world.check(&agent);
    let bodies = world.script.texts();
    (world, bodies)
}

// contract: HOOK-1, HOOK-2, HOOK-4, HOOK-6, HOOK-9
// case: 64
#[test]
fn a_selection_that_changes_nothing_changes_no_byte() {
    let (_, expected) = bodies(Setup::engine("newest"));
    let (_, built_in) = bodies(Setup::engine("compressor"));
    assert_eq!(built_in, expected, "the built-in implements neither hook");
    for select in ["none", "all", "equal", "empty", "junk", "fail"] {
        let (world, bodies) = bodies(Setup::witness(&format!("select: {select}")));
        assert_eq!(bodies, expected, "{select}");
        let asked = world.diary().count("select_context");
        // One that fails is taken out at the third failure.
        let times = if matches!(select, "none" | "all" | "equal") {
            4
        } else {
            3
        };
        assert_eq!(asked, times, "{select}");
    }
}

// contract: HOOK-4, SAFE-4
#[test]
fn a_bad_selection_is_one_warning_and_none_is_none() {
    for (select, warnings) in [("none", 0), ("all", 0), ("empty", 1), ("junk", 1)] {
        let world = Setup::witness(&format!("select: {select}")).world();
        let (_host, mut agent) = world.agent();
        let first = turn(&mut agent, "one").warnings;
        let second = turn(&mut agent, "two").warnings;
        assert_eq!(first.len(), warnings, "{select}: {first:?}");
        assert_eq!(second, Vec::<String>::new(), "{select}: said once");
    }
}

// contract: HOOK-3, HOOK-9, HOOK-13, UID-9
// case: 64
#[test]
fn a_selection_replaces_the_messages_of_its_request_and_nothing_else() {
    let tools = TOOL;
    let (_, all) = bodies(Setup::witness(tools));
    let world = Setup::witness(&format!("select: tail\nkeep: 1\n{tools}")).world();
    let (host, mut agent) = world.agent();
    for number in 0..4 {
        world.script.cut();
        turn(&mut agent, &format!("question {number}"));
    }
    world.check(&agent);
    let chosen = world.script.texts();
    for (whole, chosen) in all.iter().zip(&chosen) {
        let tail = |body: &str| body[body.find(",\"tools\"").expect("tools")..].to_owned();
        assert_eq!(tail(whole), tail(chosen), "tools and parameters");
        assert_eq!(
            messages_of(chosen).len(),
            2,
            "system and the newest: {chosen}"
        );
        assert_eq!(
            messages_of(chosen)[1].stored(),
            messages_of(whole).last().unwrap().stored()
        );
    }
    assert_eq!(agent.messages().len(), 8, "the transcript has everything");
    let rows = world.store().messages(agent.session_id(), true).unwrap();
    assert_eq!(rows.len(), 8, "and so has the store");

    // Another agent of the same engine is not touched by what this one's instance has chosen.
    drop(agent);
    world.configure(&Setup::witness(tools));
    drop(host);
    let (_host, mut agent) = world.agent();
    world.script.cut();
    for number in 0..4 {
        turn(&mut agent, &format!("question {number}"));
    }
    let later = world.script.texts();
    assert_eq!(messages_of(&later[7]).len(), messages_of(&all[3]).len());
    assert_eq!(tools_of(&later[7]), tools_of(&all[3]));
}

// contract: HOOK-3, UID-9, UID-6
#[test]
fn what_a_selection_adds_reaches_the_provider_without_its_identity() {
    let world = Setup::witness("select: note").world();
    let (_host, mut agent) = world.agent();
    world.script.cut();
    turn(&mut agent, "one");
    let body = world.script.last();
    assert!(body.contains("a note of the engine's"), "{body}");
    assert!(!body.contains("note-1"), "{body}");
    world.check(&agent);
    assert_eq!(agent.messages().len(), 2);
}

// contract: HOOK-7, HOOK-2
#[test]
fn a_selection_is_asked_for_again_with_every_request_of_a_turn() {
    let world = Setup::witness(&format!("select: all\nhead: 0\ntail: 1\n{TOOL}")).world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 3, 5);
    world.forget();
    world.script.say([
        Say::Fail(FailureKind::Overflow {
            limit: None,
            requested: None,
            payload: false,
        }),
        Say::Calls(vec![("c1", "note", "{}")]),
    ]);
    world.script.cut();
    let report = turn(&mut agent, "and now?");
    assert_eq!(report.outcome, TurnOutcome::Completed, "{report:?}");
    let diary = world.diary();
    let attempts: Vec<_> = diary
        .of("select_context")
        .iter()
        .map(|line| line["attempt"].clone())
        .collect();
    assert_eq!(
        attempts,
        [json!(0), json!(1), json!(0)],
        "a retry, then the next request"
    );
    assert_eq!(report.api_calls, 3);
}

// contract: HOOK-5, UID-2, ENG-14
#[test]
fn a_selection_sees_both_lists_with_every_uid_before_anything_is_mended() {
    let world = Setup::witness("select: none").world();
    let (_host, mut agent) = world.agent();
    // An interrupted turn leaves two user messages next to each other.
    world.script.say([Say::Fail(FailureKind::Refused)]);
    turn(&mut agent, "lost");
    world.script.cut();
    turn(&mut agent, "found");
    let diary = world.diary();
    let line = diary.of("select_context")[1];
    let conversation = uids(&line["conversation"]);
    assert_eq!(conversation, own_uids(&agent.messages()[..2]));
    assert!(
        conversation.iter().all(|uid| uid.len() == 32),
        "{conversation:?}"
    );
    assert_eq!(
        uids(&line["request"])[1..],
        conversation,
        "the system message is the host's own"
    );
    assert_eq!(line["incoming"], json!(2), "{line}");
    assert_eq!(line["budget"], json!(100_000));
    let sent = messages_of(&world.script.last());
    assert_eq!(count_of(&sent, Role::User), 1, "joined after the selection");
    assert_eq!(sent[1].text(), "lost\n\nfound");
    world.check(&agent);
}

// contract: HOOK-8, HOOK-10, UID-2
#[test]
fn the_end_of_a_turn_is_told_once_with_its_outcome_and_its_transcript() {
    let world = Setup::witness(TOOL).world();
    let (_host, mut agent) = world.agent();
    let interrupt = agent.interrupt();
    let mut told = 0;
    let mut end = |outcome: &str, usage: bool, calls: u32, agent: &hermes::agent::Agent| {
        told += 1;
        let diary = world.diary();
        let lines = diary.of("turn_complete");
        assert_eq!(lines.len(), told, "{outcome}: once");
        let line = lines[told - 1];
        assert_eq!(line["outcome"], outcome);
        assert_eq!(line["usage"].is_object(), usage, "{outcome}: {line}");
        assert_eq!(line["api_calls"], calls, "{outcome}");
        let shown = uids(&line["messages"]);
        assert_eq!(shown, own_uids(agent.messages()), "{outcome}");
        assert!(
            shown.iter().all(|uid| uid.len() == 32),
            "{outcome}: {shown:?}"
        );
        let stored = world.store().messages(agent.session_id(), false).unwrap();
        let rows: Vec<&str> = stored.iter().map(|row| &**row.message.stored()).collect();
        assert_eq!(
            jsons(&line["messages"]),
            rows,
            "{outcome}: it was saved before"
        );
        world.script.cut();
    };

    world
        .script
        .say([Say::Calls(vec![("c1", "note", "{}"), ("c1", "note", "{}")])]);
    assert_eq!(turn(&mut agent, "one").outcome, TurnOutcome::Completed);
    end("Completed", true, 2, &agent);

    world.script.say([Say::Fail(FailureKind::Blocked)]);
    let report = turn(&mut agent, "two");
    assert_eq!(report.outcome, TurnOutcome::Blocked);
    assert!(report.error.is_some());
    end("Blocked", false, 1, &agent);

    world.script.say([Say::Filtered("I would say")]);
    assert_eq!(turn(&mut agent, "three").outcome, TurnOutcome::Blocked);
    end("Blocked", true, 1, &agent);

    world.script.say([Say::Fail(FailureKind::Auth)]);
    assert_eq!(turn(&mut agent, "four").outcome, TurnOutcome::Failed);
    end("Failed", false, 1, &agent);

    world.script.say([Say::Hang("half an")]);
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !world.script.last().contains("five") {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            interrupt.interrupt();
        });
        turn(&mut agent, "five")
    });
    assert_eq!(report.outcome, TurnOutcome::Interrupted);
    assert_eq!(report.answer, "half an", "what had arrived");
    end("Interrupted", false, 1, &agent);

    world.script.say([Say::Panic]);
    let report = turn(&mut agent, "six");
    assert_eq!(report.outcome, TurnOutcome::Failed);
    assert!(report.error.unwrap().contains("as it was told"));
    end("Failed", false, 1, &agent);

    assert_eq!(turn(&mut agent, "seven").outcome, TurnOutcome::Completed);
    end("Completed", true, 1, &agent);
    world.check(&agent);
}

// contract: HOOK-11
#[test]
fn the_end_of_a_turn_has_returned_before_the_next_selection() {
    let world = Setup::witness("sleep:\n  turn_complete: 150").world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 3, 1);
    let diary = world.diary();
    let order: Vec<&str> = diary
        .slots(&diary.instances()[0])
        .into_iter()
        .filter(|slot| slot.starts_with("turn_complete") || *slot == "select_context")
        .collect();
    let turn = ["select_context", "turn_complete", "turn_complete over"];
    assert_eq!(order, [turn, turn, turn].concat());
}

// contract: HOOK-11, HOOK-2, PASS-10
#[test]
fn an_end_of_a_turn_that_does_not_return_is_given_up_before_the_next_selection() {
    let world = Setup::witness("select: tail\nkeep: 1\nsleep:\n  turn_complete: 60000")
        .timeouts("hooks: 0.2")
        .world();
    let (_host, mut agent) = world.agent();
    world.script.cut();
    let report = turn(&mut agent, "one");
    assert!(
        report.warnings.iter().any(|w| w.contains("turn_complete")),
        "{report:?}"
    );
    world.script.cut();
    turn(&mut agent, "two");
    let diary = world.diary();
    assert_eq!(diary.count("turn_complete over"), 0, "it goes on at once");
    assert_eq!(
        diary.count("select_context"),
        1,
        "skipped while the call is still inside"
    );
    assert_eq!(
        messages_of(&world.script.last()).len(),
        4,
        "the request as it was"
    );
    assert_eq!(diary.count("turn_complete"), 1);
}

// contract: HOOK-12, PASS-9
#[test]
fn selection_and_observation_are_apart_from_compression() {
    // It selects every time, and is never asked for a pass by that.
    let world = Setup::witness("select: tail\nkeep: 1").world();
    let (_host, mut agent) = world.agent();
    for text in ["one", "two", "three"] {
        world.script.cut();
        turn(&mut agent, text);
    }
    let diary = world.diary();
    assert_eq!(diary.count("select_context"), 3);
    assert_eq!(diary.count("turn_complete"), 3);
    assert_eq!(diary.count("compress"), 0);

    // It asks for a pass every time, and selection and observation happen all the same.
    let world = Setup::witness("every: 1\ncompress: unchanged").world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 4, 1);
    let diary = world.diary();
    assert_eq!(diary.count("select_context"), 4);
    assert_eq!(diary.count("turn_complete"), 4);
    assert_eq!(diary.count("compress"), 2, "and then it pauses");
}

// contract: HOOK-13, CLONE-1
#[test]
fn an_agents_selection_is_its_own() {
    let world = Setup::witness("select: tail\nkeep: 1").world();
    let (host, mut agent) = world.agent();
    let other = |host: &Host| {
        host.agent(AgentOptions {
            quiet: true,
            ..options()
        })
        .unwrap()
    };
    let mut second = other(&host);
    turn(&mut agent, "one");
    world.script.cut();
    turn(&mut second, "another");
    let diary = world.diary();
    let instances = diary.instances();
    assert_eq!(instances.len(), 2);
    for (instance, session) in instances
        .iter()
        .zip([agent.session_id(), second.session_id()])
    {
        let lines = diary.of("select_context");
        let own: Vec<_> = lines
            .iter()
            .filter(|line| line["instance"] == *instance)
            .collect();
        assert_eq!(own.len(), 1);
        assert_eq!(own[0]["session"], session);
    }
}

// contract: HOOK-14
#[test]
fn the_authors_page_says_when_to_use_which_hook_and_what_a_selection_costs() {
    let page = std::fs::read_to_string(hermes_tests::workspace().join("docs/writing-an-engine.md"))
        .expect("the page");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        "replaces the messages of *one request*. Implement it only if your engine chooses per request",
        "write a memory provider (`sync_turn()`), not an engine",
        "an engine takes the whole compaction policy of a session upon itself",
        "the other half of an engine that selects",
        "one that changes every turn gives the cache up for good",
    ] {
        assert!(page.contains(sentence), "{sentence}");
    }
}
