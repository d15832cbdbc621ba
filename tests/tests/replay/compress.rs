//! `hermes compress`.

use std::fs;

use hermes_tests::Home;
use serde_json::{Value, json};

use super::{array, file, turns, with_wrong};

const SMALL: [&str; 2] = ["--context-length", "4000"];

fn compress(home: &Home, arguments: &[&str]) -> (Value, i32) {
    let all: Vec<&str> = ["compress"]
        .iter()
        .chain(arguments)
        .chain(&SMALL)
        .copied()
        .collect();
    home.json(&all)
}

/// A long talk with an open question at its end.
fn long_talk() -> Vec<Value> {
    let mut messages = turns(30);
    messages.push(json!({"role": "user", "content": "task 9: what is 2+2?"}));
    messages
}

// case: 5, 11
#[test]
fn the_system_prompt_and_the_open_question_come_out_as_they_went_in() {
    let home = Home::new();
    let mut messages = long_talk();
    for round in 0..5 {
        let talk = file(&home, "talk.json", &array(&messages));
        let (value, status) = compress(&home, &[&talk]);
        assert_eq!(status, 0, "{value}");
        assert_eq!(value["outcome"], "compressed", "round {round}");
        assert!(value["tokens_after"].as_u64() < value["tokens_before"].as_u64());
        let after = value["messages"].as_array().expect("messages");
        assert_eq!(value["messages_after"], after.len());
        assert_eq!(after[0], messages[0], "round {round}");
        assert_eq!(
            after
                .iter()
                .filter(|message| message["role"] == "system")
                .count(),
            1
        );
        let asked = after
            .iter()
            .rfind(|message| message["role"] == "user")
            .expect("a user message");
        assert!(
            asked["content"]
                .as_str()
                .is_some_and(|text| text.contains("task 9: what is 2+2?")),
            "round {round}: {asked}"
        );
        messages = after.clone();
        messages.push(json!({"role": "assistant", "content": "4"}));
        messages.extend(turns(12).into_iter().skip(1));
        messages.push(json!({"role": "user", "content": "task 9: what is 2+2?"}));
    }
}

// case: 10
#[test]
fn a_system_message_in_the_middle_is_no_prompt() {
    let home = Home::new();
    for with_prompt in [false, true] {
        let mut messages = long_talk();
        messages.insert(
            21,
            json!({"role": "system", "content": "user was idle 10 min"}),
        );
        if !with_prompt {
            messages.remove(0);
        }
        let talk = file(&home, "talk.json", &array(&messages));
        let (value, status) = compress(&home, &[&talk]);
        assert_eq!(
            (status, &value["outcome"]),
            (0, &json!("compressed")),
            "{value}"
        );
        let after = value["messages"].as_array().expect("messages");
        let leading = after
            .iter()
            .take_while(|message| message["role"] == "system")
            .count();
        assert_eq!(leading, usize::from(with_prompt));
    }
}

#[test]
fn the_result_comes_in_the_container_of_the_input() {
    let home = Home::new();
    let messages = long_talk();
    let lines: String = messages
        .iter()
        .map(|message| format!("{message}\n"))
        .collect();
    let two = json!({"messages": messages, "id": 7});
    let containers = [
        ("array.json", array(&messages), None),
        (
            "object.json",
            json!({"id": 7, "messages": messages, "n": 1.50}).to_string(),
            None,
        ),
        ("lines.jsonl", lines, None),
        ("dialogues.jsonl", format!("{two}\n{two}\n"), Some("1")),
    ];
    for (name, content, conversation) in containers {
        let talk = file(&home, name, &content);
        let out = home.outside().join("out");
        let out_name = out.to_str().expect("UTF-8");
        let mut arguments = vec![talk.as_str(), "-o", out_name];
        if let Some(number) = conversation {
            let (value, status) = compress(&home, &[&talk]);
            assert_eq!(
                (status, value["error"]["kind"].as_str()),
                (2, Some("usage"))
            );
            arguments.extend(["--conversation", number]);
        }
        let (value, status) = compress(&home, &arguments);
        assert_eq!(
            (status, value.get("messages")),
            (0, None),
            "{name}: {value}"
        );
        let written = fs::read_to_string(&out).expect("written");
        let shape = |text: &str| {
            (
                text.starts_with('['),
                text.lines().count() > 1,
                text.contains("\"id\":7"),
            )
        };
        assert_eq!(shape(&written), shape(&content), "{name}");
        let (again, status) = home.json(&["replay", out_name]);
        assert_eq!(status, 0, "{name}");
        let index = conversation.map_or(0, |_| 1);
        assert_eq!(again[index]["messages"], value["messages_after"], "{name}");
        if conversation.is_some() {
            assert_eq!(
                written.lines().next(),
                content.lines().next(),
                "the other conversation is untouched"
            );
        }
    }
}

