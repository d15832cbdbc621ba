//! Passes with the real store: what triggers one, what a commit does and in which order, and what is refused.

use hermes::agent::Agent;
use hermes::context::Outcome;
use hermes::engine::TurnOutcome;
use hermes::provider::FailureKind;
use hermes_message::Role;
use serde_json::{Value, json};

use crate::script::Say;
use crate::support::{
    Setup, World, compact, compress, jsons, listen, messages_of, own_uids, talk, turn, uids,
};

/// A world whose agent has had some turns.
fn talked(setup: Setup, turns: usize) -> (World, hermes::agent::Host, Agent) {
    let world = setup.world();
    let (host, mut agent) = world.agent();
    talk(&mut agent, turns, 20);
    world.forget();
    world.script.cut();
    (world, host, agent)
}

/// As the witness names threads.
fn this_thread() -> String {
    let link = std::fs::read_link("/proc/thread-self").expect("a thread");
    link.display().to_string()
}

// contract: PASS-9, UID-10, UID-2
#[test]
fn each_trigger_asks_for_its_pass_and_says_which_it_is() {
    // At the start of a turn, below its trigger: the engine's own estimate.
    let (world, _host, mut agent) = talked(Setup::witness("preflight: 7\ntail: 1"), 3);
    turn(&mut agent, "preflight?");
    let diary = world.diary();
    let pass = diary.of("compress")[0];
    assert_eq!(
        (&pass["trigger"], &pass["force"]),
        (&json!("Preflight"), &json!(false))
    );
    let seen = uids(&pass["messages"]);
    assert!(
        seen.iter().all(|uid| uid.len() == 32),
        "the new message has one already: {seen:?}"
    );
    assert_eq!(pass["incoming"], json!(6));
    assert_eq!(
        agent.messages()[2].identity().uid.as_deref(),
        Some(&*seen[6]),
        "and keeps it"
    );
    assert_eq!(diary.count("compress"), 1, "one pass");
    world.check(&agent);

    // After a round of tools.
    let tool = r#"tools: [{"name": "note"}]"#;
    let (world, _host, mut agent) =
        talked(Setup::witness(&format!("every: 5\ntail: 3\n{tool}")), 3);
    world.script.free();
    world.script.say([Say::Calls(vec![("c", "note", "{}")])]);
    turn(&mut agent, "tools?");
    assert_eq!(world.diary().of("compress")[0]["trigger"], "Tools");
    world.check(&agent);

    // The provider says that it is too long.
    let (world, _host, mut agent) = talked(Setup::witness("tail: 1"), 3);
    world.script.free();
    world.script.say([Say::Fail(FailureKind::Overflow {
        limit: None,
        requested: None,
        payload: true,
    })]);
    let report = turn(&mut agent, "overflow?");
    assert_eq!(
        (report.outcome, report.api_calls),
        (TurnOutcome::Completed, 2)
    );
    let diary = world.diary();
    let pass = diary.of("compress")[0];
    assert_eq!(
        (&pass["trigger"], &pass["force"]),
        (&json!("Overflow"), &json!(true))
    );
    assert!(pass["target"].as_u64().unwrap() < pass["current"].as_u64().unwrap());
    world.check(&agent);

    // The user. The focus arrives as it was typed, without the blanks around it.
    let (world, _host, mut agent) = talked(Setup::witness("tail: 1"), 3);
    let focus = "  the \"schema\"\nof 漢字 🎉 ";
    let outcome = agent.compress(Some(focus), &mut |_| {});
    assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
    let diary = world.diary();
    let pass = diary.of("compress")[0];
    assert_eq!(
        (&pass["trigger"], &pass["force"]),
        (&json!("Manual"), &json!(true))
    );
    assert_eq!(pass["focus"], focus.trim());
    world.check(&agent);

    // A pause, where the user wants that.
    let idle = Setup::witness("tail: 1\nthreshold_percent: 0.002")
        .compression("idle_compact_after_seconds: 0.15");
    let (world, _host, mut agent) = talked(idle, 3);
    std::thread::sleep(std::time::Duration::from_millis(200));
    turn(&mut agent, "after a pause");
    assert_eq!(world.diary().of("compress")[0]["trigger"], "Idle");
    world.check(&agent);
    let (world, _host, mut agent) = talked(Setup::witness("tail: 1\nthreshold_percent: 0.002"), 3);
    std::thread::sleep(std::time::Duration::from_millis(200));
    turn(&mut agent, "after a pause");
    assert_eq!(world.diary().count("compress"), 0, "it is opt-in");
}

