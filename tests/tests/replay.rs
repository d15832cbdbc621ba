//! `hermes replay` and `hermes compress`, through the real program.

#[path = "replay/compress.rs"]
mod compress;
#[path = "replay/engines.rs"]
mod engines;
#[path = "replay/inputs.rs"]
mod inputs;
#[path = "replay/report.rs"]
mod report;

use std::fs;
use std::path::PathBuf;

use hermes_tests::Home;
use serde_json::{Value, json};

/// The session that comes with the project.
fn session() -> String {
    path(hermes_tests::workspace().join("examples/session.jsonl"))
}

fn path(path: PathBuf) -> String {
    path.into_os_string().into_string().expect("UTF-8")
}

/// Writes a conversation into a folder of this test.
fn file(home: &Home, name: &str, content: &str) -> String {
    let file = home.outside().join(name);
    fs::write(&file, content).expect("written");
    path(file)
}

/// So many turns of a question, a tool call with its result and an answer, behind a system prompt.
fn turns(count: usize) -> Vec<Value> {
    let mut messages =
        vec![json!({"role": "system", "content": "You are Hermes. RULE-7: never push."})];
    for turn in 0..count {
        let id = format!("call_{}", turn % 3);
        messages.push(
            json!({"role": "user", "content": format!("question {turn}: read file {turn}.rs")}),
        );
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
            "function": {"name": "read", "arguments": format!("{{\"path\":\"{turn}.rs\"}}")}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": format!("fn number_{turn}() {{ {} }}", "work(); ".repeat(150))}));
        messages.push(json!({"role": "assistant", "content": format!("file {turn}.rs has one function, number_{turn}")}));
    }
    messages
}

fn array(messages: &[Value]) -> String {
    Value::from(messages).to_string()
}

/// The window engine, as it comes with the program.
fn with_window(home: &Home) {
    let _ = home
        .bundled_plugin("window")
        .manifest("name: window\n")
        .library("libwindow.so", hermes_tests::built().library("window"));
}

/// An engine whose results are wrong; `wrong.c` says in which ways.
fn with_wrong(home: &Home, compress: &str, select: &str) {
    let source = hermes_tests::workspace().join("tests/tests/replay/wrong.c");
    let library = hermes_tests::Compile::source(source)
        .define(&format!("ON_COMPRESS={compress}"))
        .define(&format!("ON_SELECT={select}"))
        .library();
    let _ = home
        .plugin("wrong")
        .manifest("name: wrong\n")
        .library("libwrong.so", &library);
}
