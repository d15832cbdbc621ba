//! The report: its shape, its counts, and that the same input gives the same one.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use hermes_tests::Home;
use serde_json::{Value, json};

use super::{array, file, session, turns, with_window};

/// A report without what a clock measured.
fn untimed(mut report: Value) -> Value {
    for conversation in report.as_array_mut().expect("an array") {
        for engine in conversation["engines"].as_array_mut().expect("engines") {
            for key in ["host_us", "engine_us"] {
                assert!(engine[key]["p50"].is_number() && engine[key]["p99"].is_number());
                engine[key] = Value::Null;
            }
        }
    }
    report
}

// case: 64
#[test]
fn the_report_has_every_key_and_counts_requests_as_it_should() {
    let home = Home::new();
    let mut messages = turns(3);
    messages.push(json!({"role": "user", "content": "and now?"}));
    let talk = file(&home, "talk.json", &array(&messages));
    let (report, status) =
        home.json(&["replay", &talk, "--context-length", "9000", "--model", "m"]);
    assert_eq!(status, 0);
    let conversation = &report[0];
    let expected = json!([talk, 0, 14, 9000, "estimate", []]);
    let keys = [
        "file",
        "conversation",
        "messages",
        "context_length",
        "tokens",
        "repairs",
    ];
    assert_eq!(
        Value::from(keys.map(|key| conversation[key].clone()).to_vec()),
        expected
    );
    let engine = &conversation["engines"][0];
    // Two for each turn, and one for the question that nobody has answered.
    assert_eq!(engine["requests"], 7);
    assert_eq!(engine["final_messages"], 14);
    assert_eq!(engine["loaded_from"], "built-in");
    assert_eq!(engine["fallback"], Value::Null);
    for key in [
        "prompt_tokens",
        "peak_tokens",
        "compressions",
        "refused",
        "prefix_reuse",
    ] {
        assert!(engine[key].is_number(), "{key}");
    }
    assert_eq!(engine["violations"], json!([]));
    messages.pop();
    let talk = file(&home, "answered.json", &array(&messages));
    let (report, _) = home.json(&["replay", &talk]);
    assert_eq!(report[0]["engines"][0]["requests"], 6);
    assert_eq!(report[0]["context_length"], 128_000);
}

#[test]
fn faults_of_the_recording_are_repairs_and_no_violations() {
    let home = Home::new();
    let messages = [
        json!({"role": "user", "content": "one"}),
        json!({"role": "user", "content": "two"}),
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}]}),
        json!({"role": "user", "content": "never mind"}),
        json!({"role": "tool", "tool_call_id": "x", "content": "late"}),
        json!({"role": "assistant", "content": ""}),
        json!({"role": "user", "content": "still there?"}),
    ];
    let talk = file(
        &home,
        "broken.jsonl",
        &messages
            .iter()
            .map(|message| format!("{message}\n"))
            .collect::<String>(),
    );
    let (report, status) = home.json(&["replay", &talk]);
    assert_eq!(
        (status, &report[0]["engines"][0]["violations"]),
        (0, &json!([]))
    );
    let rules: Vec<(u64, &str)> = report[0]["repairs"]
        .as_array()
        .expect("repairs")
        .iter()
        .map(|repair| {
            (
                repair["message"].as_u64().expect("a number"),
                repair["rule"].as_str().expect("a rule"),
            )
        })
        .collect();
    for expected in [
        (1, "adjacent-users"),
        (2, "call-without-result"),
        (4, "result-without-call"),
        (5, "empty-content"),
    ] {
        assert!(rules.contains(&expected), "{expected:?} in {rules:?}");
    }
}

