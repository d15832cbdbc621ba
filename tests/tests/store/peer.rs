//! The real program writes, we go on, it goes on: nobody loses a row.
//!
//! `tests/peers/` makes a virtual environment with the released package under `target/`. Where there is no
//! Python or no registry the test says so and is skipped.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hermes::store::{Query, Store, StoreOptions};
use serde_json::Value;

use crate::support::*;

fn peers() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("peers")
}

/// The Python of the environment, or why there is none.
fn python() -> Option<PathBuf> {
    let out = Command::new("sh")
        .arg(peers().join("setup.sh"))
        .output()
        .ok()?;
    if !out.status.success() {
        println!(
            "skipped: the real peer cannot be installed: {}",
            String::from_utf8_lossy(&out.stderr).trim()
        );
        return None;
    }
    Some(PathBuf::from(String::from_utf8(out.stdout).ok()?.trim()))
}

fn peer(python: &Path, home: &Home, verb: &str, rest: &[&str]) -> Value {
    let out = Command::new(python)
        .arg(peers().join("peer.py"))
        .arg(verb)
        .arg(home.file())
        .args(rest)
        // Its own folders must not be the user's.
        .env("HERMES_HOME", home.folder.path().join("peer-home"))
        .env("HOME", home.folder.path())
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    serde_json::from_slice(&out.stdout).unwrap()
}

/// A row's columns as both schemas have them: what the first program wrote must still be what it was.
fn old_columns(row: &Value) -> Vec<Value> {
    [
        "id",
        "role",
        "content",
        "tool_call_id",
        "tool_calls",
        "tool_name",
        "timestamp",
        "token_count",
        "finish_reason",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "codex_reasoning_items",
        "platform_message_id",
        "observed",
        "active",
        "compacted",
        "api_content",
    ]
    .map(|key| row[key].clone())
    .to_vec()
}

fn rows(view: &Value, session: &str) -> Vec<Vec<Value>> {
    view[session]["all"]
        .as_array()
        .unwrap()
        .iter()
        .map(old_columns)
        .collect()
}

