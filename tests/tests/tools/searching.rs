//! `search_files`.

use std::fs::File;
use std::time::{Duration, Instant};

use hermes::provider::Cancel;
use serde_json::{Value, json};

use crate::support::{Work, error, paths};

fn project() -> Work {
    let work = Work::new();
    work.write("Cargo.toml", "name = \"needle\"\n");
    work.write(
        "src/a.rs",
        "fn one() {}\n// needle here\nfn two() {}\n// and a Needle there\n",
    );
    work.write("src/deep/b.rs", "needle\n");
    work.write("notes.md", "no match\n");
    work.write("target/out.rs", "needle\n");
    work.write("keep/target/in.rs", "needle\n");
    work.write(".git/config", "needle\n");
    work.write(".hidden/c.rs", "needle\n");
    work.write("debug.log", "needle\n");
    work.write("keep/debug.log", "needle\n");
    work.write(".gitignore", "/target\n*.log\n[bad\n");
    work.write("keep/.gitignore", "!debug.log\n");
    work.write("data.bin", b"needle\n\0\x01");
    work
}

#[test]
fn content_is_found_with_path_and_line_and_ignored_files_are_left_out() {
    let work = project();
    let found = work.search(&json!({"pattern": "needle"}));
    assert_eq!(
        paths(&found),
        [
            "Cargo.toml",
            ".hidden/c.rs",
            "keep/debug.log",
            "keep/target/in.rs",
            "src/a.rs",
            "src/deep/b.rs"
        ]
    );
    let in_a = found["matches"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|each| each["path"] == "src/a.rs");
    assert_eq!(
        in_a,
        Some(&json!({"path": "src/a.rs", "line": 2, "text": "// needle here"}))
    );
    assert_eq!(found["notes"], json!(["1 binary files were left out"]));
    assert_eq!(found["truncated"], Value::Null);
    // What was named is searched, ignored or not.
    assert_eq!(
        paths(&work.search(&json!({"pattern": "needle", "path": "target"}))),
        ["target/out.rs"]
    );
    assert_eq!(
        paths(&work.search(&json!({"pattern": "needle", "path": "debug.log"}))),
        ["debug.log"]
    );
}

#[test]
fn patterns_globs_and_paths_narrow_a_search() {
    let work = project();
    let table = [
        (
            json!({"pattern": "(?i)needle (here|there)"}),
            vec!["src/a.rs", "src/a.rs"],
        ),
        (
            json!({"pattern": "needle", "glob": "*.rs", "path": "src"}),
            vec!["src/a.rs", "src/deep/b.rs"],
        ),
        (
            json!({"pattern": "needle", "glob": "src/*.rs"}),
            vec!["src/a.rs"],
        ),
        (
            json!({"pattern": "needle", "glob": "src/**/*.rs"}),
            vec!["src/a.rs", "src/deep/b.rs"],
        ),
        (
            json!({"pattern": "needle", "glob": "*.{toml,md}"}),
            vec!["Cargo.toml"],
        ),
        (
            json!({"pattern": "^needle$", "path": "src/"}),
            vec!["src/deep/b.rs"],
        ),
        (
            json!({"pattern": "\\.rs$", "kind": "name", "path": "src"}),
            vec!["src/a.rs", "src/deep/b.rs"],
        ),
        (
            json!({"pattern": "deep", "kind": "name"}),
            vec!["src/deep/", "src/deep/b.rs"],
        ),
        (
            json!({"pattern": "deep", "kind": "name", "glob": "*.rs"}),
            vec!["src/deep/b.rs"],
        ),
        (
            json!({"pattern": "a", "kind": "name", "path": "src/a.rs"}),
            vec!["src/a.rs"],
        ),
        (json!({"pattern": "nothing like this"}), vec![]),
    ];
    for (arguments, expected) in table {
        let found = work.search(&arguments);
        assert_eq!(paths(&found), expected, "{arguments}: {found}");
    }
}

#[test]
fn rules_of_the_repository_above_the_working_directory_hold_and_none_from_above_that() {
    let mut work = Work::new();
    let above = work.outside().join(".gitignore");
    std::fs::write(above, "*\n").expect("a file");
    work.write("repo/.git/HEAD", "");
    work.write("repo/.gitignore", "*.tmp\n/sub/only\n");
    work.write("repo/sub/a.txt", "x\n");
    work.write("repo/sub/a.tmp", "x\n");
    work.write("repo/sub/only/b.txt", "x\n");
    work.place.directory = work.path("repo/sub");
    assert_eq!(paths(&work.search(&json!({"pattern": "x"}))), ["a.txt"]);
}

