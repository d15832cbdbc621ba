//! `hermes chat -q`.

use std::fs::File;
use std::process::Stdio;

use hermes_tests::{Behaviour, Home, compile_c, workspace};
use serde_json::{Value, json};

use crate::support::{Chat, finish};

#[test]
fn an_answer_is_all_there_is_on_stdout() {
    let chat = Chat::new();
    chat.provider.default(Behaviour::text("It is a test."));
    let said = chat.run(&["-q", "What is this?"], "");
    assert_eq!(said.out, "It is a test.\n");
    assert_eq!((said.err.as_str(), said.code), ("", Some(0)));
    let sessions = chat.sessions();
    assert_eq!(sessions.len(), 1);
    let id = sessions[0]["id"].as_str().expect("an id");
    let user = ("user".to_owned(), "What is this?".to_owned());
    let answer = ("assistant".to_owned(), "It is a test.".to_owned());
    let messages = chat.messages(id);
    assert!(messages.ends_with(&[user, answer]), "{messages:?}");
    assert!(
        !sessions[0]["ended_at"].is_null(),
        "the session is over: {}",
        sessions[0]
    );
}

#[test]
fn json_has_the_promised_keys() {
    let chat = Chat::new();
    chat.provider.default(Behaviour::text("Yes.").usage(json!({
        "prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42,
    })));
    let (value, said) = chat.json(&["-q", "Really?"]);
    assert_eq!(said.code, Some(0));
    assert_eq!(value["answer"], "Yes.");
    assert_eq!(value["outcome"], "completed");
    assert_eq!(value["engine"], "compressor");
    assert_eq!(value["fallback"], Value::Null);
    assert_eq!(value["compressions"], 0);
    assert_eq!(value["warnings"], json!([]));
    assert_eq!(value["usage"]["prompt_tokens"], 40);
    assert_eq!(value["usage"]["completion_tokens"], 2);
    assert_eq!(value["session_id"], chat.sessions()[0]["id"]);
}

#[test]
fn the_question_may_come_from_the_standard_input() {
    let chat = Chat::new();
    chat.echo();
    let said = chat.run(&["-q", "-"], "two\nlines\n");
    assert_eq!(said.out, "answer to: two\nlines\n");
    for empty in [["-q", ""], ["-q", "-"]] {
        let said = chat.run(&empty, " \n");
        assert_eq!((said.out.as_str(), said.code), ("", Some(2)));
        assert!(
            said.err.starts_with("error: the message is empty"),
            "{}",
            said.err
        );
        assert_eq!(said.err.lines().count(), 1);
    }
}

#[test]
fn a_slash_is_nothing_special_in_a_question() {
    let chat = Chat::new();
    chat.echo();
    assert_eq!(chat.run(&["-q", "/quit"], "").out, "answer to: /quit\n");
}

#[test]
fn sessions_go_on() {
    let chat = Chat::new();
    chat.echo();
    let (first, _) = chat.json(&["-q", "one"]);
    let id = first["session_id"].as_str().expect("an id").to_owned();
    let (second, _) = chat.json(&["-q", "two", "--continue"]);
    assert_eq!(second["session_id"], first["session_id"]);
    let (other, _) = chat.json(&["-q", "elsewhere"]);
    assert_ne!(other["session_id"], first["session_id"]);
    let (third, _) = chat.json(&["-q", "three", "--resume", &id[..id.len() - 2]]);
    assert_eq!(third["session_id"], first["session_id"]);

    let texts: Vec<String> = chat
        .messages(&id)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    let all = [
        "one",
        "answer to: one",
        "two",
        "answer to: two",
        "three",
        "answer to: three",
    ];
    assert!(texts == all, "{texts:?}");
    // The model has seen all of it, and the front of the request is the same bytes as before.
    let requests = chat.provider.requests();
    let (first, last) = (&requests[0], requests.last().expect("a request"));
    let sent = last.json();
    let count = sent["messages"].as_array().map(Vec::len);
    // The system message and all but the last answer.
    assert_eq!(count, Some(all.len()));
    assert_eq!(sent["messages"][0], first.json()["messages"][0]);
}

#[test]
fn a_session_that_is_not_there_is_an_error() {
    let chat = Chat::new();
    let (value, said) = chat.json(&["-q", "x", "--resume", "nowhere"]);
    assert_eq!(said.code, Some(1));
    let message = value["error"]["message"].as_str().unwrap_or("");
    assert!(message.contains("nowhere"), "{value}");
    assert!(chat.provider.requests().is_empty());
    // Going on where there is nothing yet is beginning.
    chat.echo();
    let (value, _) = chat.json(&["-q", "x", "--continue"]);
    assert_eq!(value["answer"], "answer to: x");
}

