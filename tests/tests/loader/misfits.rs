//! Every way in which a library can be wrong before it has served once. The program survives each, and says why.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use hermes_tests::{Home, has_compiler};
use serde_json::Value;

use super::engines::{compile, install, misfit};

/// What `why` and `list` must say about one misfit.
struct Case {
    name: &'static str,
    /// The first step that fails.
    step: &'static str,
    status: &'static str,
    /// Words that the reason must hold.
    words: &'static [&'static str],
}

const fn case(
    name: &'static str,
    step: &'static str,
    status: &'static str,
    words: &'static [&'static str],
) -> Case {
    Case {
        name,
        step,
        status,
        words,
    }
}

/// Builds of the engine: name, `-D`s, and what must be said.
const BUILDS: &[(&[&str], Case)] = &[
    (
        &["NO_ENTRY"],
        case(
            "no-entry",
            "inspect",
            "incompatible",
            &["no hermes engine entry point", "hermes_context_engine_v1"],
        ),
    ),
    (
        &["ENTRY_IS_DATA"],
        case(
            "entry-is-data",
            "inspect",
            "incompatible",
            &["as data", "hermes_context_engine_v1"],
        ),
    ),
    (
        &["OTHER_ENTRY"],
        case(
            "other-entry",
            "inspect",
            "incompatible",
            &["ABI 2", "ABI 1.0"],
        ),
    ),
    (
        &["NULL_MODULE"],
        case("null-module", "probe", "broken", &["returned NULL"]),
    ),
    (
        &["MAJOR=2"],
        case(
            "major-2",
            "probe",
            "incompatible",
            &["ABI 2.0", "ABI 1.0", "0.1.0"],
        ),
    ),
    (
        &["MAJOR=0"],
        case("major-0", "probe", "incompatible", &["ABI 0.0", "ABI 1.0"]),
    ),
    (
        &["MIN_HOST_MINOR=7"],
        case("host-too-old", "probe", "incompatible", &["1.7", "1.0"]),
    ),
    (
        &["MODULE_SIZE=40"],
        case(
            "short-module",
            "probe",
            "incompatible",
            &["module is 40 bytes", "struct_size"],
        ),
    ),
    (
        &["TABLE_SIZE=4"],
        case(
            "short-table",
            "probe",
            "incompatible",
            &["engine table is 4 bytes"],
        ),
    ),
    (
        &["TABLE_SIZE=64"],
        case(
            "table-before-compress",
            "probe",
            "broken",
            &["`compress`", "its table ends before it"],
        ),
    ),
    (
        &["NULL_TABLE"],
        case("null-table", "probe", "broken", &["no engine table"]),
    ),
    (
        &["NULL_SLOT=create"],
        case("null-create", "probe", "broken", &["`create`", "NULL"]),
    ),
    (
        &["NULL_SLOT=destroy"],
        case("null-destroy", "probe", "broken", &["`destroy`"]),
    ),
    (
        &["NULL_SLOT=state"],
        case("null-state", "probe", "broken", &["`state`"]),
    ),
    (
        &["NULL_SLOT=update_model"],
        case("null-update-model", "probe", "broken", &["`update_model`"]),
    ),
    (
        &["NULL_SLOT=update_from_response"],
        case("null-usage", "probe", "broken", &["`update_from_response`"]),
    ),
    (
        &["NULL_SLOT=session_reset"],
        case("null-reset", "probe", "broken", &["`session_reset`"]),
    ),
    (
        &["NULL_SLOT=should_compress"],
        case("null-should", "probe", "broken", &["`should_compress`"]),
    ),
    (
        &["NULL_SLOT=compress"],
        case("null-compress", "probe", "broken", &["`compress`"]),
    ),
    (
        &["UNDEFINED"],
        case("undefined", "probe", "broken", &["misfit_missing_function"]),
    ),
    (
        &["CONSTRUCTOR=exit(3)"],
        case(
            "constructor-exits",
            "probe",
            "broken",
            &["exit status 3", "constructors"],
        ),
    ),
    (
        &["CONSTRUCTOR=abort()"],
        case(
            "constructor-aborts",
            "probe",
            "broken",
            &["SIGABRT", "constructors"],
        ),
    ),
    (
        &["CONSTRUCTOR=for(;;)pause()"],
        case(
            "constructor-hangs",
            "probe",
            "broken",
            &["5 seconds", "constructors"],
        ),
    ),
    (
        &["CONSTRUCTOR=_exit(0)"],
        case(
            "constructor-exits-well",
            "probe",
            "broken",
            &["exit status 0", "constructors"],
        ),
    ),
    (
        &["ON_CREATE=*(volatile int*)8=1"],
        case(
            "create-crashes",
            "probe",
            "broken",
            &["SIGSEGV", "created an instance"],
        ),
    ),
    (
        &["ON_CREATE=puts(\"last words\");fflush(stdout);abort()"],
        case(
            "create-talks",
            "probe",
            "broken",
            &["SIGABRT", "last words"],
        ),
    ),
    (
        &["ON_CREATE=return HERMES_ERR_FAILED"],
        case(
            "create-fails",
            "probe",
            "broken",
            &["`create`", "-1", "without a reason"],
        ),
    ),
    (
        &["ON_CREATE=return HERMES_OK"],
        case(
            "create-forgets",
            "probe",
            "broken",
            &["`create`", "no instance"],
        ),
    ),
    (
        &[
            "ON_CREATE=call->error(call,hermes_bytes_of(\"no key found\"));return HERMES_ERR_UNAVAILABLE",
        ],
        case(
            "create-unavailable",
            "probe",
            "unavailable",
            &["not available here", "no key found"],
        ),
    ),
    (
        &["ON_STATE=return 17"],
        case("state-fails", "probe", "broken", &["`state`", "17"]),
    ),
    (
        &["ON_DESTROY=abort()"],
        case(
            "destroy-aborts",
            "probe",
            "broken",
            &["SIGABRT", "destroyed"],
        ),
    ),
    (
        &["AT_EXIT=abort()"],
        case(
            "exit-aborts",
            "probe",
            "broken",
            &["SIGABRT", "process ended"],
        ),
    ),
    (
        &["MODULE_NAME=\"another\""],
        case(
            "name-mismatch",
            "load",
            "broken",
            &["\"another\"", "\"name-mismatch\""],
        ),
    ),
    (
        &["NO_NAME", "MODULE_NAME=\"another\""],
        case(
            "manifest-mismatch",
            "load",
            "broken",
            &["\"another\"", "`name` in plugin.yaml"],
        ),
    ),
    (
        &["MODULE_NAME=\"a/b\""],
        case("bad-name", "probe", "broken", &["a/b", "path separator"]),
    ),
    (
        &["REGISTER", "REGISTER_FAILS"],
        case("register-fails", "probe", "broken", &["register", "-1"]),
    ),
    (
        &["REGISTER", "REGISTER_BAD"],
        case("register-bad", "probe", "broken", &["NULL"]),
    ),
    (
        &["REGISTER", "REGISTER_NOTHING"],
        case(
            "register-nothing",
            "load",
            "broken",
            &["registered no context engine"],
        ),
    ),
];

