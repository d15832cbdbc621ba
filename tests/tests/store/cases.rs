//! Reported faults, by their number.

use std::time::{Duration, Instant};

use hermes::store::{Mark, Query, Store, StoreError, StoreOptions};
use hermes_message::{Message, flags, format};
use hermes_tests::inputs;

use crate::support::*;

// case: 14
// contract: UID-1, UID-19
#[test]
fn forty_equal_messages_are_forty_messages() {
    let home = Home::new();
    let mut store = home.open();
    let id = session(&store);
    let mut mark = Mark::default();
    for n in 0..40 {
        let answer = if n % 2 == 0 { "wall." } else { "door." };
        store
            .append(&id, &mut [user("left"), assistant(answer)], &mut mark)
            .unwrap();
        if n == 20 {
            // The process is restarted in the middle; the resumed list is saved without a change.
            store = home.open();
            let back = store.resume(&id).unwrap();
            let mut list = back.messages.clone();
            let saved = store.save(&id, &mut list, &back.mark).unwrap();
            assert_eq!((saved.inserted, saved.rewritten, saved.hidden), (0, 0, 0));
            mark = saved.mark;
        }
    }
    store
        .append(
            &id,
            &mut [user("stop — how often did I go that way?")],
            &mut mark,
        )
        .unwrap();
    let live = store.resume(&id).unwrap().messages;
    assert_eq!(
        std::collections::HashSet::<String>::from_iter(uids(&live)).len(),
        81
    );
    assert_eq!(
        live.last().unwrap().text(),
        "stop — how often did I go that way?"
    );
    let hits = store
        .search(&Query {
            text: "left",
            limit: 100,
            ..Query::default()
        })
        .unwrap();
    assert_eq!(hits.len(), 40);
    assert_clean(&store);
}

// case: 15
// contract: PASS-7, UID-3
#[test]
fn rows_are_not_inserted_again_after_a_compaction() {
    let home = Home::new();
    let store = home.open();
    let (id, before, mark) = filled(&store, turns(60));
    let live = |list: &[Message]| {
        let back = store.resume(&id).unwrap();
        assert_eq!(
            back.messages, list,
            "as many live rows as the list has, and the same"
        );
        assert_eq!(
            back.session.message_count,
            i64::try_from(list.len()).unwrap()
        );
        for message in &back.messages {
            assert_eq!(
                message.tool_calls().is_empty(),
                message.text() != "",
                "text and calls of one message"
            );
        }
        back.mark
    };
    let mut result = vec![before[0].clone(), summary("s1")];
    result.extend_from_slice(&before[110..]);
    let done = compact(&store, &id, &mark, "p1", &result);
    let mut list = done.messages;
    let mut mark = live(&list);
    for _ in 0..2 {
        let saved = store.save(&id, &mut list, &mark).unwrap();
        assert_eq!(
            (saved.inserted, saved.rewritten, saved.hidden),
            (0, 0, 0),
            "nothing new, no rows"
        );
        mark = live(&list);
    }
    list.extend([user("one more"), assistant("turn")]);
    let saved = store.save(&id, &mut list, &mark).unwrap();
    assert_eq!(saved.inserted, 2);
    mark = live(&list);
    let store2 = home.open();
    assert_eq!(store2.resume(&id).unwrap().messages, list);
    let mut result = vec![summary("s2")];
    result.extend_from_slice(&list[list.len() - 4..]);
    let done = compact(&store2, &id, &mark, "p2", &result);
    let mut list = done.messages;
    let saved = store2.save(&id, &mut list, &done.mark).unwrap();
    assert_eq!((saved.inserted, saved.rewritten), (0, 0));
    live(&list);
    // A repair that changes two rows writes two rows.
    list[1] = list[1].rewritten(assistant("mended").stored()).unwrap();
    list[2] = list[2].rewritten(user("mended too").stored()).unwrap();
    let saved = store2.save(&id, &mut list, &saved.mark).unwrap();
    assert_eq!((saved.inserted, saved.rewritten, saved.hidden), (0, 2, 0));
    live(&list);
    assert_clean(&store2);
}

