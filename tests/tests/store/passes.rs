//! The lock of a pass, its commit, and what arrives meanwhile.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use hermes::store::{Mark, NewSession, Query, Refreshed, Store, StoreError, StoreOptions};

use crate::support::*;

const LEASE: Duration = Duration::from_secs(60);

// contract: PASS-5
#[test]
fn one_session_has_one_pass_and_two_sessions_have_two() {
    let home = Home::new();
    let store = home.open();
    let (first, list, mark) = filled(&store, turns(3));
    let (second, _, second_mark) = filled(&store, turns(3));
    let lock = store.begin_pass(&first, &mark, "a", LEASE).unwrap();
    // Another handle stands for another process: the lock is in the file.
    let other = home.open();
    let error = other.begin_pass(&first, &mark, "b", LEASE).unwrap_err();
    assert!(
        matches!(&error, StoreError::PassRunning { holder, .. } if holder == &lock.holder),
        "{error}"
    );
    assert!(
        lock.holder
            .starts_with(&format!("pid={}:tid=", std::process::id()))
            && lock.holder.contains("agent=a:")
    );
    assert_eq!(
        other.pass_holder(&first).unwrap().as_ref(),
        Some(&lock.holder)
    );
    let beside = other.begin_pass(&second, &second_mark, "b", LEASE).unwrap();
    store.commit_in_place(&lock, "p1", &list[4..]).unwrap();
    other
        .commit_in_place(&beside, "p2", &[summary("s")])
        .unwrap();
    store.end_pass(&lock).unwrap();
    let mark = store.resume(&first).unwrap().mark;
    other.begin_pass(&first, &mark, "b", LEASE).unwrap();
}

fn at(seconds: u64) -> (StoreOptions, Arc<Mutex<SystemTime>>) {
    let now = Arc::new(Mutex::new(
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
    ));
    let clock = Arc::clone(&now);
    (
        StoreOptions {
            clock: Arc::new(move || *clock.lock().unwrap()),
            ..quick()
        },
        now,
    )
}

// contract: PASS-5
#[test]
fn a_lease_ends_and_a_late_holder_cannot_commit() {
    let home = Home::new();
    let (options, now) = at(1_800_000_000);
    let store = Store::open(&home.file(), options).unwrap();
    let (id, list, mark) = filled(&store, turns(3));
    let slow = store.begin_pass(&id, &mark, "slow", LEASE).unwrap();
    *now.lock().unwrap() += Duration::from_secs(59);
    assert_eq!(store.refresh_pass(&slow).unwrap(), Refreshed::Held);
    *now.lock().unwrap() += Duration::from_secs(59);
    assert!(matches!(
        store.begin_pass(&id, &mark, "x", LEASE),
        Err(StoreError::PassRunning { .. })
    ));
    *now.lock().unwrap() += Duration::from_secs(2);
    // This process lives, but a lease is a lease.
    let next = store.begin_pass(&id, &mark, "next", LEASE).unwrap();
    assert_eq!(store.refresh_pass(&slow).unwrap(), Refreshed::Lost);
    let error = store
        .commit_in_place(&slow, "late", &[summary("late")])
        .unwrap_err();
    assert!(
        matches!(error, StoreError::PassSuperseded { .. }),
        "{error}"
    );
    store.end_pass(&slow).unwrap();
    assert_eq!(
        store.pass_holder(&id).unwrap(),
        Some(next.holder.clone()),
        "a late release frees nobody else's lock"
    );
    assert_eq!(store.resume(&id).unwrap().messages, list);
    store.commit_in_place(&next, "p", &[summary("s")]).unwrap();
    // Two commits under one lock: the second works on what is not there any more.
    let error = store
        .commit_in_place(&next, "again", &[summary("t")])
        .unwrap_err();
    assert!(
        matches!(error, StoreError::PassSuperseded { .. }),
        "{error}"
    );
}