/// Builds that serve although something about them is unusual.
const GOOD: &[(&str, &[&str])] = &[
    ("good", &[]),
    ("newer-minor", &["MINOR=1", "GROWN"]),
    ("grown", &["GROWN"]),
    ("no-optional-slot", &["NULL_SLOT=idle"]),
    ("older-table", &["TABLE_SIZE=72"]),
    ("no-name", &["NO_NAME"]),
    ("two-entries", &["REGISTER", "REGISTER_ENTRY_TOO"]),
    ("leftovers", &["LEFTOVERS"]),
];

/// Files that are no build of an engine at all.
const FILES: &[Case] = &[
    case("text", "inspect", "incompatible", &["a text file"]),
    case("empty", "inspect", "incompatible", &["an empty file"]),
    case("folder", "inspect", "incompatible", &["a folder"]),
    case("truncated", "inspect", "broken", &["cut off or damaged"]),
    case(
        "other-machine",
        "inspect",
        "incompatible",
        &["aarch64", "x86_64"],
    ),
    case(
        "libz",
        "inspect",
        "incompatible",
        &["no hermes engine entry point"],
    ),
    case("world-writable", "trust", "untrusted", &["anybody", "0757"]),
    case("foreign-owner", "trust", "untrusted", &["65534"]),
    case(
        "writable-folder",
        "trust",
        "untrusted",
        &["anybody", "0777"],
    ),
    case("no-manifest", "manifest", "broken", &["no plugin.yaml"]),
    case(
        "bad-manifest",
        "manifest",
        "broken",
        &["plugin.yaml", "line 1"],
    ),
    case("no-library", "inspect", "broken", &["no .so library"]),
    case(
        "leaves-folder",
        "manifest",
        "broken",
        &["library", "path separator"],
    ),
    case(
        "needs-nothere",
        "probe",
        "incompatible",
        &["libnothere.so.9"],
    ),
    case("needs-glibc", "inspect", "incompatible", &["GLIBC_2.99"]),
    case("dangling-library", "inspect", "broken", &["link to"]),
];

