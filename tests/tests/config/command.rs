//! `hermes config get|set|path|check` as a person or a script calls it.

use super::support::Home;
use hermes::config::{Config, check};
use hermes_tests::input;
use serde_json::json;
use std::path::Path;

#[test]
fn get_prints_what_holds() {
    let home = Home::with(
        "base: &b {engine: lcm}\ncontext: *b\ncompression:\n  threshold: 50  # percent?\nlist: [a, {b: c}]\nn: null\n",
    );
    for (key, printed) in [
        ("context.engine", "lcm\n"),
        ("list.1.b", "c\n"),
        ("n", "null\n"),
        ("list", "- a\n- b: c\n"),
        ("compression.max_attempts", "3\n"),
        ("context.timeouts.select_context", "10.0\n"),
    ] {
        let ran = home.run(&["get", key]);
        assert_eq!(
            (ran.code, ran.out.as_str(), ran.err.as_str()),
            (Some(0), printed, ""),
            "{key}"
        );
    }
    // The number that is used, not the one that was refused.
    let ran = home.run(&["get", "compression.threshold"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "0.5\n"));
    assert!(
        ran.err.starts_with("warning: ") && ran.err.contains("config.yaml:4:14: "),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("compression.threshold is 50") && ran.err.contains("0.5 is used"),
        "{}",
        ran.err
    );

    let ran = home.run(&["get", "compression.threshold", "--json"]);
    let found = ran.json();
    assert_eq!(found["value"], json!(0.5));
    assert_eq!(found["in_file"], json!(50));
    assert_eq!(found["line"], json!(4));

    let ran = home.run(&["get", "no.such", "--json"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.json()["error"]["kind"], json!("not_set"));
    assert_eq!(home.run(&["get", "a..b"]).code, Some(2));
    assert_eq!(
        Home::empty().run(&["get", "context.engine"]).out,
        "compressor\n"
    );
}

// contract: CFG-6
// case: 60
#[test]
fn a_broken_file_is_told_by_every_command() {
    let home = Home::with("context:\n  engine: lcm\nbroken: [unclosed\n");
    for (args, code) in [
        (&["get", "context.engine"][..], 2),
        (&["check"], 2),
        (&["set", "context.engine", "lcm"], 1),
        (&["set", "new.key", "1"], 1),
    ] {
        let ran = home.run(args);
        assert_eq!(ran.code, Some(code), "{args:?}");
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
        assert!(
            ran.err.contains("config.yaml:4:1: broken YAML"),
            "{}",
            ran.err
        );
        assert_eq!(ran.err.lines().count(), 1);
    }
    let ran = home.run(&["get", "x", "--json"]);
    assert_eq!(ran.json()["error"]["kind"], json!("config"));
    let ran = home.run(&["check", "--json"]);
    let found = ran.json();
    assert_eq!(found["ok"], json!(false));
    assert_eq!(found["problems"][0]["kind"], json!("syntax"));
    assert_eq!(found["problems"][0]["line"], json!(4));
}

// contract: CFG-6
// case: 20, 22, 60
#[test]
fn check_names_everything_that_does_not_hold() {
    let home = Home::with(
        "context:\n  engin: lcm\n  timeouts: {hook: 3}\ncompression:\n  treshold: 0.5\n  threshold: -1\n  enabled: maybe\n\
         foreign: {anything: 1}\nmodel: {whatever: 1}\na: 1\na: 2\n",
    );
    let ran = home.run(&["check"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.ends_with("6 problems\n"), "{}", ran.out);
    for (line, text) in [
        (
            2,
            "context.engin is no key that anything reads (did you mean engine?)",
        ),
        (3, "context.timeouts.hook is no key"),
        (5, "did you mean threshold?"),
        (6, "compression.threshold is -1"),
        (7, "compression.enabled is the text \"maybe\""),
        (11, "at line 10 and at line 11"),
    ] {
        let found = ran
            .err
            .lines()
            .any(|told| told.contains(&format!("config.yaml:{line}:")) && told.contains(text));
        assert!(found, "{line} {text}: {}", ran.err);
    }
    assert_eq!(ran.err.lines().count(), 6, "{}", ran.err);
    assert!(!ran.err.contains("foreign") && !ran.err.contains("whatever"));

    let Some(real) = input("08_hermes_config_full_with_commented_template.yaml") else {
        return;
    };
    let home = Home::with(real);
    // That a key is not on this machine is no fault of the file.
    let ran = home.run(&["check"]);
    assert_eq!(ran.code, Some(0), "a real file is fine: {}", ran.err);
    assert!(
        ran.err.lines().all(|line| line.starts_with("note: ")),
        "{}",
        ran.err
    );
    std::fs::write(home.path().join(".env"), "OPENROUTER_API_KEY=x\n").expect("written");
    let ran = home.run(&["check"]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(0), ""),
        "a real file is fine"
    );
}

#[test]
fn a_file_of_which_nothing_is_read_is_wrong_configuration() {
    for text in ["- a\n", "just a text\n", "a: [\n"] {
        assert_eq!(Home::with(text).run(&["check"]).code, Some(2), "{text}");
    }
}

#[test]
fn check_names_an_engine_that_does_not_serve() {
    let config = Config::from_text(b"context:\n  engine: lcm\n", Path::new("config.yaml"));
    let serves = |name: &str| {
        if name == "compressor" {
            Ok(())
        } else {
            Err("no such engine".to_owned())
        }
    };
    let problems = check(&config, Some(&serves));
    assert_eq!(problems.len(), 1);
    let text = problems[0].to_string();
    assert!(
        text.starts_with("config.yaml:2:11: ") && text.contains("\"lcm\""),
        "{text}"
    );
    assert!(
        text.contains("no such engine") && text.contains("compressor is used"),
        "{text}"
    );
    assert!(check(&Config::from_text(b"", Path::new("c")), Some(&serves)).is_empty());
}

// contract: CLI-2
#[test]
fn set_refuses_what_the_reader_would_refuse() {
    let old = "compression:\n  threshold: 0.5\n";
    let home = Home::with(old);
    for (key, value) in [
        ("compression.threshold", "50"),
        ("compression.threshold", "-1"),
        ("compression.threshold", "half"),
        ("compression.enabled", "maybe"),
        ("compression.max_attempts", "99"),
        ("compression.tail_mode", "fat"),
        ("context.timeouts.hooks", "0"),
        ("context..x", "1"),
    ] {
        let ran = home.run(&["set", key, value]);
        assert_eq!(ran.code, Some(2), "{key} {value}: {}", ran.err);
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
        assert_eq!(home.bytes(), old.as_bytes());
    }
    let ran = home.run(&["set", "compression.threshold", "0.7", "--json"]);
    let found = ran.json();
    assert_eq!(
        (ran.code, &found["changed"], &found["value"]),
        (Some(0), &json!(true), &json!(0.7))
    );
    assert_eq!(found["line"], json!(2));
    assert_eq!(home.run(&["set", "num", "-5"]).code, Some(0));
    assert_eq!(home.run(&["set", "t", "5", "--text"]).code, Some(0));
    assert_eq!(
        home.bytes(),
        b"compression:\n  threshold: 0.7\nnum: -5\nt: '5'\n"
    );
}

#[test]
fn path_tells_where_the_file_would_be() {
    let home = Home::empty();
    assert_eq!(
        home.run(&["path"]).out,
        format!("{}\n", home.config().display())
    );
    assert_eq!(home.run(&["path", "--json"]).json()["exists"], json!(false));
    // Without HERMES_HOME it is below the user's home.
    let output = home
        .command(&["path"])
        .env_remove("HERMES_HOME")
        .env("HOME", home.path())
        .output()
        .expect("runs");
    let expected = home.path().join(".hermes/config.yaml");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        expected.to_string_lossy()
    );
}