// contract: LIFE-5, PASS-1, PASS-2, PASS-11, UID-2, UID-6, UID-18
#[test]
fn a_commit_is_the_store_then_committed_then_the_boundary() {
    let (world, _host, mut agent) =
        talked(Setup::witness("compress: own_uid\nhead: 2\ntail: 2"), 4);
    let (session, before) = (agent.session_id().to_owned(), own_uids(agent.messages()));
    compact(&mut agent);
    let diary = world.diary();
    assert_eq!(diary.order(), ["compress", "pass_result", "session_start"]);
    let [pass, told, start] = &diary.0[..] else {
        unreachable!()
    };
    assert_eq!(
        (&told["committed"], &told["pass_id"]),
        (&json!(true), &pass["pass_id"])
    );
    assert_eq!(start["reason"], "Compression");
    assert_eq!(
        (&start["old"], &start["session"]),
        (&json!(session), &json!(session)),
        "in place"
    );
    assert_eq!(start["last_pass_id"], pass["pass_id"]);
    let after = own_uids(agent.messages());
    for line in [told, start] {
        assert_eq!(
            uids(&line["messages"]),
            after,
            "the new transcript with all its uids"
        );
    }
    assert_eq!(after[..2], before[..2]);
    assert_eq!(after[after.len() - 2..], before[before.len() - 2..]);
    assert!(after.contains(&"witness-summary".to_owned()), "{after:?}");
    assert!(after.iter().all(|uid| !uid.is_empty()));
    // The engine runs on a thread of the pool, not on the conversation's.
    let here = this_thread();
    assert!(diary.0.iter().all(|line| line["thread"] != here));
    world.check(&agent);
    // The originals stay readable, and the store knows the pass.
    let store = world.store();
    let all = store.messages(&session, true).unwrap();
    let kept: Vec<_> = all.iter().filter(|row| row.compacted).collect();
    assert!(kept.len() >= 4, "{}", kept.len());
    assert_eq!(
        store.session(&session).unwrap().last_pass_id.as_deref(),
        pass["pass_id"].as_str()
    );
    // A uid of the engine's own comes back with every later restore.
    turn(&mut agent, "go on");
    assert!(
        !world.script.last().contains("witness-summary"),
        "and never goes out"
    );
    agent.close("done");
    let host = world.host();
    let agent = world.resume(&host, &session);
    assert!(own_uids(agent.messages()).contains(&"witness-summary".to_owned()));
    world.check(&agent);
}

// contract: PASS-1, PASS-2
#[test]
fn without_a_timeout_a_pass_runs_on_the_conversations_thread() {
    let setup = Setup::witness("tail: 1").compression("context_timeout_seconds: 0");
    let (world, _host, mut agent) = talked(setup, 3);
    compact(&mut agent);
    let here = this_thread();
    assert_eq!(world.diary().of("compress")[0]["thread"], here);
    world.check(&agent);
}

// contract: PASS-6, PASS-11, LIFE-5, PASS-3
// case: 33
#[test]
fn a_result_that_cannot_be_used_leaves_everything_as_it_was() {
    for (how, words) in [
        ("longer", "more than the"),
        ("empty", "the list is empty"),
        ("junk", ""),
        ("roleless", "was refused"),
        ("twice", "was refused"),
        ("loses_user", "newest user message is gone"),
    ] {
        let (world, _host, mut agent) = talked(Setup::witness(&format!("compress: {how}")), 4);
        let texts = |agent: &Agent| -> Vec<String> {
            agent
                .messages()
                .iter()
                .map(|message| message.stored().to_string())
                .collect()
        };
        let (before, ids) = (texts(&agent), own_uids(agent.messages()));
        let rows = world.store().messages(agent.session_id(), true).unwrap();
        let outcome = compress(&mut agent);
        assert!(
            matches!(outcome, Outcome::Refused { .. } | Outcome::Failed { .. }),
            "{how}: {outcome:?}"
        );
        let warnings = agent.take_warnings();
        assert_eq!(warnings.len(), 1, "{how}: {warnings:?}");
        assert!(warnings[0].contains(words), "{how}: {warnings:?}");
        assert_eq!(
            (texts(&agent), own_uids(agent.messages())),
            (before, ids),
            "{how}"
        );
        assert_eq!(
            world.store().messages(agent.session_id(), true).unwrap(),
            rows,
            "{how}"
        );
        let diary = world.diary();
        let told = diary.of("pass_result");
        // What is no message at all is refused while the engine emits it, so it knows.
        assert_eq!(told.len(), usize::from(how != "junk"), "{how}: {diary:#?}");
        for told in told {
            assert_eq!(told["committed"], false);
            assert_eq!(told["pass_id"], diary.of("compress")[0]["pass_id"]);
            assert!(!told["why"].as_str().unwrap().is_empty());
        }
        assert_eq!(diary.count("session_start"), 0, "{how}: no boundary");
        assert_eq!(agent.status().compressions, 0);
        let report = turn(&mut agent, "and on");
        assert_eq!(report.outcome, TurnOutcome::Completed, "{how}");
        world.check(&agent);
    }
}