// contract: UID-18
#[test]
fn identity_is_kept_and_none_is_minted() {
    let home = Home::new();
    let mut messages = long_talk();
    for (at, message) in messages.iter_mut().enumerate() {
        if at % 2 == 0 {
            message["message_uid"] = json!(format!("uid-{at}"));
        }
    }
    let talk = file(&home, "talk.json", &array(&messages));
    let (value, _) = compress(&home, &[&talk]);
    let after = value["messages"].as_array().expect("messages");
    let carried = after
        .iter()
        .filter(|message| message.get("message_uid").is_some())
        .count();
    assert!(carried > 2, "{carried}");
    let kept = |message: &&Value| messages.contains(message);
    assert!(
        after.iter().filter(kept).count() >= 4,
        "kept messages are the ones of the input, uids included"
    );
    let minted = after
        .iter()
        .filter_map(|message| message["message_uid"].as_str())
        .find(|uid| !uid.starts_with("uid-"));
    assert_eq!(minted, None);
}

#[test]
fn nothing_to_do_gives_the_input_back() {
    let home = Home::new();
    let content = "[ {\"role\":\"user\", \"content\":\"h\\u0069\",\"n\":1.50} ]\n";
    let talk = file(&home, "short.json", content);
    let output = home.run(&["compress", &talk]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), content);
    let (value, status) = compress(&home, &[&talk]);
    assert_eq!((status, value["outcome"].as_str()), (0, Some("unchanged")));
    assert!(
        value["reason"]
            .as_str()
            .is_some_and(|reason| !reason.is_empty()),
        "{value}"
    );
}

#[test]
fn a_scripted_helper_writes_the_summary() {
    let home = Home::new();
    let talk = file(&home, "talk.json", &array(&long_talk()));
    let summary = format!(
        "## Goal\nRead the files.\n\n## Completed actions\n{}",
        "The files were read one by one, and each has one function. ".repeat(12)
    );
    let script = file(&home, "script.json", &json!([summary]).to_string());
    let scripted = format!("scripted:{script}");
    let (value, status) = compress(&home, &[&talk, "--summarizer", &scripted]);
    assert_eq!(
        (status, &value["outcome"]),
        (0, &json!("compressed")),
        "{value}"
    );
    assert!(
        value["messages"]
            .to_string()
            .contains("each has one function"),
        "{value}"
    );
    let missing = compress(&home, &[&talk, "--summarizer", "scripted:/nowhere"]);
    assert_eq!(missing.0["error"]["kind"], "input");
}

#[test]
fn more_of_the_end_stays_when_more_is_protected() {
    let home = Home::new();
    let talk = file(&home, "talk.json", &array(&turns(30)));
    let left = |flags: &[&str]| {
        let arguments: Vec<&str> = ["compress", &talk, "--context-length", "40000"]
            .iter()
            .chain(flags)
            .copied()
            .collect();
        let (value, _) = home.json(&arguments);
        value["messages_after"].as_u64().expect("a number")
    };
    assert!(left(&["--protect-first", "20"]) > left(&["--protect-first", "0"]));
}

// contract: PASS-6
#[test]
fn a_pass_that_fails_writes_nothing() {
    if !hermes_tests::has_compiler() {
        println!("skipped: there is no C compiler");
        return;
    }
    for (does, outcome) in [
        ("empty", "refused"),
        ("garbage", "failed"),
        ("half", "failed"),
    ] {
        let home = Home::new();
        with_wrong(&home, does, "fine");
        let talk = file(&home, "talk.json", &array(&long_talk()));
        let out = file(&home, "out.json", "before");
        let (value, status) = compress(&home, &[&talk, "-o", &out, "--engine", "wrong"]);
        assert_eq!(
            (status, value["outcome"].as_str()),
            (1, Some(outcome)),
            "{does}: {value}"
        );
        assert!(
            value["error"]["message"]
                .as_str()
                .is_some_and(|text| text.contains("wrong")),
            "{value}"
        );
        assert_eq!(fs::read_to_string(&out).expect("read"), "before", "{does}");
    }
}

// case: 26
#[test]
fn few_but_huge_messages_are_made_to_fit() {
    let home = Home::new();
    let huge = "a line of text with words\n".repeat(66_000);
    let call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "c", "content": huge});
    let (prompt, question) = (
        json!({"role": "system", "content": "sys"}),
        json!({"role": "user", "content": "read it"}),
    );
    let talks = [
        vec![
            prompt.clone(),
            question.clone(),
            call,
            result,
            json!({"role": "user", "content": "and?"}),
        ],
        vec![
            prompt,
            question,
            json!({"role": "assistant", "content": "ok"}),
            json!({"role": "user", "content": huge}),
        ],
    ];
    for (number, messages) in talks.iter().enumerate() {
        let talk = file(&home, "huge.json", &array(messages));
        let (report, status) = home.json(&["replay", &talk, "--context-length", "131072"]);
        let engine = &report[0]["engines"][0];
        assert_eq!((status, &engine["violations"]), (0, &json!([])), "{number}");
        assert_eq!(engine["over_window"], 0, "{number}: {engine}");
        assert_eq!(
            engine["final_messages"],
            messages.len(),
            "{number}: nothing is dropped"
        );
    }
}
