//! Other programs at work in the same session, and a store that fails for a while.

use hermes::context::Outcome;
use hermes::engine::TurnOutcome;
use hermes::store::{Mark, NewSession, PassLock, Store};
use hermes_message::{Message, build};
use std::time::Duration;

use crate::support::{Setup, compact, listen, messages_of, own_uids, talk, texts, turn, uids};

const LEASE: Duration = Duration::from_secs(30);

fn mark(store: &Store, session: &str) -> Mark {
    store.resume(session).unwrap().mark
}

/// A pass that another program has begun, and what it makes of the session: the first two turns in two messages.
fn their_pass(store: &Store, session: &str) -> (PassLock, Vec<Message>) {
    let resumed = store.resume(session).unwrap();
    let lock = store
        .begin_pass(session, &resumed.mark, "another", LEASE)
        .unwrap();
    let mut result = vec![build::user("(summary)"), build::assistant("of the others")];
    result.extend_from_slice(&resumed.messages[4..]);
    (lock, result)
}

// contract: PASS-5, PASS-9
#[test]
fn a_pass_of_another_program_keeps_ours_waiting_and_the_conversation_goes_on() {
    let world = Setup::witness("tail: 1").world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 3, 10);
    let store = world.store();
    let session = agent.session_id().to_owned();
    let lock = store
        .begin_pass(&session, &mark(&store, &session), "another", LEASE)
        .unwrap();
    let outcome = agent.compress(None, &mut |_| {});
    let Outcome::Skipped { reason } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        reason.contains("is being compacted") || reason.contains("another"),
        "{reason}"
    );
    assert_eq!(world.diary().count("compress"), 0, "no engine was asked");
    turn(&mut agent, "go on");
    world.check(&agent);
    store.end_pass(&lock).unwrap();
    world.script.cut();
    compact(&mut agent);
    world.check(&agent);
}

// contract: UID-2, LIFE-3, PASS-5
#[test]
fn what_another_program_adds_is_taken_in_before_the_next_request() {
    let world = Setup::witness("tail: 1").world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 2, 3);
    let store = world.store();
    let session = agent.session_id().to_owned();
    let mut note = [
        build::user("from elsewhere"),
        build::assistant("noted elsewhere"),
    ];
    store
        .append(&session, &mut note, &mut mark(&store, &session))
        .unwrap();
    turn(&mut agent, "and from here");
    world.check(&agent);
    assert_eq!(
        texts(agent.messages())[4..7],
        ["from elsewhere", "noted elsewhere", "and from here"]
    );
    let sent = messages_of(&world.script.last());
    assert!(texts(&sent).contains(&"noted elsewhere".to_owned()));
    assert_eq!(agent.messages().len(), 8);
}

// contract: PASS-5, PASS-7, LIFE-3
#[test]
fn a_session_that_another_program_compacted_goes_on_with_its_result() {
    let world = Setup::witness("tail: 1").world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 3, 10);
    let store = world.store();
    let session = agent.session_id().to_owned();
    let (lock, result) = their_pass(&store, &session);
    store.commit_in_place(&lock, "theirs-1", &result).unwrap();
    store.end_pass(&lock).unwrap();
    world.script.cut();
    world.forget();
    // A pass of ours works on what is there now, not on what this agent remembers.
    let outcome = agent.compress(None, &mut |_| {});
    assert!(
        !matches!(outcome, Outcome::Committed { .. }),
        "not over a stale transcript: {outcome:?}"
    );
    world.check(&agent);
    let diary = world.diary();
    let start = diary.of("session_start")[0];
    assert_eq!(start["last_pass_id"], "theirs-1");
    assert_eq!(uids(&start["messages"]), own_uids(agent.messages()));
    turn(&mut agent, "go on");
    assert_eq!(
        texts(&messages_of(&world.script.last()))[2],
        "of the others"
    );
    world.check(&agent);
}

// contract: LIFE-3, PASS-5, UID-3
#[test]
fn a_message_written_to_a_session_that_has_gone_on_elsewhere_is_not_lost() {
    let world = Setup::witness("").world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 3, 10);
    let store = world.store();
    let session = agent.session_id().to_owned();
    let (lock, result) = their_pass(&store, &session);
    let new = NewSession {
        source: "test",
        parent: Some(&session),
        ..NewSession::default()
    };
    let moved = store
        .commit_rotation(&lock, "theirs-1", &new, &result)
        .unwrap();
    store.end_pass(&lock).unwrap();
    world.script.cut();
    let report = turn(&mut agent, "did you get this?");
    assert_eq!(report.outcome, TurnOutcome::Completed);
    let sent = messages_of(&world.script.last());
    assert_eq!(
        sent.last().unwrap().text(),
        "did you get this?",
        "{}",
        world.script.last()
    );
    assert_eq!(agent.session_id(), moved.session);
    let diary = world.diary();
    let start = diary.of("session_start").pop().unwrap();
    assert_eq!(
        (start["old"].as_str(), start["root"].as_str()),
        (Some(&*session), Some(&*session))
    );
    world.check(&agent);
    turn(&mut agent, "and on");
    world.check(&agent);
}

// contract: LIFE-3
#[test]
fn turns_that_another_program_took_back_do_not_come_again() {
    let world = Setup::witness("").world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 3, 10);
    world.store().rewind(agent.session_id(), 1).unwrap();
    world.script.cut();
    turn(&mut agent, "another way");
    assert!(
        !world.script.last().contains("question 2"),
        "{}",
        world.script.last()
    );
    world.check(&agent);
}

// contract: UID-10, UID-1
#[test]
fn messages_that_could_not_be_saved_are_saved_later_once_each() {
    let world = Setup::witness("tail: 1").world();
    let (host, mut agent) = world.agent();
    talk(&mut agent, 2, 3);
    // Another program makes the file unusable for writing: a trigger that refuses every row.
    let path = host.store().unwrap().path().to_owned();
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch("CREATE TRIGGER full BEFORE INSERT ON messages BEGIN SELECT RAISE(ABORT, 'the disk is full'); END;")
        .unwrap();
    let (report, heard) = listen(&mut agent, "is this kept?");
    assert_eq!(
        report.outcome,
        TurnOutcome::Completed,
        "the answer is shown all the same"
    );
    assert_eq!(report.answer, "answer 3");
    assert_eq!(heard.warnings.len(), 1, "told once: {heard:?}");
    assert!(heard.warnings[0].contains("disk is full") && heard.warnings[0].contains("in memory"));
    let (_, heard) = listen(&mut agent, "and this?");
    assert_eq!(heard.warnings, Vec::<String>::new());
    assert_eq!(agent.messages().len(), 8);
    assert!(
        matches!(agent.compress(None, &mut |_| {}), Outcome::Skipped { .. }),
        "no pass over what is not saved"
    );
    for refused in [agent.branch().unwrap_err(), agent.rewind(1).unwrap_err()] {
        assert!(
            refused.to_string().contains("could not be saved yet"),
            "{refused}"
        );
    }
    database.execute_batch("DROP TRIGGER full").unwrap();
    turn(&mut agent, "now it works");
    world.check(&agent);
    assert_eq!(agent.messages().len(), 10);
    let asked = texts(agent.messages())
        .into_iter()
        .filter(|text| text == "is this kept?")
        .count();
    assert_eq!(asked, 1);
}
