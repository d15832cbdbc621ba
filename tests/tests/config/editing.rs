//! One value changes and nothing else does; or the file stays as it was.

use super::support::Home;
use hermes::config::Config;
use hermes::config::edit::{self, Outcome};
use hermes_tests::input;
use serde_json::json;
use std::path::Path;

/// Sets a value with the program and returns the new content.
fn set(old: &str, key: &str, value: &str) -> String {
    let home = Home::with(old);
    let ran = home.run(&["set", key, value]);
    assert_eq!(ran.code, Some(0), "{old:?}: {}", ran.err);
    String::from_utf8(home.bytes()).expect("UTF-8")
}

/// The same through the library, which is quicker for long tables.
fn edited(old: &str, key: &str, value: &str) -> Result<String, String> {
    let home = Home::with(old);
    let result = edit::set_value(&home.config(), key, value);
    let new = String::from_utf8(home.bytes()).expect("UTF-8");
    match result {
        Ok(Outcome::Changed { line }) => {
            let text = new
                .split(['\n', '\u{85}'])
                .nth(line - 1)
                .unwrap_or_default();
            let told = value.contains('\t') || text.contains(value);
            assert!(new != old && told, "line {line} of {new:?} holds {value}");
            Ok(new)
        }
        Ok(Outcome::Unchanged) => {
            assert_eq!(new, old);
            Ok(new)
        }
        Err(error) => {
            assert_eq!(new, old, "refused and yet changed");
            Err(format!("{error} ({})", error.hint()))
        }
    }
}

// contract: CLI-2, CFG-5
// case: 56
#[test]
fn only_the_scalar_changes() {
    let old = "# top\ncontext:   # why\n  # note above key\n  engine: \"compressor\"   # trailing, do not lose\n\n\
               # ── tail block ──\n# fallback_model:\n#   provider: x\n";
    let new = set(old, "context.engine", "lcm");
    assert_eq!(new, old.replace("\"compressor\"", "\"lcm\""));
}

// contract: CLI-2, CFG-5
// case: 56
#[test]
fn a_real_file_changes_in_one_line() {
    let Some(bytes) = input("08_hermes_config_full_with_commented_template.yaml") else {
        return;
    };
    let old = String::from_utf8(bytes).expect("UTF-8");
    for (key, value, before, after) in [
        (
            "context.engine",
            "lcm",
            "context:\n  engine: compressor\n",
            "context:\n  engine: lcm\n",
        ),
        (
            "compression.threshold",
            "0.7",
            "  threshold: 0.5\n",
            "  threshold: 0.7\n",
        ),
        (
            "human_delay.mode",
            "on",
            "  mode: 'off'\n",
            "  mode: 'on'\n",
        ),
        ("streaming.cursor", " |", "cursor: ' ▉'", "cursor: ' |'"),
        (
            "fallback_providers.1.model",
            "x",
            "model: qwen3.5:35b\n    base_url",
            "model: x\n    base_url",
        ),
    ] {
        assert_eq!(old.matches(before).count(), 1, "{before:?} is there once");
        assert_eq!(set(&old, key, value), old.replace(before, after), "{key}");
    }
    let added = set(&old, "compression.max_attempts", "2");
    let last = "  codex_gpt55_autoraise: true\n";
    assert_eq!(
        added,
        old.replace(last, &format!("{last}  max_attempts: 2\n"))
    );
    let section = set(&old, "lcm.depth", "3");
    assert_eq!(
        section,
        format!("{old}lcm:\n  depth: 3\n"),
        "a new section goes to the end"
    );
}

