//! Engines in C and C++, driven through the header by a host of one page.

use crate::toolchain::{Built, Compiler, plugin_api, sources};

/// The driver linked with one engine. C++ compiles the driver, too.
fn driven(standard: &str, engine: &str) -> Built {
    let engine = plugin_api().join("examples").join(engine);
    let compiler = Compiler::new(standard);
    if standard.contains("++") {
        let driver = Compiler::new("c11")
            .flag("-c")
            .file(sources().join("drive.c"))
            .built();
        compiler.file(driver.output.clone()).file(engine).built()
    } else {
        compiler
            .file(sources().join("drive.c"))
            .file(engine)
            .built()
    }
}

fn line<'a>(said: &'a str, slot: &str) -> &'a str {
    said.lines()
        .find(|line| line.split(' ').next() == Some(slot))
        .unwrap_or_else(|| panic!("no {slot} in {said}"))
        .trim_end()
}

#[test]
fn tail_keeps_the_system_prompt_the_newest_user_message_and_the_end() {
    for standard in ["c99", "c11"] {
        let tail = driven(standard, "c/tail.c");
        for (config, roles, kept) in [
            (r#"{"keep":3}"#, "suauaua", "kept 0 3 4 5 6"),
            (r#"{"keep":1}"#, "suauaua", "kept 0 5 6"),
            (r#"{"keep":2}"#, "uauaua", "kept 4 5"),
            // One long turn: the question stays, and no result is parted from its call.
            (r#"{"keep":3}"#, "suauactcta", "kept 0 3 7 8 9"),
            (r#"{"keep":2}"#, "suauactcta", "kept 0 3 7 8 9"),
            (r#"{"keep":1}"#, "suauactttt", "kept 0 3 5 6 7 8 9"),
            (r#"{"keep":9}"#, "suaua", "kept"),
            ("{}", "suaua", "kept"),
            (r#"{"keep":1}"#, "", "kept"),
            (r#"{"keep":1}"#, "s", "kept"),
        ] {
            let said = tail.run(&["compress", config, roles]);
            assert_eq!(line(&said, "kept"), kept, "{config} {roles}: {said}");
            let status = if kept == "kept" {
                "compress 1 nothing is older"
            } else {
                "compress 0"
            };
            assert!(line(&said, "compress").starts_with(status), "{said}");
        }
        let said = tail.run(&["slots", r#"{"keep":0}"#]);
        assert!(
            line(&said, "create").starts_with("create -4 keep must be"),
            "{said}"
        );
    }
}

// contract: HOOK-1
#[test]
fn tail_has_no_optional_slot_and_the_helpers_keep_its_state() {
    let said = driven("c99", "c/tail.c").run(&["slots", "{}"]);
    let absent = said.lines().filter(|line| line.ends_with("absent")).count();
    assert_eq!(absent, 12, "{said}");
    assert!(
        said.contains("asks 1, prompt 80000, threshold 75000 of 100000"),
        "{said}"
    );
}

const SLOTS: [&str; 18] = [
    "update_model",
    "update_from_response",
    "should_compress",
    "state",
    "clone",
    "session_start",
    "preflight",
    "select_context",
    "compress",
    "pass_result",
    "turn_complete",
    "tool_schemas",
    "tool_call",
    "status",
    "command",
    "idle",
    "session_end",
    "session_reset",
];

// contract: SAFE-2
#[test]
fn every_exception_ends_as_a_status_with_its_text() {
    let throws = driven("c++11", "cpp/throws.cpp");
    let quiet = throws.run(&["slots", "{}"]);
    for slot in SLOTS {
        let expected = if slot == "select_context" {
            1
        } else {
            i32::from(slot == "compress")
        };
        assert!(
            line(&quiet, slot).starts_with(&format!("{slot} {expected}")),
            "{quiet}"
        );
    }
    for slot in SLOTS {
        for (kind, status, why) in [
            ("exception", -2, format!("thrown in {slot}")),
            ("failure", -1, format!("thrown in {slot}")),
            (
                "number",
                -2,
                "an exception that is no std::exception".into(),
            ),
        ] {
            let config = format!(r#"{{"throw_in": "{slot}", "as": "{kind}"}}"#);
            let said = throws.run(&["slots", &config]);
            // `state` has no call to write a reason to.
            let why = if slot == "state" {
                String::new()
            } else {
                format!(" {why}")
            };
            assert_eq!(
                line(&said, slot),
                format!("{slot} {status}{why}"),
                "{config}"
            );
            let after = line(&said, "session_reset");
            let ended = status == -2 && !["state", "clone", "session_reset"].contains(&slot);
            if ended {
                assert_eq!(
                    after,
                    "session_reset -2 this instance has ended with an exception before"
                );
            } else if slot != "session_reset" {
                assert_eq!(after, "session_reset 0");
            }
        }
    }
}

// contract: SEL-5
#[test]
fn a_constructor_that_throws_makes_no_instance() {
    let throws = driven("c++17", "cpp/throws.cpp");
    let said = throws.run(&["slots", r#"{"throw_in": "create"}"#]);
    assert_eq!(said, "create -2 thrown in create\n");
    let said = throws.run(&["slots", r#"{"throw_in": "create", "as": "failure"}"#]);
    assert_eq!(said, "create -1 thrown in create\n");
}

#[test]
fn the_frozen_engine_does_its_work() {
    let frozen = sources().join("v1_0");
    let frozen = Compiler::with_headers("c11", &frozen)
        .file(sources().join("drive.c"))
        .file(frozen.join("engine.c"))
        .built();
    let said = frozen.run(&["compress", "{}", "suauau"]);
    assert_eq!(line(&said, "kept"), "kept 0 5");
    let said = frozen.run(&["slots", "{}"]);
    assert_eq!(line(&said, "clone"), "clone 0");
    assert_eq!(line(&said, "turn_complete"), "turn_complete 0");
    assert_eq!(line(&said, "select_context"), "select_context absent");
}
