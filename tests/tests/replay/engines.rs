//! Several engines side by side, and engines that do not serve or misbehave.

use hermes_tests::Home;
use serde_json::{Value, json};

use super::{array, file, session, turns, with_window, with_wrong};

// contract: SEL-1
#[test]
fn the_example_session_goes_through_both_engines_side_by_side() {
    let home = Home::new();
    with_window(&home);
    let arguments = [
        "replay",
        &session(),
        "--engine",
        "compressor",
        "--engine",
        "window",
        "--context-length",
        "32768",
    ];
    let (report, status) = home.json(&arguments);
    assert_eq!(status, 0);
    assert_eq!(
        report[0]["repairs"],
        json!([]),
        "the example is a clean one"
    );
    let engines = report[0]["engines"].as_array().expect("engines");
    assert_eq!(
        engines
            .iter()
            .map(|engine| engine["engine"].as_str())
            .collect::<Vec<_>>(),
        [Some("compressor"), Some("window")]
    );
    for engine in engines {
        assert!(engine["compressions"].as_u64() >= Some(3), "{engine}");
        assert_eq!(
            (&engine["violations"], &engine["refused"]),
            (&json!([]), &json!(0)),
            "{engine}"
        );
        assert!(engine["peak_tokens"].as_u64() <= Some(32_768), "{engine}");
    }
    assert!(
        engines[1]["loaded_from"]
            .as_str()
            .is_some_and(|path| path.ends_with("libwindow.so"))
    );
    let table = home.run(&arguments);
    let text = String::from_utf8(table.stdout).expect("UTF-8");
    assert_eq!(
        text.lines()
            .filter(|line| line.contains("session.jsonl"))
            .count(),
        2,
        "{text}"
    );
}