// contract: PASS-8, PASS-11
// case: 33
#[test]
fn an_equal_list_is_nothing_to_do_and_no_fault() {
    for how in ["same", "equal", "unchanged"] {
        let (world, _host, mut agent) =
            talked(Setup::witness(&format!("compress: {how}\nshould: 1")), 0);
        let mut warnings = Vec::new();
        for number in 0..6 {
            let (report, heard) = listen(&mut agent, &format!("question {number}"));
            assert_eq!(report.outcome, TurnOutcome::Completed, "{how}");
            assert_eq!(report.compressions, 0, "{how}");
            warnings.extend(heard.warnings);
        }
        let left = warnings
            .iter()
            .filter(|text| text.contains("left the transcript as it is"));
        assert_eq!(left.count(), 1, "{how}: once: {warnings:?}");
        let diary = world.diary();
        assert_eq!(diary.count("compress"), 2, "{how}: and then it pauses");
        assert!(
            diary
                .of("pass_result")
                .iter()
                .all(|line| line["committed"] == false),
            "{how}"
        );
        assert_eq!(agent.engine(), "witness", "{how}: no failure");
        let outcome = compress(&mut agent);
        assert!(
            matches!(outcome, Outcome::Unchanged { .. }),
            "{how}: {outcome:?}"
        );
        assert_eq!(
            world.diary().count("compress"),
            3,
            "{how}: the user can always force one"
        );
        world.check(&agent);
    }
}

// contract: PASS-8
// case: 27
#[test]
fn passes_that_free_nothing_stop_also_below_the_trigger() {
    for wish in ["should: 1", "preflight: 1", "every: 1"] {
        for (how, most) in [("a_little", 2), ("longer", 5), ("loses_user", 5)] {
            let (world, _host, mut agent) =
                talked(Setup::witness(&format!("compress: {how}\n{wish}")), 0);
            let mut warnings = Vec::new();
            for number in 0..20 {
                world.script.cut();
                let (report, heard) =
                    listen(&mut agent, &format!("q {number} {}", "word ".repeat(20)));
                assert_eq!(report.outcome, TurnOutcome::Completed);
                warnings.extend(heard.warnings);
            }
            let passes = world.diary().count("compress");
            // One probe each time a pause is over.
            assert!(
                passes <= most + 2,
                "{wish}, {how}: {passes} passes in 20 turns"
            );
            assert!(warnings.len() <= 3, "{wish}, {how}: {warnings:#?}");
            world.check(&agent);
        }
    }
}

// contract: PASS-6, PASS-8, SAFE-4
#[test]
fn an_engine_whose_passes_keep_failing_is_told_of_once_and_taken_out() {
    let (world, _host, mut agent) = talked(Setup::witness("should: 1\nfail:\n  compress: true"), 0);
    let mut warnings = Vec::new();
    for number in 0..12 {
        world.script.cut();
        let (report, heard) = listen(&mut agent, &format!("question {number}"));
        assert_eq!(report.outcome, TurnOutcome::Completed);
        warnings.extend(heard.warnings);
    }
    assert_eq!(world.diary().count("compress"), 3);
    assert_eq!(agent.engine(), "compressor");
    let out: Vec<_> = warnings
        .iter()
        .filter(|text| text.contains("taken out"))
        .collect();
    assert_eq!(out.len(), 1, "{warnings:#?}");
    assert!(out[0].contains("plugins why witness"), "{out:?}");
    world.check(&agent);
}