// contract: CFG-5
// case: 56
#[test]
fn missing_keys_are_added_in_the_files_own_manner() {
    for (old, new) in [
        ("", "context:\n  engine: lcm\n"),
        ("# only this\n", "# only this\ncontext:\n  engine: lcm\n"),
        ("# no break", "# no break\ncontext:\n  engine: lcm"),
        ("---\n", "---\ncontext:\n  engine: lcm\n"),
        (
            "a: 1\n\n# tail\n",
            "a: 1\n\n# tail\ncontext:\n  engine: lcm\n",
        ),
        (
            "a:\n    b: 1\n",
            "a:\n    b: 1\ncontext:\n    engine: lcm\n",
        ),
        (
            "a: 1\r\nb: 2\r\n",
            "a: 1\r\nb: 2\r\ncontext:\r\n  engine: lcm\r\n",
        ),
        (
            "a: 1\n---\nb: 2\n",
            "a: 1\ncontext:\n  engine: lcm\n---\nb: 2\n",
        ),
        (
            "a: 1\n...\n# end\n",
            "a: 1\ncontext:\n  engine: lcm\n...\n# end\n",
        ),
        ("{a: 1}\n", "{a: 1, context: {engine: lcm}}\n"),
        (
            "{\n  \"a\": 1\n}\n",
            "{\n  \"a\": 1, context: {engine: lcm}\n}\n",
        ),
        ("{}\n", "{context: {engine: lcm}}\n"),
        (
            "context:\n  x: 1  # c\n\n# next\nb: 2\n",
            "context:\n  x: 1  # c\n  engine: lcm\n\n# next\nb: 2\n",
        ),
        (
            "context:\n      x: 1\nb: 2",
            "context:\n      x: 1\n      engine: lcm\nb: 2",
        ),
        (
            "context:\n  x:\n    - 1\n    - y: 2\nb: 2\n",
            "context:\n  x:\n    - 1\n    - y: 2\n  engine: lcm\nb: 2\n",
        ),
        (
            "context:\n  x:\nb: 2\n",
            "context:\n  x:\n  engine: lcm\nb: 2\n",
        ),
        (
            "context:\n  x: |\n    text\n\n\nb: 2\n",
            "context:\n  x: |\n    text\n  engine: lcm\n\n\nb: 2\n",
        ),
        (
            "context:\n  x: |+\n    text\n\nb: 2\n",
            "context:\n  x: |+\n    text\n\n  engine: lcm\nb: 2\n",
        ),
        (
            "context:\n  x: \"a\n    b\"\nb: 2\n",
            "context:\n  x: \"a\n    b\"\n  engine: lcm\nb: 2\n",
        ),
        (
            "context:  # why\nb: 2\n",
            "context:  # why\n  engine: lcm\nb: 2\n",
        ),
        ("context:", "context:\n  engine: lcm"),
        ("context: null\nb: 2\n", "context: {engine: lcm}\nb: 2\n"),
        ("context: ~  # c\n", "context: {engine: lcm}  # c\n"),
        ("context: {}\n", "context: {engine: lcm}\n"),
        ("context: { }\n", "context: {engine: lcm }\n"),
        ("context: {x: 1,}\n", "context: {x: 1, engine: lcm,}\n"),
        (
            "context: {x: [1, 2]} # c\n",
            "context: {x: [1, 2], engine: lcm} # c\n",
        ),
        ("{context: , b: 1}\n", "{context: {engine: lcm} , b: 1}\n"),
    ] {
        assert_eq!(
            edited(old, "context.engine", "lcm").as_deref(),
            Ok(new),
            "{old:?}"
        );
    }
}

// contract: CFG-5
// case: 56, 57
#[test]
fn values_keep_their_manner() {
    for (old, new) in [
        ("context: {engine: 'a'}\n", "context: {engine: 'lcm'}\n"),
        (
            "context:\n  'engine' : \"a\\u0062\" # c\n",
            "context:\n  'engine' : \"lcm\" # c\n",
        ),
        (
            "context:\n  engine:    a   \n",
            "context:\n  engine:    lcm   \n",
        ),
        (
            "context:\n  engine:\n    a\n",
            "context:\n  engine:\n    lcm\n",
        ),
        (
            "context:\n  engine:\n  x: 1\n",
            "context:\n  engine: lcm\n  x: 1\n",
        ),
        ("context:\n  engine: # c\n", "context:\n  engine: lcm # c\n"),
        ("context:\n  engine: null\n", "context:\n  engine: lcm\n"),
        ("context:\n  engine: ''\n", "context:\n  engine: 'lcm'\n"),
        ("context:\n  engine: &e a\n", "context:\n  engine: &e lcm\n"),
        (
            "context:\n  engine: !!str a\n",
            "context:\n  engine: !!str lcm\n",
        ),
        (
            "context:\n  engine: !x &y 'a' # c\n",
            "context:\n  engine: !x &y 'lcm' # c\n",
        ),
        (
            "context:\n  engine: a long\n    name\nb: 1\n",
            "context:\n  engine: lcm\nb: 1\n",
        ),
        (
            "e: &e a\ncontext:\n  engine: *e\n",
            "e: &e a\ncontext:\n  engine: lcm\n",
        ),
        ("? context\n: engine: a\n", "? context\n: engine: lcm\n"),
        (
            "%YAML 1.1\n---\ncontext: {engine: a}\n",
            "%YAML 1.1\n---\ncontext: {engine: lcm}\n",
        ),
        (
            "context: {engine: a}\n---\ncontext: {engine: a}\n",
            "context: {engine: lcm}\n---\ncontext: {engine: a}\n",
        ),
        (
            "#\ttab\ncontext:\t# x\n  engine:\ta\t# y\n",
            "#\ttab\ncontext:\t# x\n  engine:\tlcm\t# y\n",
        ),
        (
            "text: |\n  context:\n    engine: a\ncontext:\n  engine: a\n",
            "text: |\n  context:\n    engine: a\ncontext:\n  engine: lcm\n",
        ),
        (
            "é: ▉🤙 # 日本\ncontext:\n  engine: 日本 # é\n",
            "é: ▉🤙 # 日本\ncontext:\n  engine: lcm # é\n",
        ),
        (
            "a: 1\u{85}b: 2\ncontext: {engine: a}\n",
            "a: 1\u{85}b: 2\ncontext: {engine: lcm}\n",
        ),
    ] {
        assert_eq!(
            edited(old, "context.engine", "lcm").as_deref(),
            Ok(new),
            "{old:?}"
        );
    }
    // What YAML would take for something else is quoted, also for readers of YAML 1.1.
    for (value, written) in [
        ("on", "'on'"),
        ("12", "'12'"),
        ("a: b", "'a: b'"),
        ("it's", "it's"),
        ("x y", "x y"),
        ("", "''"),
        ("a\tb", "\"a\\tb\""),
    ] {
        let new = edited("context:\n  engine: a\n", "context.engine", value);
        assert_eq!(
            new,
            Ok(format!("context:\n  engine: {written}\n")),
            "{value:?}"
        );
    }
}