// contract: SEL-5
#[test]
fn a_named_engine_that_does_not_serve_ends_the_command_and_a_configured_one_does_not() {
    let home = Home::new();
    let talk = file(&home, "talk.json", &array(&turns(2)));
    let (value, status) = home.json(&["replay", &talk, "--engine", "ghost"]);
    assert_eq!(
        (status, value["error"]["kind"].as_str()),
        (2, Some("engine"))
    );
    assert!(
        value["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("ghost")),
        "{value}"
    );

    home.config("context:\n  engine: ghost\n");
    for command in ["replay", "compress"] {
        let output = home.run(&[command, &talk, "--json"]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            told.lines()
                .any(|line| line.starts_with("warning: ") && line.contains("ghost")),
            "{told}"
        );
        let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let engine = if command == "replay" {
            &value[0]["engines"][0]
        } else {
            &value
        };
        assert_eq!(engine["engine"], "compressor", "{command}");
        assert_eq!(engine["fallback"]["wanted"], "ghost", "{command}");
        assert!(
            engine["fallback"]["reason"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{command}"
        );
    }
}

// contract: HOOK-2, HOOK-4, PASS-6
#[test]
fn what_an_engine_breaks_is_listed_and_the_replay_goes_on() {
    if !hermes_tests::has_compiler() {
        println!("skipped: there is no C compiler");
        return;
    }
    let talk = |home: &Home| file(home, "talk.json", &array(&turns(12)));
    let cases = [
        ("twins", "fine", "compress", "uid-twice"),
        ("empty", "fine", "compress", "empty"),
        ("garbage", "fine", "compress", "invalid-output"),
        ("fine", "bad_range", "select_context", "invalid-output"),
        ("fine", "twins", "select_context", "adjacent-users"),
        ("fine", "orphan", "select_context", "result-without-call"),
    ];
    for (compress, select, at, rule) in cases {
        let home = Home::new();
        with_wrong(&home, compress, select);
        let (report, status) = home.json(&[
            "replay",
            &talk(&home),
            "--engine",
            "wrong",
            "--context-length",
            "3000",
        ]);
        let engine = &report[0]["engines"][0];
        let violations = engine["violations"]
            .as_array()
            .unwrap_or_else(|| panic!("{compress} {select}: {report}"));
        assert_eq!(status, 1, "{compress} {select}: {engine}");
        assert!(
            violations
                .iter()
                .any(|violation| violation["at"] == at && violation["rule"] == rule),
            "{compress} {select}: {violations:?}"
        );
        assert!(
            violations.iter().all(|violation| violation["at"] == at),
            "the requests stay valid: {violations:?}"
        );
        assert_eq!(engine["requests"], 24, "{compress} {select}");
    }
}

// contract: PASS-6, HOOK-2
#[test]
fn an_engine_that_fails_costs_its_passes_and_the_built_in_makes_room() {
    if !hermes_tests::has_compiler() {
        println!("skipped: there is no C compiler");
        return;
    }
    let home = Home::new();
    with_wrong(&home, "half", "fine");
    let talk = file(&home, "talk.json", &array(&turns(12)));
    let (report, status) = home.json(&[
        "replay",
        &talk,
        "--engine",
        "wrong",
        "--context-length",
        "3000",
    ]);
    let engine = &report[0]["engines"][0];
    assert_eq!(status, 0, "{engine}");
    assert!(engine["refused"].as_u64() > Some(0), "{engine}");
    assert_eq!(engine["over_window"], 0, "{engine}");
}

#[test]
fn what_an_engine_prints_is_no_part_of_the_result() {
    if !hermes_tests::has_compiler() {
        println!("skipped: there is no C compiler");
        return;
    }
    let home = Home::new();
    with_wrong(&home, "chatty", "chatty");
    let talk = file(&home, "talk.json", &array(&turns(12)));
    for command in ["replay", "compress"] {
        // `json` takes no output but one JSON value.
        let (_, status) = home.json(&[
            command,
            &talk,
            "--engine",
            "wrong",
            "--context-length",
            "3000",
        ]);
        assert_eq!(status, 0, "{command}");
    }
}

// contract: SAFE-2
#[cfg(unix)]
#[test]
fn an_engine_that_ends_the_process_does_not_make_it_a_success() {
    if !hermes_tests::has_compiler() {
        println!("skipped: there is no C compiler");
        return;
    }
    let home = Home::new();
    with_wrong(&home, "leaving", "fine");
    let talk = file(&home, "talk.json", &array(&turns(12)));
    let (said, status) = home.json(&["compress", &talk, "--engine", "wrong"]);
    assert_eq!((status, &said["error"]["kind"]), (1, &"engine".into()));
}

#[test]
fn a_conversation_in_a_list_is_refused_and_not_taken_for_a_message() {
    let home = Home::new();
    let talks = format!(r#"[{{"id":1,"messages":{}}}]"#, array(&turns(2)));
    let talks = file(&home, "talks.json", &talks);
    for command in ["replay", "compress"] {
        let (said, status) = home.json(&[command, &talks]);
        assert_eq!(
            (status, &said["error"]["kind"]),
            (1, &"input".into()),
            "{command}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_result_goes_where_a_link_points_although_nothing_is_there_yet() {
    let home = Home::new();
    let talk = file(&home, "talk.json", &array(&turns(2)));
    let folder = std::path::Path::new(&talk).parent().unwrap();
    let link = folder.join("link.json");
    std::os::unix::fs::symlink("new.json", &link).unwrap();
    let (_, status) = home.json(&["compress", &talk, "-o", link.to_str().unwrap()]);
    assert_eq!(status, 0);
    assert!(link.is_symlink() && folder.join("new.json").is_file());
}

// contract: SEL-4
#[test]
fn what_to_type_names_the_engine_as_it_was_written() {
    let home = Home::new();
    home.config("context:\n  engine: \"ghost \"\n");
    let output = home
        .command()
        .args(["compress", &file(&home, "talk.json", &array(&turns(2)))])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("`hermes plugins why 'ghost '`"), "{told}");
}