// contract: HOOK-9, UID-9
#[test]
fn requests_are_written_as_they_went_out() {
    let home = Home::new();
    with_window(&home);
    let out = home.outside().join("requests.jsonl");
    let mut messages = turns(20);
    messages[1]["message_uid"] = json!("0123456789abcdef0123456789abcdef");
    messages[3]["_tool_call_uid"] = json!("t");
    messages[4]["timestamp"] = json!("2026-01-01");
    let talk = file(&home, "talk.json", &json!({"messages": messages, "tools": [{"type": "function", "function": {"name": "read"}}]}).to_string());
    let out_name = out.to_str().expect("UTF-8");
    let (report, status) = home.json(&[
        "replay",
        &talk,
        "--requests",
        out_name,
        "--engine",
        "compressor",
        "--engine",
        "window",
        "--context-length",
        "4000",
    ]);
    assert_eq!(status, 0);
    let lines: Vec<String> = fs::read_to_string(&out)
        .expect("written")
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(lines.len(), 80);
    for key in hermes_message::PERSISTENCE_ONLY_MESSAGE_FIELDS {
        assert!(
            !lines.iter().any(|line| line.contains(&format!("{key:?}"))),
            "{key} on the wire"
        );
    }
    for engine in report[0]["engines"].as_array().expect("engines") {
        assert!(engine["compressions"].as_u64() > Some(0), "{engine}");
        let bodies: Vec<Value> = lines
            .iter()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
            .filter(|line| line["engine"] == engine["engine"])
            .collect();
        assert!(
            bodies
                .iter()
                .enumerate()
                .all(|(at, line)| line["request"] == at
                    && line["body"]["tools"][0]["function"]["name"] == "read")
        );
        let lists: Vec<String> = bodies
            .iter()
            .map(|line| line["body"]["messages"].to_string())
            .collect();
        let (mut same, mut all) = (0, 0);
        for pair in lists.windows(2) {
            same += pair[0]
                .bytes()
                .zip(pair[1].bytes())
                .take_while(|(a, b)| a == b)
                .count();
            all += pair[1].len();
        }
        #[allow(clippy::cast_precision_loss)]
        let expected = same as f64 / all as f64;
        let told = engine["prefix_reuse"].as_f64().expect("a number");
        assert!((told - expected).abs() < 1e-9, "{told} is not {expected}");
    }
}

#[test]
fn the_same_recording_gives_the_same_report() {
    let home = Home::new();
    let run = || {
        untimed(
            home.json(&["replay", &session(), "--context-length", "32768"])
                .0,
        )
    };
    assert_eq!(run(), run());
}

#[test]
fn a_real_vocabulary_can_count() {
    let home = Home::new();
    let talk = file(&home, "talk.json", &array(&turns(5)));
    let count = |tokens: &str| {
        let (report, _) = home.json(&["replay", &talk, "--tokens", tokens]);
        assert_eq!(report[0]["tokens"], tokens);
        report[0]["engines"][0]["prompt_tokens"]
            .as_f64()
            .expect("a number")
    };
    let (estimate, real) = (count("estimate"), count("o200k"));
    assert!(
        (0.5..2.0).contains(&(estimate / real)),
        "{estimate} against {real}"
    );
    assert!((estimate - real).abs() > 0.0, "two ways to count");
}

/// What a session was taken back or archived is no part of the conversation that its export describes.
#[test]
fn an_exported_session_is_replayed_as_it_stands() {
    let home = Home::new();
    home.config("model:\n  provider: scripted\n");
    let mut chat = home.command();
    chat.arg("chat").stdin(Stdio::piped());
    chat.stdout(Stdio::null());
    let mut chat = chat.spawn().expect("hermes runs");
    let mut typed = chat.stdin.take().expect("a pipe");
    typed
        .write_all(b"alpha\nbravo\ncharlie\n/rewind\ndelta\n")
        .expect("typed");
    drop(typed);
    assert!(chat.wait().expect("it ends").success());
    let (list, _) = home.json(&["sessions", "list"]);
    let id = list[0]["id"].as_str().expect("an id").to_owned();
    let exported = home.run(&["sessions", "export", &id]);
    let talk = file(
        &home,
        "talk.jsonl",
        &String::from_utf8_lossy(&exported.stdout),
    );
    assert!(String::from_utf8_lossy(&exported.stdout).contains("charlie"));
    let requests = home.outside().join("requests.jsonl");
    let asked = requests.to_str().expect("a path");
    let (_, status) = home.json(&["replay", &talk, "--requests", asked]);
    assert_eq!(status, 0);
    let sent = fs::read_to_string(&requests).expect("requests");
    assert_eq!(sent.lines().count(), 3, "{sent}");
    assert!(
        sent.contains("delta") && !sent.contains("charlie"),
        "{sent}"
    );
}

#[test]
fn a_request_stays_on_its_line_however_the_file_is_laid_out() {
    let home = Home::new();
    let messages = serde_json::to_string_pretty(&turns(3)).expect("json");
    let talk = file(&home, "talk.json", &messages);
    let requests = home.outside().join("requests.jsonl");
    let asked = requests.to_str().expect("a path");
    let (_, status) = home.json(&["replay", &talk, "--requests", asked]);
    assert_eq!(status, 0);
    let sent = fs::read_to_string(&requests).expect("requests");
    assert_eq!(sent.lines().count(), 6, "two a turn");
    for line in sent.lines() {
        let request: Value = serde_json::from_str(line).expect("one request a line");
        assert!(request["body"]["messages"].is_array(), "{line}");
    }
}
