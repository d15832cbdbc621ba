//! What the host understands of a configuration file.

use hermes::config::{Config, ProblemKind, Severity, TailMode};
use hermes_tests::input;
use serde_json::json;
use std::path::Path;

fn config(text: &str) -> Config {
    Config::from_text(text.as_bytes(), Path::new("config.yaml"))
}

fn texts(config: &Config) -> Vec<String> {
    config.problems().iter().map(ToString::to_string).collect()
}

// contract: CFG-5
// case: 56
#[test]
fn a_real_file_loads_without_a_problem() {
    let Some(bytes) = input("08_hermes_config_full_with_commented_template.yaml") else {
        return;
    };
    let config = Config::from_text(&bytes, Path::new("config.yaml"));
    assert_eq!(texts(&config), Vec::<String>::new());
    assert_eq!(config.engine_name(), "compressor");
    assert_eq!(config.model().default.as_deref(), Some("deepseek-v4-pro"));
    assert_eq!(
        config.model().base_url.as_deref(),
        Some("https://opencode.ai/zen/go/v1")
    );
    assert_eq!(config.fallback_providers().len(), 3);
    assert_eq!(
        config.fallback_providers()[1].model.as_deref(),
        Some("qwen3.5:35b")
    );
    assert_eq!(config.compression().threshold, 0.5);
    assert_eq!(config.compression().protect_last_n, 20);
    assert_eq!(
        config.compression_json()["hygiene_hard_message_limit"],
        json!(400)
    );
    assert_eq!(
        config.auxiliary_compression().model.as_deref(),
        Some("deepseek-v4-flash")
    );
    assert!(config.plugins().is_enabled("disk-cleanup"));
    let pirate = config
        .get("agent.personalities.pirate")
        .expect("folded text");
    assert!(
        pirate
            .as_str()
            .expect("text")
            .contains("Ye be talkin' to Captain Hermes")
    );
    assert_eq!(config.get("streaming.cursor"), Some(json!(" ▉")));
    assert_eq!(config.get("human_delay.mode"), Some(json!("off")));
    assert_eq!(
        config.get("known_plugin_toolsets.cli.0"),
        Some(json!("spotify"))
    );
}

// contract: SEL-1, CFG-6
// case: 60
#[test]
fn odd_shapes_are_named_and_the_built_in_serves() {
    for (text, key, expected) in [
        ("", None, None),
        ("# only a comment\n", None, None),
        ("---\n", None, None),
        ("context:\n", None, None),
        ("context: null\n", None, None),
        ("context:\n  engine:\n", None, None),
        ("context:\n  engine: null\n", None, None),
        ("context:\n  engine: \"\"\n", None, None),
        ("- a\n- b\n", None, Some("expected a mapping of sections")),
        ("just text\n", None, Some("expected a mapping of sections")),
        (
            "context: lcm\n",
            Some("context"),
            Some("expected a mapping"),
        ),
        (
            "context: [lcm]\n",
            Some("context"),
            Some("expected a mapping"),
        ),
        (
            "context:\n  engine: [a, b]\n",
            Some("context.engine"),
            Some("expected the name"),
        ),
        (
            "context:\n  engine: {a: b}\n",
            Some("context.engine"),
            Some("expected the name"),
        ),
    ] {
        let config = config(text);
        assert_eq!(config.engine_name(), "compressor", "{text:?}");
        assert!(!config.is_broken(), "{text:?}");
        match expected {
            None => assert_eq!(texts(&config), Vec::<String>::new(), "{text:?}"),
            Some(expected) => {
                let [problem] = config.problems() else {
                    panic!("{text:?}: {:?}", texts(&config))
                };
                assert!(problem.message.contains(expected), "{text:?}: {problem}");
                assert_eq!(problem.key.as_deref(), key, "{text:?}");
                assert!(problem.line.is_some(), "{text:?}: {problem}");
                assert!(!problem.hint.is_empty());
            }
        }
    }
}

