//! `hermes sessions`, as people and scripts use it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use hermes::store::{Mark, NewSession, Store, StoreOptions};
use hermes_message::Message;
use hermes_tests::built;
use serde_json::Value;

fn hermes(home: &Path, args: &[&str]) -> Output {
    Command::new(built().program("hermes"))
        .arg("sessions")
        .args(args)
        .env("HERMES_HOME", home)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn ok(home: &Path, args: &[&str]) -> String {
    let out = hermes(home, args);
    assert!(
        out.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8(out.stdout).unwrap()
}

fn json(home: &Path, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&ok(home, &args)).unwrap()
}

fn failure(home: &Path, args: &[&str], code: i32) -> (Value, String) {
    let out = hermes(home, args);
    assert_eq!(out.status.code(), Some(code), "{args:?}");
    (
        serde_json::from_slice(&out.stdout).unwrap_or_default(),
        String::from_utf8(out.stderr).unwrap(),
    )
}

/// A home with one talk of three turns, the second of which calls a tool.
fn home() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("state.db"), StoreOptions::default()).unwrap();
    let id = store
        .create_session(&NewSession {
            id: Some("20260102_030405_abcdef"),
            source: "cli",
            title: Some("Weather"),
            ..NewSession::default()
        })
        .unwrap();
    let mut turns: Vec<Message> = [
        r#"{"role":"user","content":"hello"}"#,
        r#"{"role":"assistant","content":"hi there"}"#,
        r#"{"role":"user","content":"weather in 東京?"}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"weather","arguments":"{\"city\":\"東京\"}"}}]}"#,
        r#"{"role":"tool","content":"sunny\u001b[31m","tool_call_id":"c"}"#,
        r#"{"role":"assistant","content":"sunny"}"#,
        r#"{"role":"user","content":"thanks"}"#,
    ]
    .map(|text| Message::parse(text).unwrap())
    .to_vec();
    store.append(&id, &mut turns, &mut Mark::default()).unwrap();
    folder
}

#[test]
fn an_empty_home_has_no_sessions_and_stays_empty() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(json(folder.path(), &["list"]), serde_json::json!([]));
    assert_eq!(json(folder.path(), &["search", "x"]), serde_json::json!([]));
    ok(folder.path(), &["check"]);
    let (error, said) = failure(folder.path(), &["show", "x", "--json"], 1);
    assert_eq!(error["error"]["kind"], "no_session");
    assert!(
        said.starts_with("error: ") && said.lines().count() == 1,
        "{said}"
    );
    assert!(
        !folder.path().join("state.db").exists(),
        "a look makes no store"
    );
}