// contract: CFG-5
// case: 57
#[test]
fn shared_parts_never_change_for_others() {
    let old = "base: &b {engine: compressor, x: 1}\ncontext: *b\nother: {<<: *b, y: 2}\nthird: &b {z: 3}\n";
    let new = set(old, "context.engine", "lcm");
    assert_eq!(
        new,
        old.replace("context: *b", "context: {<<: *b, engine: lcm}")
    );
    let read = |text: &str| Config::from_text(text.as_bytes(), Path::new("c"));
    let (before, after) = (read(old), read(&new));
    assert_eq!(after.get("context"), Some(json!({"engine": "lcm", "x": 1})));
    for key in ["base", "other", "third"] {
        assert_eq!(after.get(key), before.get(key), "{key}");
    }

    let old = "base: &b {engine: compressor, x: 1}\ncontext:\n  <<: *b\n  extra: 1\n";
    assert_eq!(
        set(old, "context.engine", "lcm"),
        format!("{old}  engine: lcm\n")
    );

    // Changing the shared mapping itself would change what shares it.
    let old = "base: &b {engine: compressor, x: 1}\ncontext: *b\n";
    let refused = edited(old, "base.engine", "lcm").expect_err("shared");
    assert!(
        refused.contains(":1:") && refused.contains("context.engine"),
        "{refused}"
    );
    let refused = edited("e: &e a\ncontext: {engine: *e}\n", "e", "b").expect_err("shared");
    assert!(refused.contains("context.engine"), "{refused}");
}

// contract: CFG-5
// case: 57, 60
#[test]
fn what_cannot_be_changed_alone_is_refused_with_line_and_what_to_type() {
    for (old, line) in [
        ("context: lcm\n", 1),
        ("a: 1\ncontext: [x]\n", 2),
        ("context:\n  engine: [a, b]\n", 2),
        ("context:\n  engine: {a: b}\n", 2),
        ("context:\n  engine: |\n    a\n", 2),
        ("context:\n  engine: >-\n    a\n", 2),
        ("context:\n  engine: &e\n", 2),
        ("- a\n- b\n", 1),
        ("text\n", 1),
        ("l: &l [1]\ncontext: *l\n", 2),
        ("text: |\n  x", 2),
    ] {
        let refused = edited(old, "context.engine", "lcm").expect_err(old);
        assert!(
            refused.contains(&format!("config.yaml:{line}: ")),
            "{old:?}: {refused}"
        );
        assert!(refused.contains("left as it is"), "{refused}");
        assert!(refused.contains("engine"), "{refused}");
    }
}

// contract: CFG-6
// case: 59, 60
#[test]
fn no_command_writes_to_a_broken_or_doubled_file() {
    for (old, told) in [
        (
            &b"context:\n  engine: x\nbroken: [unclosed\n"[..],
            ":4:1: broken YAML",
        ),
        (
            b"context: {engine: compressor}\na: 1\ncontext: {engine: x}\n",
            "at line 1 and at line 3",
        ),
        (
            b"context:\n  engine: a\n  engine: b\n",
            "at line 2 and at line 3",
        ),
        (b"\xff\xfec\x00o\x00", "UTF-16"),
        (b"a: 1\n# caf\xe9\n", "byte 10"),
        (b"a: 1\n\xef\xbb\xbfcontext:\n  engine: x\n", "broken YAML"),
    ] {
        let home = Home::with(old);
        let ran = home.run(&["set", "context.engine", "lcm"]);
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(
            ran.err.starts_with("error: ") && ran.err.contains(told),
            "{told}: {}",
            ran.err
        );
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        assert_eq!(ran.out, "");
        assert_eq!(home.bytes(), old);
    }
}

// case: 59
#[test]
fn a_byte_order_mark_stays_where_it_was() {
    for (old, new) in [
        (
            "\u{feff}context:\n  engine: a\n",
            "\u{feff}context:\n  engine: lcm\n",
        ),
        (
            "\u{feff}# c\r\ncontext:\r\n  engine: a\r\n",
            "\u{feff}# c\r\ncontext:\r\n  engine: lcm\r\n",
        ),
        (
            "\u{feff}a: 1\r\n",
            "\u{feff}a: 1\r\ncontext:\r\n  engine: lcm\r\n",
        ),
        ("\u{feff}", "\u{feff}context:\n  engine: lcm\n"),
    ] {
        let found = set(old, "context.engine", "lcm");
        assert_eq!(found, new);
        let read = Config::from_text(found.as_bytes(), Path::new("c"));
        assert_eq!(read.engine_name(), "lcm");
        assert!(read.problems().is_empty());
    }
}
