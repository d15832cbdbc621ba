//! The session store through its public surface: rows, identities, upgrade.

use std::path::Path;

use hermes::store::{Durability, Mark, NewSession, Store, StoreOptions};
use hermes_message::Message;

fn options() -> StoreOptions {
    StoreOptions {
        durability: Durability::Off,
        ..StoreOptions::default()
    }
}

fn open(folder: &Path) -> Store {
    Store::open(&folder.join("state.db"), options()).unwrap()
}

fn message(json: &str) -> Message {
    Message::parse(json).unwrap()
}

#[test]
fn a_turn_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let id = store
        .create_session(&NewSession {
            source: "cli",
            ..NewSession::default()
        })
        .unwrap();
    let mut turn = vec![
        message(r#"{"role":"user","content":"hi"}"#),
        message(
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
        ),
        message(r#"{"role":"tool","content":"ok","tool_call_id":"c"}"#),
    ];
    let mut mark = Mark::default();
    store.append(&id, &mut turn, &mut mark).unwrap();
    let back = store.resume(&id).unwrap();
    assert_eq!(back.messages, turn);
    assert!(
        turn.iter()
            .all(|m| m.identity().uid.as_ref().unwrap().len() == 32)
    );
    assert_eq!(
        turn[2].identity().tool_call_uid.as_deref(),
        turn[1].identity().tool_call_uids.get("c").unwrap().nth(0)
    );
    let report = store.check(false, &mut |_, _, _| {}).unwrap();
    assert!(report.is_clean(), "{report:?}");
    let lock = store
        .begin_pass(&id, &back.mark, "test", std::time::Duration::from_secs(10))
        .unwrap();
    let done = store
        .commit_in_place(
            &lock,
            "p1",
            &[
                message(r#"{"role":"user","content":"summary","_compressed_summary":true}"#),
                turn[2].clone(),
            ],
        )
        .unwrap();
    println!("{done:?}");
    store.end_pass(&lock).unwrap();
    let undone = store.rewind(&id, 1).unwrap();
    assert_eq!(undone.passes_undone, 1);
    println!("{undone:?}");
    println!("{}", store.export(&id).unwrap());
    let hits = store
        .search(&hermes::store::Query {
            text: "hi",
            hidden: true,
            ..Default::default()
        })
        .unwrap();
    println!("{hits:?}");
    let report = store.check(false, &mut |_, _, _| {}).unwrap();
    assert!(report.is_clean(), "{report:?}");
}
