//! A conversation through a pipe: each line a message or a command.

use hermes_tests::Behaviour;

use crate::support::Chat;

#[test]
fn each_line_is_a_turn_and_nobody_is_prompted() {
    let chat = Chat::new();
    chat.echo();
    let said = chat.run(&[], "one\n\n  two \n//help\n/tmp/x is a path\nlast");
    assert_eq!(
        said.out,
        "answer to: one\nanswer to: two\nanswer to: /help\nanswer to: /tmp/x is a path\nanswer to: last\n"
    );
    assert_eq!((said.err.as_str(), said.code), ("", Some(0)));
    let sessions = chat.sessions();
    assert_eq!(sessions.len(), 1, "one conversation");
    assert!(!sessions[0]["ended_at"].is_null());
}

#[test]
fn nothing_to_read_is_said() {
    let chat = Chat::new();
    for input in ["", "\n \n"] {
        let said = chat.run(&[], input);
        assert_eq!((said.out.as_str(), said.code), ("", Some(2)));
        assert!(
            said.err.contains("standard input is empty") && said.err.contains("-q"),
            "{said:?}"
        );
    }
    assert!(chat.sessions().is_empty());
    let said = chat.run(&["--json"], "hello\n");
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.out.contains("\"usage\""), "{said:?}");
}

#[test]
fn a_failed_turn_does_not_end_the_conversation() {
    let chat = Chat::new();
    chat.echo();
    chat.provider
        .push(Behaviour::status(400, r#"{"error":{"message":"bad"}}"#));
    let said = chat.run(&[], "one\ntwo\n");
    // What was not answered is still said.
    assert_eq!(said.out, "answer to: one\n\ntwo\n");
    assert_eq!(said.code, Some(1));
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
}

#[test]
fn bytes_that_are_no_text_are_a_message_all_the_same() {
    let chat = Chat::new();
    chat.echo();
    let mut child = chat.start(&[]);
    let mut stdin = child.stdin.take().expect("piped");
    std::io::Write::write_all(&mut stdin, b"caf\xe9\r\n").expect("written");
    drop(stdin);
    let said = crate::support::finish(child);
    assert_eq!(said.out, "answer to: caf\u{fffd}\n");
}
