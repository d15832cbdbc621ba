//! How sessions begin, go on elsewhere and end, as the engine hears of it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use hermes::agent::{Agent, AgentOptions, Begin, Host};
use serde_json::{Value, json};

use crate::script::Say;
use crate::support::{Setup, World, compact, listen, options, own_uids, talk, turn, uids};

/// What one instance is told where a session takes the place of another.
const NEXT_SESSION: [&str; 4] = [
    "session_end",
    "session_reset",
    "tool_schemas",
    "session_start",
];

/// The calls that LIFE-1 puts in an order, in the order in which one instance got them.
fn life(world: &World, instance: usize) -> Vec<String> {
    let diary = world.diary();
    let named = [
        "update_model",
        "session_start",
        "update_from_response",
        "should_compress",
        "compress",
        "pass_result",
        "session_end",
        "session_reset",
        "destroy",
    ];
    let slots = diary.slots(&diary.instances()[instance]);
    slots
        .into_iter()
        .filter(|slot| named.contains(slot))
        .map(str::to_owned)
        .collect()
}

/// The one `session_end` of a session.
fn end_of(world: &World, session: &str) -> Value {
    let diary = world.diary();
    let ends: Vec<_> = diary
        .of("session_end")
        .into_iter()
        .filter(|line| line["session"] == session)
        .collect();
    assert_eq!(ends.len(), 1, "once a session: {ends:#?}");
    ends[0].clone()
}

fn start_of(world: &World, session: &str) -> Value {
    let diary = world.diary();
    let starts = diary.of("session_start");
    let start = starts.iter().rev().find(|line| line["session"] == session);
    (*start.unwrap_or_else(|| panic!("{session} was never started: {starts:#?}"))).clone()
}

// contract: LIFE-1, LIFE-5, ENG-2, ENG-3
#[test]
fn an_instance_lives_in_this_order() {
    let world = Setup::witness("should: 1\ntail: 1").world();
    let (_host, mut agent) = world.agent();
    world.script.cut();
    turn(&mut agent, &"one ".repeat(100));
    world.script.cut();
    turn(&mut agent, "two");
    world.check(&agent);
    let status = agent.status();
    assert_eq!(status.state.last_completion_tokens, 7);
    assert_eq!(status.compressions, 1);
    agent.close("done");
    let order = life(&world, 0);
    let expected = [
        "update_model",
        "session_start",
        // One message is too little for a pass.
        "should_compress",
        "compress",
        "update_from_response",
        "should_compress",
        "compress",
        "pass_result",
        "session_start",
        // It asks once more and finds nothing.
        "should_compress",
        "compress",
        "pass_result",
        "update_from_response",
        "session_end",
        "destroy",
    ];
    // The lane destroys the instance in its own time.
    assert_eq!(order, expected[..order.len()], "{order:#?}");
    assert!(order.len() >= expected.len() - 1);
}

// contract: LIFE-2, LIFE-4, ENG-7, ENG-8
// case: 47
#[test]
fn a_new_session_is_end_then_reset_then_start_with_the_instance_and_its_budget_kept() {
    let world = Setup::witness("").world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 5, 3);
    let (old, final_uids) = (agent.session_id().to_owned(), own_uids(agent.messages()));
    let budget = agent.status().state;
    world.forget();
    agent.new_session();
    let new = agent.session_id().to_owned();
    assert_ne!(old, new);
    let diary = world.diary();
    assert_eq!(diary.order(), NEXT_SESSION);
    let one = &diary.0[0]["instance"];
    assert!(
        diary.0.iter().all(|line| line["instance"] == *one),
        "the instance stays"
    );
    let end = end_of(&world, &old);
    assert_eq!(uids(&end["messages"]), final_uids);
    assert_eq!(final_uids.len(), 10);
    let start = start_of(&world, &new);
    assert_eq!(
        (start["reason"].as_str(), start["old"].as_str()),
        (Some("New"), Some(&*old))
    );
    assert_eq!(start["root"], new);
    assert_eq!(start["messages"], json!([]));
    let state = agent.status().state;
    assert_eq!(state.last_prompt_tokens, 0);
    assert_eq!(state.context_length, budget.context_length);
    assert_eq!(state.threshold_tokens, budget.threshold_tokens);
    world.script.cut();
    turn(&mut agent, "afresh");
    world.check(&agent);
    let row = world.store().session(&old).unwrap();
    assert_eq!(row.end_reason.as_deref(), Some("new_session"));
    agent.close("done");
    end_of(&world, &new);
    end_of(&world, &old);
}