#[test]
fn a_failed_turn_is_said_in_both_ways_and_nothing_is_lost() {
    let chat = Chat::new();
    chat.provider.default(Behaviour::status(
        401,
        r#"{"error":{"message":"no such key"}}"#,
    ));
    let (value, said) = chat.json(&["-q", "hello?"]);
    assert_eq!(
        (value["outcome"].as_str(), said.code),
        (Some("failed"), Some(1))
    );
    assert!(
        value["error"]["message"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{value}"
    );
    assert!(said.err.starts_with("error: "), "{}", said.err);
    let said = chat.run(&["-q", "hello again?"], "");
    assert_eq!((said.out.as_str(), said.code), ("", Some(1)));
    assert!(said.err.starts_with("error: "), "{}", said.err);
    for (session, text) in chat.sessions().iter().zip(["hello again?", "hello?"]) {
        let id = session["id"].as_str().expect("an id");
        let said = ("user".to_owned(), text.to_owned());
        assert!(chat.messages(id).contains(&said));
    }
}

#[test]
fn an_answer_that_broke_off_and_began_anew_is_said() {
    let chat = Chat::new();
    chat.provider
        .push(Behaviour::text("half of an answer that never").reset_after(2));
    chat.provider.default(Behaviour::text("whole"));
    let said = chat.run(&["-q", "x"], "");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.ends_with("whole\n"), "{said:?}");
    assert!(
        said.err.contains("warning: the answer broke off"),
        "{said:?}"
    );
    let (value, _) = {
        chat.provider
            .push(Behaviour::text("half of an answer that never").reset_after(2));
        chat.json(&["-q", "x"])
    };
    assert_eq!(value["answer"], "whole");
}

#[test]
fn tools_are_called_in_the_working_directory() {
    let chat = Chat::new();
    std::fs::write(chat.folder().join("note.txt"), "the number is 42\n").expect("a file");
    chat.provider.push(Behaviour::calls(&[(
        "c1",
        "read_file",
        r#"{"path":"note.txt"}"#,
    )]));
    chat.provider.push(Behaviour::text("It is 42."));
    let said = chat.run(&["-q", "Which number?"], "");
    assert_eq!((said.out.as_str(), said.err.as_str()), ("It is 42.\n", ""));
    let second = chat.provider.requests()[1].json();
    let messages = second["messages"].as_array().expect("a list");
    let result = messages.last().expect("a result");
    assert_eq!(result["role"], "tool");
    assert!(
        result["content"]
            .as_str()
            .is_some_and(|text| text.contains("1|the number is 42")),
        "{result}"
    );
}

#[test]
fn the_engine_can_be_chosen_and_must_serve_then() {
    let chat = Chat::with_diary();
    chat.echo();
    assert_eq!(chat.json(&["-q", "x"]).0["engine"], "diary");
    assert_eq!(
        chat.json(&["-q", "x", "--engine", "compressor"]).0["engine"],
        "compressor"
    );
    let (value, said) = chat.json(&["-q", "x", "--engine", "dairy"]);
    assert_eq!(said.code, Some(2));
    assert_eq!(value["error"]["kind"], "engine");

    // One that only the configuration names is replaced, with a warning.
    let config = chat.provider.config(128_000);
    chat.home
        .config(&format!("{config}context:\n  engine: gone\n"));
    let (value, said) = chat.json(&["-q", "x"]);
    assert_eq!(
        (said.code, &value["engine"]),
        (Some(0), &json!("compressor"))
    );
    assert!(
        value["warnings"][0]
            .as_str()
            .is_some_and(|text| text.contains("'gone'")),
        "{value}"
    );
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    assert!(
        said.err.starts_with("warning: context engine 'gone'"),
        "{}",
        said.err
    );
}

// contract: SEL-5
#[test]
fn safe_mode_loads_nothing() {
    let chat = Chat::with_diary();
    chat.echo();
    let (value, said) = chat.json(&["-q", "x", "--safe-mode"]);
    assert_eq!(
        (&value["engine"], said.err.as_str()),
        (&json!("compressor"), "")
    );
    assert!(chat.diary().is_empty());
    let said = chat.run(&["-q", "x", "--safe-mode", "--engine", "diary"], "");
    assert_eq!(said.code, Some(2));
}

#[test]
fn another_model_can_be_named() {
    let chat = Chat::new();
    chat.echo();
    assert_eq!(chat.run(&["-q", "x", "--model", "other"], "").code, Some(0));
    assert_eq!(chat.provider.requests()[0].json()["model"], "other");
}

