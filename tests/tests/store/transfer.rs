//! Export and import.

use std::time::Duration;

use hermes::store::{NewSession, StoreError};
use hermes_message::Message;

use crate::support::*;

fn awkward() -> Vec<Message> {
    let lone = Message::parse_bytes(br#"{"role":"tool","tool_call_id":"k","content":"a\ud83d b"}"#)
        .unwrap();
    vec![
        message(
            r#"{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}"#,
        ),
        message(
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"k","type":"function","function":{"name":"f","arguments":"{\"a\":1.0}"}}]}"#,
        ),
        lone,
        message(
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"k","type":"function","function":{"name":"f","arguments":"not json"}}],"unknown":{"z":1,"a":[2.50,1e400]}}"#,
        ),
        result("k", &"big ".repeat(262_144)),
        user(
            "line\u{2028}separator \u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467} nul\u{0} fffe\u{fffe}",
        ),
        assistant(""),
        message(
            r#"{ "content" : "spaced" , "role" : "assistant", "reasoning":"why", "reasoning_details":[{"x":1}] }"#,
        ),
    ]
}

// case: 19
// contract: UID-3
#[test]
fn an_export_comes_back_byte_for_byte() {
    let home = Home::new();
    let store = home.open();
    let (parent, list, mark) = filled(&store, awkward());
    store.set_title(&parent, Some("Awkward")).unwrap();
    // A fold, an archive and a rotation: absorbed uids, compacted rows, two linked sessions.
    let mut edited = list.clone();
    let mut identity = list[6].identity().clone();
    identity.absorb(list[7].identity());
    edited[6] = list[6]
        .rewritten(assistant("folded").stored())
        .unwrap()
        .replaced_identity(identity);
    edited.remove(7);
    let saved = store.save(&parent, &mut edited, &mark).unwrap();
    let mut kept = edited[..1].to_vec();
    kept.push(summary("s"));
    kept.extend_from_slice(&edited[3..]);
    let done = compact(&store, &parent, &saved.mark, "p1", &kept);
    let lock = store
        .begin_pass(&parent, &done.mark, "t", Duration::from_secs(60))
        .unwrap();
    let rotated = store
        .commit_rotation(&lock, "p2", &NewSession::default(), &done.messages)
        .unwrap();
    store.end_pass(&lock).unwrap();

    let sessions = store.lineage(&parent).unwrap();
    assert_eq!(sessions, [parent.clone(), rotated.session.clone()]);
    let lines: Vec<String> = sessions
        .iter()
        .map(|id| store.export(id).unwrap())
        .collect();
    let text = lines.join("\n") + "\n";
    let nothing = &mut |_: &'static str, _, _| {};

    for (name, file) in [
        ("as it is", text.clone()),
        (
            "children first",
            [lines[1].as_str(), &lines[0], ""].join("\n"),
        ),
        ("CRLF", text.replace('\n', "\r\n")),
        ("BOM", format!("\u{feff}{text}")),
    ] {
        let other = Home::new();
        let copy = other.open();
        let report = copy.import(file.as_bytes(), nothing).unwrap();
        assert_eq!(report.imported.len(), 2, "{name}");
        let again: Vec<String> = sessions.iter().map(|id| copy.export(id).unwrap()).collect();
        assert_eq!(again, lines, "{name}");
        assert_eq!(
            copy.resume(&parent).unwrap().messages,
            rotated.messages,
            "{name}"
        );
        assert_eq!(
            copy.messages(&parent, true).unwrap().len(),
            store.messages(&parent, true).unwrap().len()
        );
        let twice = copy.import(file.as_bytes(), nothing).unwrap();
        assert!(
            twice.imported.is_empty() && twice.skipped.len() == 2,
            "{name}"
        );
        // The imported passes can be undone like the original ones.
        let there = copy.rewind(&rotated.session, 1).unwrap();
        assert_eq!(there.session, parent, "{name}");
        assert_clean(&copy);
    }

    // Cut in the last line: nothing is imported, and the line is named.
    let other = Home::new();
    let copy = other.open();
    for cut in [
        text.len() - 2,
        text.len() - 400,
        lines[0].len() + 5,
        lines[0].len() / 2,
    ] {
        let error = copy.import(&text.as_bytes()[..cut], nothing).unwrap_err();
        let line = if cut > lines[0].len() { 2 } else { 1 };
        assert!(
            matches!(error, StoreError::Import { line: l, .. } if l == line),
            "{error} at {cut}"
        );
        assert!(copy.sessions(0).unwrap().is_empty());
    }
}

