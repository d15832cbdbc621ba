//! Signals: what arrived is kept, and the engine hears of the end.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;
use std::time::{Duration, Instant};

use hermes_tests::Behaviour;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Chat, PATIENCE, finish, wait_until};

fn send(child: &Child, signal: Signal) {
    let id = i32::try_from(child.id()).expect("a process id");
    kill_process(Pid::from_raw(id).expect("a process"), signal).expect("sent");
}

/// Text that arrives, and then nothing more.
fn stalling() -> Behaviour {
    Behaviour::text("The beginning of an answer that never comes to its end.").stall_after(4)
}

/// Waits until the answer has begun to arrive.
fn first_bytes(child: &mut Child) -> Vec<u8> {
    let mut first = vec![0; 3];
    child
        .stdout
        .as_mut()
        .expect("piped")
        .read_exact(&mut first)
        .expect("text arrives");
    first
}

fn last_of(chat: &Chat) -> (String, String) {
    let id = chat.sessions()[0]["id"].as_str().expect("an id").to_owned();
    chat.messages(&id).last().expect("a message").clone()
}

fn ends(chat: &Chat) -> Vec<Value> {
    chat.diary()
        .into_iter()
        .filter(|entry| entry["what"] == "end")
        .collect()
}

#[test]
fn an_interrupt_keeps_what_arrived() {
    let chat = Chat::with_diary();
    chat.provider.default(stalling());
    let mut child = chat.start(&["-q", "go"]);
    let first = first_bytes(&mut child);
    assert_eq!(first, b"The");
    send(&child, Signal::INT);
    let said = finish(child);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("warning: interrupted"), "{said:?}");
    let (role, text) = last_of(&chat);
    assert_eq!(role, "assistant");
    assert!(text.starts_with("The") && !text.ends_with("end."), "{text}");
    assert_eq!(ends(&chat).len(), 1);
}

// contract: LIFE-4
// case: 47
#[test]
fn a_stopped_process_ends_its_session_with_the_real_messages() {
    for signal in [Signal::TERM, Signal::HUP] {
        let chat = Chat::with_diary();
        chat.provider.push(Behaviour::text("one"));
        chat.provider.default(stalling());
        let mut child = chat.start(&[]);
        let mut stdin = child.stdin.take().expect("piped");
        writeln!(stdin, "first\nsecond").expect("written");
        assert!(chat.provider.wait_for_requests(2, PATIENCE));
        first_bytes(&mut child);
        wait_until("the second answer begins", || {
            chat.diary()
                .iter()
                .filter(|entry| entry["what"] == "select")
                .count()
                == 2
        });
        std::thread::sleep(Duration::from_millis(300));
        send(&child, signal);
        let said = finish(child);
        assert!(said.code.is_some(), "it ends by itself: {said:?}");
        let ends = ends(&chat);
        assert_eq!(ends.len(), 1);
        let texts: Vec<&str> = ends[0]["messages"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|message| message["content"].as_str())
            .collect();
        let real = ["first", "one", "second"];
        assert!(texts.windows(3).any(|window| window == real), "{texts:?}");
        assert!(
            texts.last().is_some_and(|text| text.starts_with("The")),
            "{texts:?}"
        );
        assert_eq!(
            ends[0]["without_uid"],
            usize::from(texts.len() > 4),
            "all but the system message: {}",
            ends[0]
        );
        assert!(!chat.sessions()[0]["ended_at"].is_null());
        drop(stdin);
    }
}

// contract: LIFE-4
#[test]
fn a_process_that_waits_for_input_ends_its_session_too() {
    for signal in [Signal::TERM, Signal::INT] {
        let chat = Chat::with_diary();
        chat.echo();
        let mut child = chat.start(&[]);
        let mut stdin = child.stdin.take().expect("piped");
        writeln!(stdin, "hello").expect("written");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("an answer");
        assert_eq!(line, "answer to: hello\n");
        wait_until("the engine is idle", || {
            chat.diary().iter().any(|entry| entry["what"] == "idle")
        });
        send(&child, signal);
        // The pipe stays open all the time.
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0));
        assert_eq!(chat.story(), ["start 0", "turn 0", "end 0"]);
        drop(stdin);
    }
}

