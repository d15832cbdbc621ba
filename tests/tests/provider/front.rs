//! What comes of a provider's answers at the front door: `hermes chat -q`.

use std::fs;

use hermes_tests::{Behaviour, FakeProvider, Home};
use serde_json::Value;

/// The program's answer to a question, as JSON, and what it says beside it.
fn asked(home: &Home, more: &[&str]) -> (Value, String) {
    let output = home
        .command()
        .args(["chat", "-q", "hello", "--json"])
        .args(more)
        .current_dir(home.outside())
        // Retries come at once.
        .env("HERMES_RETRY_SCALE", "0.001")
        .output()
        .expect("hermes runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (value, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_web_page_in_place_of_an_answer_is_asked_for_once() {
    let server = FakeProvider::start();
    let home = Home::new();
    home.config(&server.config(100_000));
    for page in [
        "<html><body>Welcome to the <b>router</b></body></html>",
        "\n  <!DOCTYPE html>\n<title>Login to the router</title>",
        "\u{feff}<!-- made by hand --><HTML>router</HTML>",
        "<?xml version=\"1.0\"?><html>router</html>",
    ] {
        server.default(Behaviour::status(200, page).header("Content-Type", "text/html"));
        let (value, said) = asked(&home, &[]);
        assert_eq!(value["outcome"], "failed", "{page}: {value}");
        let told = format!("{value}{said}");
        assert!(
            told.contains("is model.base_url right") && told.contains("router"),
            "{page}: {told}"
        );
        assert!(!told.contains("<b>"), "{told}");
        assert_eq!(server.take_requests().len(), 1, "{page}");
    }
    // Whereas an answer that is empty may well come right.
    server.push(Behaviour::status(200, ""));
    server.push(Behaviour::text("fine"));
    assert_eq!(asked(&home, &[]).0["answer"], "fine");
}

#[test]
fn a_character_that_two_events_share_arrives_whole() {
    let server = FakeProvider::start();
    let home = Home::new();
    home.config(&server.config(100_000));
    fs::write(home.outside().join("smile\u{1f600}.txt"), "here\n").expect("a file");
    let delta = |delta: &str| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
    let call = |more: &str| delta(&format!(r#"{{"tool_calls":[{{"index":0,{more}}}]}}"#));
    let end = |why: &str| {
        format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{why}"}}]}}"#)
    };
    server.push(Behaviour::events(&[
        &delta(r#"{"reasoning_content":"hm \ud83d"}"#),
        &delta(r#"{"reasoning_content":"\ude01"}"#),
        &call(r#""id":"c","function":{"name":"read_file","arguments":"{\"path\": \"smile\ud83d"}"#),
        &call(r#""function":{"arguments":"\ude00.txt\"}"}"#),
        &end("tool_calls"),
        "[DONE]",
    ]));
    server.push(Behaviour::events(&[
        &delta(r#"{"content":"good \ud83d"}"#),
        &delta(r#"{"content":"\ude00 day \ud83d"}"#),
        &end("stop"),
        "[DONE]",
    ]));
    let (value, said) = asked(&home, &[]);
    assert_eq!(value["answer"], "good \u{1f600} day \u{fffd}", "{said}");
    let sent = server.requests()[1].messages();
    let [.., call, result] = &sent[..] else {
        panic!("{sent:?}")
    };
    assert_eq!(
        call["tool_calls"][0]["function"]["arguments"],
        "{\"path\": \"smile\u{1f600}.txt\"}"
    );
    assert!(result["content"].to_string().contains("1|here"), "{result}");
    let id = value["session_id"].as_str().expect("an id");
    let (shown, _) = home.json(&["sessions", "show", id]);
    assert!(shown.to_string().contains("hm \u{1f601}"), "{shown}");
}