// contract: LIFE-1, LIFE-4
// case: 47
#[test]
fn every_ending_is_told_once_with_the_real_final_messages() {
    type Ending = fn(Agent, &Host);
    let endings: [(&str, Ending); 5] = [
        ("close", |agent, _| assert!(agent.close("done").is_saved)),
        ("drop", |agent, _| drop(agent)),
        ("new", |mut agent, _| {
            agent.new_session();
            agent.close("done");
        }),
        ("in a panic", |agent, _| {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
                let _agent = agent;
                panic!("the surface panics");
            }));
            assert!(caught.is_err());
        }),
        ("after a turn that panicked", |mut agent, _| {
            agent.turn("", &mut |_| {});
            agent.close("done");
        }),
    ];
    for (name, ending) in endings {
        let world = Setup::witness("").world();
        let (host, mut agent) = world.agent();
        talk(&mut agent, 5, 3);
        if name == "after a turn that panicked" {
            world.script.say([Say::Panic]);
            world.script.cut();
            turn(&mut agent, "six");
        }
        let (session, expected) = (agent.session_id().to_owned(), own_uids(agent.messages()));
        ending(agent, &host);
        let end = end_of(&world, &session);
        assert_eq!(uids(&end["messages"]), expected, "{name}");
        assert!(
            expected.len() >= 10 && expected.iter().all(|uid| uid.len() == 32),
            "{name}"
        );
        let row = world.store().session(&session).unwrap();
        assert!(row.ended_at.is_some() && row.end_reason.is_some(), "{name}");
    }
}

// contract: LIFE-3, PASS-11, UID-2, UID-3
// case: 47
#[test]
fn a_resumed_session_is_told_after_the_end_of_the_one_before() {
    let world = Setup::witness("should: 100000").world();
    let (host, mut agent) = world.agent();
    talk(&mut agent, 2, 3);
    let first = agent.session_id().to_owned();
    world.script.cut();
    compact(&mut agent);
    let pass = world.diary().of("compress")[0]["pass_id"].clone();
    let left = own_uids(agent.messages());
    agent.new_session();
    world.script.cut();
    turn(&mut agent, "elsewhere");
    let second = agent.session_id().to_owned();
    world.forget();

    agent.resume(&first[..first.len() - 1]).unwrap();
    assert_eq!(agent.session_id(), first);
    let diary = world.diary();
    assert_eq!(diary.order(), NEXT_SESSION);
    assert_eq!(end_of(&world, &second)["session"], second);
    let start = start_of(&world, &first);
    assert_eq!(start["reason"], "Resume");
    assert_eq!(start["old"], second);
    assert_eq!(start["last_pass_id"], pass, "what was committed there");
    assert_eq!(uids(&start["messages"]), left);
    world.script.cut();
    turn(&mut agent, "on we go");
    world.check(&agent);
    let row = world.store().session(&first).unwrap();
    assert_eq!(row.ended_at, None, "it is open again");

    // Another program, later.
    agent.close("done");
    drop(host);
    let host = world.host();
    let agent = world.resume(&host, &first);
    let start = start_of(&world, &first);
    assert_eq!(
        (&start["reason"], &start["old"]),
        (&json!("Resume"), &json!(""))
    );
    assert_eq!(start["last_pass_id"], pass);
    assert_eq!(uids(&start["messages"]), own_uids(agent.messages()));
    world.check(&agent);
}

