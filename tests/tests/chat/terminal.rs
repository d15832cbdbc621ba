//! A conversation on a terminal: the line editor, the status line, Ctrl-C and Ctrl-D as keys.

use std::time::Duration;

use hermes_tests::Behaviour;
use rexpect::ReadUntil;
use rexpect::process::{Signal, WaitStatus};
use rexpect::session::{PtySession, spawn_command};

use crate::support::Chat;

/// A terminal with the program on it. It answers where its cursor is, as a terminal does.
struct Terminal(PtySession);

impl Terminal {
    fn start(chat: &Chat, arguments: &[&str]) -> Self {
        let mut command = chat.command(arguments);
        command.env("TERM", "xterm-256color");
        Self(spawn_command(command, Some(30_000)).expect("hermes runs"))
    }

    /// Waits for a text, and gives what stood before it.
    fn expect(&mut self, text: &str) -> String {
        const WHERE: &str = "\x1b[6n";
        let mut before = String::new();
        // The bytes of the terminal come as one character each.
        let wanted: String = text.bytes().map(char::from).collect();
        loop {
            let any = vec![
                ReadUntil::String(WHERE.to_owned()),
                ReadUntil::String(wanted.clone()),
            ];
            let (part, found) = self
                .0
                .exp_any(any)
                .unwrap_or_else(|error| panic!("{text:?}: {error}"));
            before.push_str(&part);
            if found == wanted {
                return before;
            }
            self.0
                .send("\x1b[5;1R")
                .and_then(|_| self.0.flush())
                .expect("sent");
        }
    }

    fn type_in(&mut self, text: &str) {
        self.0
            .send(text)
            .and_then(|_| self.0.flush())
            .expect("sent");
    }

    fn ends(mut self) {
        // The terminal is asked once more on the way, perhaps.
        let _ = self.0.exp_eof();
        let status = self.0.process().wait().expect("it ends");
        assert!(matches!(status, WaitStatus::Exited(_, 0)), "{status:?}");
    }
}

#[test]
fn lines_are_edited_answered_and_remembered() {
    let chat = Chat::new();
    chat.echo();
    let mut terminal = Terminal::start(&chat, &[]);
    terminal.expect("· compressor · 0 compressions]");
    terminal.expect("> ");
    terminal.type_in("helo\x7flo\r");
    terminal.expect("answer to: hello");
    terminal.expect("> ");
    // Two lines by a paste are one message.
    terminal.type_in("\x1b[200~one\ntwo\x1b[201~\r");
    terminal.expect("answer to: one");
    terminal.expect("> ");
    terminal.type_in("/status\r");
    terminal.expect("turns         2");
    terminal.expect("> ");
    terminal.type_in("\x04");
    terminal.ends();
    let sent = chat.provider.requests()[1].json();
    let last = sent["messages"]
        .as_array()
        .and_then(|all| all.last().cloned())
        .expect("a message");
    assert_eq!(last["content"], "one\ntwo");
    let file = chat.home.path().join("chat_history");
    let history = std::fs::read_to_string(&file).expect("a history");
    assert!(
        history.contains("hello") && history.contains("/status"),
        "{history}"
    );
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&file.metadata().expect("a file").permissions());
    assert_eq!(mode & 0o077, 0, "nobody else reads it");
    assert!(!chat.sessions()[0]["ended_at"].is_null());

    // The next conversation has the line above.
    let mut terminal = Terminal::start(&chat, &["--continue"]);
    terminal.expect("> ");
    terminal.type_in("\x1b[A\x1b[A\x1b[A\r");
    terminal.expect("answer to: hello");
    terminal.expect("> ");
    terminal.type_in("/quit\r");
    terminal.ends();
}

#[test]
fn control_c_interrupts_an_answer_and_then_leaves() {
    let chat = Chat::new();
    chat.provider
        .push(Behaviour::text("An answer that goes on and on.").stall_after(3));
    chat.provider.default(Behaviour::text("fine"));
    let mut terminal = Terminal::start(&chat, &[]);
    terminal.expect("> ");
    terminal.type_in("go\r");
    terminal.expect("An");
    std::thread::sleep(Duration::from_millis(200));
    terminal.type_in("\x03");
    terminal.expect("interrupted; what had arrived is kept");
    terminal.expect("> ");
    terminal.type_in("and now?\r");
    terminal.expect("fine");
    terminal.expect("> ");
    terminal.type_in("\x03");
    terminal.expect("Ctrl-C once more");
    terminal.expect("> ");
    terminal.type_in("\x03");
    terminal.ends();
    let id = chat.sessions()[0]["id"].as_str().expect("an id").to_owned();
    let texts: Vec<String> = chat
        .messages(&id)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert!(texts.iter().any(|text| text.starts_with("An")), "{texts:?}");
    assert!(texts.contains(&"fine".to_owned()));
}

#[test]
fn tools_are_shown_and_a_model_does_not_steer_the_terminal() {
    let chat = Chat::new();
    chat.provider.push(Behaviour::calls(&[(
        "c",
        "read_file",
        r#"{"path":"missing.txt"}"#,
    )]));
    chat.provider.push(Behaviour::text("clear \u{1b}[2J it"));
    let mut terminal = Terminal::start(&chat, &[]);
    terminal.expect("> ");
    terminal.type_in("look\r");
    terminal.expect("→ read_file {\"path\":\"missing.txt\"}");
    terminal.expect("there is no 'missing.txt'");
    terminal.expect("clear \u{fffd}[2J it");
    terminal.expect("> ");
    terminal.type_in("\x04");
    terminal.ends();
}

// contract: LIFE-4
#[test]
fn a_terminal_that_is_stopped_gets_its_modes_back_and_the_engine_its_end() {
    let chat = Chat::with_diary();
    chat.echo();
    let mut terminal = Terminal::start(&chat, &[]);
    terminal.expect("> ");
    terminal.type_in("hello\r");
    terminal.expect("answer to: hello");
    terminal.expect("> ");
    let process = terminal.0.process_mut();
    process.signal(Signal::SIGTERM).expect("sent");
    // Bracketed paste is off again.
    terminal.expect("\x1b[?2004l");
    terminal.ends();
    assert_eq!(chat.story(), ["start 0", "turn 0", "end 0"]);
}

#[test]
fn a_model_that_answers_instead_is_announced() {
    let chat = Chat::new();
    let spare = hermes_tests::FakeProvider::start();
    spare.default(Behaviour::text("from the spare"));
    let config = chat.provider.config(128_000);
    chat.home.config(&format!(
        "{config}fallback_providers:\n- {{provider: custom, model: second, base_url: {}, context_length: 9000}}\n",
        spare.url()
    ));
    chat.provider.default(Behaviour::status(401, "no"));
    let mut terminal = Terminal::start(&chat, &[]);
    terminal.expect("> ");
    terminal.type_in("hello\r");
    let before = terminal.expect("; asking second at 127.0.0.1");
    assert!(
        before.contains("main model fake is not available ("),
        "{before}"
    );
    let between = terminal.expect("from the spare");
    assert!(!between.contains("asking again"), "{between}");
    terminal.expect("> ");
    terminal.type_in("/status\r");
    terminal.expect("second in place of fake, a window of 9,000 tokens");
    terminal.expect("> ");
    terminal.type_in("\x04");
    terminal.ends();
}