// contract: SAFE-1, SAFE-3, ENG-18, DISC-3, DISC-4, DISC-5
// case: 42, 44, 48, 49, 50
#[test]
fn the_misfit_table() {
    if !has_compiler() {
        return;
    }
    let home = Home::new();
    for (name, defines) in GOOD {
        install(&home, name, &misfit(name, defines));
    }
    for (defines, case) in BUILDS {
        // `engine` makes it an engine's folder even without an entry for one.
        let library = misfit(case.name, defines);
        install(&home, case.name, &library);
        if defines.contains(&"REGISTER") {
            let manifest = format!("name: {0}\nengine: {0}\n", case.name);
            let _ = home.plugin(case.name).manifest(&manifest);
        }
    }
    write_files(&home);

    for (name, _) in GOOD {
        let (why, exit) = home.json(&["plugins", "why", name]);
        assert_eq!(
            (why["serves"].as_bool(), exit),
            (Some(true), 0),
            "{name}: {why:#}"
        );
    }
    let cases = || BUILDS.iter().map(|(_, case)| case).chain(FILES);
    for case in cases() {
        let (why, exit) = home.json(&["plugins", "why", case.name]);
        check_why(case, &why);
        assert_eq!(exit, 1, "{}: the program ends as it should", case.name);
    }

    // Nothing hides anything, and what was found is in the list, which runs nothing.
    let (list, exit) = home.json(&["plugins", "list"]);
    assert_eq!(exit, 0);
    let list = list.as_array().expect("a list");
    for (name, _) in GOOD {
        let entry = entry(list, name);
        assert_eq!(entry["status"], "available", "{entry:#}");
        assert_eq!(entry["reason"], Value::Null, "{entry:#}");
        assert_eq!(
            entry["abi"],
            if *name == "newer-minor" { "1.1" } else { "1.0" }
        );
        assert_eq!(entry["version"], "1.2.3");
    }
    for case in cases() {
        // Names are compared with the manifest when it is asked for; a verdict knows only the library.
        if case.step == "load" {
            continue;
        }
        let entry = entry(list, case.name);
        assert_eq!(entry["status"], case.status, "{}: {entry:#}", case.name);
        assert_eq!(entry["step"], case.step, "{}: {entry:#}", case.name);
        check_words(case, entry["reason"].as_str().unwrap_or_default());
        assert!(!entry["reason"].as_str().unwrap_or_default().contains('\n'));
        assert!(
            !entry["fix"].as_str().unwrap_or_default().is_empty(),
            "{entry:#}"
        );
    }
    assert_eq!(list[0]["engine"], "compressor");
    assert_eq!(list[0]["status"], "active");

    // For people, too: one line a fault on stdout, and nothing is wrong with the command.
    let table = home.run(&["plugins", "list"]);
    assert!(table.status.success());
    let text = String::from_utf8(table.stdout).expect("text");
    for case in cases() {
        assert!(text.contains(case.name), "{} in {text}", case.name);
    }
    assert!(text.contains("GLIBC_2.99") && text.contains("libnothere.so.9"));
}

fn entry<'a>(list: &'a [Value], folder: &str) -> &'a Value {
    let ends = format!("/{folder}");
    list.iter()
        .find(|entry| {
            entry["directory"]
                .as_str()
                .is_some_and(|path| path.ends_with(&ends))
        })
        .unwrap_or_else(|| panic!("{folder} is not listed"))
}

fn check_why(case: &Case, why: &Value) {
    assert_eq!(why["name"], case.name);
    assert_eq!(why["serves"], false, "{}: {why:#}", case.name);
    let steps = why["steps"].as_array().expect("steps");
    let failed = steps.iter().find(|step| step["ok"] == false);
    let failed = failed.unwrap_or_else(|| panic!("{}: no step failed: {why:#}", case.name));
    assert_eq!(failed["step"], case.step, "{}: {why:#}", case.name);
    check_words(case, failed["detail"].as_str().unwrap_or_default());
    assert!(
        !failed["fix"].as_str().unwrap_or_default().is_empty(),
        "{}",
        case.name
    );
}