// contract: LIFE-3, UID-3
#[test]
fn a_branch_goes_on_in_a_copy_and_the_engine_knows_where_it_comes_from() {
    let world = Setup::witness("").world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 2, 3);
    let (parent, before) = (agent.session_id().to_owned(), own_uids(agent.messages()));
    agent.branch().unwrap();
    let child = agent.session_id().to_owned();
    assert_ne!(parent, child);
    assert_eq!(own_uids(agent.messages()), before, "copies keep their uids");
    assert_eq!(uids(&end_of(&world, &parent)["messages"]), before);
    let start = start_of(&world, &child);
    assert_eq!(start["reason"], "Branch");
    for key in ["old", "parent", "root"] {
        assert_eq!(start[key], parent, "{key}");
    }
    assert_eq!(uids(&start["messages"]), before);
    turn(&mut agent, "in the branch");
    world.check(&agent);
    assert_eq!(world.store().messages(&parent, false).unwrap().len(), 4);

    // A branch of the branch belongs to the same root.
    agent.branch().unwrap();
    let start = start_of(&world, agent.session_id());
    assert_eq!(
        (&start["parent"], &start["root"]),
        (&json!(child), &json!(parent))
    );
    let third = agent.session_id().to_owned();
    agent.close("done");
    // Also when it is taken up again by another program.
    let host = world.host();
    let agent = world.resume(&host, &third);
    let start = start_of(&world, &third);
    assert_eq!(start["reason"], "Resume");
    assert_eq!(
        (&start["parent"], &start["root"]),
        (&json!(child), &json!(parent))
    );
    world.check(&agent);
}

// contract: LIFE-3, UID-3
#[test]
fn a_rewind_is_told_with_what_is_left() {
    let world = Setup::witness("").world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 3, 3);
    let before = own_uids(agent.messages());
    let rewound = agent.rewind(2).unwrap();
    assert_eq!(rewound.removed, 4);
    assert!(rewound.target.text().starts_with("question 1"));
    let start = start_of(&world, agent.session_id());
    assert_eq!(start["reason"], "Rewind");
    assert_eq!(start["old"], agent.session_id());
    assert_eq!(uids(&start["messages"]), before[..2]);
    world.script.cut();
    turn(&mut agent, "another way");
    world.check(&agent);
    assert_eq!(own_uids(agent.messages())[..2], before[..2]);
    let refused = agent.rewind(9).unwrap_err();
    assert!(
        refused.to_string().contains('2'),
        "it says how many there are: {refused}"
    );
    world.check(&agent);
    assert_eq!(world.diary().count("session_end"), 0, "the session goes on");
}

