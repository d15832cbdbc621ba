//! Which message is which, over everything a store does.

use hermes_message::{CallUid, Identity, Message};

use crate::support::*;
use hermes::store::{Mark, NewSession};

// contract: UID-1, UID-2, UID-10
#[test]
fn a_uid_is_minted_once_at_the_first_row_and_comes_back_everywhere() {
    let home = Home::new();
    let store = home.open();
    let id = session(&store);
    let mut mark = Mark::default();
    let mut turn = vec![user("same"), user("same")];
    assert!(
        turn[0].identity().uid.is_none(),
        "none before the row exists"
    );
    store.append(&id, &mut turn, &mut mark).unwrap();
    assert!(turn.iter().all(|m| is_uid(&uid(m))));
    assert_ne!(
        uid(&turn[0]),
        uid(&turn[1]),
        "equal messages are two messages"
    );

    drop(store);
    let store = home.open();
    assert_eq!(store.resume(&id).unwrap().messages, turn);
    let rows = store.messages(&id, true).unwrap();
    assert_eq!(
        rows.iter().map(|row| uid(&row.message)).collect::<Vec<_>>(),
        uids(&turn)
    );
    assert_eq!(
        home.number("SELECT count(*) FROM messages WHERE length(message_uid) = 32"),
        2,
        "stored in messages.message_uid"
    );
    // Equal content written into another store at another time has other ids: nothing derives from it.
    let other = Home::new();
    let (_, elsewhere, _) = filled(&other.open(), vec![user("same"), user("same")]);
    assert!(
        uids(&elsewhere)
            .iter()
            .all(|uid| !uids(&turn).contains(uid))
    );
}

// contract: UID-3, UID-6, UID-7
#[test]
fn every_copy_keeps_its_uid_and_gets_another_row() {
    let home = Home::new();
    let store = home.open();
    let (id, before, mark) = filled(&store, turns(6));
    let engine = message(
        r#"{"role":"user","content":"Summary","_compressed_summary":true,"message_uid":"engine's own: any text"}"#,
    );
    let mut result = vec![engine.clone(), assistant("noted")];
    result.extend_from_slice(&before[8..]);
    let done = compact(&store, &id, &mark, "p1", &result);
    assert_eq!(uid(&done.messages[0]), "engine's own: any text");
    assert!(
        is_uid(&uid(&done.messages[1])),
        "a row without one gets one"
    );
    assert_eq!(uids(&done.messages[2..]), uids(&before[8..]));
    let rows = store.messages(&id, true).unwrap();
    let originals: Vec<_> = rows.iter().filter(|row| row.compacted).collect();
    assert_eq!(
        originals
            .iter()
            .map(|r| uid(&r.message))
            .collect::<Vec<_>>(),
        uids(&before)
    );
    let new_rows: Vec<i64> = rows.iter().filter(|r| r.active).map(|r| r.row_id).collect();
    assert!(
        new_rows
            .iter()
            .all(|row| originals.iter().all(|old| old.row_id != *row))
    );

    // A generation later, replaced, branched, rotated and rewound they are still the same.
    let mut list = done.messages.clone();
    let saved = store.replace_messages(&id, &mut list, &done.mark).unwrap();
    assert_eq!(uids(&list), uids(&done.messages));
    let branch = store.branch(&id, &NewSession::default()).unwrap();
    assert_eq!(branch.messages, list);
    assert_ne!(branch.session.id, id);
    let lock = store
        .begin_pass(&id, &saved.mark, "t", std::time::Duration::from_secs(60))
        .unwrap();
    let rotated = store
        .commit_rotation(&lock, "p2", &NewSession::default(), &list[..4])
        .unwrap();
    assert_eq!(uids(&rotated.messages), uids(&list[..4]));
    assert_clean(&store);
}

// contract: UID-3, UID-11
#[test]
fn a_branch_mints_what_is_missing_on_both_sides() {
    let home = Home::new();
    let store = home.open();
    let (id, _, _) = filled(&store, turns(2));
    home.sql()
        .execute_batch("UPDATE messages SET message_uid = NULL WHERE role = 'user'")
        .unwrap();
    assert!(
        store.resume(&id).unwrap().messages[0]
            .identity()
            .uid
            .is_none(),
        "no error without one"
    );
    let branch = store.branch(&id, &NewSession::default()).unwrap();
    assert!(branch.messages.iter().all(|m| is_uid(&uid(m))));
    assert_eq!(store.resume(&id).unwrap().messages, branch.messages);
}