#[test]
fn list_show_and_search_tell_what_is_there() {
    let home = home();
    let home = home.path();
    let list = json(home, &["list"]);
    assert_eq!(list[0]["id"], "20260102_030405_abcdef");
    assert_eq!(
        (&list[0]["title"], &list[0]["message_count"]),
        (&"Weather".into(), &7.into())
    );
    assert!(ok(home, &["list"]).contains("Weather"));

    let show = json(home, &["show", "20260102"]);
    let messages = show["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 7);
    assert_eq!(messages[0]["message"]["content"], "hello");
    assert_eq!(
        messages[4]["message"]["_tool_call_uid"],
        messages[3]["message"]["_tool_call_uids"]["c"]
    );
    let text = ok(home, &["show", "2026"]);
    assert!(text.contains("→ weather({\"city\":\"東京\"})") && text.contains("hi there"));
    assert!(!text.contains('\u{1b}'), "nothing steers the terminal");

    let hits = json(home, &["search", "東京"]);
    assert_eq!(hits.as_array().unwrap().len(), 2);
    assert_eq!(hits[0]["session"], "20260102_030405_abcdef");
    assert_eq!(
        json(home, &["search", "sunny", "--rank", "-n", "1"])
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(ok(home, &["search", "thanks"]).contains("thanks"));
    assert!(ok(home, &["search", "nowhere"]).contains("Nothing found"));
}

// case: 19
#[test]
fn export_and_import_are_each_others_inverse() {
    let from = home();
    let line = ok(from.path(), &["export", "2026"]);
    assert_eq!(line.lines().count(), 1);
    let file = from.path().join("export.jsonl");
    std::fs::write(&file, &line).unwrap();
    let to = tempfile::tempdir().unwrap();
    let file = file.to_str().unwrap();
    let report = json(to.path(), &["import", file]);
    assert_eq!(
        (&report["imported"][0], &report["messages"]),
        (&"20260102_030405_abcdef".into(), &7.into())
    );
    assert_eq!(ok(to.path(), &["export", "2026", "--lineage"]), line);
    let again = json(to.path(), &["import", file]);
    assert!(again["imported"].as_array().unwrap().is_empty());
    assert_eq!(again["skipped"][0]["id"], "20260102_030405_abcdef");
    std::fs::write(file, &line[..line.len() / 2]).unwrap();
    let empty = tempfile::tempdir().unwrap();
    let (error, _) = failure(empty.path(), &["import", file, "--json"], 1);
    assert_eq!(error["error"]["kind"], "import");
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("line 1"),
        "{error}"
    );
    assert_eq!(json(empty.path(), &["list"]), serde_json::json!([]));
}

#[test]
fn branch_rewind_and_delete_change_what_they_say() {
    let home = home();
    let home = home.path();
    let branch = json(home, &["branch", "2026", "--title", "Side"]);
    let child = branch["session_id"].as_str().unwrap();
    assert_eq!(
        (&branch["parent"], &branch["messages"]),
        (&"20260102_030405_abcdef".into(), &7.into())
    );
    let rewound = json(home, &["rewind", child, "2"]);
    assert_eq!(rewound["target"], "weather in 東京?");
    assert_eq!(
        (
            &rewound["removed"],
            &rewound["messages"],
            &rewound["passes_undone"]
        ),
        (&5.into(), &2.into(), &0.into())
    );
    let (error, _) = failure(home, &["rewind", child, "5", "--json"], 1);
    assert_eq!(error["error"]["kind"], "nothing_to_rewind");
    failure(home, &["rewind", child, "0"], 2);
    assert_eq!(
        json(home, &["show", child, "--all"])["messages"]
            .as_array()
            .unwrap()
            .len(),
        7
    );
    let deleted = json(home, &["delete", child]);
    assert_eq!(
        (&deleted["sessions"][0], &deleted["messages"]),
        (&child.into(), &7.into())
    );
    assert_eq!(json(home, &["list"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_check_says_what_is_wrong_and_repairs_it() {
    let folder = home();
    let home = folder.path();
    assert_eq!(json(home, &["check"])["messages"], 7);
    let sql = rusqlite::Connection::open(home.join("state.db")).unwrap();
    sql.execute(
        "UPDATE messages SET absorbed_message_uids = 'rubbish' WHERE id = 1",
        [],
    )
    .unwrap();
    let (report, _) = failure(home, &["check", "--json"], 1);
    assert_eq!(report["findings"][0]["check"], "folds");
    let repaired = json(home, &["check", "--repair"]);
    assert_eq!(repaired["findings"][0]["repaired"], true);
    assert!(Path::new(repaired["backup"].as_str().unwrap()).exists());
    assert!(ok(home, &["check"]).ends_with("sound\n"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let home = home();
    let mut child = Command::new(built().program("hermes"))
        .args(["sessions", "export", "2026"])
        .env("HERMES_HOME", home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert!(
        out.status.success() && out.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
}

#[test]
fn what_is_no_regular_file_is_not_imported() {
    let folder = home();
    let home = folder.path();
    for odd in ["/dev/zero", home.to_str().unwrap()] {
        let (said, _) = failure(home, &["import", odd, "--json"], 1);
        assert_eq!(said["error"]["kind"], "input", "{odd}");
    }
    assert_eq!(json(home, &["list"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_deeply_nested_message_is_sound() {
    let folder = home();
    let home = folder.path();
    let file = home.join("deep.json");
    let (open, close) = ("[".repeat(2000), "]".repeat(2000));
    std::fs::write(
        &file,
        format!(r#"[{{"role":"user","content":"deep","extra":{open}{close}}}]"#),
    )
    .unwrap();
    ok(home, &["import", file.to_str().unwrap()]);
    assert!(ok(home, &["check"]).ends_with("sound\n"));
}

#[test]
fn one_odd_session_hides_no_other() {
    let folder = home();
    let home = folder.path();
    let line = ok(home, &["export", "2026"]);
    let mut odd: serde_json::Map<String, Value> = serde_json::from_str(&line).unwrap();
    for (key, value) in [
        ("id", "odd"),
        ("model_config", "no JSON"),
        ("started_at", "yesterday"),
        ("ended_at", "never"),
        ("title", "Odd"),
    ] {
        odd.insert(key.to_owned(), value.into());
    }
    odd["messages"][0]["timestamp"] = "long ago".into();
    odd["messages"][0]["message_uid"] = "another".into();
    let file = home.join("odd.jsonl");
    std::fs::write(&file, Value::from(odd).to_string()).unwrap();
    ok(home, &["import", file.to_str().unwrap()]);
    assert_eq!(json(home, &["list"]).as_array().unwrap().len(), 2);
    assert_eq!(json(home, &["show", "odd"])["session"]["title"], "Odd");
    assert!(
        !json(home, &["search", "hello"])
            .as_array()
            .unwrap()
            .is_empty()
    );
    ok(home, &["delete", "2026"]);
    ok(home, &["delete", "odd"]);
    assert_eq!(json(home, &["list"]).as_array().unwrap().len(), 0);
}