// contract: PASS-5
#[test]
fn a_dead_holder_is_taken_over_at_once_and_a_foreign_one_after_its_lease() {
    let home = Home::new();
    let (options, now) = at(1_800_000_000);
    let store = Store::open(&home.file(), options).unwrap();
    let (id, _, mark) = filled(&store, turns(3));
    let lock = store.begin_pass(&id, &mark, "a", LEASE).unwrap();
    // The same holder, in a process that does not exist.
    let dead = lock
        .holder
        .replace(&format!("pid={}:", std::process::id()), "pid=4194303:");
    home.sql()
        .execute("UPDATE compression_locks SET holder = ?1", [&dead])
        .unwrap();
    if std::path::Path::new("/proc/self/stat").exists() {
        let taken = store.begin_pass(&id, &mark, "b", LEASE).unwrap();
        store.end_pass(&taken).unwrap();
    }
    // Hermes's own holders do not say enough to be called dead.
    home.sql()
        .execute(
            "INSERT OR REPLACE INTO compression_locks VALUES (?1, 'pid=4194303:tid=1:agent=2:nonce=3', 1800000000.0, 1800000300.0)",
            [&id],
        )
        .unwrap();
    assert!(matches!(
        store.begin_pass(&id, &mark, "c", LEASE),
        Err(StoreError::PassRunning { .. })
    ));
    *now.lock().unwrap() += Duration::from_secs(301);
    store.begin_pass(&id, &mark, "c", LEASE).unwrap();
}

// contract: PASS-5
#[test]
fn a_clock_that_goes_back_blocks_nothing_for_long_and_keeps_the_order() {
    let home = Home::new();
    let (options, now) = at(1_800_000_000);
    let store = Store::open(&home.file(), options).unwrap();
    let (id, mut list, mut mark) = filled(&store, turns(2));
    home.sql()
        .execute("INSERT INTO compression_locks VALUES (?1, 'pid=1:tid=1:agent=2:nonce=3', 1800000000.0, 1800000300.0)", [&id])
        .unwrap();
    *now.lock().unwrap() -= Duration::from_secs(86_400);
    let mut later = vec![user("after the clock went back"), calls(&["k"])];
    store.append(&id, &mut later, &mut mark).unwrap();
    let mut answer = vec![result("k", "r")];
    store.append(&id, &mut answer, &mut mark).unwrap();
    assert!(answer[0].identity().tool_call_uid.is_some());
    list.extend(later);
    list.extend(answer);
    assert_eq!(
        store.resume(&id).unwrap().messages,
        list,
        "in the order of writing, not of the clock"
    );
    // The lock seems to last a day and five minutes: no lease is that long.
    let lock = store.begin_pass(&id, &mark, "b", LEASE).unwrap();
    let done = store.commit_in_place(&lock, "p", &list[4..]).unwrap();
    assert_eq!(done.messages, list[4..]);
    assert_eq!(store.resume(&id).unwrap().messages, list[4..]);
}

// contract: PASS-7, UID-3
#[test]
fn what_arrives_during_a_pass_follows_its_result() {
    for rotate in [false, true] {
        let home = Home::new();
        let store = home.open();
        let (id, list, mark) = filled(&store, turns(4));
        let lock = store.begin_pass(&id, &mark, "t", LEASE).unwrap();
        let other = home.open();
        let mut foreign = vec![user("from elsewhere"), assistant("answered there")];
        let mut other_mark = other.resume(&id).unwrap().mark;
        other.append(&id, &mut foreign, &mut other_mark).unwrap();
        // The caller's own turn-start write does not make it know the other's rows.
        let mut own = vec![user("mine")];
        let mut known = mark.clone();
        assert_eq!(store.append(&id, &mut own, &mut known).unwrap().foreign, 2);

        let result = [summary("s"), list[7].clone()];
        let done = if rotate {
            store
                .commit_rotation(&lock, "p", &NewSession::default(), &result)
                .unwrap()
        } else {
            store.commit_in_place(&lock, "p", &result).unwrap()
        };
        assert_eq!(
            texts(&done.messages),
            ["s", "answer 3", "from elsewhere", "answered there", "mine"]
        );
        assert_eq!(
            uids(&done.messages[2..]),
            uids(&[foreign[0].clone(), foreign[1].clone(), own[0].clone()])
        );
        assert_eq!((done.tail, done.archived), (3, 8));
        assert_eq!(done.session != id, rotate);
        let back = home.open().resume(&id).unwrap();
        assert_eq!(
            (back.session.id.as_str(), &back.messages),
            (done.session.as_str(), &done.messages)
        );
        assert_eq!(back.session.last_pass_id.as_deref(), Some("p"), "PASS-11");
        if rotate {
            let parent = store.session(&id).unwrap();
            assert_eq!(parent.end_reason.as_deref(), Some("compression"));
            assert_eq!(
                store.messages(&id, false).unwrap().len(),
                11,
                "the parent keeps its rows"
            );
            let error = store.begin_pass(&id, &mark, "t", LEASE).unwrap_err();
            assert!(
                matches!(error, StoreError::AlreadyRotated { .. }),
                "{error}"
            );
        }
        assert_clean(&store);
    }
}