#[test]
fn json_is_printed_for_a_turn_that_was_stopped() {
    for signal in [Signal::INT, Signal::TERM] {
        let chat = Chat::new();
        chat.provider.default(stalling());
        // Nothing shows from outside that the text has arrived, and a busy machine takes its time: if it had not, once
        // more and with more patience.
        let mut pause = Duration::from_millis(400);
        loop {
            let before = chat.provider.requests().len();
            let child = chat.start(&["-q", "go", "--json"]);
            assert!(chat.provider.wait_for_requests(before + 1, PATIENCE));
            std::thread::sleep(pause);
            send(&child, signal);
            let said = finish(child);
            let value = value_of(&said);
            assert_eq!(value["outcome"], "interrupted");
            assert_eq!(said.code, Some(1));
            let answer = value["answer"].as_str().expect("text");
            if answer.starts_with("The") {
                break;
            }
            assert_eq!(answer, "", "{value}");
            pause *= 2;
            assert!(pause < PATIENCE, "nothing of the answer ever arrives");
        }
    }
}

/// The one JSON value on stdout.
fn value_of(said: &crate::support::Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

// contract: LIFE-4
#[test]
fn json_is_printed_whatever_a_signal_comes_in_the_way_of() {
    for signal in [Signal::INT, Signal::TERM] {
        // Nothing has begun: the window of the model is being asked for.
        let chat = Chat::new();
        let config = chat.provider.config(1);
        chat.home
            .config(&config.replace("  context_length: 1\n", ""));
        chat.provider.at("/v1/models", Behaviour::stall());
        let child = chat.start(&["-q", "go", "--json"]);
        wait_until("the window is asked for", || {
            !chat.provider.all_requests().is_empty()
        });
        send(&child, signal);
        let said = finish(child);
        let value = value_of(&said);
        assert_eq!(value["error"]["kind"], "interrupted", "{said:?}");
        assert_eq!(said.code, Some(1));
        assert!(chat.provider.requests().is_empty());

        // The request is out, and nothing of an answer is here.
        let chat = Chat::new();
        chat.provider.default(Behaviour::stall());
        let child = chat.start(&["-q", "go", "--json"]);
        assert!(chat.provider.wait_for_requests(1, PATIENCE));
        send(&child, signal);
        let said = finish(child);
        let value = value_of(&said);
        assert_eq!(
            (&value["outcome"], &value["answer"]),
            (&"interrupted".into(), &"".into()),
            "{said:?}"
        );
        assert_eq!(said.code, Some(1));
        assert_eq!(last_of(&chat), ("user".to_owned(), "go".to_owned()));
    }
}

#[test]
fn an_interrupted_turn_does_not_end_a_conversation() {
    let chat = Chat::new();
    chat.provider.push(stalling());
    chat.provider.default(Behaviour::text("second answer"));
    let mut child = chat.start(&[]);
    let mut stdin = child.stdin.take().expect("piped");
    writeln!(stdin, "first").expect("written");
    first_bytes(&mut child);
    send(&child, Signal::INT);
    writeln!(stdin, "second").expect("written");
    drop(stdin);
    let said = finish(child);
    assert!(said.out.ends_with("second answer\n"), "{said:?}");
    assert_eq!(said.code, Some(1), "one turn was interrupted: {said:?}");
    // The request after it is valid, and has what had arrived.
    let sent = chat.provider.requests()[1].json();
    let roles: Vec<&str> = sent["messages"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|message| message["role"].as_str())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
}

// contract: PASS-10
#[test]
fn a_second_interrupt_leaves_though_an_engine_is_stuck() {
    for (slot, input) in [
        ("select_context", "hello\n"),
        ("compress", "hello\n/compress\n"),
    ] {
        let chat = Chat::with_diary().variable("DIARY_SLOW", slot);
        chat.echo();
        let mut child = chat.start(&[]);
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(input.as_bytes()).expect("written");
        let word = if slot == "compress" {
            "compress"
        } else {
            "select"
        };
        wait_until("the engine is inside", || {
            chat.diary().iter().any(|entry| entry["what"] == word)
        });
        let began = Instant::now();
        send(&child, Signal::INT);
        std::thread::sleep(Duration::from_millis(200));
        send(&child, Signal::INT);
        let said = finish(child);
        assert!(
            began.elapsed() < Duration::from_secs(50),
            "{slot}: {:?}: {said:?}",
            began.elapsed()
        );
        assert!(said.code.is_some(), "{said:?}");
        drop(stdin);
        // What was said is there, and the session goes on.
        let (value, _) = chat.json(&["-q", "again", "--continue", "--engine", "compressor"]);
        assert_eq!(value["outcome"], "completed");
        let id = value["session_id"].as_str().expect("an id");
        assert!(
            chat.messages(id)
                .contains(&("user".to_owned(), "hello".to_owned()))
        );
    }
}

// contract: LIFE-4, HOOK-2, HOOK-10
#[test]
fn an_answer_that_is_there_is_printed_though_the_engine_is_stuck_after_it() {
    for signal in [Signal::INT, Signal::TERM] {
        for json in [true, false] {
            let chat = Chat::with_diary().variable("DIARY_SLOW", "turn_complete");
            chat.echo();
            let config = chat.provider.config(128_000);
            chat.home.config(&format!(
                "{config}context:\n  engine: diary\n  timeouts:\n    hooks: 60\n"
            ));
            let mut arguments = vec!["-q", "go"];
            arguments.extend(json.then_some("--json"));
            let child = chat.start(&arguments);
            wait_until("the engine is inside", || {
                chat.diary().iter().any(|entry| entry["what"] == "turn")
            });
            let began = Instant::now();
            send(&child, signal);
            let said = finish(child);
            // The hook takes two minutes, and may take one.
            assert!(
                began.elapsed() < Duration::from_secs(50),
                "{:?}: {said:?}",
                began.elapsed()
            );
            assert_eq!(said.code, Some(1), "{said:?}");
            if json {
                let value = value_of(&said);
                assert_eq!(value["answer"], "answer to: go", "{said:?}");
                assert_eq!(value["outcome"], "interrupted", "{said:?}");
                assert!(value.get("error").is_none(), "{said:?}");
            } else {
                assert_eq!(said.out, "answer to: go\n");
                assert!(
                    said.err.contains("interrupted after the answer"),
                    "{said:?}"
                );
            }
            let answer = ("assistant".to_owned(), "answer to: go".to_owned());
            assert_eq!(last_of(&chat), answer);
            assert!(!chat.sessions()[0]["ended_at"].is_null(), "it is over");
        }
    }
}

// contract: LIFE-4
#[test]
fn a_process_that_is_stopped_twice_prints_one_result() {
    // Stuck in the middle of an answer's end, and then at the end of the session.
    for (slot, first) in [("turn_complete", "turn"), ("session_end", "turn")] {
        let chat = Chat::with_diary().variable("DIARY_SLOW", slot);
        chat.provider.default(stalling());
        let child = chat.start(&["-q", "go", "--json"]);
        assert!(chat.provider.wait_for_requests(1, PATIENCE));
        wait_until("some of the answer is on its way", || {
            chat.diary().iter().any(|entry| entry["what"] == "select")
        });
        std::thread::sleep(Duration::from_millis(300));
        send(&child, Signal::TERM);
        wait_until("the engine hears of the end", || {
            chat.diary().iter().any(|entry| entry["what"] == first)
        });
        let said = finish(child);
        let value = value_of(&said);
        assert_eq!(value["outcome"], "interrupted", "{slot}: {said:?}");
        assert_eq!(said.code, Some(1), "{slot}: {said:?}");
    }
}
