//! Tool calls that come without an id.

use hermes::store::{Mark, Store};
use hermes_message::{Message, made_call_id};

use crate::support::*;

/// Two calls without an id, one of them between calls that have one; the same call twice; an empty id.
const NAMELESS: &str = r#"{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"read","arguments":"{\"path\":\"a.rs\"}"}},{"id":"given","type":"function","function":{"name":"read","arguments":"{}"}},{"type":"function","function":{"name":"read","arguments":"{\"path\":\"a.rs\"}"}},{"id":"","type":"function","function":{"name":"列","arguments":"{\"q\":\"é\"}"}}]}"#;

fn call_ids(message: &Message) -> Vec<String> {
    let calls = message.tool_calls();
    calls.iter().map(|call| call.id.to_string()).collect()
}

/// The live messages with the ids and uids of their calls, and the uids of the calls that results answer.
fn named(messages: &[Message]) -> Vec<(Vec<String>, String)> {
    messages
        .iter()
        .map(|m| (call_ids(m), m.identity().to_json()))
        .collect()
}

/// Every call has a uid of its own, and the results carry it.
fn assert_paired(messages: &[Message]) {
    let caller = &messages[1];
    for (call, answer) in caller.tool_calls().iter().zip(&messages[2..]) {
        let uid = caller.identity().tool_call_uids.get(call.key()).unwrap();
        assert!(is_uid(uid.nth(0).unwrap()));
        assert_eq!(answer.tool_call_id(), Some(&*call.id));
        assert_eq!(answer.identity().tool_call_uid.as_deref(), uid.nth(0));
    }
}

// contract: UID-20, UID-8, UID-3
#[test]
fn a_call_without_an_id_gets_one_that_stays() {
    let expected = [
        made_call_id("read", r#"{"path":"a.rs"}"#, 0),
        "given".to_owned(),
        made_call_id("read", r#"{"path":"a.rs"}"#, 2),
        made_call_id("列", r#"{"q":"é"}"#, 3),
    ];
    for id in [&expected[0], &expected[2], &expected[3]] {
        let digits = id.strip_prefix("call_").unwrap();
        assert_eq!(digits.len(), 12, "{id}");
        assert!(digits.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
    }
    assert_ne!(expected[0], expected[2], "the position counts");

    let home = Home::new();
    let store = home.open();
    let mut list = vec![user("q"), message(NAMELESS)];
    list.extend(expected.iter().map(|id| result(id, "ok")));
    let (id, list, mark) = filled(&store, list);
    assert_eq!(call_ids(&list[1]), expected);
    assert_paired(&list);

    // Another process that reads the conversation, and its next turn.
    let again = home.open();
    assert_eq!(named(&again.resume(&id).unwrap().messages), named(&list));
    let mut more = vec![user("again"), message(NAMELESS)];
    let mut mark = mark;
    again.append(&id, &mut more, &mut mark).unwrap();
    assert_eq!(call_ids(&more[1]), expected, "equal calls, equal ids");
    for name in &expected {
        assert_ne!(
            more[1].identity().tool_call_uids.get(name),
            list[1].identity().tool_call_uids.get(name),
            "and still another call"
        );
    }
    let live = again.resume(&id).unwrap().messages;
    assert_eq!(named(&live), named(&[list.clone(), more.clone()].concat()));

    // A pass keeps them, and an export takes them along.
    let kept: Vec<Message> = [vec![summary("s")], live[6..].to_vec()].concat();
    let done = compact(&again, &id, &mark, "p", &kept);
    assert_eq!(call_ids(&done.messages[2]), expected);
    let text = again.export(&id).unwrap();
    let other = Home::new();
    let copy = other.open();
    copy.import(text.as_bytes(), &mut |_, _, _| {}).unwrap();
    assert_eq!(
        named(&copy.resume(&id).unwrap().messages),
        named(&again.resume(&id).unwrap().messages)
    );
    let archived = |store: &Store| -> Vec<Message> {
        let rows = store.messages(&id, true).unwrap();
        rows.into_iter().map(|row| row.message).collect()
    };
    assert_eq!(named(&archived(&copy)), named(&archived(&again)));
    assert_eq!(copy.export(&id).unwrap(), text);
    assert_clean(&again);
    assert_clean(&copy);
}

// contract: UID-20
#[test]
fn a_recording_without_call_ids_is_named_like_the_conversation_itself() {
    let home = Home::new();
    let store = home.open();
    let first = made_call_id("read", r#"{"path":"a.rs"}"#, 0);
    let file = [
        r#"{"role":"user","content":"q"}"#,
        NAMELESS,
        &format!(r#"{{"role":"tool","tool_call_id":"{first}","content":"ok"}}"#),
    ]
    .join("\n");
    let report = store.import(file.as_bytes(), &mut |_, _, _| {}).unwrap();
    let live = store.resume(&report.imported[0]).unwrap().messages;
    assert_eq!(call_ids(&live[1]), call_ids(&message(NAMELESS)));
    assert_paired(&live);

    // A row of an older program holds such a call as it came; whoever reads it sees the same id.
    let id = session(&store);
    store
        .append(&id, &mut [user("q")], &mut Mark::default())
        .unwrap();
    home.sql()
        .execute(
            "INSERT INTO messages (session_id, role, content, tool_calls, timestamp)
             VALUES (?1, 'assistant', '', '[{\"type\": \"function\", \"function\": {\"name\": \"read\", \"arguments\": \"{\\\"path\\\":\\\"a.rs\\\"}\"}}]', 1)",
            [&id],
        )
        .unwrap();
    for _ in 0..2 {
        let live = home.open().resume(&id).unwrap().messages;
        assert_eq!(call_ids(&live[1]), [first.as_str()]);
    }
    assert_clean(&store);
}