#[test]
fn without_a_model_two_lines_say_what_to_set() {
    let home = Home::new();
    let output = home
        .command()
        .args(["chat", "-q", "x"])
        .env_remove("OPENAI_API_KEY")
        .env_remove("OPENROUTER_API_KEY")
        .output()
        .expect("hermes runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(
        lines[0].starts_with("error: no model is set") && lines[0].contains("model.default"),
        "{said}"
    );
    assert!(
        lines[1].starts_with("hint: ") && lines[1].contains("scripted"),
        "{said}"
    );
    let (value, code) = home.json(&["chat", "-q", "x"]);
    assert_eq!((code, &value["error"]["kind"]), (2, &json!("config")));

    // What the hint says works.
    assert_eq!(
        home.run(&["config", "set", "model.provider", "scripted"])
            .status
            .code(),
        Some(0)
    );
    let dry = home.run(&["chat", "-q", "hello"]);
    assert_eq!(
        dry.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&dry.stderr)
    );
    assert!(!dry.stdout.is_empty());
}

// case: 60
#[test]
fn a_broken_configuration_is_said_before_anything_else() {
    let chat = Chat::new();
    chat.home
        .config("model:\n  provider: scripted\ncontext: [open\n");
    let said = chat.run(&["-q", "x"], "");
    assert!(
        said.err
            .lines()
            .next()
            .is_some_and(|line| line.starts_with("warning: ") && line.contains("config.yaml")),
        "{said:?}"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let chat = Chat::new();
    chat.provider
        .default(Behaviour::text(&"word ".repeat(5_000)));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let child = chat
        .command(&["-q", "x"])
        .stdin(Stdio::null())
        .stdout(Stdio::from(writer))
        .stderr(Stdio::piped())
        .spawn()
        .expect("hermes runs");
    let said = finish(child);
    assert_eq!((said.err.as_str(), said.code), ("", Some(0)));
    assert!(!chat.sessions()[0]["ended_at"].is_null());
    // A full disk is one.
    if let Ok(full) = File::options().write(true).open("/dev/full") {
        let child = chat
            .command(&["-q", "x", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::from(full))
            .stderr(Stdio::piped())
            .spawn()
            .expect("hermes runs");
        let said = finish(child);
        assert_eq!(said.code, Some(1));
        assert!(said.err.contains("cannot write the output"), "{said:?}");
    }
}

// contract: HOOK-4
#[test]
fn a_selection_that_is_refused_names_its_reason() {
    let chat = Chat::with_diary().variable("DIARY_KEEP", "1");
    chat.echo();
    let (value, said) = chat.json(&["-q", "x"]);
    assert_eq!(
        (said.code, &value["answer"]),
        (Some(0), &json!("answer to: x"))
    );
    let warnings = value["warnings"].as_array().expect("a list");
    assert_eq!(warnings.len(), 1, "{value}");
    let text = warnings[0].as_str().expect("text");
    for word in [
        "'diary'",
        "select_context",
        "keep of 3 messages from 4000 on, but list 0 has",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

// contract: TOOL-3, ENG-11
#[test]
fn tools_that_nobody_carries_out_are_told_with_what_to_do() {
    let chat = Chat::new();
    let library = compile_c(
        workspace().join("tests/misfit/diary.c"),
        &["DIARY_HALF_TOOLS"],
    );
    let _ = chat
        .home
        .plugin("diary")
        .manifest("name: diary\nlibrary: diary.so\n")
        .library("diary.so", &library);
    let (why, code) = chat.home.json(&["plugins", "why", "diary"]);
    assert_eq!((code, &why["serves"]), (0, &json!(true)), "{why}");
    let probe = why["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .find(|step| step["step"] == "probe")
        .expect("a step");
    assert_eq!(probe["ok"], true);
    assert!(
        probe["detail"]
            .as_str()
            .is_some_and(|text| text.contains("no `tool_call`"))
            && probe["fix"]
                .as_str()
                .is_some_and(|text| text.contains("fill the slot")),
        "{probe}"
    );

    chat.echo();
    let config = chat.provider.config(128_000);
    chat.home
        .config(&format!("{config}context:\n  engine: diary\n"));
    let (value, said) = chat.json(&["-q", "x"]);
    assert_eq!((said.code, &value["engine"]), (Some(0), &json!("diary")));
    let warnings = value["warnings"].as_array().expect("a list");
    assert_eq!(warnings.len(), 1, "{value}");
    let text = warnings[0].as_str().expect("text");
    assert!(
        text.contains("'diary'")
            && text.contains("no `tool_call`")
            && text.contains("fill the slot"),
        "{text}"
    );
}