// contract: UID-2, UID-11
#[test]
fn real_hermes_and_this_host_take_turns_on_one_file() {
    let Some(python) = python() else { return };
    let home = Home::new();
    let created = peer(&python, &home, "create", &[]);
    assert_eq!(home.number("SELECT version FROM schema_version"), 22);

    // Ours opens and upgrades, and sees what the peer sees.
    let store = Store::open(
        &home.file(),
        StoreOptions {
            backfill_budget: Duration::from_secs(10),
            ..quick()
        },
    )
    .unwrap();
    assert_eq!(
        (store.upgraded().from, store.upgraded().changed),
        (22, true)
    );
    assert_eq!(store.sessions(0).unwrap().len(), 3);
    for session in ["talk", "parts", "packed"] {
        let ours = store.resume(session).unwrap();
        let theirs = created[session]["live"].as_array().unwrap();
        assert_eq!(ours.messages.len(), theirs.len());
        for (ours, theirs) in ours.messages.iter().zip(theirs) {
            assert!(is_uid(&uid(ours)));
            let ours: Value = serde_json::from_str(ours.stored()).unwrap();
            let mut theirs = theirs.clone();
            // A fact of the row, not of the message.
            theirs.as_object_mut().unwrap().remove("timestamp");
            assert_eq!(trimmed(ours), trimmed(theirs));
        }
    }
    assert_eq!(
        store.messages("packed", true).unwrap().len(),
        14,
        "what the peer has archived is readable"
    );
    for text in ["東京", "大阪", "雨", "晴れ", "summary", "\"question 3\""] {
        assert!(
            !store
                .search(&Query {
                    text,
                    ..Query::default()
                })
                .unwrap()
                .is_empty(),
            "{text}"
        );
    }
    assert_clean(&store);

    // Ours goes on in each session, with calls, lists and unknown keys.
    let mut written = Vec::new();
    for session in ["talk", "parts", "packed"] {
        let mut mark = store.resume(session).unwrap().mark;
        let mut turn = vec![
            message(r#"{"x":1,"role":"user","content":[{"type":"text","text":"ours 漢字"}]}"#),
            calls(&["o"]),
            result("o", "our result"),
            assistant("our answer"),
        ];
        store.append(session, &mut turn, &mut mark).unwrap();
        written.push((session, turn));
    }
    store.catch_up(Duration::from_secs(10)).unwrap();
    let mark = store.resume("packed").unwrap().mark;
    let live = store.resume("packed").unwrap().messages;
    compact(
        &store,
        "packed",
        &mark,
        "p",
        &[summary("ours"), live[5].clone()],
    );
    drop(store);

    // The peer opens the upgraded file, reads everything, and finds our words.
    let read = peer(&python, &home, "read", &[]);
    for session in ["talk", "parts"] {
        let (before, after) = (rows(&created, session), rows(&read, session));
        assert_eq!(
            after[..before.len()],
            before[..],
            "the peer's own rows are as they were"
        );
        let live = read[session]["live"].as_array().unwrap();
        let ours: Vec<_> = live[live.len() - 4..].to_vec();
        assert_eq!(
            ours[0]["content"],
            serde_json::json!([{"type": "text", "text": "ours 漢字"}])
        );
        assert_eq!(ours[1]["tool_calls"][0]["function"]["name"], "read");
        assert_eq!(
            (&ours[2]["content"], &ours[2]["tool_call_id"]),
            (&"our result".into(), &"o".into())
        );
        assert_eq!(ours[3]["content"], "our answer");
        assert_eq!(read[session]["count"], live.len());
    }
    assert_eq!(read["packed"]["live"].as_array().unwrap().len(), 2);
    assert!(
        !peer(&python, &home, "search", &["result"])
            .as_array()
            .unwrap()
            .is_empty()
    );
    assert!(
        !peer(&python, &home, "search", &["ours"])
            .as_array()
            .unwrap()
            .is_empty()
    );

    // The peer appends, ours sees its rows with ids, and nothing else has changed.
    let appended = peer(&python, &home, "append", &["talk"]);
    assert_eq!(rows(&appended, "talk")[..9], rows(&read, "talk")[..]);
    assert_eq!(rows(&appended, "parts"), rows(&read, "parts"));
    assert!(
        peer(&python, &home, "search", &["peer"])
            .as_array()
            .unwrap()
            .contains(&"talk".into()),
        "its index works"
    );
    let store = home.open();
    assert!(
        !store.upgraded().changed,
        "the peer has not taken the layout back"
    );
    let live = store.resume("talk").unwrap().messages;
    assert_eq!(live.len(), 13);
    assert!(live.iter().all(|m| is_uid(&uid(m))));
    assert_eq!(live[5..9], written[0].1[..], "our messages, byte for byte");
    assert_eq!(live[12].text(), "peer answer");
    assert_eq!(
        std::collections::HashSet::<String>::from_iter(uids(&live)).len(),
        13
    );
    assert_eq!(
        store
            .search(&Query {
                text: "北京",
                ..Query::default()
            })
            .unwrap()
            .len(),
        1
    );
    assert_clean(&store);
}

/// The peer strips blanks around texts when it restores; the rows keep them.
fn trimmed(mut message: Value) -> Value {
    if let Some(text) = message["content"].as_str() {
        message["content"] = text.trim().into();
    }
    message
}

/// The peer's SQLite may be older than ours, and cuts texts with a NUL (all lists) into other trigrams; rows
/// that it indexed must still be deletable, before our index has come by and after it.
#[test]
fn rows_that_the_peer_indexed_can_be_deleted() {
    let Some(python) = python() else { return };
    for caught_up in [false, true] {
        let home = Home::new();
        peer(&python, &home, "create", &[]);
        let store = home.open_as_it_is();
        if caught_up {
            store.backfill(Duration::from_secs(10)).unwrap();
            store.catch_up(Duration::from_secs(10)).unwrap();
        }
        assert_eq!(store.delete_session("parts").unwrap().messages, 3);
        let back = store.resume("talk").unwrap();
        let mut list = back.messages;
        store
            .replace_messages("talk", &mut list, &back.mark)
            .unwrap();
        store.backfill(Duration::from_secs(10)).unwrap();
        store.catch_up(Duration::from_secs(10)).unwrap();
        assert_clean(&store);
        drop(store);
        let read = peer(&python, &home, "read", &[]);
        assert_eq!(read.as_object().unwrap().len(), 2);
    }
}
