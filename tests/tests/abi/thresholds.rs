//! The resolver of thresholds per model gives the same answers in C and in Rust.

use std::fmt::Write;
use std::process::Stdio;

use hermes_plugin_api::thresholds::resolve_model_threshold;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use crate::toolchain::{Built, Compiler, sources};

type Case = (Map<String, Value>, String, String);

fn program(standard: &str) -> Built {
    let source = sources().join("thresholds.c");
    let compiler = Compiler::new(standard);
    let compiler = if standard.contains("++") {
        compiler.flag("-xc++")
    } else {
        compiler
    };
    compiler.file(source).built()
}

fn answers_of_c(program: &Built, cases: &[Case]) -> Vec<f64> {
    let mut lines = String::new();
    for (at, (map, model, provider)) in cases.iter().enumerate() {
        let map = Value::Object(map.clone()).to_string();
        let map = if at % 2 == 0 { map } else { escaped(&map) };
        writeln!(lines, "{map}\t{model}\t{provider}").expect("a string");
    }
    let mut input = tempfile::tempfile().expect("a temporary file");
    std::io::Write::write_all(&mut input, lines.as_bytes()).expect("written");
    std::io::Seek::rewind(&mut input).expect("rewound");
    let said = program.run_with(&[], Stdio::from(input));
    said.lines()
        .map(|line| line.parse().expect("a number"))
        .collect()
}

/// The same JSON in ASCII, as other writers would have it.
fn escaped(json: &str) -> String {
    let mut text = String::new();
    for c in json.chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(text, "\\u{unit:04X}").expect("a string");
            }
        }
    }
    text
}

/// Words that overlap a lot, so that many keys match in many ways.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "glm", "GLM", "-5", "-51", "5", "1m", "-", ":", "z", "zai", "Zai:", "/", "é", "É", "\"",
        "\\", "日本", "turbo", "😀", "\u{8}", "\u{1f}",
    ]);
    prop::collection::vec(word, 0..5).prop_map(|words| words.concat())
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => (1u32..=1000).prop_map(|n| json!(f64::from(n) / 1000.0)),
        1 => prop::sample::select(vec![
            json!(0), json!(1), json!(-0.5), json!(1.0000001), json!(2), json!(1e-9), json!(1e-300), json!(1e300),
            json!(u64::MAX), json!(i64::MIN), json!(true), json!(false), json!(null), json!("0.5"), json!("}{,:\"\\"),
            json!([0.5, {"glm": 0.5}]), json!({"glm": 0.5, "x": [1, "]"]}), json!([]), json!({}),
        ]),
        1 => (0.0f64..1.2).prop_map(|n| json!(n)),
    ]
}

/// Most models hold one of the keys, in upper case or not, with something before and after it.
fn cases() -> impl Strategy<Value = Case> {
    let map = prop::collection::vec((words(), values()), 0..8);
    let model = (words(), any::<prop::sample::Index>(), words(), 0..4);
    let provider = prop_oneof![
        2 => prop::sample::select(vec!["", "zai", "ZAI", "z", "zai:z", "glm"]).prop_map(String::from),
        1 => words(),
    ];
    (map, model, provider).prop_map(|(entries, (before, key, after, kind), provider)| {
        let key = match entries.len() {
            0 => "",
            len => entries[key.index(len)].0.as_str(),
        };
        let model = match kind {
            0 => before.clone() + &after,
            1 => before.clone() + &key.to_ascii_uppercase() + &after,
            2 => key.strip_prefix("zai:").unwrap_or(key).to_owned() + &after,
            _ => before.clone() + key + &after,
        };
        (entries.into_iter().collect(), model, provider)
    })
}

// contract: CFG-3
#[test]
fn c_and_rust_agree_on_a_generated_table() {
    let mut runner = TestRunner::deterministic();
    let strategy = cases();
    let table: Vec<Case> = (0..20_000)
        .map(|_| strategy.new_tree(&mut runner).expect("a case").current())
        .filter(|(_, model, provider)| !format!("{model}{provider}").contains(['\n', '\t', '\0']))
        .collect();
    let mut matched = 0;
    for standard in ["c99", "c++11"] {
        let answers = answers_of_c(&program(standard), &table);
        assert_eq!(answers.len(), table.len());
        for (case, theirs) in table.iter().zip(&answers) {
            let (map, model, provider) = case;
            let ours = resolve_model_threshold(map, model, provider).unwrap_or(0.0);
            // The last bit of a long fraction may differ: C reads numbers without the locale's help.
            let same = (ours == 0.0) == (*theirs == 0.0) && (ours - theirs).abs() <= ours * 1e-15;
            assert!(same, "{case:?}: Rust {ours}, C {theirs}");
            matched += u32::from(ours > 0.0);
        }
    }
    assert!(matched > 10_000, "the table is too tame: {matched} matches");
}

// contract: CFG-2, CFG-3
// case: 22
#[test]
fn c_follows_the_documented_case_rule() {
    let map = json!({"glm-5": 0.7, "glm-5-1m": 0.25, "": 0.1, "GLM-5-1M-Turbo": 0.6, "bad": 1.7, "t": true});
    let map = map.as_object().expect("a map");
    let models = [
        "z/glm-5-1m",
        "z/glm-5",
        "other",
        "z/glm-5-1m-turbo",
        "glm-51m",
        "other",
    ];
    let table: Vec<Case> = models
        .iter()
        .map(|model| (map.clone(), (*model).into(), "zai".into()))
        .collect();
    let answers = answers_of_c(&program("c99"), &table);
    assert_eq!(answers, [0.25, 0.7, 0.0, 0.6, 0.0, 0.0]);
}

/// What a broken map may look like when it does not come from a host: no match, and no step outside of it.
#[test]
fn c_survives_what_is_no_json_object() {
    let text = r#"{"glm":0.5,"a\"":"x","n":NaN,"l":[{"k":1}],"glm-5":2.5e-1}"#;
    let lines: String = (0..=text.len())
        .map(|end| format!("{}\tglm-5\tp\n", &text[..end]))
        .chain(
            [
                "[0.5]",
                "{\"glm\":0.5]",
                "{\"glm\" 0.5}",
                "null",
                "{\"glm\":0.5 x}",
                "{\"glm\":]}",
            ]
            .map(|t| format!("{t}\tglm\tp\n")),
        )
        .collect();
    let mut input = tempfile::tempfile().expect("a temporary file");
    std::io::Write::write_all(&mut input, lines.as_bytes()).expect("written");
    std::io::Seek::rewind(&mut input).expect("rewound");
    let program = Compiler::new("c99")
        .flag("-fsanitize=address,undefined")
        .flag("-fno-sanitize-recover=all")
        .file(sources().join("thresholds.c"))
        .built();
    let said = program.run_with(&[], Stdio::from(input));
    let answers: Vec<&str> = said.lines().collect();
    let whole = answers.get(text.len()).copied();
    assert_eq!(whole, Some("0.25"));
    for (at, answer) in answers
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != text.len())
    {
        assert_eq!(*answer, "0", "line {at}");
    }
}