// case: 15
// contract: PASS-7
#[test]
fn a_commit_that_fails_half_way_leaves_what_was_there() {
    let home = Home::new();
    let (id, before, mark) = filled(&home.open(), turns(60));
    // The file may not grow by more than a page or two: the archive marks fit, the result does not.
    let pages = u32::try_from(home.number("PRAGMA page_count")).unwrap();
    let tight = Store::open(
        &home.file(),
        StoreOptions {
            max_pages: Some(pages + 2),
            ..quick()
        },
    )
    .unwrap();
    let lock = tight
        .begin_pass(&id, &mark, "t", Duration::from_secs(60))
        .unwrap();
    let big = "x".repeat(100_000);
    let error = tight
        .commit_in_place(&lock, "p1", &[summary(&big), before[1].clone()])
        .unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    tight.end_pass(&lock).unwrap();
    drop(tight);

    let store = home.open();
    let back = store.resume(&id).unwrap();
    assert_eq!(back.messages, before);
    assert_eq!(back.session.last_pass_id, None);
    assert_eq!(
        home.number("SELECT count(*) FROM messages WHERE compacted = 1"),
        0
    );
    let mut list = before.clone();
    let saved = store.save(&id, &mut list, &back.mark).unwrap();
    assert_eq!((saved.inserted, saved.rewritten, saved.hidden), (0, 0, 0));
    assert_clean(&store);
}