// contract: SEL-1, SEL-4
#[test]
fn the_engine_is_taken_exactly_as_written() {
    for (text, engine) in [
        ("context:\n  engine: lcm\n", "lcm"),
        ("context: {engine: 'LCM '}\n", "LCM "),
        ("context:\n  engine: yes\n", "yes"),
        ("context:\n  engine: True\n", "True"),
        ("context:\n  engine: 1.0\n", "1.0"),
        ("context:\n  engine: >-\n    lcm\n", "lcm"),
        ("context:\n  engine: !!str lcm\n", "lcm"),
        ("context:\n  engine: !mine lcm\n", "lcm"),
        ("\"context\": {\"engine\": \"lcm\"}\n", "lcm"),
        ("context:\r\n  engine: lcm\r\n", "lcm"),
        ("%YAML 1.1\n---\ncontext:\n  engine: lcm\n...\n", "lcm"),
    ] {
        assert_eq!(config(text).engine_name(), engine, "{text:?}");
        assert_eq!(texts(&config(text)), Vec::<String>::new(), "{text:?}");
    }
}

// contract: CFG-6
// case: 60
#[test]
fn broken_yaml_is_told_with_line_and_column() {
    for (text, line, column) in [
        ("context:\n  engine: lcm\nbroken: [unclosed\n", 4, 1),
        ("a: 1\n b: 2\n", 2, 3),
        ("a: \"open\nb: 1\n", 3, 1),
        ("a: 1\n\tb: 2\n", 2, 1),
        ("a: @x\n", 1, 4),
        ("a: *nowhere\n", 1, 4),
        ("é: 1\nb: \u{7}\n", 2, 4),
        ("a: &a [*a]\n", 1, 4),
        ("<<: 5\n", 1, 5),
    ] {
        let config = config(text);
        assert!(config.is_broken(), "{text:?}");
        assert_eq!(config.engine_name(), "compressor");
        let [problem] = config.problems() else {
            panic!("{text:?}")
        };
        assert_eq!(
            (problem.line, problem.column),
            (Some(line), Some(column)),
            "{problem}"
        );
        assert_eq!(problem.severity, Severity::Error);
        assert_eq!(problem.kind, ProblemKind::Syntax);
        assert!(
            problem
                .to_string()
                .starts_with(&format!("config.yaml:{line}:{column}: "))
        );
        assert!(!problem.to_string().contains('\n'));
    }
}

// contract: CFG-6
// case: 60
#[test]
fn the_last_of_two_equal_keys_counts_and_both_lines_are_told() {
    let text = "context: {engine: compressor}\nother: 1\ncontext: {engine: lcm}\n";
    let found = config(text);
    assert_eq!(found.engine_name(), "lcm");
    let [problem] = found.problems() else {
        panic!("{:?}", texts(&found))
    };
    assert_eq!(problem.kind, ProblemKind::Duplicate);
    assert_eq!(problem.key.as_deref(), Some("context"));
    assert!(
        problem.message.contains("line 1") && problem.message.contains("line 3"),
        "{problem}"
    );

    let found = config("context:\n  engine: compressor\n  # or\n  \"engine\": lcm\n");
    assert_eq!(found.engine_name(), "lcm");
    let [problem] = found.problems() else {
        panic!("{:?}", texts(&found))
    };
    assert!(
        problem.message.contains("line 2") && problem.message.contains("line 4"),
        "{problem}"
    );

    let found = config("a:\n  - {x: 1}\n  - {x: 1, y: {z: 1, z: 2}}\nb: {x: 1}\n");
    assert_eq!(
        found.problems().len(),
        1,
        "equal keys of different mappings are no duplicates"
    );
    assert_eq!(found.problems()[0].key.as_deref(), Some("a.1.y.z"));
}

