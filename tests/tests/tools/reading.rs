//! `read_file`.

use std::fs::File;
use std::time::{Duration, Instant};

use hermes::agent::tools::built_in;
use serde_json::{Value, json};

use crate::support::{Work, error, name};

#[test]
fn the_schemas_are_what_a_strict_provider_takes() {
    let tools = built_in();
    let names: Vec<String> = tools.iter().map(|tool| name(tool.as_ref())).collect();
    assert_eq!(names, ["read_file", "search_files"]);
    for tool in &tools {
        let schema: Value = serde_json::from_str(tool.schema()).expect("JSON");
        assert_eq!(schema["parameters"]["type"], "object");
        assert!(
            schema["description"]
                .as_str()
                .is_some_and(|text| text.len() > 40)
        );
        for required in schema["parameters"]["required"].as_array().expect("a list") {
            let required = required.as_str().expect("a name");
            assert!(
                schema["parameters"]["properties"].get(required).is_some(),
                "{required}"
            );
        }
        assert_eq!(tool.schema(), tool.schema());
    }
}

#[test]
fn a_small_file_comes_whole_with_line_numbers() {
    let work = Work::new();
    work.write("src/a.txt", "one\ntwo\n\nfour");
    let result = work.read(&json!({"path": "src/a.txt"}));
    assert_eq!(
        result,
        json!({"path": "src/a.txt", "content": "1|one\n2|two\n3|\n4|four\n", "bytes": 13,
               "first_line": 1, "last_line": 4, "total_lines": 4})
    );
    // The same file by its whole path, and in a roundabout way.
    let whole = work.path("src/a.txt").display().to_string();
    assert_eq!(work.read(&json!({"path": whole})), result);
    assert_eq!(work.read(&json!({"path": "./src/../src//a.txt"})), result);
}

#[test]
fn windows_lead_from_one_to_the_next_and_give_every_line_once() {
    let work = Work::new();
    let text: String = (1..=5_000).map(|n| format!("line {n}\n")).collect();
    work.write("long.txt", &text);
    let mut offset = 1;
    let mut lines = Vec::new();
    let mut calls = 0;
    loop {
        let page = work.read(&json!({"path": "long.txt", "offset": offset}));
        calls += 1;
        let content = page["content"].as_str().expect("content");
        lines.extend(
            content
                .lines()
                .map(|line| line.split_once('|').expect("numbered").1.to_owned()),
        );
        match page["next_offset"].as_u64() {
            Some(next) => offset = next,
            None => {
                assert_eq!(page["total_lines"], 5_000);
                break;
            }
        }
    }
    assert_eq!(calls, 3);
    assert_eq!(lines.join("\n") + "\n", text);
}

#[test]
fn a_page_is_bounded_in_bytes_and_a_line_in_width() {
    let work = Work::new();
    work.write(
        "wide.txt",
        format!("{}\n{}\nend\n", "ä".repeat(2_001), "b".repeat(2_000)),
    );
    let page = work.read(&json!({"path": "wide.txt"}));
    let content = page["content"].as_str().expect("content");
    let lines: Vec<&str> = content.lines().collect();
    assert_eq!(lines[0], format!("1|{}…", "ä".repeat(2_000)));
    assert_eq!(lines[1], format!("2|{}", "b".repeat(2_000)));
    assert_eq!(page["notes"], json!(["lines over 2000 characters are cut"]));

    work.write("many.txt", format!("{}\n", "c".repeat(1_000)).repeat(500));
    let page = work.read(&json!({"path": "many.txt"}));
    let content = page["content"].as_str().expect("content");
    assert!(
        (64 << 10..(64 << 10) + 1_100).contains(&content.len()),
        "{}",
        content.len()
    );
    assert_eq!(
        page["next_offset"],
        page["last_line"].as_u64().expect("a line") + 1
    );
}