// contract: UID-4
#[test]
fn a_rewrite_is_a_newer_version_in_the_same_row() {
    let home = Home::new();
    let store = home.open();
    let (id, before, mark) = filled(&store, turns(3));
    let mut list = before.clone();
    list[2] = list[2]
        .rewritten(r#"{"role":"user","content":"question 1, put better","x":1}"#)
        .unwrap();
    let saved = store.save(&id, &mut list, &mark).unwrap();
    assert_eq!((saved.inserted, saved.rewritten, saved.hidden), (0, 1, 0));
    let rows = store.messages(&id, true).unwrap();
    assert_eq!(rows.len(), 6, "the same rows");
    assert_eq!(
        rows[2].message.stored().as_ref(),
        r#"{"role":"user","content":"question 1, put better","x":1}"#
    );
    assert_eq!(uid(&rows[2].message), uid(&before[2]));
    // A message that has lost its uid on the way takes the stored one back.
    list[4] = message(list[4].stored());
    let saved = store.save(&id, &mut list, &saved.mark).unwrap();
    assert_eq!((saved.inserted, saved.rewritten), (0, 0));
    assert_eq!(uid(&list[4]), uid(&before[4]));
}

// contract: UID-7
#[test]
fn two_live_rows_may_share_a_uid_and_the_later_is_the_current_one() {
    let home = Home::new();
    let store = home.open();
    let (id, before, mut mark) = filled(&store, turns(2));
    let mut again = vec![
        before[0]
            .rewritten(r#"{"role":"user","content":"question 0, edited"}"#)
            .unwrap(),
    ];
    store.append(&id, &mut again, &mut mark).unwrap();
    assert_eq!(uid(&again[0]), uid(&before[0]));
    let live = store.resume(&id).unwrap().messages;
    assert_eq!(live.len(), 5);
    assert_eq!(live[4].text(), "question 0, edited");
    assert_eq!(live[0].text(), "question 0");
    // Neither version is in the way of a pass.
    let done = compact(&store, &id, &mark, "p", &live[3..]);
    assert_eq!(done.messages, live[3..]);
    assert_clean(&store);
}

fn fold(first: &Message, second: &Message) -> Message {
    let text = format!("{}\n\n{}", first.text(), second.text());
    let mut identity = first.identity().clone();
    identity.absorb(second.identity());
    first
        .rewritten(said("user", &text).stored())
        .unwrap()
        .replaced_identity(identity)
}

// contract: UID-5, UID-16, UID-17
#[test]
fn a_fold_names_its_parts_after_two_restarts() {
    let home = Home::new();
    let store = home.open();
    let (id, before, mark) = filled(
        &store,
        vec![user("a"), user("b"), user("c"), assistant("ok")],
    );
    let mut list = vec![
        fold(&fold(&before[0], &before[1]), &before[2]),
        before[3].clone(),
    ];
    let saved = store.save(&id, &mut list, &mark).unwrap();
    assert_eq!((saved.rewritten, saved.hidden), (1, 2));
    for _ in 0..2 {
        let store = home.open();
        let live = store.resume(&id).unwrap().messages;
        assert_eq!(texts(&live), ["a\n\nb\n\nc", "ok"]);
        assert_eq!(uid(&live[0]), uid(&before[0]));
        let absorbed: Vec<&str> = live[0].identity().absorbed.iter().map(|u| &**u).collect();
        assert_eq!(absorbed, [uid(&before[1]), uid(&before[2])]);
    }
    // The parts' own rows are still in the file.
    let all = store.messages(&id, true).unwrap();
    assert!(
        all.iter()
            .any(|row| row.message.text() == "b" && !row.active)
    );

    // The dropped text leads: its uid is the fold's, in text order.
    let (id, before, mark) = filled(&store, vec![user("late"), user("early")]);
    let mut identity = before[0].identity().clone();
    identity.absorb_leading(before[1].identity());
    let folded =
        message(r#"{"role":"user","content":"early\n\nlate"}"#).replaced_identity(identity);
    let mut list = vec![folded];
    store.save(&id, &mut list, &mark).unwrap();
    let live = store.resume(&id).unwrap().messages;
    assert_eq!(uid(&live[0]), uid(&before[1]));
    assert_eq!(live[0].identity().absorbed, [uid(&before[0]).into()]);
    // A row that is dropped without being folded is recorded nowhere.
    let (id, before, mark) = filled(
        &store,
        vec![user("q"), assistant("provisional"), assistant("final")],
    );
    let mut list = vec![before[0].clone(), before[2].clone()];
    store.save(&id, &mut list, &mark).unwrap();
    assert!(
        store
            .resume(&id)
            .unwrap()
            .messages
            .iter()
            .all(|m| m.identity().absorbed.is_empty())
    );
    assert_clean(&store);
}

// contract: UID-8, UID-14
// case: 12
#[test]
fn reused_provider_ids_are_told_apart() {
    let home = Home::new();
    let store = home.open();
    let (id, turn, _) = filled(
        &store,
        vec![
            user("join"),
            calls(&["k"]),
            result("k", "A ok"),
            calls(&["k"]),
            result("k", "B ok"),
            calls(&["k"]),
            result("k", "ALPHA BETA"),
        ],
    );
    let call = |at: usize| match turn[at].identity().tool_call_uids.get("k").unwrap() {
        CallUid::One(uid) => uid.to_string(),
        CallUid::Each(_) => panic!("one call, one uid"),
    };
    let answered: Vec<String> = [2, 4, 6]
        .map(|at| {
            turn[at]
                .identity()
                .tool_call_uid
                .as_deref()
                .unwrap()
                .to_owned()
        })
        .to_vec();
    assert_eq!(answered, [call(1), call(3), call(5)]);
    assert_eq!(
        std::collections::HashSet::<&String>::from_iter(&answered).len(),
        3
    );
    assert_eq!(
        turn[1].tool_calls()[0].id.as_ref(),
        "k",
        "the provider's id never changes"
    );
    assert_eq!(home.open().resume(&id).unwrap().messages, turn);
    assert_eq!(home.number("SELECT count(tool_call_uids) FROM messages"), 3);
    assert_eq!(home.number("SELECT count(tool_call_uid) FROM messages"), 3);
}

// contract: UID-12, UID-13, UID-15
#[test]
fn repeated_and_folded_calls_have_their_uids() {
    let home = Home::new();
    let store = home.open();
    // Repeated within one response: one uid, and so has each result.
    let (_, turn, _) = filled(
        &store,
        vec![
            user("q"),
            calls(&["d", "d"]),
            result("d", "1"),
            result("d", "2"),
        ],
    );
    let shared = turn[1]
        .identity()
        .tool_call_uids
        .get("d")
        .unwrap()
        .nth(0)
        .unwrap();
    assert_eq!(turn[2].identity().tool_call_uid.as_deref(), Some(shared));
    assert_eq!(turn[3].identity().tool_call_uid.as_deref(), Some(shared));

    // Folded turns: a list in call order, which pairing on restore follows.
    let (id, turn, mark) = filled(
        &store,
        vec![
            user("q"),
            calls(&["k"]),
            result("k", "1"),
            calls(&["k"]),
            result("k", "2"),
        ],
    );
    let both = calls(&["k", "k"]);
    let mut identity: Identity = turn[1].identity().clone();
    identity.absorb(turn[3].identity());
    identity.fold_calls(
        turn[1].tool_calls(),
        turn[3].identity(),
        turn[3].tool_calls(),
    );
    let folded = both.replaced_identity(identity);
    let mut list = vec![
        turn[0].clone(),
        folded.clone(),
        turn[2].clone(),
        turn[4].clone(),
    ];
    store.save(&id, &mut list, &mark).unwrap();
    let live = home.open().resume(&id).unwrap().messages;
    assert_eq!(live[1].identity(), folded.identity());
    assert!(
        matches!(live[1].identity().tool_call_uids.get("k"), Some(CallUid::Each(list)) if list.len() == 2)
    );
    assert_eq!(
        live[2].identity().tool_call_uid,
        turn[2].identity().tool_call_uid
    );
    assert_eq!(
        live[3].identity().tool_call_uid,
        turn[4].identity().tool_call_uid
    );
    // The same after the results' own columns are gone, from the list alone.
    home.sql()
        .execute_batch("UPDATE messages SET tool_call_uid = NULL")
        .unwrap();
    let paired = home.open().resume(&id).unwrap().messages;
    assert_eq!(
        paired[2].identity().tool_call_uid,
        turn[2].identity().tool_call_uid
    );
    assert_eq!(
        paired[3].identity().tool_call_uid,
        turn[4].identity().tool_call_uid
    );
}

// contract: UID-14, UID-15
#[test]
fn results_are_paired_in_later_writes_and_never_across_a_user_turn() {
    let home = Home::new();
    let store = home.open();
    let (id, turn, mut mark) = filled(&store, vec![user("q"), calls(&["a", "b"])]);
    let map = turn[1].identity().tool_call_uids.clone();
    for call in ["b", "a"] {
        let mut chunk = vec![result(call, "late")];
        store.append(&id, &mut chunk, &mut mark).unwrap();
        assert_eq!(
            chunk[0].identity().tool_call_uid.as_deref(),
            map.get(call).unwrap().nth(0)
        );
    }
    let mut stray = vec![user("next"), result("a", "a replay")];
    store.append(&id, &mut stray, &mut mark).unwrap();
    assert_eq!(stray[1].identity().tool_call_uid, None);
    // Rows in between that other sessions wrote, more than a look at the end of the file covers.
    let (long, turn, mut mark) = filled(&store, vec![user("q"), calls(&["z"])]);
    filled(&store, turns(200));
    let mut chunk = vec![result("z", "very late")];
    store.append(&long, &mut chunk, &mut mark).unwrap();
    assert_eq!(
        chunk[0].identity().tool_call_uid.as_deref(),
        turn[1].identity().tool_call_uids.get("z").unwrap().nth(0)
    );
    // A call that was stored without ids stays without, and so does its result.
    let old = session(&store);
    home.sql()
        .execute(
            "INSERT INTO messages (session_id, role, tool_calls, timestamp, message_uid)
             VALUES (?1, 'assistant', '[{\"id\": \"x\", \"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}]', 1.0, 'u')",
            [&old],
        )
        .unwrap();
    let mut mark = store.resume(&old).unwrap().mark;
    let mut chunk = vec![result("x", "answer")];
    store.append(&old, &mut chunk, &mut mark).unwrap();
    assert_eq!(chunk[0].identity().tool_call_uid, None);
}

// contract: UID-15, UID-18
#[test]
fn an_edited_message_and_its_calls_keep_all_four_fields_through_a_pass() {
    let home = Home::new();
    let store = home.open();
    let (id, turn, mark) = filled(
        &store,
        vec![
            user("q"),
            calls(&["k"]),
            result("k", "long output"),
            assistant("done"),
        ],
    );
    let edited = turn[2]
        .rewritten(r#"{"role":"tool","content":"[pruned]","tool_call_id":"k"}"#)
        .unwrap();
    let done = compact(
        &store,
        &id,
        &mark,
        "p",
        &[turn[0].clone(), turn[1].clone(), edited, turn[3].clone()],
    );
    for (new, old) in done.messages.iter().zip(&turn) {
        assert_eq!(new.identity(), old.identity());
    }
    assert_eq!(done.messages[2].text(), "[pruned]");
    let rows = store.messages(&id, true).unwrap();
    assert!(
        rows.iter()
            .any(|row| row.compacted && row.message.text() == "long output")
    );
}

// contract: UID-9
#[test]
fn no_identity_is_ever_part_of_the_text() {
    let home = Home::new();
    let store = home.open();
    let (id, _, _) = filled(&store, vec![user("q"), calls(&["k"]), result("k", "r")]);
    for row in store.messages(&id, true).unwrap() {
        for key in hermes_message::IDENTITY_FIELDS {
            assert!(!row.message.stored().contains(key) && !row.message.wire().contains(key));
        }
    }
}

// contract: UID-5, UID-16
// case: 15
#[test]
fn merges_made_while_history_is_restored_keep_their_record() {
    let home = Home::new();
    let store = home.open();
    let (id, before, _) = filled(
        &store,
        vec![
            user("a"),
            user("b"),
            assistant("x"),
            assistant("y"),
            user("z"),
        ],
    );
    let back = store.resume(&id).unwrap();
    let repaired = hermes_message::repair::repair(&back.messages);
    assert_eq!(repaired.notes.len(), 2, "{:?}", repaired.notes);
    assert_eq!(
        store.resume(&id).unwrap().messages,
        before,
        "a restore alone changes nothing"
    );
    let mut list = repaired.messages;
    let saved = store.save(&id, &mut list, &back.mark).unwrap();
    assert_eq!((saved.inserted, saved.rewritten, saved.hidden), (0, 2, 2));
    for _ in 0..2 {
        let live = home.open().resume(&id).unwrap().messages;
        assert_eq!(live, list);
        assert_eq!(
            uids(&live),
            [uid(&before[0]), uid(&before[2]), uid(&before[4])]
        );
        assert_eq!(live[0].identity().absorbed, [uid(&before[1]).into()]);
        assert_eq!(live[1].identity().absorbed, [uid(&before[3]).into()]);
        assert!(hermes_message::repair::repair(&live).notes.is_empty());
    }
    assert_clean(&store);
}