// contract: PASS-3, UID-4, UID-18
#[test]
fn an_edited_message_shows_when_the_pass_commits_and_keeps_its_uid() {
    let (world, _host, mut agent) = talked(Setup::witness("compress: edit"), 3);
    let before = own_uids(agent.messages());
    let session = agent.session_id().to_owned();
    compact(&mut agent);
    assert_eq!(own_uids(agent.messages()), before);
    assert_eq!(agent.messages()[0].text(), "x");
    let diary = world.diary();
    assert!(
        jsons(&diary.of("compress")[0]["messages"])[0].contains("question 0"),
        "what it was given"
    );
    world.check(&agent);
    let versions: Vec<Value> = world
        .store()
        .messages(&session, true)
        .unwrap()
        .iter()
        .filter(|row| row.message.identity().uid.as_deref() == Some(&*before[0]))
        .map(|row| json!({"live": row.active, "x": row.message.text() == "x"}))
        .collect();
    assert_eq!(
        versions.len(),
        2,
        "the original stays readable: {versions:?}"
    );
}

// contract: LIFE-5, LIFE-3, PASS-11, UID-3, UID-6
// case: 47
#[test]
fn a_pass_may_go_on_in_another_session_and_the_engine_can_link_them() {
    let setup =
        Setup::witness("compress: own_uid\nhead: 2\ntail: 2").compression("in_place: false");
    let (world, host, mut agent) = talked(setup, 4);
    let (first, before) = (agent.session_id().to_owned(), own_uids(agent.messages()));
    compact(&mut agent);
    let second = agent.session_id().to_owned();
    assert_ne!(first, second);
    let diary = world.diary();
    assert_eq!(
        diary.order(),
        ["compress", "pass_result", "session_start"],
        "no end: the conversation goes on"
    );
    let start = diary.of("session_start")[0];
    assert_eq!(start["reason"], "Compression");
    assert_eq!(
        (&start["session"], &start["old"]),
        (&json!(second), &json!(first))
    );
    assert_eq!(
        (&start["parent"], &start["root"]),
        (&json!(first), &json!(first))
    );
    world.check(&agent);
    turn(&mut agent, "go on");
    world.check(&agent);
    assert_eq!(
        world.store().messages(&first, false).unwrap().len(),
        8,
        "the originals"
    );

    // Once more: the root stays.
    turn(&mut agent, "and on");
    turn(&mut agent, "and on");
    world.script.cut();
    compact(&mut agent);
    let third = agent.session_id().to_owned();
    let diary = world.diary();
    let start = diary.of("session_start").pop().unwrap();
    assert_eq!(
        (&start["old"], &start["root"]),
        (&json!(second), &json!(first))
    );
    world.check(&agent);
    let pass = diary.of("compress").pop().unwrap()["pass_id"].clone();
    world.script.cut();
    turn(&mut agent, "the end");
    let left = own_uids(agent.messages());
    assert_eq!(left[..2], before[..2]);
    agent.close("done");
    let ends = world.diary();
    let ends = ends.of("session_end");
    assert_eq!(ends.len(), 1, "once for all of it");
    assert_eq!(ends[0]["session"], third);

    // Whichever of them is resumed, it goes on where it was left.
    drop(host);
    for id in [&first, &second, &third] {
        let host = world.host();
        let agent = world.resume(&host, id);
        assert_eq!(agent.session_id(), third);
        assert_eq!(own_uids(agent.messages()), left);
        let diary = world.diary();
        let start = diary.of("session_start").pop().unwrap();
        assert_eq!(
            (&start["reason"], &start["root"]),
            (&json!("Resume"), &json!(first))
        );
        assert_eq!(
            (&start["parent"], &start["last_pass_id"]),
            (&json!(second), &pass)
        );
        world.check(&agent);
    }
}