// contract: CFG-5
// case: 57
#[test]
fn anchors_and_merge_keys_are_resolved() {
    let found = config(
        "base: &b {engine: compressor, x: 1}\ncontext: *b\nother: {<<: *b, y: 2}\nthird: &b {z: 3}\n\
         late: &c {w: 4}\nfourth: *b\n",
    );
    assert_eq!(texts(&found), Vec::<String>::new());
    assert_eq!(
        found.get("context"),
        Some(json!({"engine": "compressor", "x": 1}))
    );
    assert_eq!(
        found.get("other"),
        Some(json!({"engine": "compressor", "x": 1, "y": 2}))
    );
    assert_eq!(found.get("third"), Some(json!({"z": 3})));
    assert_eq!(
        found.get("fourth"),
        Some(json!({"z": 3})),
        "a name that is used again"
    );

    let found = config(
        "a: &a {engine: lcm, n: 1}\nb: &b {<<: *a, n: 2}\ncontext:\n  <<: [*b, {n: 3, m: 4}]\n  m: 5\n",
    );
    assert_eq!(found.engine_name(), "lcm");
    assert_eq!(
        found.get("context"),
        Some(json!({"engine": "lcm", "n": 2, "m": 5}))
    );
    assert_eq!(found.get("\"<<\""), None);
}

// case: 59
#[test]
fn a_byte_order_mark_is_not_part_of_the_first_key() {
    let found = config("\u{feff}context:\n  engine: lcm\nother: 1\n");
    assert_eq!(found.engine_name(), "lcm");
    assert_eq!(texts(&found), Vec::<String>::new());
    assert_eq!(
        config("\u{feff}# note\ncontext:\n  engine: lcm\n").engine_name(),
        "lcm"
    );
    assert_eq!(config("\u{feff}").engine_name(), "compressor");

    // What an earlier careless write left behind is told.
    let found = config("a: 1\n\u{feff}context:\n  engine: lcm\n");
    assert!(texts(&found)[0].contains("U+FEFF"), "{:?}", texts(&found));
    assert!(texts(&found)[0].contains("byte 5"), "{:?}", texts(&found));
    assert_eq!(found.problems()[0].line, Some(2));
    let found = config("a: x\u{feff}\n");
    assert!(!found.is_broken());
    assert!(texts(&found)[0].contains("byte 4"), "{:?}", texts(&found));
}

// case: 59
#[test]
fn other_encodings_are_told_with_the_byte() {
    let utf16: Vec<u8> = "context:\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let mut marked = vec![0xff, 0xfe];
    marked.extend(&utf16);
    for bytes in [marked, utf16] {
        let found = Config::from_text(&bytes, Path::new("config.yaml"));
        assert!(found.is_broken());
        assert!(texts(&found)[0].contains("UTF-16"), "{:?}", texts(&found));
        assert!(texts(&found)[0].contains("byte "), "{:?}", texts(&found));
        assert_eq!(found.engine_name(), "compressor");
    }
    let found = Config::from_text(b"a: 1\n# caf\xe9\ncontext: {}\n", Path::new("config.yaml"));
    let message = texts(&found).remove(0);
    assert!(
        message.starts_with("config.yaml:2:6: byte 10 is 0xe9"),
        "{message}"
    );
}

// contract: CFG-1, CFG-2
// case: 20
#[test]
fn a_threshold_out_of_range_is_named_with_what_is_used() {
    for (text, threshold, shown) in [
        ("0.3", 0.3, None),
        ("0.85", 0.85, None),
        ("1.0", 1.0, None),
        ("\"0.5\"", 0.5, None),
        ("null", 0.5, None),
        ("50", 0.5, Some("50")),
        ("0", 0.5, Some("is 0,")),
        ("-1", 0.5, Some("-1")),
        (".nan", 0.5, Some(".nan")),
        (".inf", 0.5, Some(".inf")),
        ("true", 0.5, Some("true")),
        ("half", 0.5, Some("half")),
        ("[0.5]", 0.5, Some("a list")),
    ] {
        let found = config(&format!(
            "compression:\n  enabled: on\n  threshold: {text}\n"
        ));
        assert_eq!(found.compression().threshold, threshold, "{text}");
        assert_eq!(
            found.compression_json()["threshold"],
            json!(threshold),
            "{text}"
        );
        match shown {
            None => assert_eq!(texts(&found), Vec::<String>::new(), "{text}"),
            Some(shown) => {
                let [problem] = found.problems() else {
                    panic!("{text}: {:?}", texts(&found))
                };
                assert_eq!(problem.key.as_deref(), Some("compression.threshold"));
                assert_eq!(problem.line, Some(3));
                assert!(problem.message.contains(shown), "{problem}");
                assert!(problem.message.ends_with("0.5 is used"), "{problem}");
            }
        }
    }
}

