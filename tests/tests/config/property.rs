//! Files that nobody planned for: after any edit either exactly the value differs and every other byte is the same, or
//! the file is untouched.

use super::support::Home;
use hermes::config::edit::{self, Outcome};
use proptest::prelude::*;
use serde_yaml::Value;
use std::cell::RefCell;
use std::io::Write;
use std::process::{Command, Stdio};

/// How a generated file is written, apart from what it says.
#[derive(Debug, Clone)]
struct Manner {
    indent: usize,
    line_end: &'static str,
    bom: bool,
    last_break: bool,
}

/// One entry below the top: its lines without indentation.
#[derive(Debug, Clone)]
struct Entry(Vec<String>);

fn comment() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "",
        "",
        "",
        "  # note",
        " # a: b",
        "\t# tab",
        "  # \"quote",
        "  # {flow",
        " # 日本 🤙",
        "  # engine: x",
    ])
    .prop_map(str::to_owned)
}

/// Scalars in all styles; the value itself does not matter.
fn scalar() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "lcm",
        "compressor",
        "'single'",
        "\"double\"",
        "\"esc \\\" \\u0041\"",
        "'it''s'",
        "0.5",
        "0.50",
        "5",
        "true",
        "yes",
        "null",
        "~",
        "",
        "&anchor text",
        "!!str 5",
        "!own x",
        "a b  c",
        "http://h:80/x#y",
        "'# no comment'",
        "日本",
        "\"a: b, {c}\"",
        "*shared",
        "-1",
        "1e3",
        "2026-01-02",
    ])
    .prop_map(str::to_owned)
}

