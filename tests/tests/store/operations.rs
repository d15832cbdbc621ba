//! Lists, prefixes, branches, deletion, check and repair.

use hermes::store::{Mark, NewSession, Severity, StoreError};

use crate::support::*;

#[test]
fn sessions_are_found_by_prefix_and_listed_by_their_last_use() {
    let home = Home::new();
    let store = home.open();
    for id in ["20260101_a", "20260101_b", "2025_x"] {
        store
            .create_session(&NewSession {
                id: Some(id),
                source: "cli",
                ..NewSession::default()
            })
            .unwrap();
    }
    store
        .append(
            "2025_x",
            &mut [user("  the   first\nquestion ")],
            &mut Mark::default(),
        )
        .unwrap();
    assert_eq!(store.find_session("2025").unwrap(), "2025_x");
    assert_eq!(store.find_session("20260101_a").unwrap(), "20260101_a");
    assert!(
        matches!(store.find_session("20260101"), Err(StoreError::Ambiguous { matches, .. }) if matches.len() == 2)
    );
    assert!(matches!(
        store.find_session("nope"),
        Err(StoreError::NoSession { .. })
    ));
    assert!(
        matches!(
            store.find_session("2025%"),
            Err(StoreError::NoSession { .. })
        ),
        "no wildcards"
    );
    let list = store.sessions(0).unwrap();
    assert_eq!(list[0].id, "2025_x");
    assert_eq!(list[0].preview.as_deref(), Some("the first question"));
    assert_eq!(store.last_session().unwrap().as_deref(), Some("2025_x"));
    assert_eq!(store.sessions(2).unwrap().len(), 2);
    let taken = store.create_session(&NewSession {
        id: Some("2025_x"),
        ..NewSession::default()
    });
    assert!(matches!(taken, Err(StoreError::SessionExists { .. })));
    assert!(
        store
            .create_session(&NewSession {
                id: Some("a\nb"),
                ..NewSession::default()
            })
            .is_err()
    );
    store.end_session("2025_x", "first").unwrap();
    store.end_session("2025_x", "second").unwrap();
    assert_eq!(
        store.session("2025_x").unwrap().end_reason.as_deref(),
        Some("first")
    );
    store.reopen_session("2025_x").unwrap();
    assert_eq!(store.session("2025_x").unwrap().ended_at, None);
    assert!(store.end_session("nobody", "x").is_err());
}

// contract: UID-3
#[test]
fn a_branch_goes_its_own_way() {
    let home = Home::new();
    let store = home.open();
    let (id, list, _) = filled(&store, turns(2));
    store.set_title(&id, Some("Plan")).unwrap();
    let branch = store.branch(&id, &NewSession::default()).unwrap();
    let child = branch.session.id.clone();
    assert_eq!(
        (
            branch.session.parent.as_deref(),
            branch.session.title.as_deref()
        ),
        (Some(id.as_str()), Some("Plan #2"))
    );
    let config: serde_json::Value =
        serde_json::from_str(&branch.session.model_config.unwrap()).unwrap();
    assert_eq!(config["_branched_from"], id.as_str());
    let mut mark = branch.mark;
    store
        .append(&child, &mut [user("only here")], &mut mark)
        .unwrap();
    assert_eq!(
        store.resume(&id).unwrap().messages,
        list,
        "the parent is not continued by its branch"
    );
    assert_eq!(store.resume(&child).unwrap().messages.len(), 5);
    store.rewind(&child, 3).unwrap();
    assert_eq!(store.resume(&id).unwrap().messages, list);
    // Deleting the parent leaves the branch.
    let deleted = store.delete_session(&id).unwrap();
    assert_eq!((deleted.sessions, deleted.messages), (vec![id.clone()], 4));
    assert_eq!(store.session(&child).unwrap().parent, None);
    assert!(matches!(
        store.resume(&id),
        Err(StoreError::NoSession { .. })
    ));
    assert_clean(&store);
}

#[test]
fn a_deleted_session_takes_its_sub_agents_along() {
    let home = Home::new();
    let store = home.open();
    let (id, _, _) = filled(&store, turns(1));
    let config = serde_json::json!({ "_delegate_from": id }).to_string();
    let child = store
        .create_session(&NewSession {
            source: "cli",
            parent: Some(&id),
            model_config: Some(&config),
            ..NewSession::default()
        })
        .unwrap();
    store
        .append(&child, &mut turns(2), &mut Mark::default())
        .unwrap();
    let deleted = store.delete_session(&id).unwrap();
    assert_eq!((deleted.sessions.len(), deleted.messages), (2, 6));
    assert_clean(&store);
}