fn check_words(case: &Case, text: &str) {
    for word in case.words {
        assert!(text.contains(word), "{}: {word:?} in {text:?}", case.name);
    }
}

fn write_files(home: &Home) {
    let good = misfit("good", &[]);
    let named = |name: &str| {
        home.plugin(name)
            .manifest(&format!("name: {name}\nengine: {name}\n"))
    };
    let whole = fs::read(&good).expect("read");
    let _ = named("text").file("libtext.so", "I am a text file, honestly.\n");
    let _ = named("empty").file("libempty.so", "");
    fs::create_dir(named("folder").path().join("libfolder.so")).expect("a folder");
    let _ = named("truncated").file("libtruncated.so", &whole[..whole.len() / 2]);
    let mut other = whole.clone();
    other[18] = if cfg!(target_arch = "x86_64") {
        183
    } else {
        62
    };
    let _ = named("other-machine").file("libother-machine.so", other);
    let _ = named("libz").library("libz.so", &plain_library());

    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod")
    };
    for name in ["world-writable", "foreign-owner", "writable-folder"] {
        install(home, name, &misfit(name, &[]));
    }
    let plugins = home.path().join("plugins");
    mode(&plugins.join("world-writable/libworld-writable.so"), 0o757);
    chown(
        plugins.join("foreign-owner/libforeign-owner.so"),
        Some(65_534),
        None,
    )
    .expect("these tests run as root");
    mode(&plugins.join("writable-folder"), 0o777);

    let _ = home
        .plugin("no-manifest")
        .library("libno-manifest.so", &good);
    let _ = home
        .plugin("bad-manifest")
        .manifest("name: [x\n")
        .library("libbad-manifest.so", &good);
    let _ = named("no-library");
    let _ = home
        .plugin("leaves-folder")
        .manifest("name: leaves-folder\nengine: leaves-folder\nlibrary: ../good/libgood.so\n");
    let needs = named("needs-nothere").library("libneeds-nothere.so", &needs_nothere());
    drop(needs);
    let _ = named("needs-glibc").library("libneeds-glibc.so", &needs_glibc());
    let dangling = named("dangling-library");
    std::os::unix::fs::symlink("gone.so", dangling.path().join("libdangling-library.so"))
        .expect("a link");
}

/// A library that is no plugin of ours: the system's own zlib if it is there, else one like it.
fn plain_library() -> PathBuf {
    let usual = [
        "/lib/x86_64-linux-gnu/libz.so.1",
        "/usr/lib/libz.so.1",
        "/usr/lib64/libz.so.1",
    ];
    let found = usual.iter().map(Path::new).find(|path| path.exists());
    match found {
        Some(path) => path.canonicalize().expect("real"),
        None => misfit("libz", &["NO_ENTRY", "NO_NAME"]),
    }
}

/// A stub that is only there while the engine is linked with it.
fn stub(name: &str, source: &str, flags: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let code = folder.path().join("stub.c");
    fs::write(&code, source).expect("written");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-nostdlib"])
        .arg(&code)
        .args(flags)
        .current_dir(folder.path())
        .arg("-o")
        .arg(folder.path().join(format!("lib{name}.so")))
        .status()
        .expect("cc runs");
    assert!(made.success());
    folder
}

fn needs_nothere() -> PathBuf {
    let stub = stub(
        "nothere",
        "int nothere(void) { return 9; }",
        &["-Wl,-soname,libnothere.so.9"],
    );
    compile("needs-nothere", &["NEEDS_NOTHERE"])
        .flag(format!("-L{}", stub.path().display()))
        .flag("-lnothere")
        .library()
}

/// Linked with a C library of the future.
fn needs_glibc() -> PathBuf {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("versions");
    fs::write(&script, "GLIBC_2.99 { misfit_future; };\n").expect("written");
    let stub = stub(
        "future",
        "int misfit_future(void) { return 9; }",
        &[
            "-Wl,-soname,libc.so.6",
            &format!("-Wl,--version-script={}", script.display()),
        ],
    );
    compile("needs-glibc", &["NEEDS_GLIBC"])
        .flag(format!("-L{}", stub.path().display()))
        .flag("-lfuture")
        .library()
}