#[test]
fn results_are_bounded_and_say_so() {
    let work = Work::new();
    work.write("many.txt", "match\n".repeat(3_000));
    let found = work.search(&json!({"pattern": "match"}));
    assert_eq!(paths(&found).len(), 100);
    assert_eq!(found["truncated"], true);
    assert!(
        found["notes"].to_string().contains("limit of matches"),
        "{}",
        found["notes"]
    );
    assert_eq!(
        paths(&work.search(&json!({"pattern": "match", "limit": 5_000}))).len(),
        1_000
    );
    let exact = work.search(&json!({"pattern": "match", "path": "many.txt", "limit": "7"}));
    assert_eq!(paths(&exact).len(), 7);
    // As many as there are is not too many.
    work.write("two.txt", "pair\npair\n");
    assert_eq!(
        work.search(&json!({"pattern": "pair", "limit": 2}))["truncated"],
        Value::Null
    );

    work.write("wide.txt", format!("{}\n", "wide ".repeat(200)).repeat(900));
    let found = work.search(&json!({"pattern": "wide", "limit": 1_000}));
    assert!(
        found.to_string().len() < 100 << 10,
        "{}",
        found.to_string().len()
    );
    assert!(
        found["notes"].to_string().contains("64 KiB"),
        "{}",
        found["notes"]
    );
}

#[test]
fn a_long_line_is_shown_around_its_match() {
    let work = Work::new();
    work.write(
        "min.js",
        format!("{}needle{}\n", "ä".repeat(5_000), "b".repeat(5_000)),
    );
    let found = work.search(&json!({"pattern": "needle"}));
    let text = found["matches"][0]["text"].as_str().expect("a text");
    assert!(
        text.starts_with("…ä") && text.ends_with("b…") && text.contains("äneedleb"),
        "{text}"
    );
    assert!(text.chars().count() <= 402, "{text}");
    assert!(!text.contains('\u{fffd}'), "{text}");

    work.write(
        "endless.txt",
        format!("early needle\n{}", "x".repeat(3 << 20)),
    );
    let found = work.search(&json!({"pattern": "early|xneedle", "path": "endless.txt"}));
    assert!(
        found["notes"].to_string().contains("over a megabyte"),
        "{found}"
    );
    assert_eq!(paths(&found), ["endless.txt"]);
}

#[test]
fn huge_and_odd_files_do_not_stop_a_search() {
    let work = Work::new();
    File::create(work.path("sparse"))
        .and_then(|file| file.set_len(1 << 30))
        .expect("a gibibyte of nothing");
    File::create(work.path(".gitignore"))
        .and_then(|file| file.set_len(1 << 30))
        .expect("another one");
    work.write("utf16.txt", b"\xff\xfen\0e\0e\0d\0l\0e\0\n\0");
    work.write("latin.txt", b"caf\xe9 needle\n");
    work.write("crlf.txt", "needle\r\n");
    let began = Instant::now();
    let found = work.search(&json!({"pattern": "needle$"}));
    assert_eq!(paths(&found), ["crlf.txt", "latin.txt", "utf16.txt"]);
    assert_eq!(found["matches"][0]["text"], "needle");
    assert_eq!(found["matches"][1]["text"], "caf\u{fffd} needle");
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_deep_tree_is_walked_to_its_end() {
    let work = Work::new();
    let deep = "d/".repeat(300);
    work.write(&format!("{deep}x.txt"), "needle\n");
    assert_eq!(
        paths(&work.search(&json!({"pattern": "needle"}))),
        [format!("{deep}x.txt")]
    );
}

#[test]
fn patterns_and_arguments_that_cannot_be_used_bring_a_sentence() {
    let work = project();
    let table = [
        (json!({"pattern": "fn main("}), "unclosed group"),
        (json!({"pattern": "*"}), "repetition"),
        (json!({"pattern": "a\nb"}), "cannot be used"),
        (json!({"pattern": "(?:a{1000}){1000}"}), "cannot be used"),
        (json!({"pattern": "x".repeat(20_000)}), "over 10000 bytes"),
        (json!({"pattern": "("  .repeat(5_000)}), "cannot be used"),
        (json!({"pattern": ""}), "`pattern` is empty"),
        (json!({}), "`pattern` is missing"),
        (json!({"pattern": ["a"]}), "`pattern` is a list"),
        (
            json!({"pattern": "a", "kind": "filename"}),
            "not one of content, name",
        ),
        (json!({"pattern": "a", "glob": "[z-a]"}), "the glob '[z-a]'"),
        (json!({"pattern": "a", "glob": "a/{b"}), "the glob"),
        (json!({"pattern": "a", "path": "scr"}), "similar: 'src'"),
        (json!({"pattern": "a", "limit": 0}), "`limit` is 0"),
    ];
    for (arguments, problem) in table {
        let refused = work.search(&arguments);
        assert!(error(&refused).contains(problem), "{refused}");
        assert!(error(&refused).len() < 900, "{refused}");
        assert!(!error(&refused).contains('\n'), "{refused}");
    }
}

#[test]
fn an_interrupt_ends_a_search_that_is_under_way() {
    let mut work = Work::new();
    // Enough that it takes a while, of a pattern that is slow.
    for n in 0..40 {
        work.write(
            &format!("{n}.txt"),
            format!("{}\n", "ab ".repeat(700)).repeat(1_000),
        );
    }
    work.place.cancel = Cancel::new();
    let cancel = work.place.cancel.clone();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            cancel.cancel();
        });
        let began = Instant::now();
        let found = work.search(&json!({"pattern": "(?:a.{0,40}b){8}z"}));
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?}",
            began.elapsed()
        );
        assert!(error(&found).contains("interrupted"), "{found}");
    });
}
