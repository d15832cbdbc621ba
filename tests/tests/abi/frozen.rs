//! What has been released stays. Every released minor has a folder `tests/abi/v1_<minor>/` with the headers as
//! they were and an engine that is compiled against those, never against newer ones.
//!
//! While a minor is not released its copy is the current header, byte for byte. To release it: add an empty
//! file `FROZEN` to its folder. From then on the copy stays as it is, and the current header has to hold all
//! of it. To begin the next minor: raise `HERMES_ABI_MINOR` and `ABI_MINOR`, and make `v1_<next>/`.

use std::path::{Path, PathBuf};

use crate::header::Header;
use crate::toolchain::{Compiler, plugin_api, read, sources};

fn minors() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(sources())
        .expect("tests/abi")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("hermes_engine.h").is_file())
        .collect();
    folders.sort();
    assert!(!folders.is_empty(), "tests/abi has no v1_0");
    folders
}

fn current(name: &str) -> String {
    read(&plugin_api().join("include").join(name))
}

#[test]
fn the_current_header_holds_every_released_one() {
    let now = Header::parse(&current("hermes_engine.h"));
    for folder in minors() {
        if folder.join("FROZEN").exists() {
            let then = Header::parse(&read(&folder.join("hermes_engine.h")));
            let lost = then.lost_in(&now);
            assert!(lost.is_empty(), "{}: {lost:#?}", folder.display());
        } else {
            for name in ["hermes_engine.h", "hermes_helpers.h"] {
                assert!(
                    read(&folder.join(name)) == current(name),
                    "{}/{name} is not the current header. This minor is not released yet: copy \
                     plugin-api/include/{name} over it. If it is released, add the file FROZEN.",
                    folder.display()
                );
            }
        }
    }
}

/// The check above must see each kind of loss, and must let growth pass.
#[test]
fn a_loss_is_seen_and_growth_is_not_one() {
    let text = current("hermes_engine.h");
    let now = Header::parse(&text);
    let changed = |from: &str, to: &str| {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        now.lost_in(&Header::parse(&text.replace(from, to)))
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(
        changed(
            "  hermes_bytes turn_id;",
            "  hermes_bytes turn_id; uint64_t more;"
        ),
        none
    );
    assert_eq!(
        changed(
            "#define HERMES_TURN_BLOCKED 3u",
            "#define HERMES_TURN_BLOCKED 3u\n#define HERMES_X 4u"
        ),
        none
    );
    assert_eq!(
        changed("#define HERMES_ABI_MINOR 0u", "#define HERMES_ABI_MINOR 1u"),
        none
    );
    for (from, to) in [
        ("  hermes_bytes turn_id;", ""),
        ("  hermes_bytes turn_id;", "  hermes_bytes turn_name;"),
        ("int64_t current_tokens;", "uint64_t current_tokens;"),
        (
            "(const hermes_call *call, uint64_t done, uint64_t total)",
            "(const hermes_call *call, uint64_t total)",
        ),
        ("hermes_bytes uid; ", "uint64_t added; hermes_bytes uid; "),
        (
            "#define HERMES_TURN_BLOCKED 3u",
            "#define HERMES_TURN_BLOCKED 4u",
        ),
        (
            "hermes_plugin_register_v1(const hermes_registrar *ctx);",
            "hermes_plugin_register_v1(void);",
        ),
    ] {
        assert_ne!(changed(from, to), none, "{from} -> {to}");
    }
}

#[test]
fn engines_of_every_minor_compile_against_their_own_header() {
    for folder in minors() {
        let engine = folder.join("engine.c");
        shared(&folder, "c99", &engine);
        shared(&folder, "c11", &engine);
    }
}

fn shared(headers: &Path, standard: &str, engine: &Path) {
    let _ = Compiler::with_headers(standard, headers)
        .flag("-shared")
        .file(engine.into())
        .built();
}