// contract: CFG-6
// case: 60
#[test]
fn a_running_host_keeps_the_last_good_values() {
    let home = Home::with("context: {engine: lcm}\n");
    let mut config = Config::from_file(&home.config());
    std::fs::write(home.config(), "context: {engine: other}\nbroken: [\n").expect("write");
    config.reload();
    assert_eq!(config.engine_name(), "lcm");
    assert!(
        config.problems()[0]
            .message
            .contains("values read before stay"),
        "{}",
        config.problems()[0]
    );
    std::fs::write(home.config(), "context: {engine: other}\n").expect("write");
    config.reload();
    assert_eq!(config.engine_name(), "other");
    assert!(config.problems().is_empty());
}

#[test]
fn a_key_of_a_provider_is_not_repeated() {
    let home = Home::with("model: gpt\n");
    for args in [
        &["set", "model.api_key", "sk-very-secret"][..],
        &["set", "own.api_key", "sk-very-secret"],
    ] {
        for json in [false, true] {
            let mut args = args.to_vec();
            if json {
                args.push("--json");
            }
            let ran = home.run(&args);
            assert!(
                !ran.out.contains("sk-very") && !ran.err.contains("sk-very"),
                "{}{}",
                ran.out,
                ran.err
            );
        }
    }
    assert_eq!(
        home.run(&["get", "own.api_key"]).out,
        "sk-very-secret\n",
        "asked for, it is shown"
    );
    let config = Config::from_file(&home.config());
    assert!(!format!("{config:?}").contains("sk-very"));
}