#[test]
fn what_is_odd_in_a_text_is_said() {
    let work = Work::new();
    let table: [(&[u8], &str, &str); 7] = [
        (b"caf\xe9\n", "1|caf\u{fffd}\n", "UTF-8"),
        (b"a\r\nb\r\n", "1|a\n2|b\n", "CR LF"),
        (b"\xef\xbb\xbfmarked\n", "1|marked\n", ""),
        (b"", "", "empty"),
        (b"\n", "1|\n", ""),
        (
            "\u{1f469}\u{200d}\u{1f4bb} \u{e4}".as_bytes(),
            "1|\u{1f469}\u{200d}\u{1f4bb} \u{e4}\n",
            "",
        ),
        (b"\x1b[31mred", "1|\u{1b}[31mred\n", ""),
    ];
    for (bytes, content, note) in table {
        work.write("odd.txt", bytes);
        let page = work.read(&json!({"path": "odd.txt"}));
        assert_eq!(page["content"], content, "{page}");
        let notes = page["notes"]
            .as_array()
            .map(|notes| notes.len())
            .unwrap_or(0);
        assert_eq!(notes, usize::from(!note.is_empty()), "{page}");
        assert!(page["notes"].to_string().contains(note), "{page}");
    }
    // A character that is cut in half by the width is not the file's fault.
    work.write("odd.txt", "€".repeat(3_000));
    let page = work.read(&json!({"path": "odd.txt"}));
    assert_eq!(
        page["notes"].as_array().map(Vec::len),
        Some(1),
        "{}",
        page["notes"]
    );
}

#[test]
fn offsets_behind_the_end_say_where_it_is() {
    let work = Work::new();
    work.write("three.txt", "1\n2\n3\n");
    work.write("empty.txt", "");
    let last = work.read(&json!({"path": "three.txt", "offset": 3}));
    assert_eq!(last["content"], "3|3\n");
    assert_eq!(last["total_lines"], 3);
    for offset in [4, 500, u64::MAX] {
        let past = work.read(&json!({"path": "three.txt", "offset": offset}));
        assert!(error(&past).contains("has 3 lines"), "{past}");
    }
    let empty = work.read(&json!({"path": "empty.txt", "offset": 9}));
    assert_eq!(empty["notes"], json!(["the file is empty"]));
    // A window that ends at the last line knows that it does.
    let two = work.read(&json!({"path": "three.txt", "offset": 2, "limit": 2}));
    assert_eq!(
        (&two["total_lines"], &two["next_offset"]),
        (&json!(3), &Value::Null)
    );
    let one = work.read(&json!({"path": "three.txt", "limit": 1}));
    assert_eq!(
        (&one["total_lines"], &one["next_offset"]),
        (&Value::Null, &json!(2))
    );
}

#[test]
fn data_that_is_no_text_is_not_shown() {
    let work = Work::new();
    for (bytes, what) in [
        (&b"\x7fELF\x02\x01\x01\0\0"[..], "binary"),
        (b"\xff\xfea\0b\0", "UTF-16"),
    ] {
        work.write("data", bytes);
        let refused = work.read(&json!({"path": "data"}));
        assert!(error(&refused).contains(what), "{refused}");
        assert!(
            error(&refused).contains(&format!("({} bytes)", bytes.len())),
            "{refused}"
        );
    }
    // NUL bytes behind the part that is looked at first.
    work.write("late", format!("{}\0\n", "text\n".repeat(5_000)));
    assert_eq!(
        work.read(&json!({"path": "late", "limit": 5}))["last_line"],
        5
    );
    assert!(error(&work.read(&json!({"path": "late", "offset": 5_000}))).contains("binary"));
}