// contract: LIFE-3, ENG-9, CLONE-2
#[test]
fn a_model_switch_reaches_the_engine_before_the_next_request() {
    let world = Setup::witness("").window(None).world();
    world.script.window("test-model", 200_000);
    world.script.window("small", 8_000);
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 1, 3);
    world.forget();
    agent.switch_model("small");
    assert_eq!(agent.status().state.context_length, 8_000);
    assert_eq!(agent.status().state.threshold_tokens, 6_000);
    world.script.cut();
    turn(&mut agent, "to the small one");
    let diary = world.diary();
    assert_eq!(diary.0[0]["slot"], "update_model");
    assert_eq!(
        (&diary.0[0]["model"], &diary.0[0]["window"]),
        (&json!("small"), &json!(8_000))
    );
    assert_eq!(diary.of("select_context")[0]["budget"], 8_000);
    assert!(world.script.last().starts_with(r#"{"model":"small""#));
    world.check(&agent);
}

// contract: LIFE-4
#[test]
fn a_session_that_is_open_elsewhere_is_left_alone_and_its_engine_hears_nothing() {
    let world = Setup::witness("").world();
    let (host, mut agent) = world.agent();
    talk(&mut agent, 1, 3);
    world.forget();
    let begin = Begin::Resume(agent.session_id().to_owned());
    let refused = host.agent(AgentOptions { begin, ..options() }).unwrap_err();
    assert!(
        refused.to_string().contains("is open in another"),
        "{refused}"
    );
    let diary = world.diary();
    assert_eq!(diary.count("session_start"), 0);
    assert_eq!(
        diary.count("session_end"),
        0,
        "of a session that it was never told of: {diary:#?}"
    );
    talk(&mut agent, 1, 3);
    world.check(&agent);
}

/// The process that is killed. It says when its session is on disk.
#[test]
#[ignore = "run by a_killed_sessions_end_comes_with_the_next_start"]
fn victim() {
    let Some(home) = std::env::var_os("HERMES_TEST_VICTIM") else {
        return;
    };
    let script = std::sync::Arc::new(crate::script::Script::default());
    let host = Host::open(hermes::agent::HostOptions {
        home: hermes::config::HermesHome::at(home),
        provider: Some(script),
        ..hermes::agent::HostOptions::default()
    })
    .expect("a host");
    let mut agent = host.agent(options()).expect("an agent");
    talk(&mut agent, 5, 3);
    println!("\nsession {}", agent.session_id());
    std::thread::sleep(std::time::Duration::from_secs(60));
}

/// Runs [`victim`] and kills it; gives its session.
fn killed(world: &World) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lifecycle::victim", "--ignored", "--nocapture"])
        .env("HERMES_TEST_VICTIM", world.home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program runs");
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let session = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix("session ")?.to_owned()));
    // SIGKILL on Unix.
    child.kill().expect("killed");
    child.wait().expect("reaped");
    session.expect("it said its session")
}

// contract: LIFE-4
// case: 47
#[test]
fn a_killed_sessions_end_comes_with_the_next_start() {
    let world = Setup::witness("").world();
    let session = killed(&world);
    assert_eq!(world.diary().count("session_end"), 0);
    let (_host, agent) = world.agent();
    let end = end_of(&world, &session);
    let rows = world.store().messages(&session, false).unwrap();
    let stored: Vec<_> = rows.into_iter().map(|row| row.message).collect();
    assert_eq!(uids(&end["messages"]), own_uids(&stored));
    assert_eq!(stored.len(), 10);
    let row = world.store().session(&session).unwrap();
    assert_eq!(row.end_reason.as_deref(), Some("killed"));
    drop(agent);
    let (_host, _agent) = world.agent();
    end_of(&world, &session);
}

// contract: LIFE-3, LIFE-4
// case: 47
#[test]
fn a_killed_session_that_goes_on_is_not_ended_first_and_others_are() {
    let world = Setup::witness("").world();
    let (first, second) = (killed(&world), killed(&world));
    let host = world.host();
    let agent = host
        .agent(AgentOptions {
            begin: Begin::Latest,
            ..options()
        })
        .unwrap();
    assert_eq!(agent.session_id(), second);
    end_of(&world, &first);
    let ended: Vec<_> = world
        .diary()
        .of("session_end")
        .iter()
        .map(|l| l["session"].clone())
        .collect();
    assert_eq!(ended, [json!(first)]);
    world.check(&agent);
}

// contract: LIFE-2, SAFE-4
#[test]
fn what_was_warned_of_once_is_warned_of_again_in_a_new_session_only() {
    let world = Setup::witness("select: empty").world();
    let (_host, mut agent) = world.agent();
    assert_eq!(listen(&mut agent, "one").1.warnings.len(), 1);
    assert_eq!(listen(&mut agent, "two").1.warnings.len(), 0);
    agent.new_session();
    world.script.cut();
    assert_eq!(listen(&mut agent, "three").1.warnings.len(), 1);
}