// contract: CFG-5
#[test]
fn the_new_value_decides_whether_it_stands_in_quotes() {
    let before = "# top\nmodel:\n  default: 'a' # the model\ndisplay:\n  b: \"old\" # b\n  a: 'old'   # a\nlist: ['x', \"y\"]\nz: !!str 'old'\n";
    for (key, value, line, written) in [
        ("display.a", "null", "  a: 'old'   # a", "  a: null   # a"),
        ("display.a", "5", "  a: 'old'   # a", "  a: 5   # a"),
        ("display.b", "true", "  b: \"old\" # b", "  b: true # b"),
        ("display.b", "-0.5", "  b: \"old\" # b", "  b: -0.5 # b"),
        ("list.0", "7", "['x', \"y\"]", "[7, \"y\"]"),
        // A text keeps the quotes, and a key that holds a text holds one.
        ("display.a", "new", "'old'   # a", "'new'   # a"),
        ("display.a", "", "'old'   # a", "''   # a"),
        ("display.b", "5 apples", "\"old\"", "\"5 apples\""),
        ("model.default", "5", "'a'", "'5'"),
        ("z", "5", "'old'\n", "'5'\n"),
    ] {
        let home = Home::with(before);
        let ran = home.run(&["set", key, value]);
        assert_eq!(ran.code, Some(0), "{key} {value}: {}", ran.err);
        let after = String::from_utf8(home.bytes()).expect("UTF-8");
        assert_eq!(after, before.replace(line, written), "{key} {value}");
    }
    let home = Home::with(before);
    assert_eq!(
        home.run(&["set", "--text", "display.a", "null"]).code,
        Some(0)
    );
    assert!(
        home.bytes()
            .ends_with(b"a: 'null'   # a\nlist: ['x', \"y\"]\nz: !!str 'old'\n")
    );
    // Said twice it is said already.
    for changed in [true, false] {
        let ran = home.run(&["set", "display.a", "null", "--json"]);
        assert_eq!(
            (ran.json()["changed"].clone(), ran.json()["value"].clone()),
            (json!(changed), json!(null))
        );
    }
}

