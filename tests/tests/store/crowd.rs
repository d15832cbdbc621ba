//! Many processes on one file.

use std::collections::HashSet;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use hermes::store::{Mark, NewSession, Query, Store, StoreOptions};

use crate::support::*;

// case: 36
// contract: UID-1
#[test]
fn eight_processes_open_one_fresh_path_at_once() {
    let home = Home::new();
    let go = home.folder.path().join("go");
    let mut children: Vec<_> = (0..8)
        .map(|n| {
            child("crowd::fresh_child", home.folder.path())
                .env("HERMES_STORE_NAME", format!("w{n}"))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    std::fs::write(&go, "").unwrap();
    // One of them dies somewhere in the middle.
    let mut victim = children.pop().unwrap();
    std::thread::sleep(Duration::from_millis(400));
    victim.kill().unwrap();
    victim.wait().unwrap();
    all_done(children);
    let store = home.open();
    assert_clean(&store);
    let mut all = HashSet::new();
    for n in 0..8 {
        let Ok(back) = store.resume(&format!("w{n}")) else {
            assert_eq!(n, 7, "only the victim may have come to nothing");
            continue;
        };
        assert!(
            back.messages.len() == 100 || (n == 7 && back.messages.len().is_multiple_of(4)),
            "w{n}: {}",
            back.messages.len()
        );
        all.extend(uids(&back.messages));
    }
    assert!(all.len() >= 700);
    assert_eq!(home.number("SELECT count(*) FROM schema_version"), 1);
    assert_eq!(
        home.number("SELECT count(*) FROM pragma_foreign_key_check"),
        0
    );
}

/// The store that a child shares with others, with a session of its own in it.
fn begun(folder: &Path, name: &str) -> Store {
    let store = Store::open(&folder.join("state.db"), StoreOptions::default()).unwrap();
    store
        .create_session(&NewSession {
            id: Some(name),
            source: "cli",
            ..NewSession::default()
        })
        .unwrap();
    store
}

#[test]
#[ignore = "a child of the fresh-path test"]
fn fresh_child() {
    let Some(folder) = child_folder() else { return };
    let name = std::env::var("HERMES_STORE_NAME").unwrap();
    while !folder.join("go").exists() {
        std::hint::spin_loop();
    }
    let store = begun(&folder, &name);
    let mut mark = Mark::default();
    for _ in 0..25 {
        store.append(&name, &mut turns(2), &mut mark).unwrap();
    }
}

#[test]
fn four_writers_and_eight_readers_lose_nothing() {
    crowd(Duration::from_secs(3));
}

#[test]
#[ignore = "takes 30 s; run by hand"]
fn four_writers_and_eight_readers_for_thirty_seconds() {
    crowd(Duration::from_secs(30));
}

/// Any error in a child fails the test: waiting is the store's business, not its callers'.
fn crowd(time: Duration) {
    let home = Home::new();
    home.open();
    let start = |test: &str, name: String| {
        child(test, home.folder.path())
            .env("HERMES_STORE_NAME", name)
            .env("HERMES_STORE_MILLIS", time.as_millis().to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..4)
        .map(|n| start("crowd::writer_child", format!("w{n}")))
        .chain((0..8).map(|n| start("crowd::reader_child", format!("r{n}"))))
        .collect();
    all_done(children);
    let store = home.open();
    let mut rows = 0;
    let mut all = HashSet::new();
    let shared = store.resume("shared").unwrap().messages;
    for n in 0..4 {
        let live = store.resume(&format!("w{n}")).unwrap().messages;
        let count: usize = std::fs::read_to_string(home.folder.path().join(format!("w{n}.count")))
            .unwrap()
            .parse()
            .unwrap();
        let questions: Vec<String> = texts(&live)
            .into_iter()
            .filter(|t| t.starts_with("q "))
            .collect();
        let expected: Vec<String> = (0..count).map(|k| format!("q {k}")).collect();
        assert_eq!(questions, expected, "w{n}: every turn once, in order");
        let own: Vec<String> = texts(&shared)
            .into_iter()
            .filter(|t| t.starts_with(&format!("w{n} ")))
            .collect();
        let expected: Vec<String> = (0..count).map(|k| format!("w{n} {k}")).collect();
        assert_eq!(
            own, expected,
            "the shared session has w{n}'s messages once, in order"
        );
        rows += live.len() + own.len();
        all.extend(uids(&live));
    }
    all.extend(uids(&shared));
    assert_eq!(all.len(), rows, "no uid twice");
    assert_clean(&store);
    println!("{rows} rows from 4 writers beside 8 readers in {time:?}");
}

fn until_over() -> impl Fn() -> bool {
    let time = Duration::from_millis(
        std::env::var("HERMES_STORE_MILLIS")
            .unwrap()
            .parse()
            .unwrap(),
    );
    let start = Instant::now();
    move || start.elapsed() < time
}

#[test]
#[ignore = "a child of the crowd test"]
fn writer_child() {
    let Some(folder) = child_folder() else { return };
    let name = std::env::var("HERMES_STORE_NAME").unwrap();
    let store = begun(&folder, &name);
    // Whoever comes first begins the session that all write to.
    if let Err(error) = store.create_session(&NewSession {
        id: Some("shared"),
        source: "cli",
        ..NewSession::default()
    }) {
        assert_eq!(error.kind(), "session_exists", "{error}");
    }
    let (mut mark, mut shared) = (Mark::default(), Mark::default());
    let goes_on = until_over();
    let mut n = 0;
    while goes_on() {
        let mut turn = vec![
            user(&format!("q {n}")),
            calls(&["c"]),
            result("c", "r"),
            assistant("a"),
        ];
        store.append(&name, &mut turn, &mut mark).unwrap();
        store
            .append("shared", &mut [user(&format!("{name} {n}"))], &mut shared)
            .unwrap();
        n += 1;
        if n % 10 == 0 {
            store.catch_up(Duration::from_millis(20)).unwrap();
        }
    }
    std::fs::write(folder.join(format!("{name}.count")), n.to_string()).unwrap();
}

#[test]
#[ignore = "a child of the crowd test"]
fn reader_child() {
    let Some(folder) = child_folder() else { return };
    let store = Store::open(&folder.join("state.db"), StoreOptions::default()).unwrap();
    let goes_on = until_over();
    let mut before = 0;
    while goes_on() {
        let sessions = store.sessions(10).unwrap();
        for session in &sessions {
            let back = store.resume(&session.id).unwrap();
            if back.session.id == "w0" {
                assert!(back.messages.len() >= before, "a message went away");
                assert!(
                    back.messages.len().is_multiple_of(4),
                    "half a turn was seen"
                );
                before = back.messages.len();
            }
        }
        store
            .search(&Query {
                text: "shared",
                ..Query::default()
            })
            .unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
}