fn flow() -> impl Strategy<Value = String> {
    let item = prop_oneof![
        scalar().prop_filter("flow texts", |s| !s.contains([',', '{', '#'])
            && !s.contains(": ")
            && !s.is_empty()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("[a, {b: c}]".to_owned()),
        Just("*base".to_owned()),
    ];
    let pairs = prop::collection::vec(
        (
            prop::sample::select(vec!["engine", "x", "\"q\"", "z z"]),
            item,
        ),
        0..4,
    );
    (pairs, any::<bool>(), any::<bool>()).prop_map(|(pairs, trailing, wide)| {
        let mut seen = std::collections::BTreeSet::new();
        let pairs: Vec<String> = pairs
            .into_iter()
            .filter(|(key, _)| seen.insert(*key))
            .map(|(key, value)| format!("{key}: {value}"))
            .collect();
        let comma = if trailing && !pairs.is_empty() {
            ","
        } else {
            ""
        };
        let (open, close) = if wide { ("{ ", " }") } else { ("{", "}") };
        format!("{open}{}{comma}{close}", pairs.join(", "))
    })
}

/// An entry of a block mapping under `name`.
fn entry(name: &'static str) -> impl Strategy<Value = Entry> {
    let one = |text: String| Entry(vec![text]);
    prop_oneof![
        4 => (scalar(), comment()).prop_map(move |(v, c)| one(format!("{name}: {v}{}", spaced(c)))),
        1 => (scalar(), comment()).prop_map(move |(v, c)| one(format!("\"{name}\"  :   {v}{}", spaced(c)))),
        2 => (flow(), comment()).prop_map(move |(v, c)| one(format!("{name}: {v}{}", spaced(c)))),
        1 => prop::sample::select(vec!["|", ">", "|-", "|+", ">-"]).prop_map(move |style| Entry(vec![
            format!("{name}: {style}"), ">engine: text".to_owned(), ">".to_owned(), "># not a comment".to_owned(),
        ])),
        1 => Just(Entry(vec![format!("{name}:"), ">- a".to_owned(), ">- b: 1".to_owned(), ">  c: 2".to_owned()])),
        1 => Just(Entry(vec![format!("{name}: \"two"), ">lines\"".to_owned()])),
        1 => Just(Entry(vec![format!("{name}: plain two"), ">lines".to_owned()])),
        1 => Just(Entry(vec![format!("{name}: ["), ">a,  # one".to_owned(), ">b".to_owned(), ">]".to_owned()])),
        1 => Just(Entry(vec!["<<: *base".to_owned()])),
        1 => Just(Entry(vec!["<<: [*base, {m: 1}]".to_owned()])),
    ]
}

/// A comment behind nothing needs a blank before it.
fn spaced(comment: String) -> String {
    comment
}

fn section(name: &'static str, keys: &'static [&'static str]) -> impl Strategy<Value = Vec<Entry>> {
    let inner = prop::sample::subsequence(keys.to_vec(), 0..=keys.len())
        .prop_flat_map(|keys| keys.into_iter().map(entry).collect::<Vec<_>>());
    let between = prop::sample::select(vec!["", "", "# between", "#", "   # deep"]);
    prop_oneof![
        5 => (inner, between, comment()).prop_map(move |(inner, between, c)| {
            let mut lines = vec![format!("{name}:{c}")];
            for entry in inner {
                lines.extend(entry.0.iter().map(|line| format!(">{line}")));
                lines.push(between.to_owned());
            }
            vec![Entry(lines)]
        }),
        2 => entry(name).prop_map(|entry| vec![entry]),
        1 => Just(vec![Entry(vec![format!("{name}: *base")])]),
        1 => Just(Vec::new()),
    ]
}

fn file() -> impl Strategy<Value = String> {
    let manner = (
        prop::sample::select(vec![1_usize, 2, 2, 3, 4, 8]),
        prop::sample::select(vec!["\n", "\n", "\n", "\r\n", "\r"]),
        prop::bool::weighted(0.15),
        prop::bool::weighted(0.8),
    )
        .prop_map(|(indent, line_end, bom, last_break)| Manner {
            indent,
            line_end,
            bom,
            last_break,
        });
    let head = prop::sample::select(vec![
        "",
        "# top",
        "---",
        "%YAML 1.1\n---",
        "# top\n\n---  # start",
    ]);
    let base = prop::sample::select(vec![
        "base: &base {engine: compressor, x: 1}\ns: &shared text",
        "base: &base\n>engine: compressor\n># inside\n>x: 1\ns: &shared 'text'",
        "top: {base: &base {n: 2}, s: &shared t}",
    ]);
    let tail = prop::sample::select(vec![
        "",
        "",
        "# ── tail ──\n# fallback_model:\n#   provider: x",
        "...",
        "---\nsecond: {engine: x}",
        "\n\n",
    ]);
    let sections = (
        section("context", &["engine", "note", "timeouts"]),
        section("compression", &["threshold", "other", "list"]),
        section("lcm", &["depth", "engine"]),
        0..6_usize,
    );
    (manner, head, base, sections, tail).prop_map(|(manner, head, base, (a, b, c, order), tail)| {
        let mut sections = [a, b, c];
        sections.rotate_left(order % 3);
        if order > 2 {
            sections.swap(0, 1);
        }
        let mut lines: Vec<String> = Vec::new();
        if !head.is_empty() {
            lines.extend(head.split('\n').map(str::to_owned));
        }
        lines.extend(base.split('\n').map(str::to_owned));
        lines.extend(sections.into_iter().flatten().flat_map(|entry| entry.0));
        if !tail.is_empty() {
            lines.extend(tail.split('\n').map(str::to_owned));
        }
        let lines: Vec<String> = lines
            .into_iter()
            .map(|line| {
                let depth = line.len() - line.trim_start_matches('>').len();
                format!("{}{}", " ".repeat(depth * manner.indent), &line[depth..])
            })
            .collect();
        let mut text = lines.join(manner.line_end);
        if manner.last_break {
            text.push_str(manner.line_end);
        }
        if manner.bom {
            format!("\u{feff}{text}")
        } else {
            text
        }
    })
}

fn request() -> impl Strategy<Value = (&'static str, String)> {
    let key = prop::sample::select(vec![
        "context.engine",
        "context.engine",
        "context.engine",
        "context.note",
        "lcm.depth",
        "lcm.engine",
        "lcm.new.deep",
        "base.engine",
        "compression.other",
        "s",
        "brand_new",
        "context.\"q\"",
        "context.note.engine",
        "compression.list.1",
    ]);
    let value = prop_oneof![
        prop::sample::select(vec![
            "lcm",
            "compressor",
            "yes",
            "0.7",
            "null",
            "a: b",
            "it's",
            "\"x\"",
            "# x",
            "",
            " lead",
            "日本",
            "a\nb",
            "[x]",
            "{a: 1}",
            "*base",
            "&x",
            "- a",
            "|",
            "%x",
            "1_000",
            "text",
            "\\",
            "-",
            "?",
            "---",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,12}",
    ];
    (key, value)
}

/// All documents with aliases and merge keys put in, by the other reader. The merge is the test's own.
fn read(text: &str) -> Option<Vec<Value>> {
    use serde::Deserialize;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let documents = serde_yaml::Deserializer::from_str(text);
    documents
        .map(|one| Value::deserialize(one).ok().map(merged))
        .collect()
}

fn merged(value: Value) -> Value {
    match value {
        Value::Sequence(items) => Value::Sequence(items.into_iter().map(merged).collect()),
        Value::Mapping(mapping) => {
            let mut own = serde_yaml::Mapping::new();
            let mut sources = Vec::new();
            for (key, value) in mapping {
                let value = merged(value);
                match (key.as_str(), value) {
                    (Some("<<"), Value::Sequence(list)) => sources.extend(list),
                    (Some("<<"), value) => sources.push(value),
                    (_, value) => {
                        own.insert(key, value);
                    }
                }
            }
            for source in sources {
                let Value::Mapping(source) = source else {
                    continue;
                };
                for (key, value) in source {
                    own.entry(key).or_insert(value);
                }
            }
            Value::Mapping(own)
        }
        other => other,
    }
}

/// Removes the value of a key, wherever it is, so that two trees can be compared without it. Mappings that were made
/// for the key alone go with it.
fn without(tree: &mut Value, names: &[&str]) {
    let Some((name, rest)) = names.split_first() else {
        return;
    };
    match tree {
        Value::Mapping(mapping) => {
            if rest.is_empty() {
                mapping.shift_remove(*name);
            } else if let Some(inner) = mapping.get_mut(*name) {
                without(inner, rest);
                if inner.is_null() || inner.as_mapping().is_some_and(|m| m.is_empty()) {
                    mapping.shift_remove(*name);
                }
            }
        }
        Value::Sequence(items) => {
            if let Some(item) = name.parse().ok().and_then(|i: usize| items.get_mut(i)) {
                if rest.is_empty() {
                    *item = Value::Null;
                } else {
                    without(item, rest);
                }
            }
        }
        _ => {}
    }
}

fn value_at<'v>(tree: &'v Value, names: &[&str]) -> Option<&'v Value> {
    names.iter().try_fold(tree, |value, name| match value {
        Value::Mapping(mapping) => mapping.get(*name),
        Value::Sequence(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The new text is the old one with one piece exchanged; returns what went and what came.
fn exchanged<'t>(old: &'t str, new: &'t str) -> (&'t str, &'t str) {
    let mut start = old
        .bytes()
        .zip(new.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    while !old.is_char_boundary(start) || !new.is_char_boundary(start) {
        start -= 1;
    }
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let mut end = old_rest
        .bytes()
        .rev()
        .zip(new_rest.bytes().rev())
        .take_while(|(a, b)| a == b)
        .count();
    while !old_rest.is_char_boundary(old_rest.len() - end)
        || !new_rest.is_char_boundary(new_rest.len() - end)
    {
        end -= 1;
    }
    (
        &old_rest[..old_rest.len() - end],
        &new_rest[..new_rest.len() - end],
    )
}

#[derive(Default)]
struct Tally {
    changed: usize,
    unchanged: usize,
    refused: usize,
    /// What the original's own parser is asked afterwards.
    pairs: Vec<serde_json::Value>,
}

fn check(old: &str, key: &str, value: &str, tally: &mut Tally) {
    let home = Home::with(old);
    let before = std::fs::metadata(home.config())
        .expect("metadata")
        .modified()
        .expect("mtime");
    let result = edit::set_value(&home.config(), key, value);
    let new = String::from_utf8(home.bytes()).expect("UTF-8");
    let untouched = || {
        assert_eq!(new, old);
        let after = std::fs::metadata(home.config())
            .expect("metadata")
            .modified()
            .expect("mtime");
        assert_eq!(before, after, "touched");
    };
    let plain = key.replace('"', "");
    let names: Vec<&str> = plain.split('.').collect();
    match result {
        Err(error) => {
            untouched();
            assert!(error.is_usage() || !error.hint().is_empty(), "{error}");
            tally.refused += 1;
        }
        Ok(Outcome::Unchanged) => {
            untouched();
            tally.unchanged += 1;
        }
        Ok(Outcome::Changed { line }) => {
            tally.changed += 1;
            let (went, came) = exchanged(old, &new);
            for comment in COMMENTS {
                let count = |text: &str| text.matches(comment).count();
                assert_eq!(
                    count(old),
                    count(&new),
                    "{comment:?}: {went:?} became {came:?}"
                );
            }
            assert!(!came.contains('\u{feff}'));
            assert_eq!(new.starts_with('\u{feff}'), old.starts_with('\u{feff}'));
            let lines = new.replace("\r\n", "\n").replace('\r', "\n");
            let text = lines.split('\n').nth(line - 1).unwrap_or_default();
            let last = names.last().copied().unwrap_or_default();
            // A key and its value may stand in two lines.
            assert!(
                text.contains(last) || !came.contains(last),
                "line {line} of {lines:?}"
            );
            tally
                .pairs
                .push(serde_json::json!({"old": old, "new": new, "key": names, "value": value}));
            // A mapping with two merge keys is a doubled key for this reader; the other one below takes it.
            let (Some(mut was), Some(mut is)) = (read(old), read(&new)) else {
                assert!(old.matches("<<").count() > 1, "not read: {new:?}");
                return;
            };
            if was.is_empty() {
                was.push(Value::Null);
            }
            let found = value_at(&is[0], &names)
                .cloned()
                .expect("the value is there");
            if let Value::String(text) = &found {
                assert_eq!(text, value);
            } else if !matches!(found, Value::Tagged(_)) {
                let typed: Value = serde_yaml::from_str(value).expect("typed");
                assert_eq!(found, typed, "{key}");
            }
            without(&mut was[0], &names);
            without(&mut is[0], &names);
            assert_eq!(was, is, "another value changed");
        }
    }
}

/// Every comment that a generated file can hold.
const COMMENTS: &[&str] = &[
    "# note",
    "# a: b",
    "# tab",
    "# \"quote",
    "# {flow",
    "# 日本 🤙",
    "# engine: x",
    "# between",
    "# deep",
    "# inside",
    "# one",
    "# top",
    "# start",
    "# ── tail ──",
    "# fallback_model:",
    "#   provider: x",
];

const ORACLE: &str = r#"
import json, sys, yaml
def drop(t, names):
    n, rest = names[0], names[1:]
    if isinstance(t, dict):
        if not rest: t.pop(n, None)
        elif n in t:
            drop(t[n], rest)
            if t[n] is None or t[n] == {}: t.pop(n)
    elif isinstance(t, list) and n.isdigit() and int(n) < len(t):
        if not rest: t[int(n)] = None
        else: drop(t[int(n)], rest)
class L(yaml.SafeLoader): pass
L.add_multi_constructor('!', lambda l, s, n: l.construct_scalar(n) if isinstance(n, yaml.ScalarNode) else None)
bad = 0; seen = 0
import copy
for line in sys.stdin:
    p = json.loads(line)
    try: old = list(yaml.load_all(p['old'], L))
    except yaml.YAMLError: continue
    seen += 1
    try:
        new = list(yaml.load_all(p['new'], L))
        old, new = copy.deepcopy(old), json.loads(json.dumps(new, default=str))
        old = json.loads(json.dumps(old, default=str))
        if not old: old = [None]
        for t in (old[0], new[0]):
            drop(t, p['key'])
        if old[0] in (None, {}) and new[0] in (None, {}): continue
        assert old == new
    except Exception as e:
        bad += 1; print('DIFF', repr(e), json.dumps(p))
print('checked', seen, 'bad', bad)
"#;

/// The parser that the original uses must see the same difference. Skipped where Python has no PyYAML.
fn ask_the_original(pairs: &[serde_json::Value]) {
    let found = Command::new("python3").args(["-c", "import yaml"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        println!("skipped: python3 has no PyYAML");
        return;
    }
    let mut child = Command::new("python3")
        .args(["-c", ORACLE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut input = child.stdin.take().expect("piped");
    let lines: Vec<String> = pairs.iter().map(ToString::to_string).collect();
    let writer = std::thread::spawn(move || input.write_all((lines.join("\n") + "\n").as_bytes()));
    let output = child.wait_with_output().expect("python3 ends");
    writer.join().expect("thread").expect("all read");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{}", text.lines().last().unwrap_or_default());
    assert!(text.contains(" bad 0"), "{text}");
    assert!(!text.contains("checked 0 "), "{text}");
}

// contract: CFG-5, CLI-2
// case: 56, 57, 59
#[test]
fn any_edit_changes_exactly_one_value_or_nothing() {
    let tally = RefCell::new(Tally::default());
    let config = ProptestConfig {
        cases: 600,
        max_shrink_iters: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&(file(), request()), |(old, (key, value))| {
        check(&old, key, &value, &mut tally.borrow_mut());
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let tally = tally.into_inner();
    println!(
        "changed {}, unchanged {}, refused {}",
        tally.changed, tally.unchanged, tally.refused
    );
    assert!(
        tally.changed > 300,
        "the files are mostly ones that can be edited: {}",
        tally.changed
    );
    assert!(
        tally.refused > 30,
        "and some that cannot: {}",
        tally.refused
    );
    ask_the_original(&tally.pairs);
}