#[test]
fn a_check_finds_what_is_out_of_step_and_mends_it_after_a_backup() {
    let home = Home::new();
    let store = home.open();
    let (id, list, mark) = filled(&store, turns(6));
    compact(&store, &id, &mark, "p", &list[8..]);
    store.catch_up(std::time::Duration::from_secs(10)).unwrap();
    home.sql()
        .execute_batch(
            "PRAGMA foreign_keys = OFF;
             UPDATE messages SET message_uid = NULL WHERE id = 1;
             UPDATE messages SET absorbed_message_uids = '[\"a\", \"\", 3]' WHERE id = 2;
             UPDATE messages SET absorbed_message_uids = 'rubbish' WHERE id = 3;
             UPDATE messages SET tool_call_uids = '[]' WHERE id = 4;
             UPDATE sessions SET message_count = 77, parent_session_id = 'gone';
             INSERT INTO compression_locks VALUES ('s', 'pid=1:tid=1:agent=1:nonce=1', 1.0, 2.0);
             DELETE FROM messages_fts WHERE rowid = 5;
             INSERT INTO messages_fts(rowid, content) VALUES (9999, 'left over');
             DROP TRIGGER messages_message_uid_insert;
             DROP TRIGGER messages_fts_insert;
             CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN SELECT 1; END;",
        )
        .unwrap();
    let report = store.check(false, &mut |_, _, _| {}).unwrap();
    let found: Vec<&str> = report.findings.iter().map(|f| f.check).collect();
    for check in [
        "uids",
        "folds",
        "call_uids",
        "parents",
        "counts",
        "index_missing",
        "index_left_over",
        "triggers",
        "locks",
    ] {
        assert!(found.contains(&check), "{check} in {found:?}");
    }
    assert!(!report.is_clean() && report.backup.is_none());
    assert!(
        report
            .findings
            .iter()
            .all(|f| f.severity != Severity::Error)
    );

    let report = store.check(true, &mut |_, _, _| {}).unwrap();
    assert!(report.is_clean(), "{:#?}", report.findings);
    let backup = report.backup.unwrap();
    let copy = rusqlite::Connection::open(&backup).unwrap();
    assert_eq!(
        copy.query_row("SELECT message_count FROM sessions", [], |r| r
            .get::<_, i64>(0))
            .unwrap(),
        77
    );
    assert_clean(&store);
    assert!(
        store
            .check(false, &mut |_, _, _| {})
            .unwrap()
            .findings
            .is_empty()
    );
    assert_eq!(home.number("SELECT message_count FROM sessions"), 4);
    assert_eq!(
        home.sql()
            .query_row(
                "SELECT absorbed_message_uids FROM messages WHERE id = 2",
                [],
                |r| r.get::<_, String>(0)
            )
            .unwrap(),
        "[\"a\"]"
    );
}

#[test]
fn another_programs_rewrite_of_a_row_is_what_counts() {
    let home = Home::new();
    let store = home.open();
    let odd = message(r#"{"x":{"keep":true},"role":"user","content":"old words"}"#);
    let (id, list, _) = filled(&store, vec![odd, user("plain")]);
    store.catch_up(std::time::Duration::from_secs(10)).unwrap();
    home.sql()
        .execute_batch("UPDATE messages SET content = 'new ' || id")
        .unwrap();
    let live = store.resume(&id).unwrap().messages;
    assert_eq!(
        live[0].stored().as_ref(),
        r#"{"x":{"keep":true},"role":"user","content":"new 1"}"#
    );
    assert_eq!(live[1].text(), "new 2");
    assert_eq!(uids(&live), uids(&list));
    let hits = store
        .search(&hermes::store::Query {
            text: "new",
            ..Default::default()
        })
        .unwrap();
    assert_eq!(hits.len(), 2);
    assert!(
        store
            .search(&hermes::store::Query {
                text: "old",
                ..Default::default()
            })
            .unwrap()
            .is_empty()
    );
    assert_clean(&store);
}
