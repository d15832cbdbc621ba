//! Libraries made by the C compiler of this machine, and what happens to them when bytes change.

use std::path::PathBuf;
use std::process::Command;

use super::*;
use proptest::prelude::*;

/// Compiles a text with `cc`; `None` where there is no compiler.
fn compile(folder: &Path, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let (code, library) = (folder.join("x.c"), folder.join("libx.so"));
    std::fs::write(&code, source).expect("written");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .args(flags)
        .arg(&code)
        .status();
    match made {
        Ok(status) => {
            assert!(status.success());
            Some(library)
        }
        Err(error) => {
            println!("skipped: no C compiler ({error})");
            None
        }
    }
}

const ENGINE: &str = "const char hermes_engine_name[] = \"lcm\";\n\
    const void *hermes_context_engine_v1(void) { return 0; }\n\
    int hermes_plugin_register_v1(const void *c) { return c != 0; }\n";

// contract: SEL-4, DISC-3, DISC-6
#[test]
fn entries_and_name_are_read_without_running() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(library) = compile(folder.path(), ENGINE, &["-Wl,--no-as-needed", "-lm"]) else {
        return;
    };
    let facts = Facts::read(&library).expect("a library");
    assert!(facts.has_entry && facts.has_register && !facts.has_layout);
    assert_eq!(facts.engine_name.as_deref(), Some("lcm"));
    assert_eq!(facts.entry_is_data, None);
    assert!(!facts.built_to_abort, "C has nothing to unwind");
    assert!(
        facts
            .needed
            .iter()
            .any(|needed| needed.starts_with("libm.")),
        "{:?}",
        facts.needed
    );
    assert_eq!(facts.check(), Ok(()));
    // The way that the other systems' libraries go sees the same.
    let other = foreign::read(&std::fs::read(&library).expect("read")[..]).expect("a library");
    assert_eq!(
        (other.has_entry, other.has_register, &other.engine_name),
        (true, true, &facts.engine_name)
    );
}

// contract: SAFE-1
// case: 48, 50
#[test]
fn what_a_library_lacks_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for (source, wanted) in [
        ("int x;", "no hermes engine entry point"),
        ("int hermes_context_engine_v1 = 3;", "as data"),
        ("int hermes_context_engine_v2(void) { return 0; }", "ABI 2"),
        (
            "int hermes_context_engine_v1(void) { return 0; } const char hermes_engine_name[] = \"a/b\";",
            "path separator",
        ),
        (
            "int hermes_context_engine_v1(void) { return 0; } const char hermes_engine_name[2] = \"ab\";",
            "NUL",
        ),
    ] {
        let Some(library) = compile(folder.path(), source, &[]) else {
            return;
        };
        let error = Facts::read(&library)
            .expect("a library")
            .check()
            .expect_err(source);
        assert!(error.to_string().contains(wanted), "{source}: {error}");
    }
    // What is not exported is not there.
    let Some(library) = compile(folder.path(), ENGINE, &["-fvisibility=hidden"]) else {
        return;
    };
    assert!(!Facts::read(&library).expect("a library").has_entry);
}

// contract: SAFE-1
#[test]
fn programs_and_object_files_are_no_libraries() {
    let folder = tempfile::tempdir().expect("a folder");
    if compile(folder.path(), ENGINE, &[]).is_none() {
        return;
    }
    let program = std::env::current_exe().expect("this program");
    let error = Facts::read(&program).expect_err("a program");
    assert!(matches!(error, InspectError::NotALibrary { .. }), "{error}");
}

// contract: SAFE-1
#[test]
fn a_file_cut_anywhere_is_refused_and_never_half_believed() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(library) = compile(folder.path(), ENGINE, &[]) else {
        return;
    };
    let whole = std::fs::read(&library).expect("read");
    for length in (0..whole.len()).step_by(97) {
        let cut = folder.path().join("cut.so");
        std::fs::write(&cut, &whole[..length]).expect("written");
        assert!(
            Facts::read(&cut).is_err(),
            "cut at {length} of {}",
            whole.len()
        );
    }
}

// contract: SAFE-1
#[test]
fn other_machines_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(library) = compile(folder.path(), ENGINE, &[]) else {
        return;
    };
    let mut bytes = std::fs::read(&library).expect("read");
    let other = if cfg!(target_arch = "x86_64") {
        183
    } else {
        62
    };
    bytes[18] = other;
    std::fs::write(&library, bytes).expect("written");
    let error = Facts::read(&library)
        .expect_err("another machine")
        .to_string();
    assert!(
        error.contains("x86_64") && error.contains("aarch64"),
        "{error}"
    );
}

// contract: SAFE-1
#[test]
fn files_of_other_kinds_are_named() {
    for (bytes, wanted) in [
        (&b"hello, I am text\n"[..], "a text file"),
        (b"#!/bin/sh\n", "a script"),
        (b"!<arch>\n", "a static library"),
        (b"MZ\x90\0", "Windows"),
        (b"\xcf\xfa\xed\xfe\x07\0\0\x01", "macOS"),
        (b"\0asm\x01", "WebAssembly"),
        (b"\x00\x01\x02", "another kind"),
        (b"\x7fELF", "cut off"),
        (b"", "empty"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x.so");
        std::fs::write(&file, bytes).expect("written");
        let error = Facts::read(&file).expect_err(wanted).to_string();
        assert!(error.contains(wanted), "{wanted:?}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    // contract: SAFE-1
    #[test]
    fn changed_bytes_never_make_it_panic(changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..8)) {
        static WHOLE: std::sync::OnceLock<Option<Vec<u8>>> = std::sync::OnceLock::new();
        let whole = WHOLE.get_or_init(|| {
            let folder = tempfile::tempdir().expect("a folder");
            compile(folder.path(), ENGINE, &[]).map(|library| std::fs::read(library).expect("read"))
        });
        if let Some(whole) = whole {
            let mut bytes = whole.clone();
            for (at, byte) in changes {
                let at = at % bytes.len();
                // Headers and tables lie at both ends.
                let at = if at.is_multiple_of(2) { at % 1024 } else { at };
                bytes[at] = byte;
            }
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), &bytes).expect("written");
            if let Ok(facts) = Facts::read(file.path()) {
                let _ = facts.check();
            }
        }
    }
}