// contract: CFG-1, CFG-2
// case: 22
#[test]
fn thresholds_per_model_that_mean_nothing_are_named() {
    let found = config(
        "compression:\n  model_thresholds: {glm-5: 0.7, glm-5-1m: 0.25, \"\": 0.1, GLM-5-1M-Turbo: 0.6, bad: 1.7, n: .nan, t: true}\n",
    );
    let valid = json!({"glm-5": 0.7, "glm-5-1m": 0.25, "GLM-5-1M-Turbo": 0.6});
    assert_eq!(json!(found.compression().model_thresholds), valid);
    assert_eq!(found.compression_json()["model_thresholds"], valid);
    let all = texts(&found);
    assert_eq!(all.len(), 4, "{all:?}");
    for key in ["\"\"", "\"bad\"", "\"n\"", "\"t\""] {
        assert!(all.iter().any(|line| line.contains(key)), "{key}: {all:?}");
    }
    assert_eq!(found.compression().threshold_tokens, None, "no hidden cap");
}

// contract: CFG-1
#[test]
fn every_other_compression_key_falls_back_by_itself() {
    let found = config(
        "compression:\n  enabled: No\n  in_place: off\n  target_ratio: 7\n  tail_mode: fat\n  protect_last_n: -3\n  \
         max_attempts: 99\n  context_timeout_seconds: 0\n  threshold_tokens: 256_000\n  idle_compact_after_seconds: soon\n  \
         abort_on_summary_failure: yes\n  proactive_prune_min_result_chars: 3\n  protect_first_n: 2e0\n",
    );
    let block = found.compression();
    assert!(!block.enabled && !block.in_place && block.abort_on_summary_failure);
    assert_eq!(block.target_ratio, 0.8);
    assert_eq!(block.tail_mode, TailMode::Lean);
    assert_eq!(
        (
            block.protect_first_n,
            block.protect_last_n,
            block.max_attempts
        ),
        (2, 20, 3)
    );
    assert_eq!(block.threshold_tokens, Some(256_000));
    assert_eq!(block.context_timeout(), None);
    let keys: Vec<_> = found
        .problems()
        .iter()
        .filter_map(|p| p.key.clone())
        .collect();
    for key in [
        "target_ratio",
        "tail_mode",
        "protect_last_n",
        "max_attempts",
        "idle_compact_after_seconds",
        "proactive_prune_min_result_chars",
    ] {
        assert!(
            keys.contains(&format!("compression.{key}")),
            "{key}: {keys:?}"
        );
    }
    assert_eq!(keys.len(), 6, "{keys:?}");
}

// contract: CFG-4
#[test]
fn an_engine_gets_its_own_section_in_any_shape() {
    let found = config(
        "base: &b {deep: [1, {x: null}]}\nlcm:\n  <<: *b\n  on: yes\n  n: .nan\n  1: one\nlist: [1, 2]\nempty:\n\
         model: {api_key: sk-1}\ncontext: {engines: {model: {own: 1}}}\n",
    );
    assert_eq!(
        found.engine_section("lcm"),
        json!({"on": "yes", "n": ".nan", "1": "one", "deep": [1, {"x": null}]})
    );
    assert_eq!(found.engine_section("list"), json!([1, 2]));
    assert_eq!(found.engine_section("empty"), json!({}));
    assert_eq!(found.engine_section("absent"), json!({}));
    // An engine of this name must not be handed the provider's key.
    assert_eq!(found.engine_section("model"), json!({"own": 1}));
    assert_eq!(found.engine_section("auxiliary"), json!({}));
}