// contract: LIFE-3, UID-3
#[test]
fn a_rewind_leads_back_over_a_rotation() {
    let setup = Setup::witness("tail: 1").compression("in_place: false");
    let (world, _host, mut agent) = talked(setup, 3);
    let (first, before) = (agent.session_id().to_owned(), own_uids(agent.messages()));
    compact(&mut agent);
    assert_ne!(agent.session_id(), first);
    let rewound = agent.rewind(1).unwrap();
    assert_eq!(rewound.passes_undone, 1);
    assert_eq!(agent.session_id(), first);
    assert_eq!(own_uids(agent.messages()), before[..4]);
    let diary = world.diary();
    let start = diary.of("session_start").pop().unwrap();
    assert_eq!(
        (&start["reason"], &start["session"]),
        (&json!("Rewind"), &json!(first))
    );
    assert_eq!(
        (&start["root"], &start["last_pass_id"]),
        (&json!(first), &json!(""))
    );
    turn(&mut agent, "another way");
    world.check(&agent);
}

// contract: PASS-11
#[test]
fn the_ids_of_passes_never_come_again() {
    let (world, _host, mut agent) = talked(Setup::witness("tail: 1"), 3);
    let first = agent.session_id().to_owned();
    compact(&mut agent);
    for _ in 0..2 {
        agent.new_session();
        agent.resume(&first).unwrap();
        talk(&mut agent, 2, 3);
        world.script.cut();
        compress(&mut agent);
    }
    let diary = world.diary();
    let mut ids: Vec<_> = diary
        .of("compress")
        .iter()
        .map(|line| line["pass_id"].to_string())
        .collect();
    assert_eq!(ids.len(), 3);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");
}

// contract: ENG-17, PASS-8
#[test]
fn an_engine_that_is_blocked_says_why_once_and_a_forced_pass_goes_through() {
    let (world, _host, mut agent) = talked(
        Setup::witness("blocked: 'cooling down: 30 s'\nthreshold_percent: 0.000001"),
        0,
    );
    let mut warnings = Vec::new();
    for number in 0..3 {
        let (_, heard) = listen(&mut agent, &format!("question {number}"));
        warnings.extend(heard.warnings);
    }
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("cooling down: 30 s") && warnings[0].contains("/compress"));
    assert_eq!(world.diary().count("compress"), 0);
    world.script.cut();
    compact(&mut agent);
    world.check(&agent);
}

// contract: ENG-5, ENG-17
#[test]
fn a_quiet_engine_has_no_routine_lines_and_its_failures_show_all_the_same() {
    for quiet in [true, false] {
        let (world, _host, mut agent) = talked(
            Setup::witness(&format!("quiet: {quiet}\nevery: 3\ntail: 1")),
            2,
        );
        let (report, heard) = listen(&mut agent, "now");
        assert_eq!(report.compressions, 1);
        assert_eq!(heard.statuses.len(), if quiet { 0 } else { 2 }, "{heard:?}");
        world.check(&agent);
    }
    let (_world, _host, mut agent) =
        talked(Setup::witness("quiet: true\nevery: 3\ncompress: longer"), 2);
    let (_, heard) = listen(&mut agent, "now");
    assert_eq!(heard.warnings.len(), 1, "{heard:?}");
}

// contract: PASS-9, PASS-6
#[test]
fn what_the_engine_cannot_make_fit_the_built_in_does_and_the_engine_goes_on_serving() {
    let world = Setup::witness("compress: unchanged").window(5_000).world();
    let (_host, mut agent) = world.agent();
    talk(&mut agent, 8, 300);
    world.forget();
    world.script.free();
    world.script.limit(Some(2_000));
    let report = turn(&mut agent, "does it fit?");
    assert_eq!(report.outcome, TurnOutcome::Completed, "{report:?}");
    assert_eq!(report.compressions, 1);
    assert_eq!(agent.engine(), "witness");
    let goes_on = |text: &&String| {
        text.contains("has compressed in the place of context engine 'witness'")
            && text.contains("goes on serving")
    };
    let told = report.warnings.iter().filter(goes_on).count();
    assert_eq!(told, 1, "{:?}", report.warnings);
    assert_eq!(agent.status().manager.engine, "witness");
    let diary = world.diary();
    assert_eq!(diary.count("compress"), 1, "its own pass came first");
    let start = diary.of("session_start").pop().unwrap();
    assert_eq!(start["reason"], "Compression", "it hears of the boundary");
    let sent = messages_of(&world.script.last());
    assert_eq!(sent.last().unwrap().text(), "does it fit?");
    assert!(sent.iter().any(|message| message.role() == Role::User));
    world.check(&agent);
}
