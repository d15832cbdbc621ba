//! A Rust engine that misbehaves in every slot, under the real program: the conversation is what it would have been
//! without it.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use hermes_tests::{Home, built};
use serde_json::Value;

/// A window in which nothing has to be compressed, and one in which everything has.
const WIDE: &str = "128000";
const NARROW: &str = "2000";

/// A home with the engine, which does `action` in `slot`, and a conversation of 30 turns.
fn home(slot: &str, action: &str) -> (Home, PathBuf) {
    let home = Home::new();
    let _ = home
        .plugin("panics")
        .manifest("name: panics\nversion: 0.1.0\n")
        .library("libpanics.so", built().library("panics"));
    // The engine triggers at 75 % of the window; short budgets, so that a sleeping slot costs the test little.
    home.config(&format!(
        "panics:\n  {slot}: {action}\ncontext:\n  timeouts:\n    hooks: 1\n    state: 1\n    session: 1\n"
    ));
    let mut text = String::from("{\"role\":\"system\",\"content\":\"Be brief.\"}\n");
    for turn in 0..30 {
        let words = "a few words to fill the window ".repeat(8);
        let _ = writeln!(
            text,
            "{{\"role\":\"user\",\"content\":\"question {turn}: {words}\"}}"
        );
        let _ = writeln!(
            text,
            "{{\"role\":\"assistant\",\"content\":\"answer {turn}: {words}\"}}"
        );
    }
    let file = home.outside().join("talk.jsonl");
    fs::write(&file, text).expect("written");
    (home, file)
}

/// Replays with one engine: the report, and the bodies of all requests.
fn replay(
    home: &Home,
    file: &std::path::Path,
    engine: &str,
    window: &str,
) -> (Value, Vec<String>, String) {
    let requests = home.outside().join(format!("{engine}.jsonl"));
    let output = home
        .command()
        .args([
            "replay",
            "--json",
            "--engine",
            engine,
            "--context-length",
            window,
            "--requests",
        ])
        .arg(&requests)
        .arg(file)
        .output()
        .expect("hermes runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{engine}: {error}\n{stderr}"));
    let bodies = fs::read_to_string(&requests).unwrap_or_default();
    let bodies = bodies
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a JSON line")["body"].to_string())
        .collect();
    (report, bodies, stderr)
}

// contract: HOOK-2, HOOK-6, SAFE-2, SAFE-4
// case: 52
#[test]
fn a_panic_in_any_slot_leaves_every_request_as_it_would_have_been() {
    let (reference, file) = home("nothing", "nothing");
    let (_, expected, _) = replay(&reference, &file, "compressor", WIDE);
    assert_eq!(expected.len(), 30, "one request an answer");
    for action in [
        "panic",
        "panic with a number",
        "fail",
        "thread",
        "tls",
        "trace",
    ] {
        for slot in [
            "select_context",
            "turn_complete",
            "should_compress",
            "preflight",
            "update_from_response",
            "update_model",
            "session_start",
            "session_end",
            "session_reset",
            "pass_result",
            "status",
            "state",
            "drop",
            "tool_schemas",
        ] {
            if action != "panic"
                && !matches!(
                    slot,
                    "select_context" | "turn_complete" | "update_from_response"
                )
            {
                continue;
            }
            let (home, file) = home(slot, action);
            let (report, bodies, stderr) = replay(&home, &file, "panics", WIDE);
            assert_eq!(bodies, expected, "{action} in {slot}\n{stderr}");
            let engine = &report[0]["engines"][0];
            assert_eq!(engine["requests"], 30, "{action} in {slot}: {report}");
            assert_eq!(
                engine["violations"],
                serde_json::json!([]),
                "{action} in {slot}"
            );
            // The terminal is not the engine's: its panic text goes to the log, not to stderr as the runtime prints it.
            assert!(
                !stderr.contains("RUST_BACKTRACE"),
                "{action} in {slot}: {stderr}"
            );
        }
    }
}

// contract: HOOK-2, PASS-6, SAFE-4
// case: 52
#[test]
fn a_panic_in_compress_costs_the_pass_and_not_the_conversation() {
    for action in ["panic", "fail"] {
        let (home, file) = home("compress", action);
        let (report, bodies, stderr) = replay(&home, &file, "panics", NARROW);
        let engine = &report[0]["engines"][0];
        assert_eq!(bodies.len(), 30, "{action}: {report}\n{stderr}");
        assert_eq!(
            engine["violations"],
            serde_json::json!([]),
            "{action}: {report}"
        );
        assert!(
            stderr.contains("panics"),
            "{action}: the user is told which engine: {stderr}"
        );
        assert!(
            stderr.contains("compress"),
            "{action}: and what it failed at: {stderr}"
        );
    }
}

