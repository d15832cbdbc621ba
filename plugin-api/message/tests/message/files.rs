//! Conversation files in and out.

use hermes_message::Message;
use hermes_message::format::{Container, read, write_conversation};

use crate::inputs::recorded;
use crate::texts::msg;

fn written(source: &str, edit: impl Fn(&[Message]) -> Vec<Message>) -> String {
    let file = read(source.as_bytes()).expect("readable");
    write_conversation(&file, 0, &edit(&file.conversations[0].messages))
}

const LINES: &str = "\u{feff}{\"role\":\"user\",\"content\":\"a\"}\r\n\r\n  {\"message_uid\":\"u\", \"role\":\"assistant\",\"content\":\"b\"}\r\n";
const OBJECT: &str = "{\n \"id\": 1.0,\n \"messages\": [\n  {\"role\":\"user\"},\n  {\"role\":\"tool\"}\n ],\n \"z\": {}\n}\n";

// contract: UID-3
#[test]
fn unchanged_messages_are_written_back_byte_for_byte() {
    let sources = [
        LINES,
        OBJECT,
        " [ {\"role\":\"user\"} , {\"role\":\"assistant\"} ] \n",
        "[]",
        "{\"messages\":[],\"tools\":[1]}",
        "{\"messages\":[{\"role\":\"user\"}]}\n{\"k\":0,\"messages\":[]}",
        "{\"role\":\"user\"}",
    ];
    for source in sources {
        assert_eq!(written(source, <[Message]>::to_vec), source);
    }
}

#[test]
fn every_recorded_file_survives_reading_and_writing() {
    for (name, bytes) in recorded() {
        let file = read(&bytes).expect(&name);
        for (index, conversation) in file.conversations.iter().enumerate() {
            assert!(!conversation.messages.is_empty(), "{name}");
            let back = write_conversation(&file, index, &conversation.messages);
            assert!(
                back.as_bytes() == bytes,
                "{name}, conversation {index}, is written otherwise"
            );
        }
        println!(
            "{name}: {:?}, {} conversations",
            file.container,
            file.conversations.len()
        );
    }
}

#[test]
fn containers_are_told_apart() {
    let kind = |source: &str| {
        read(source.as_bytes()).map(|file| (file.container, file.conversations.len()))
    };
    assert_eq!(kind(LINES), Ok((Container::Lines, 1)));
    assert_eq!(kind(OBJECT), Ok((Container::Object, 1)));
    assert_eq!(kind("[]"), Ok((Container::Array, 1)));
    assert_eq!(kind("{\"messages\":[]}"), Ok((Container::Object, 1)));
    assert_eq!(
        kind("{\"messages\":[]}\n\n{\"messages\":[]}\n"),
        Ok((Container::Dialogues, 2))
    );
    let tools = read(b"{\"messages\":[],\"tools\":[ {\"a\":\"\\ud83d\"} ]}").expect("readable");
    assert_eq!(
        tools.conversations[0].tools.as_deref(),
        Some("[ {\"a\":\"\\ufffd\"} ]")
    );
}

#[test]
fn new_messages_stand_where_the_old_ones_stood() {
    let new = || msg(r#"{"role":"user","content":"new","message_uid":"n"}"#);
    let between = |messages: &[Message]| vec![messages[0].clone(), new(), messages[1].clone()];
    let new_text = r#"{"role":"user","content":"new","message_uid":"n"}"#;
    assert_eq!(
        written(LINES, between),
        format!(
            "\u{feff}{{\"role\":\"user\",\"content\":\"a\"}}\r\n{new_text}\r\n{{\"message_uid\":\"u\", \"role\":\"assistant\",\"content\":\"b\"}}\r\n"
        )
    );
    assert_eq!(
        written(OBJECT, between),
        OBJECT.replace(
            "{\"role\":\"user\"}",
            &format!("{{\"role\":\"user\"}},\n  {new_text}")
        )
    );
    let file = read(b"{\"messages\":[ ],\"z\":1}\n{\"messages\":[{\"role\":\"user\"}]}\n")
        .expect("readable");
    assert_eq!(
        write_conversation(&file, 0, &[new(), new()]),
        format!(
            "{{\"messages\":[{new_text}, {new_text} ],\"z\":1}}\n{{\"messages\":[{{\"role\":\"user\"}}]}}\n"
        )
    );
    assert_eq!(
        write_conversation(&file, 1, &[]),
        "{\"messages\":[ ],\"z\":1}\n{\"messages\":[]}\n"
    );
    assert_eq!(write_conversation(&file, 7, &[]).len(), 54);
}

// case: 19
#[test]
fn a_broken_file_is_refused_whole_with_its_place() {
    let place = |source: &[u8]| {
        read(source)
            .map(|_| ())
            .map_err(|e| (e.line, e.column, e.offset))
    };
    assert_eq!(
        place(b"{\"role\":\"user\"}\n{\"role\":\"us"),
        Err((2, 12, 27))
    );
    assert_eq!(
        place(b"{\"role\":\"user\"}\n{\"content\":1}"),
        Err((2, 1, 16))
    );
    assert_eq!(place(b"{\"messages\":[]}\n7\n"), Err((2, 1, 16)));
    assert_eq!(place(b"[{\"role\":\"user\"},\n 3]"), Err((2, 2, 19)));
    assert_eq!(place(b"{\n\"messages\": {}}"), Err((2, 13, 14)));
    assert_eq!(place(b""), Err((1, 1, 0)));
    assert_eq!(place(b"\n\n hello"), Err((3, 2, 3)));
    let shown = read(b"{\"a\":1}").expect_err("no messages").to_string();
    assert!(shown.starts_with("line 1, column 1 (byte 0): "), "{shown}");
}

// case: 62
#[test]
fn bytes_that_are_no_text_are_replaced_in_their_message_only() {
    let source =
        b"{\"role\":\"tool\",\"content\":\"a\x97b\"}\n{\"role\":\"user\",\"content\":\"c\"}\n";
    let file = read(source).expect("readable");
    let messages = &file.conversations[0].messages;
    assert_eq!(messages[0].text(), "a\u{fffd}b");
    assert_eq!(messages[0].original(), Some(&source[..31]));
    assert_eq!(messages[1].original(), None);
    assert_eq!(messages[1].text(), "c");
}
