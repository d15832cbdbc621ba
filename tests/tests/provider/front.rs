//! What comes of a provider's answers at the front door: `hermes chat -q`.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use hermes_tests::{Behaviour, FakeProvider, Home};
use serde_json::Value;

/// `hermes chat` without the tester's own keys.
fn chat(home: &Home, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = home.command();
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.ends_with("_API_KEY") || name.ends_with("_BASE_URL") {
            command.env_remove(&*name);
        }
    }
    command
        .arg("chat")
        .args(arguments)
        .current_dir(home.outside())
        // Retries come at once.
        .env("HERMES_RETRY_SCALE", "0.001")
        .envs(variables.iter().copied());
    command
}

/// The program's answer to a question, as JSON, and what it says beside it.
fn asked_with(home: &Home, more: &[&str], variables: &[(&str, &str)]) -> (Value, String) {
    let mut arguments = vec!["-q", "hello", "--json"];
    arguments.extend(more);
    let output = chat(home, &arguments, variables)
        .output()
        .expect("hermes runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (value, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn asked(home: &Home, more: &[&str]) -> (Value, String) {
    asked_with(home, more, &[])
}

/// What a conversation of these lines prints, on both streams.
fn talked(home: &Home, lines: &str, variables: &[(&str, &str)]) -> String {
    let mut child = chat(home, &[], variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("hermes runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(lines.as_bytes()).expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("output");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
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

// contract: CFG-6
#[test]
fn nobody_else_is_asked_when_the_configuration_cannot_be_read() {
    let (own, other) = (FakeProvider::start(), FakeProvider::start());
    let home = Home::new();
    let url = other.url();
    let variables = [
        ("OPENAI_API_KEY", "sk-of-openai"),
        ("OPENAI_BASE_URL", &*url),
    ];
    let model = format!(
        "model:\n  default: mine\n  provider: custom\n  base_url: {}\n",
        own.url()
    );
    for (config, place) in [
        (format!("{model}context: [open\n"), "config.yaml:6:1"),
        (format!("{model}\tcontext: x\n"), "config.yaml:5:1"),
        (
            format!("model:\n  default: mine\n  base_url: [{}]\n", own.url()),
            "config.yaml:3:",
        ),
        (format!("model: [mine, {}]\n", own.url()), "config.yaml:1:"),
        ("- model: mine\n".to_owned(), "config.yaml:1:"),
    ] {
        home.config(&config);
        for more in [&["--model", "gpt-4o"][..], &[]] {
            let (value, said) = asked_with(&home, more, &variables);
            let error = value["error"]["message"].as_str().unwrap_or_default();
            assert!(
                error.contains(place) && error.contains("no other one is asked"),
                "{config} {more:?}: {value} {said}"
            );
            assert!(
                value["error"]["hint"]
                    .to_string()
                    .contains("hermes config check")
            );
        }
    }
    assert!(own.all_requests().is_empty() && other.all_requests().is_empty());
    // What is broken says nothing about a model: then the variables are all that the user has said.
    for config in ["context:\n  engine: [open\n", "- a list\n"] {
        home.config(config);
        let (value, said) = asked_with(&home, &["--model", "gpt-4o"], &variables);
        assert_eq!(value["answer"], "ok", "{value} {said}");
        assert!(said.contains("config.yaml"), "{said}");
        assert_eq!(other.take_requests().len(), 1);
    }
}

#[test]
fn a_provider_of_the_map_has_an_address_a_key_and_windows() {
    let server = FakeProvider::start();
    let home = Home::new();
    let entry = format!(
        "api: {}/\n    name: The Lab\n    key_env: LAB_KEY\n    default_model: big\n    context_length: 7777\n    models:\n      big: {{context_length: 4321}}\n      small: {{context_length: 1234}}\n      odd: {{}}\n",
        server.url()
    );
    let list = entry
        .replace("\n    ", "\n  ")
        .replace("api:", "- base_url:")
        .replace("The Lab", "lab");
    let variables = [("LAB_KEY", "lab-key"), ("OPENAI_API_KEY", "sk-of-openai")];
    for config in [
        format!("model:\n  provider: lab\nproviders:\n  lab:\n    {entry}"),
        format!("model:\n  provider: custom:the-lab\nproviders:\n  x1:\n    {entry}"),
        format!(
            "model:\n  default: big\n  base_url: {}\nproviders:\n  lab:\n    {entry}",
            server.url()
        ),
        format!("model:\n  provider: Lab\n  default: big\ncustom_providers:\n{list}"),
    ] {
        home.config(&config);
        let said = talked(
            &home,
            "/status\nhello\n/model small\n/model odd\n",
            &variables,
        );
        for window in ["4,321", "1,234", "7,777"] {
            assert!(said.contains(window), "{window}: {config}{said}");
        }
        let requests = server.take_requests();
        assert_eq!(requests.len(), 1, "{config}{said}");
        assert_eq!(
            requests[0].header("authorization"),
            Some("Bearer lab-key"),
            "{config}"
        );
        assert_eq!(requests[0].json()["model"], "big", "{config}");
        // The same for a model that is named on the command line.
        let mut child = chat(&home, &["--model", "small"], &variables);
        let mut child = child
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("hermes runs");
        child
            .stdin
            .take()
            .expect("piped")
            .write_all(b"/status\n")
            .expect("written");
        let output = child.wait_with_output().expect("output");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("1,234"), "{config}{said}");
    }
    assert!(
        server
            .all_requests()
            .iter()
            .all(|request| request.is_chat()),
        "a start waits for nobody"
    );
    // An entry without an address is none.
    home.config(
        "model:\n  provider: lab\n  default: m\nproviders:\n  lab:\n    key_env: LAB_KEY\n",
    );
    let (value, _) = asked_with(&home, &[], &variables);
    assert!(
        value["error"]["message"]
            .to_string()
            .contains("providers.lab has no base_url"),
        "{value}"
    );
}

#[test]
fn the_fallbacks_answer_when_the_main_model_has_failed_for_good() {
    let (main, locked, spare) = (
        FakeProvider::start(),
        FakeProvider::start(),
        FakeProvider::start(),
    );
    let home = Home::new();
    let config = format!(
        "{}fallback_providers:\n- provider: custom\n  model: locked\n  base_url: {}\n- provider: spare-room\n  model: second\n- provider: groq\n  model: keyless\nproviders:\n  spare-room:\n    url: {}\n    api_key_env: SPARE_KEY\n",
        main.config(100_000),
        locked.url(),
        spare.url()
    );
    home.config(&config);
    let variables = [("SPARE_KEY", "spare-key")];
    locked.default(Behaviour::status(401, "no"));
    spare.default(Behaviour::text("from the spare"));
    for (behaviour, requests) in [
        (Behaviour::status(503, "down"), 5),
        (Behaviour::status(429, "slowly"), 5),
        (Behaviour::refuse(), 5),
        (Behaviour::text("half an").reset_after(1), 5),
        (Behaviour::status(401, "no"), 1),
    ] {
        let told = format!("{behaviour:?}");
        main.default(behaviour);
        let (value, said) = asked_with(&home, &[], &variables);
        assert_eq!(value["answer"], "from the spare", "{told}: {value} {said}");
        assert_eq!(value["outcome"], "completed");
        assert!(
            value["warnings"]
                .to_string()
                .contains("this answer is by second at"),
            "{told}: {value}"
        );
        // Nobody has missed the one without a key.
        assert!(!format!("{value}{said}").contains("GROQ_API_KEY"), "{said}");
        assert_eq!(main.take_requests().len(), requests, "{told}");
        // No key goes to a place that it was not made for.
        let asked = locked.take_requests();
        assert_eq!(
            (asked.len(), asked[0].header("authorization")),
            (1, None),
            "{told}"
        );
        let asked = spare.take_requests();
        assert_eq!(asked.len(), 1, "{told}");
        assert_eq!(asked[0].header("authorization"), Some("Bearer spare-key"));
        assert_eq!(asked[0].json()["model"], "second");
        assert_eq!(asked[0].messages().last().expect("one")["content"], "hello");
        assert_eq!(asked[0].json()["stream"], true);
    }
    // The next question of the conversation does not wait for the main model again.
    main.default(Behaviour::status(503, "down"));
    let said = talked(&home, "one\ntwo\n", &variables);
    assert_eq!(
        (main.take_requests().len(), spare.take_requests().len()),
        (5, 2),
        "{said}"
    );
    let _ = locked.take_requests();
    // What the main model refuses, nobody else is asked.
    main.default(Behaviour::status(400, "a bad request"));
    let (value, _) = asked_with(&home, &[], &variables);
    assert_eq!(value["outcome"], "failed");
    assert_eq!(
        (main.take_requests().len(), locked.take_requests().len()),
        (1, 0)
    );
    // When all have failed, the sentence begins with the main model.
    main.default(Behaviour::status(503, "down"));
    spare.default(Behaviour::status(503, "down too"));
    let (value, said) = asked_with(&home, &[], &variables);
    assert_eq!(value["outcome"], "failed", "{value}");
    let told = format!("{value}{said}");
    assert!(told.contains("(503): down; and then"), "{told}");
    // And now the one without a key would have been asked.
    assert!(
        told.contains("fallback_providers.2 is not used: groq wants a key: set GROQ_API_KEY, or name its variable in fallback_providers.2.api_key_env"),
        "{told}"
    );
    assert_eq!(
        (main.take_requests().len(), spare.take_requests().len()),
        (5, 5)
    );
}

#[test]
fn a_fallback_without_its_key_is_named_when_it_is_missed_and_by_the_check() {
    let (main, spare) = (FakeProvider::start(), FakeProvider::start());
    let home = Home::new();
    let config = format!(
        "{}fallback_providers:\n- {{provider: custom, model: a, base_url: {url}, key_env: NO_SUCH_KEY}}\n- {{provider: custom, model: b, base_url: {url}}}\n",
        main.config(100_000),
        url = spare.url()
    );
    home.config(&config);
    let missing = "fallback_providers.0 is not used: the variable NO_SUCH_KEY is not set";
    // As long as the main model answers, nobody asks for it.
    let (value, said) = asked(&home, &[]);
    assert_eq!(value["answer"], "ok");
    assert!(!format!("{value}{said}").contains("NO_SUCH_KEY"), "{said}");
    let (value, code) = home.json(&["config", "check"]);
    assert_eq!((code, &value["ok"]), (0, &Value::Bool(true)), "{value}");
    let problem = &value["notes"][0];
    assert_eq!(problem["key"], "fallback_providers.0", "{value}");
    assert!(
        problem["message"]
            .to_string()
            .contains("the variable NO_SUCH_KEY is not set"),
        "{value}"
    );
    // It would have been the first.
    main.default(Behaviour::status(401, "no"));
    let (value, said) = asked(&home, &[]);
    assert_eq!(value["answer"], "ok", "{value}");
    assert_eq!(
        value["warnings"].to_string().matches(missing).count(),
        1,
        "{value} {said}"
    );
    assert_eq!(spare.take_requests()[0].json()["model"], "b");
    // Without anybody else the main model's failure is the failure.
    let alone = config
        .split("\n- {provider: custom, model: b")
        .next()
        .expect("a part");
    home.config(&format!("{alone}\n"));
    let (value, said) = asked(&home, &[]);
    assert_eq!(value["outcome"], "failed", "{value}");
    assert!(format!("{value}{said}").contains(missing), "{value} {said}");
    // With the key, nothing is wrong.
    fs::write(home.path().join(".env"), "NO_SUCH_KEY=k\n").expect("written");
    let (value, code) = home.json(&["config", "check"]);
    assert_eq!((code, &value["ok"]), (0, &true.into()), "{value}");
    assert_eq!(asked(&home, &[]).0["answer"], "ok");
    let asked = spare.take_requests();
    assert_eq!(asked[0].header("authorization"), Some("Bearer k"));
}

#[test]
fn what_is_wrong_with_a_place_is_said_in_the_words_of_its_section() {
    let (main, spare) = (FakeProvider::start(), FakeProvider::start());
    let home = Home::new();
    let url = spare.url();
    let main_config = main.config(100_000);
    main.default(Behaviour::status(401, "no"));
    for (fallback, section) in [
        (
            format!("{{provider: custom, model: b, base_url: {url}}}"),
            "fallback_providers.0",
        ),
        ("{provider: lab, model: b}".to_owned(), "providers.lab"),
    ] {
        home.config(&format!(
            "{main_config}fallback_providers:\n- {fallback}\nproviders:\n  lab: {{base_url: {url}, name: the lab}}\n"
        ));
        for (behaviour, advice) in [
            (Behaviour::status(401, "no"), "api_key_env NAME"),
            (
                Behaviour::status(404, "nothing"),
                "base_url (it often ends in /v1)",
            ),
            (Behaviour::status(301, ""), "base_url to the address"),
            (
                Behaviour::status(200, "<html>a router</html>"),
                "base_url right",
            ),
        ] {
            spare.default(behaviour);
            let (value, _) = asked(&home, &[]);
            let told = value["error"]["message"].to_string();
            // The main model's own failure comes first, and names its own section.
            let (_, told) = told
                .split_once("and then")
                .unwrap_or_else(|| panic!("{told}"));
            assert!(
                told.contains(&format!("{section}.{advice}")),
                "{section} {advice}: {told}"
            );
            assert!(!told.contains(" model."), "{told}");
        }
    }
}