// contract: SEL-5, CLONE-4
// case: 39, 52
#[test]
fn a_panic_while_it_is_made_puts_the_built_in_in_its_place() {
    for slot in ["create", "clone"] {
        let (home, file) = home(slot, "panic");
        // Named on the command line it is an error with its reason.
        let output = home
            .command()
            .args(["replay", "--json", "--engine", "panics"])
            .arg(&file)
            .output()
            .expect("hermes runs");
        let error: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
        assert_eq!(output.status.code(), Some(2), "{slot}: {error}");
        assert!(
            error["error"]["message"]
                .as_str()
                .is_some_and(|text| text.contains("boom in")),
            "{slot}: {error}"
        );
        // Named in config.yaml, the built-in serves.
        let config = fs::read_to_string(home.path().join("config.yaml")).expect("there");
        home.config(&config.replace("context:\n", "context:\n  engine: panics\n"));
        let output = home
            .command()
            .args(["replay", "--json"])
            .arg(&file)
            .output()
            .expect("hermes runs");
        let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
        assert_eq!(output.status.code(), Some(0), "{slot}: {report}");
        let engine = &report[0]["engines"][0];
        assert_eq!(
            (&engine["engine"], &engine["fallback"]["wanted"]),
            (&"compressor".into(), &"panics".into())
        );
        let stderr = String::from_utf8_lossy(&output.stderr);
        let copied = "Context engine 'panics' could not be safely copied for this agent";
        assert_eq!(stderr.contains(copied), slot == "clone", "{stderr}");
    }
}

// case: 52, 54
#[test]
fn what_an_engine_traces_and_panics_with_is_in_the_log() {
    let (home, file) = home("turn_complete", "trace");
    let _ = replay(&home, &file, "panics", WIDE);
    let (second, file) = self::home("select_context", "panic");
    let _ = replay(&second, &file, "panics", WIDE);
    let (third, file) = self::home("turn_complete", "thread");
    let _ = replay(&third, &file, "panics", WIDE);
    for (home, expected) in [
        (home, "traced slot=\"turn_complete\" number=7"),
        (second, "boom in select_context"),
        (third, "boom in a thread"),
    ] {
        let log = fs::read_to_string(home.path().join("logs/hermes.log")).unwrap_or_default();
        assert!(
            log.contains(expected),
            "{expected} is not in the log:\n{log}"
        );
    }
}

// case: 52
#[test]
fn an_engine_that_took_the_process_down_is_set_aside_until_it_is_chosen_again() {
    let (home, file) = home("compress", "abort");
    let run = || {
        let mut command = home.command();
        command.args([
            "replay",
            "--json",
            "--engine",
            "panics",
            "--context-length",
            NARROW,
        ]);
        command.arg(&file).output().expect("hermes runs")
    };
    assert_eq!(run().status.code(), None, "killed by a signal");
    let second = run();
    let error = String::from_utf8_lossy(&second.stdout).into_owned();
    assert_eq!(second.status.code(), Some(2), "{error}");
    assert!(
        error.contains("set aside") && error.contains("compress"),
        "{error}"
    );
    let (list, _) = home.json(&["plugins", "list"]);
    assert_eq!(list[1]["status"], "broken", "{list}");
    // Mended, and chosen by hand: it has another chance.
    home.config("panics: {}\n");
    assert!(home.run(&["plugins", "use", "panics"]).status.success());
    assert_eq!(run().status.code(), Some(0));
}

// contract: PASS-10
#[test]
fn an_engine_that_was_still_busy_at_the_end_is_not_taken_for_one_that_crashed() {
    let (home, file) = home("turn_complete", "sleep");
    for _ in 0..2 {
        let started = std::time::Instant::now();
        let (report, bodies, stderr) = replay(&home, &file, "panics", WIDE);
        assert_eq!(bodies.len(), 30, "{report}\n{stderr}");
        // Two given-up calls at a second and a second of grace each, and two seconds for the end.
        println!("{:?}", started.elapsed());
    }
    let (why, exit) = home.json(&["plugins", "why", "panics"]);
    assert_eq!((&why["serves"], exit), (&Value::Bool(true), 0), "{why}");
}