// case: 17
#[test]
fn undo_goes_over_a_compaction() {
    let home = Home::new();
    let store = home.open();
    let (id, before, mark) = filled(&store, turns(30));
    let mut result = vec![summary("what happened so far")];
    result.extend_from_slice(&before[54..]);
    let done = compact(&store, &id, &mark, "p1", &result);
    let mut mark = done.mark;
    let mut later = turns(2);
    store.append(&id, &mut later, &mut mark).unwrap();

    for expected in ["question 1", "question 0"] {
        let undone = store.rewind(&id, 1).unwrap();
        assert_eq!(
            (undone.target.text().as_ref(), undone.passes_undone),
            (expected, 0)
        );
    }
    assert_eq!(store.resume(&id).unwrap().messages, done.messages);
    let third = store.rewind(&id, 1).unwrap();
    assert_eq!(third.passes_undone, 1, "the third crosses the border");
    assert_eq!(third.target, before[58]);
    assert_eq!(
        third.messages,
        before[..58],
        "the same messages in the same order"
    );
    assert_eq!(
        std::collections::HashSet::<String>::from_iter(uids(&third.messages)).len(),
        58
    );
    assert!(third.messages.iter().all(|m| !m.has(flags::SUMMARY)));
    assert_eq!(store.resume(&id).unwrap().session.last_pass_id, None);
    // The conversation goes on from there.
    let mut mark = third.mark;
    store.append(&id, &mut [user("again")], &mut mark).unwrap();
    assert_clean(&store);

    // Right after a compaction: the summary is never what is undone.
    let (id, before, mark) = filled(&store, turns(10));
    compact(
        &store,
        &id,
        &mark,
        "p",
        &[summary("all of it"), before[19].clone()],
    );
    let undone = store.rewind(&id, 1).unwrap();
    assert_eq!(
        (undone.target, undone.messages),
        (before[18].clone(), before[..18].to_vec())
    );
    let error = store.rewind(&id, 10).unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::NothingToRewind {
                available: 9,
                asked: 10,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(
        store.resume(&id).unwrap().messages,
        before[..18],
        "a refused undo undoes nothing"
    );
}

/// Real conversations: what goes in comes out.
// case: 1, 3, 12, 62
#[test]
fn real_conversations_come_back_byte_for_byte() {
    let home = Home::new();
    let store = home.open();
    for file in inputs() {
        let read = match format::read(&std::fs::read(&file).unwrap()) {
            Ok(read) => read,
            Err(error) => {
                println!("{}: {error}", file.display());
                continue;
            }
        };
        for conversation in read.conversations {
            let (id, written, mark) = filled(&store, conversation.messages.clone());
            let back = store.resume(&id).unwrap().messages;
            assert_eq!(back, written, "{}", file.display());
            for (before, after) in conversation.messages.iter().zip(&back) {
                assert_eq!(before.stored(), after.stored(), "{}", file.display());
                assert_eq!(before.original(), after.original());
            }
            let done = compact(&store, &id, &mark, "p", &written);
            assert_eq!(done.messages, written);
        }
    }
    assert_clean(&store);
}

// case: 1
#[test]
fn call_and_result_stay_together_over_save_and_reload() {
    let home = Home::new();
    let store = home.open();
    let mut list = vec![said("system", "sys")];
    for n in 0..40 {
        let id = format!("c{n}");
        list.extend([calls(&[&id]), result(&id, &"x".repeat(4096))]);
    }
    list.extend([user("go on"), assistant("ok"), user("now edit a.rs")]);
    for tail in 1..=20usize {
        let (id, list, mark) = filled(&store, list.iter().map(|m| message(m.stored())).collect());
        // A valid cut: it never begins with a result.
        let mut at = list.len() - tail;
        while list[at].tool_call_id().is_some() {
            at -= 1;
        }
        let mut result = list[..3].to_vec();
        result.push(summary("## Summary\nread 40 files"));
        result.extend_from_slice(&list[at..]);
        let done = compact(&store, &id, &mark, "p", &result);
        for live in [done.messages, home.open().resume(&id).unwrap().messages] {
            for (at, message) in live.iter().enumerate() {
                if let Some(call) = message.tool_call_id() {
                    let caller = &live[at - 1];
                    assert_eq!(caller.tool_calls()[0].id.as_ref(), call);
                    assert_eq!(
                        message.identity().tool_call_uid.as_deref(),
                        caller.identity().tool_call_uids.get(call).unwrap().nth(0)
                    );
                }
            }
        }
    }
}

// case: 3
// contract: UID-5, UID-16
#[test]
fn the_carrier_of_a_joined_summary_keeps_its_record_over_a_reload() {
    let home = Home::new();
    let store = home.open();
    let (id, before, mark) = filled(&store, turns(4));
    // Where neither role fits, the summary is joined to its neighbour; the carrier's own text comes first.
    let mut identity = before[4].identity().clone();
    identity.absorb(&hermes_message::Identity::of_uid("the summary's uid"));
    let carrier = user("question 2\n\nsummary of the rest").replaced_identity(identity);
    let done = compact(
        &store,
        &id,
        &mark,
        "p",
        &[
            before[0].clone(),
            before[1].clone(),
            carrier.clone(),
            before[7].clone(),
        ],
    );
    assert_eq!(done.messages[2], carrier);
    let again = compact(&store, &id, &done.mark, "p2", &done.messages);
    let back = home.open().resume(&id).unwrap().messages;
    assert_eq!(back, again.messages);
    assert_eq!(back[2].identity().absorbed, ["the summary's uid".into()]);
    assert_eq!(uid(&back[2]), uid(&before[4]));
}

// case: 62
#[test]
fn half_characters_and_bad_bytes_are_kept_and_mended_the_same_way_each_time() {
    let home = Home::new();
    let store = home.open();
    let inputs: Vec<&[u8]> = vec![
        br#"{"role":"tool","content":"a\ud83d b","tool_call_id":"t"}"#,
        br#"{"role":"user","content":"\udc97"}"#,
        br#"{"role":"user","content":"\ud83c\udf78"}"#,
        br#"{"role":"assistant","content":"","tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{\"q\":\"\\ud83d\"}"}}]}"#,
        br#"{"role":"user","content":"k","\ud83d":1}"#,
        br#"{"role":"assistant","content":"x","reasoning":"half \ud83d"}"#,
        b"{\"role\":\"user\",\"content\":\"raw \x97 byte\"}",
        br#"{"role":"user","content":"nul \u0000 and \ufffe"}"#,
    ];
    let list: Vec<Message> = inputs
        .iter()
        .map(|raw| Message::parse_bytes(raw).unwrap())
        .collect();
    let (id, list, _) = filled(&store, list);
    let back = home.open().resume(&id).unwrap().messages;
    assert_eq!(back, list);
    for (message, original) in back.iter().zip(&list) {
        assert_eq!(
            message.original(),
            original.original(),
            "the bytes that came in are not lost"
        );
        assert_eq!(message.version(), original.version());
    }
    assert_eq!(back[2].text(), "\u{1F378}");
    // They survive an export, and a search does not stumble.
    let line = store.export(&id).unwrap();
    let other = Home::new();
    let copy = other.open();
    copy.import(line.as_bytes(), &mut |_, _, _| {}).unwrap();
    assert_eq!(copy.resume(&id).unwrap().messages, list);
    assert_eq!(copy.export(&id).unwrap(), line);
    assert_eq!(
        store
            .search(&Query {
                text: "byte",
                ..Query::default()
            })
            .unwrap()
            .len(),
        1
    );
    let family = "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}".repeat(50_000);
    let (id, long, _) = filled(&store, vec![user(&family)]);
    assert_eq!(store.resume(&id).unwrap().messages, long);
    assert_clean(&store);
}

// case: 36
#[test]
fn a_lock_is_waited_for_by_time_and_every_turn_is_stored_once() {
    let home = Home::new();
    let store = home.open();
    let id = session(&store);
    let other = home.sql();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waited = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = std::sync::Arc::clone(&waited);
    let options = StoreOptions {
        on_wait: Some(std::sync::Arc::new(
            move |w: &hermes::store::Waiting<'_>| told.lock().unwrap().push(w.doing),
        )),
        ..quick()
    };
    let file = home.file();
    let writer = std::thread::spawn({
        let (id, options) = (id.clone(), options.clone());
        move || {
            // While it starts, and while it saves a turn.
            let store = Store::open(&file, options).unwrap();
            let mut mark = Mark::default();
            store
                .append(&id, &mut [user("during the lock")], &mut mark)
                .unwrap();
        }
    });
    std::thread::sleep(Duration::from_millis(2600));
    assert!(!writer.is_finished(), "it waits");
    other.execute_batch("COMMIT").unwrap();
    writer.join().unwrap();
    assert_eq!(
        texts(&store.resume(&id).unwrap().messages),
        ["during the lock"]
    );
    assert!(
        waited.lock().unwrap().contains(&"save a turn"),
        "and says what for: {waited:?}"
    );

    // A lock that does not end becomes an error in words, and the conversation can go on.
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let impatient = Store::open(
        &home.file(),
        StoreOptions {
            busy_wait: Duration::from_millis(300),
            ..quick()
        },
    )
    .unwrap();
    let start = Instant::now();
    let mut turn = vec![user("unsaved")];
    let mut mark = store.resume(&id).unwrap().mark;
    let before = mark.clone();
    let error = impatient.append(&id, &mut turn, &mut mark).unwrap_err();
    assert!(
        matches!(error, StoreError::Busy { .. }) && error.is_temporary(),
        "{error}"
    );
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert!(
        turn[0].identity().uid.is_none(),
        "nothing was minted for a row that is not there"
    );
    assert_eq!(mark, before);
    other.execute_batch("COMMIT").unwrap();
    impatient.append(&id, &mut turn, &mut mark).unwrap();
    assert_eq!(
        texts(&store.resume(&id).unwrap().messages),
        ["during the lock", "unsaved"]
    );
    assert_clean(&store);
}
