//! What others may do while a session is open, and what it leaves behind when it is not any more.

use std::fs::{self, File};
use std::io::Write;
use std::process::Stdio;

use hermes::store::{Store, StoreOptions};
use hermes_tests::Home;

use crate::support::{Chat, finish};

/// The texts in a store's file alone, without the log that lies beside it.
fn in_the_file_alone(home: &Home) -> Vec<String> {
    let place = tempfile::tempdir().expect("a folder");
    let copy = place.path().join("state.db");
    fs::copy(home.path().join("state.db"), &copy).expect("copied");
    let store = Store::open(&copy, StoreOptions::default()).expect("a whole store");
    let sessions = store.sessions(10).expect("sessions");
    sessions
        .iter()
        .flat_map(|session| store.messages(&session.id, true).expect("messages"))
        .map(|row| row.message.text().into_owned())
        .collect()
}

// contract: UID-3
#[test]
fn a_session_that_a_chat_has_open_is_neither_rewound_nor_deleted() {
    let chat = Chat::new();
    chat.echo();
    let mut open = chat.open();
    assert_eq!(open.ask("one"), "answer to: one\n");
    let id = chat.sessions()[0]["id"].as_str().expect("an id").to_owned();
    let before = chat.messages(&id);

    let verbs: [&[&str]; 2] = [&["rewind", &id, "1"], &["delete", &id]];
    for arguments in verbs {
        let (verb, arguments) = (arguments[0], [&["sessions"], arguments].concat());
        let (said, code) = chat.home.json(&arguments);
        assert_eq!(
            (code, &said["error"]["kind"]),
            (1, &"open".into()),
            "{said}"
        );
        let output = chat.home.run(&arguments);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(output.stdout.is_empty());
        let sentence = format!("error: cannot {verb} session {id}: it is open in another process");
        assert!(said.starts_with(&sentence), "{said}");
        assert!(said.contains("hint: close it there"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(chat.messages(&id), before, "{verb} left it as it was");
    }

    // The chat has lost nothing, and once it is closed both work.
    assert_eq!(open.ask("two"), "answer to: two\n");
    assert_eq!(open.close().code, Some(0));
    assert_eq!(chat.messages(&id).len(), before.len() + 2);
    let rewound = chat.home.run(&["sessions", "rewind", &id, "1"]);
    assert_eq!(rewound.status.code(), Some(0));
    assert_eq!(chat.messages(&id), before);
    let deleted = chat.home.run(&["sessions", "delete", &id]);
    assert_eq!(deleted.status.code(), Some(0));
    assert!(chat.sessions().is_empty());
}

// contract: PASS-7
#[test]
fn the_file_alone_is_the_whole_store_when_a_conversation_is_over() {
    // `-q`, a pipe that ends, `/new` in a chat that goes on, and a process that is told to stop.
    let chat = Chat::new();
    chat.echo();
    chat.run(&["-q", "first"], "");
    let holds = |text: &str| in_the_file_alone(&chat.home).iter().any(|t| t == text);
    assert!(holds("answer to: first"));
    chat.run(&[], "second\n");
    assert!(holds("answer to: second"));

    let mut open = chat.open();
    let mut line = open.ask("third\n/new");
    while !line.starts_with("A new session") {
        line = open.read();
        assert!(!line.is_empty(), "it goes on");
    }
    assert!(holds("answer to: third"), "its session is over");
    assert_eq!(open.ask("fourth"), "answer to: fourth\n");
    let id = i32::try_from(open.child.id()).expect("a process id");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(id).expect("a process"),
        rustix::process::Signal::TERM,
    )
    .expect("sent");
    // The pipe stays open all the time.
    assert_eq!(open.child.wait().expect("it ends").code(), Some(0));
    assert!(holds("answer to: fourth"));
}

#[test]
fn an_output_that_cannot_be_written_is_an_error_and_no_panic() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        println!("skipped: there is no /dev/full");
        return;
    };
    let chat = Chat::new();
    chat.echo();
    let talks: [(&[&str], &str); 4] = [
        (&["-q", "x"], ""),
        (&["-q", "x", "--json"], ""),
        (&[], "x\n"),
        (&[], "/status\n"),
    ];
    for (arguments, input) in talks {
        let mut child = chat
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::from(full.try_clone().expect("a descriptor")))
            .stderr(Stdio::piped())
            .spawn()
            .expect("hermes runs");
        let mut stdin = child.stdin.take().expect("piped");
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let said = finish(child);
        assert_eq!(said.code, Some(1), "{arguments:?}: {said:?}");
        assert!(
            said.err.starts_with("error: cannot write the output: "),
            "{arguments:?}: {said:?}"
        );
        assert_eq!(said.err.lines().count(), 1, "{arguments:?}: {said:?}");
    }
    // What was answered is kept all the same, and the sessions are over.
    let sessions = chat.sessions();
    assert_eq!(sessions.len(), 3, "{sessions:?}");
    for session in &sessions {
        assert!(!session["ended_at"].is_null(), "{session}");
    }
    let others: [&[&str]; 8] = [
        &["--version"],
        &["--help"],
        &["plugins", "list"],
        &["plugins", "why", "compressor"],
        &["config", "path"],
        &["sessions", "list"],
        &["sessions", "list", "--json"],
        &["completions", "bash"],
    ];
    for arguments in others {
        let child = chat
            .home
            .command()
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::from(full.try_clone().expect("a descriptor")))
            .stderr(Stdio::piped())
            .spawn()
            .expect("hermes runs");
        let said = finish(child);
        assert_eq!(said.code, Some(1), "{arguments:?}: {said:?}");
        assert!(
            said.err.starts_with("error: ") && said.err.contains("cannot write the output"),
            "{arguments:?}: {said:?}"
        );
        assert!(!said.err.contains("panicked"), "{arguments:?}: {said:?}");
    }
}