#[test]
fn a_huge_file_is_never_read_whole() {
    let work = Work::new();
    let file = File::create(work.path("sparse")).expect("a file");
    file.set_len(1 << 30).expect("a gibibyte of nothing");
    let began = Instant::now();
    assert!(error(&work.read(&json!({"path": "sparse"}))).contains("1073741824 bytes"));

    // Text at first, and then a line without an end.
    work.write("log", format!("first\n{}", "second ".repeat(2_000)));
    File::options()
        .append(true)
        .open(work.path("log"))
        .and_then(|file| file.set_len(1 << 30))
        .expect("a long file");
    let page = work.read(&json!({"path": "log", "limit": 1}));
    assert_eq!(
        (&page["content"], &page["next_offset"]),
        (&json!("1|first\n"), &json!(2))
    );
    let page = work.read(&json!({"path": "log", "offset": 2}));
    assert!(
        page["notes"].to_string().contains("no further than 64 MiB"),
        "{page}"
    );
    assert_eq!(
        (&page["last_line"], &page["next_offset"]),
        (&json!(2), &Value::Null)
    );
    assert!(error(&work.read(&json!({"path": "log", "offset": 3}))).contains("64 MiB"));
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_missing_file_brings_names_that_look_like_it() {
    let work = Work::new();
    for name in ["src/main.rs", "src/maim.c", "src/other.txt", "README.md"] {
        work.write(name, "");
    }
    let missing = work.read(&json!({"path": "src/mian.rs"}));
    assert!(
        error(&missing).contains("there is no 'src/mian.rs'"),
        "{missing}"
    );
    assert!(error(&missing).contains("'src/main.rs'"), "{missing}");
    assert!(!error(&missing).contains("other.txt"), "{missing}");
    let missing = work.read(&json!({"path": "scr/main.rs"}));
    assert!(error(&missing).contains("'src'"), "{missing}");
    let missing = work.read(&json!({"path": "readme.md"}));
    assert!(error(&missing).contains("'README.md'"), "{missing}");
    let missing = work.read(&json!({"path": "zzz/yyy"}));
    assert!(error(&missing).contains("search_files"), "{missing}");
    let below_a_file = work.read(&json!({"path": "README.md/x"}));
    assert!(
        error(&below_a_file).contains("no directory"),
        "{below_a_file}"
    );
}

#[test]
fn a_directory_is_listed() {
    let work = Work::new();
    work.write("b/file.txt", "");
    work.write("b/inner/x", "");
    let refused = work.read(&json!({"path": "b"}));
    assert!(error(&refused).contains("is a directory"), "{refused}");
    assert_eq!(refused["entries"], json!(["file.txt", "inner/"]));
    assert_eq!(work.read(&json!({"path": "."}))["entries"], json!(["b/"]));
    for n in 0..300 {
        work.write(&format!("many/{n:03}"), "");
    }
    let many = work.read(&json!({"path": "many"}));
    assert_eq!(many["entries"].as_array().map(Vec::len), Some(200));
    assert_eq!(many["more_entries"], true);
}

#[test]
fn arguments_that_are_none_bring_what_is_expected() {
    let work = Work::new();
    work.write("a.txt", "a\n");
    let table = [
        ("", "`path` is missing"),
        ("  \n", "`path` is missing"),
        ("{}", "`path` is missing"),
        ("null", "not an object"),
        ("[\"a.txt\"]", "not an object"),
        ("\"a.txt\"", "not an object"),
        ("{\"path\": \"a.t", "cut off after 13 bytes"),
        ("{\"path\": \"a.txt\"", "cut off"),
        ("{'path': 'a.txt'}", "no JSON"),
        ("a.txt", "no JSON"),
        ("{\"path\": \"a.txt\"} and more", "no JSON"),
        ("{\"path\": 7}", "`path` is a number, not a text"),
        ("{\"path\": null}", "`path` is missing"),
        ("{\"path\": \"\"}", "`path` is empty"),
        ("{\"path\": \"a.txt\", \"offset\": 0}", "`offset` is 0"),
        (
            "{\"path\": \"a.txt\", \"offset\": -3}",
            "whole number from 1",
        ),
        ("{\"path\": \"a.txt\", \"limit\": 1.5}", "`limit` is 1.5"),
        ("{\"path\": \"a.txt\", \"limit\": 1e300}", "`limit` is"),
        ("{\"path\": \"a.txt\", \"limit\": [1]}", "`limit` is [1]"),
    ];
    for (arguments, problem) in table {
        let refused = work.call("read_file", arguments);
        assert!(error(&refused).contains(problem), "{arguments}: {refused}");
        assert!(
            error(&refused).contains("expected {\"path\""),
            "{arguments}: {refused}"
        );
    }
    // What is meant is clear enough.
    let meant = work.call(
        "read_file",
        "{\"path\":\"a.txt\",\"offset\":\"1\",\"limit\":2.0,\"why\":1}",
    );
    assert_eq!(meant["content"], "1|a\n");
    // An error does not grow with what caused it.
    let long = work.read(&json!({"path": "x".repeat(100_000)}));
    assert!(error(&long).len() < 600, "{}", error(&long).len());
}

#[test]
fn an_interrupt_ends_a_call() {
    let work = Work::new();
    work.write("a.txt", "a\n");
    work.place.cancel.cancel();
    assert!(error(&work.read(&json!({"path": "a.txt"}))).contains("interrupted"));
    assert!(error(&work.search(&json!({"pattern": "a"}))).contains("interrupted"));
}
