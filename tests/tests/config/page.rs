//! The page about the configuration against the keys that are read.

use hermes::config::{Config, KeyPath, known_keys};
use hermes_tests::workspace;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The keys of the page, each with its default as it stands there.
fn page() -> BTreeMap<String, String> {
    let file = workspace().join("docs/configuration.md");
    let text = std::fs::read_to_string(file).expect("the page");
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let mut keys = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        // The table of variables has two columns.
        let [_, names, _, default, _, _] = cells[..] else {
            continue;
        };
        for name in names.split(", ") {
            let before = keys.insert(name.trim_matches('`').to_owned(), default.to_owned());
            assert_eq!(before, None, "{name} stands twice");
        }
    }
    keys
}

#[test]
fn every_key_that_is_read_stands_on_the_page_and_no_other() {
    let page = page();
    let known = known_keys();
    for key in &known {
        // `model` may be a text or a section, which its keys describe.
        assert!(
            page.contains_key(key) || key == "model",
            "{key} is not on the page"
        );
    }
    for key in page.keys() {
        assert!(known.contains(key), "{key} of the page is read by nothing");
    }
}

#[test]
fn the_defaults_of_the_page_are_those_that_hold() {
    let config = Config::from_text(b"", Path::new("config.yaml"));
    let mut compared = 0;
    for (key, default) in page() {
        let Ok(path) = KeyPath::parse(&key) else {
            continue;
        };
        let holds = match config.effective(&path) {
            None | Some(Value::Null) => continue,
            Some(Value::String(text)) => text,
            Some(value) => value.to_string(),
        };
        assert_eq!(default, holds.trim_end_matches(".0"), "{key}");
        compared += 1;
    }
    assert!(compared > 30, "{compared}");
    let summaries = config.auxiliary_compression().timeout.as_secs();
    assert_eq!(
        page()["auxiliary.compression.timeout"],
        summaries.to_string()
    );
}