// case: 19
#[test]
fn foreign_files_get_ids_and_are_imported_once() {
    let home = Home::new();
    let store = home.open();
    let nothing = &mut |_: &'static str, _, _| {};
    // Hermes 0.19 exports a session with the rows of its messages, among them ids that mean nothing here.
    let hermes = r#"{"id":"20250101_000000_abc","source":"cli","started_at":1735689600.5,"title":null,"messages":[{"id":7,"session_id":"20250101_000000_abc","role":"user","content":"hi","tool_calls":null,"timestamp":1735689601.25},{"id":8,"session_id":"x","role":"assistant","content":[{"type":"text","text":"漢"}],"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}],"timestamp":1735689602,"reasoning":"r"}]}"#;
    let report = store.import(hermes.as_bytes(), nothing).unwrap();
    assert_eq!((report.imported.len(), report.messages), (1, 2));
    let rows = store.messages("20250101_000000_abc", false).unwrap();
    assert_eq!(rows[0].timestamp, 1_735_689_601.25);
    assert_eq!(
        rows[1].message.stored().as_ref(),
        r#"{"role":"assistant","content":[{"type":"text","text":"漢"}],"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}],"reasoning":"r"}"#
    );
    assert!(rows.iter().all(|row| is_uid(&uid(&row.message))));

    let chat = r#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"r"}]}"#;
    let report = store.import(chat.as_bytes(), nothing).unwrap();
    let id = report.imported[0].clone();
    let live = store.resume(&id).unwrap().messages;
    assert!(live.iter().all(|m| is_uid(&uid(m))));
    assert_eq!(
        live[2].identity().tool_call_uid.as_deref(),
        live[1].identity().tool_call_uids.get("a").unwrap().nth(0)
    );
    assert!(
        store
            .import(chat.as_bytes(), nothing)
            .unwrap()
            .imported
            .is_empty()
    );
    // Rubbish is refused with its line.
    let error = store
        .import(
            b"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":",
            nothing,
        )
        .unwrap_err();
    assert!(
        matches!(error, StoreError::Import { line: 2, .. }),
        "{error}"
    );
    assert_clean(&store);
}

// case: 62
#[test]
fn a_half_character_in_a_session_file_costs_nothing_but_itself() {
    let home = Home::new();
    let store = home.open();
    let file = br#"{"id":"s1","source":"cli","started_at":1.0,"title":"t\ud83d","messages":[{"role":"tool","tool_call_id":"c","content":"a long output \ud83d and the rest","timestamp":"1700000000.5"},{"role":"user","content":[{"type":"text","text":"look \udc97 here"},{"type":"image_url","image_url":{"url":"data:x"}}]}]}"#;
    store.import(file, &mut |_, _, _| {}).unwrap();
    let rows = store.messages("s1", false).unwrap();
    assert_eq!(
        rows[0].message.content().text(),
        "a long output \u{fffd} and the rest"
    );
    assert_eq!(rows[0].timestamp, 1_700_000_000.5);
    assert!(
        rows[1].message.stored().contains("image_url")
            && rows[1].message.stored().contains("look \u{fffd} here"),
        "{}",
        rows[1].message.stored()
    );
    let title = store.session("s1").unwrap().title;
    assert_eq!(title.as_deref(), Some("t\u{fffd}"));
}

// case: 19
#[test]
fn a_bad_byte_in_the_first_line_of_a_session_file_is_refused_like_any_other() {
    let home = Home::new();
    let store = home.open();
    let mut file =
        br#"{"id":"s1","started_at":1.0,"messages":[{"role":"user","content":"caf"#.to_vec();
    file.extend_from_slice(b"\xe9\"}]}\n{\"id\":\"s2\",\"started_at\":1.0,\"messages\":[]}\n");
    let error = store.import(&file, &mut |_, _, _| {}).unwrap_err();
    assert!(
        matches!(error, StoreError::Import { line: 1, .. }),
        "{error}"
    );
    assert!(store.sessions(0).unwrap().is_empty());
}

#[test]
fn children_may_stand_before_their_parents() {
    let home = Home::new();
    let store = home.open();
    let lines: Vec<String> = (0..50)
        .rev()
        .map(|n| {
            format!(
                r#"{{"id":"s{n}","parent_session_id":"s{}","started_at":1.0,"messages":[]}}"#,
                n - 1
            )
        })
        .collect();
    let report = store
        .import(lines.join("\n").as_bytes(), &mut |_, _, _| {})
        .unwrap();
    assert_eq!(report.imported.len(), 50);
    assert_eq!(report.detached, ["s0"], "its parent is in no file");
    let ring = r#"{"id":"a","parent_session_id":"b","started_at":1.0,"messages":[]}
{"id":"b","parent_session_id":"a","started_at":1.0,"messages":[]}"#;
    let report = store.import(ring.as_bytes(), &mut |_, _, _| {}).unwrap();
    assert_eq!((report.imported.len(), report.detached.len()), (2, 1));
}