#[test]
fn keys_of_providers_never_show() {
    let found = config(
        "model: {default: m, api_key: sk-very-secret}\nauxiliary: {compression: {api_key: [sk-very-secret]}}\n",
    );
    assert_eq!(
        found.model().api_key.as_ref().expect("key").expose(),
        "sk-very-secret"
    );
    assert!(!format!("{:?}", found.model()).contains("sk-very"));
    assert!(!texts(&found).concat().contains("sk-very"));
    assert_eq!(found.problems().len(), 1);
    assert_eq!(
        config("model: gpt-x\n").model().default.as_deref(),
        Some("gpt-x")
    );
    let env = config("model: {key_env: MY_KEY, base_url: \"${BASE}/v1\"}\n");
    assert_eq!(env.model().api_key_env.as_deref(), Some("MY_KEY"));
    assert_eq!(env.model().base_url.as_deref(), Some("${BASE}/v1"));
}

#[test]
fn times_and_plugins_are_read_with_their_defaults() {
    let found = config(
        "context: {timeouts: {hooks: 3, preflight: 0.5, tool_call: -1}}\n\
         plugins: {enabled: [a, b], disabled: b, entries: {a: {granted_capabilities: [llm], settings: {x: 1}, sha256: SHA256}}}\n",
    );
    let times = found.context_timeouts();
    assert_eq!(times.select_context.as_secs_f64(), 3.0);
    assert_eq!(times.preflight.as_secs_f64(), 0.5);
    assert_eq!(times.tool_call.as_secs(), 60);
    assert_eq!(times.should_compress.as_secs(), 2);
    assert!(found.plugins().is_enabled("a") && !found.plugins().is_enabled("b"));
    let entry = &found.plugins().entries["a"];
    assert_eq!(entry.settings, json!({"x": 1}));
    assert_eq!(
        entry.sha256.as_deref(),
        Some("sha256"),
        "a pin that is none still pins"
    );
    assert_eq!(found.problems().len(), 2, "{:?}", texts(&found));
}

#[test]
fn hostile_files_cost_little() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let refs = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb += &format!("a{level}: &a{level} [{refs}]\n");
    }
    let long = format!(
        "a: &a \"{}\"\nb: [{}]\n",
        "x".repeat(1 << 20),
        "*a, ".repeat(1 << 18)
    );
    for text in [
        bomb,
        long,
        "[".repeat(300_000),
        "{a: ".repeat(100_000),
        "- ".repeat(300_000),
        "x".repeat(5 << 20),
    ] {
        let start = std::time::Instant::now();
        let found = config(&text);
        assert!(found.is_broken(), "{}…", &text[..20]);
        assert!(
            start.elapsed().as_secs() < 60,
            "{:?}: {}…",
            start.elapsed(),
            &text[..20]
        );
    }
}

// contract: CFG-6
// case: 57, 60
#[test]
fn only_the_first_document_counts_and_that_is_told() {
    let found = config("context: {engine: lcm}\n---\ncontext: {engine: other}\n");
    assert_eq!(found.engine_name(), "lcm");
    let [problem] = found.problems() else {
        panic!("{:?}", texts(&found))
    };
    assert_eq!((problem.line, problem.kind), (Some(2), ProblemKind::Shape));
    assert!(problem.message.contains("only the first one"), "{problem}");
}

/// The parser underneath panics here; we must not.
#[test]
fn what_the_parser_cannot_take_is_a_message() {
    let found = config("context: {engine: lcm}\na: [!x, b]\n");
    assert!(found.is_broken());
    assert_eq!(found.engine_name(), "compressor");
    assert!(
        texts(&found)[0].contains("tag with a comma"),
        "{:?}",
        texts(&found)
    );
}