#[test]
fn check_names_places_of_models_that_are_none() {
    let home = Home::with(
        "model:\n  default: m\n  provider: opnrouter\n  context_length: -5\n  max_tokens: many\n  api_mode: codex_responses\n  baseUrl: http://h\n\
         fallback_providers:\n- provider: custom\n  base_url: localhost:8080/v1\n- provider: lab\n- provider: labb\n  modle: x\n\
         fallback_provider: {provider: x}\n\
         providers:\n  lab: {base_url: 'http://'}\n  none: 5\n\
         auxiliary:\n  compression: {base_url: ftp://h, provider: main, timeot: 3}\n\
         agent: {max_turn: 3, verbose: true}\nplugin: {enabled: []}\n",
    );
    let ran = home.run(&["check"]);
    assert_eq!(ran.code, Some(1));
    let expected = [
        (
            3,
            "model.provider is \"opnrouter\"",
            "did you mean openrouter?",
        ),
        (4, "model.context_length is -5", "correct the value"),
        (
            5,
            "model.max_tokens is the text \"many\"",
            "correct the value",
        ),
        (
            6,
            "model.api_mode is \"codex_responses\"",
            "chat_completions",
        ),
        (7, "model.baseUrl is no key", "did you mean base_url?"),
        (
            10,
            "fallback_providers.0.base_url is \"localhost:8080/v1\"",
            "write http://localhost:8080/v1",
        ),
        (
            12,
            "fallback_providers.2.provider is \"labb\"",
            "did you mean lab?",
        ),
        (
            13,
            "fallback_providers.2.modle is no key",
            "did you mean model?",
        ),
        (
            14,
            "fallback_provider is no key",
            "did you mean fallback_providers?",
        ),
        (
            16,
            "providers.lab.base_url is \"http://\"",
            "write an address",
        ),
        (17, "providers.none is", "indented below"),
        (
            19,
            "auxiliary.compression.base_url is \"ftp://h\"",
            "write an address",
        ),
        (
            19,
            "auxiliary.compression.timeot is no key",
            "did you mean timeout?",
        ),
        (20, "agent.max_turn is no key", "did you mean max_turns?"),
        (21, "plugin is no key", "did you mean plugins?"),
    ];
    for (line, what, todo) in expected {
        let found = ran.err.lines().any(|told| {
            told.starts_with("warning: ")
                && told.contains(&format!("config.yaml:{line}:"))
                && told.contains(what)
                && told.contains(todo)
        });
        assert!(found, "{line} {what}: {}", ran.err);
    }
    assert_eq!(ran.err.lines().count(), expected.len(), "{}", ran.err);
    let found = home.run(&["check", "--json"]).json();
    let problems = found["problems"].as_array().expect("a list");
    assert_eq!(problems.len(), expected.len());
    for problem in problems {
        assert!(
            problem["line"].is_u64() && problem["key"].is_string() && problem["hint"] != "",
            "{problem}"
        );
    }
    let bad =
        Home::with("model:\n  default: m\n  base_url: localhost:1/v1 # here\n  provider: mine\n");
    assert!(
        bad.run(&["check"])
            .err
            .contains("config.yaml:3:13: model.base_url"),
        "{}",
        bad.run(&["check"]).err
    );

    // All of this is as it should be, or the original's.
    let good = Home::with(
        "model:\n  default: m\n  provider: my-own\n  base_url: ${WHERE}/v1\n  openai_runtime: auto\n  aliases: {a: b}\n\
         providers: {lab: {api: openai, url: 'http://lab:1/v1', models: {a: {context_length: 5}, b: {contextLength: 6}}}, openrouter: {key_env: K}}\n\
         custom_providers: [{name: old, base_url: 'https://h/v1', model: x, rate_limit_delay: 1}]\n\
         fallback_model: {provider: custom:old, model: x}\nmodels: 3\ncompressor: {modle: 1}\n\
         auxiliary: {compression: {provider: auto, api_key: ''}, vision: {provider: nobody}}\n",
    );
    let ran = good.run(&["check"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}