// contract: PASS-7
#[test]
fn rows_that_the_caller_never_saw_cannot_be_compacted_away() {
    let home = Home::new();
    let store = home.open();
    let (id, list, mut mark) = filled(&store, turns(2));
    let other = home.open();
    let mut other_mark = other.resume(&id).unwrap().mark;
    other
        .append(&id, &mut [user("unseen")], &mut other_mark)
        .unwrap();
    let mut own = vec![user("own")];
    store.append(&id, &mut own, &mut mark).unwrap();
    assert_eq!(store.messages_since(&id, &mark).unwrap().len(), 1);
    // Neither a save of the caller's list nor its pass touches the other's row.
    let mut mine = list.clone();
    mine.extend(own.clone());
    let saved = store.save(&id, &mut mine, &mark).unwrap();
    assert_eq!(saved.hidden, 0);
    let done = compact(
        &store,
        &id,
        &saved.mark,
        "p",
        &[summary("s"), own[0].clone()],
    );
    assert_eq!(texts(&done.messages), ["s", "own", "unseen"]);
    assert_clean(&store);
}

// contract: PASS-7
#[test]
fn originals_stay_readable_and_searchable() {
    let home = Home::new();
    let store = home.open();
    let (id, list, mark) = filled(
        &store,
        vec![
            user("the password is xyzzy"),
            assistant("noted"),
            user("next"),
        ],
    );
    let done = compact(
        &store,
        &id,
        &mark,
        "p1",
        &[summary("they told me a secret"), list[2].clone()],
    );
    compact(
        &store,
        &id,
        &done.mark,
        "p2",
        &[summary("talked"), done.messages[1].clone()],
    );
    let archived: Vec<_> = store
        .messages(&id, true)
        .unwrap()
        .into_iter()
        .filter(|row| row.compacted)
        .collect();
    assert_eq!(
        texts(
            &archived
                .iter()
                .map(|r| r.message.clone())
                .collect::<Vec<_>>()
        ),
        [
            "the password is xyzzy",
            "noted",
            "next",
            "they told me a secret",
            "next"
        ]
    );
    let hits = store
        .search(&Query {
            text: "xyzzy",
            ..Query::default()
        })
        .unwrap();
    assert_eq!((hits.len(), hits[0].archived), (1, true));
    // The three rows of one message are one hit, and its newest row stands for it.
    let hits = store
        .search(&Query {
            text: "next",
            ..Query::default()
        })
        .unwrap();
    assert_eq!((hits.len(), hits[0].archived), (1, false));
}

// contract: PASS-7
#[test]
fn a_rotation_takes_the_title_along_and_can_be_undone() {
    let home = Home::new();
    let store = home.open();
    let (id, list, mark) = filled(&store, turns(5));
    store.set_title(&id, Some("Work")).unwrap();
    let lock = store.begin_pass(&id, &mark, "t", LEASE).unwrap();
    let done = store
        .commit_rotation(
            &lock,
            "p",
            &NewSession::default(),
            &[summary("s"), list[9].clone()],
        )
        .unwrap();
    assert_eq!(
        store.session(&done.session).unwrap().title.as_deref(),
        Some("Work #2")
    );
    let mut mark = done.mark;
    store
        .append(&done.session, &mut turns(1), &mut mark)
        .unwrap();
    let undone = store.rewind(&id, 2).unwrap();
    assert_eq!(
        (undone.session.as_str(), undone.passes_undone),
        (id.as_str(), 1)
    );
    assert_eq!(undone.messages, list[..8]);
    let back = store.resume(&id).unwrap();
    assert_eq!((back.session.id, back.session.end_reason), (id, None));
    assert_clean(&store);
}

#[test]
fn a_pass_needs_the_transcript_that_is_there_and_a_result() {
    let home = Home::new();
    let store = home.open();
    let (id, list, mark) = filled(&store, turns(2));
    let lock = store.begin_pass(&id, &mark, "t", LEASE).unwrap();
    assert!(matches!(
        store.commit_in_place(&lock, "p", &[]),
        Err(StoreError::Invalid(_))
    ));
    store.end_pass(&lock).unwrap();
    store.rewind(&id, 1).unwrap();
    let error = store.begin_pass(&id, &mark, "t", LEASE).unwrap_err();
    assert!(matches!(error, StoreError::OutOfDate { .. }), "{error}");
    let mut old = list.clone();
    let error = store.save(&id, &mut old, &mark).unwrap_err();
    assert!(matches!(error, StoreError::OutOfDate { .. }), "{error}");
    assert!(matches!(
        store.begin_pass("nobody", &Mark::default(), "t", LEASE),
        Err(StoreError::NoSession { .. })
    ));
}
