//! The conventions of the command line, through the real program.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use hermes_tests::Home;
use serde_json::Value;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Exactly one line of stderr, and it is an error.
fn one_error(output: &Output) -> String {
    let told = text(&output.stderr);
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.starts_with("error: "), "{told}");
    told
}

fn names_below(folder: &Path) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.sort();
    names
}

#[test]
fn the_version_says_what_this_is_and_touches_nothing() {
    let home = Home::new();
    let before = names_below(&home.path());
    let output = home.run(&["--version"]);
    assert_eq!(output.status.code(), Some(0));
    let line = text(&output.stdout);
    assert!(
        line.starts_with("hermes ") && line.contains("Rust host") && line.contains("ABI 1.0"),
        "{line}"
    );
    assert_eq!(names_below(&home.path()), before);
}

#[test]
fn wrong_use_is_one_line_and_status_2() {
    let home = Home::new();
    for arguments in [
        &["frobnicate"][..],
        &[],
        &["replay"],
        &["replay", "f", "--context-length", "0"],
        &["compress", "f", "--summarizer", "x"],
    ] {
        let output = home.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        one_error(&output);
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let (value, status) = home.json(arguments);
        assert_eq!(
            (value["error"]["kind"].as_str(), status),
            (Some("usage"), 2),
            "{arguments:?}"
        );
        assert!(
            value["error"]["hint"]
                .as_str()
                .is_some_and(|hint| !hint.is_empty()),
            "{arguments:?}"
        );
    }
}

/// What is no conversation, each under the name of what is wrong with it.
fn bad_inputs(folder: &Path) -> Vec<(PathBuf, &'static str)> {
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let huge = folder.join("huge");
    fs::File::create(&huge)
        .and_then(|huge| huge.set_len(1 << 30))
        .expect("a sparse file");
    let fifo = folder.join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("a FIFO");
    let dangling = folder.join("dangling");
    std::os::unix::fs::symlink(folder.join("nowhere"), &dangling).expect("a link");
    vec![
        (folder.join("missing"), "missing"),
        (folder.to_owned(), "directory"),
        (dangling, "dangling"),
        (huge, "bytes"),
        (fifo, "no regular file"),
        (PathBuf::from("/dev/zero"), "no regular file"),
        (file("empty", b""), "line 1, column 1"),
        (file("blank", b" \n\n"), "empty"),
        (
            file("binary", &[0x7f, b'E', b'L', b'F', 0, 0xff, 0xfe]),
            "line 1, column 1",
        ),
        (file("text", b"hello\n"), "line 1, column 1"),
        (
            file("broken", b"[{\"role\":\"user\",\n \"content\":}]"),
            "line 2, column",
        ),
        (file("numbers", b"[1,2]"), "line 1, column 2"),
        (
            file(
                "second-line",
                b"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\n",
            ),
            "line 2",
        ),
        (file("no-messages", b"{\"messages\": 7}"), "line 1"),
    ]
}

#[test]
fn bad_input_is_a_clear_error_and_leaves_nothing_behind() {
    let home = Home::new();
    let folder = home.outside().join("inputs");
    fs::create_dir_all(&folder).expect("a folder");
    let out = folder.join("out");
    let inputs = bad_inputs(&folder);
    let before = names_below(&folder);
    for (path, told) in inputs {
        let (path, out_name) = (path.to_str().expect("UTF-8"), out.to_str().expect("UTF-8"));
        for arguments in [
            &["replay", path][..],
            &["replay", path, "--requests", out_name],
            &["compress", path],
            &["compress", path, "-o", out_name],
        ] {
            let output = home.run(arguments);
            assert!(
                matches!(output.status.code(), Some(1 | 2)),
                "{arguments:?}: {:?}",
                output.status
            );
            let error = one_error(&output);
            assert!(
                error.contains(told) && error.contains(path),
                "{arguments:?}: {error}"
            );
            assert!(output.stdout.is_empty() && !out.exists(), "{arguments:?}");
            let (value, _) = home.json(arguments);
            assert_eq!(value["error"]["kind"], "input", "{arguments:?}");
        }
    }
    assert_eq!(names_below(&folder), before, "no temporary file is left");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let home = Home::new();
    let session = hermes_tests::workspace().join("examples/session.jsonl");
    let session = session.to_str().expect("UTF-8");
    for arguments in [
        &["compress", session, "--context-length", "200000"][..],
        &["compress", session, "--json"],
        &["replay", session, "--json", "--context-length", "200000"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let mut child = home
            .command()
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("hermes runs");
        drop(child.stdout.take());
        let mut told = String::new();
        child
            .stderr
            .take()
            .expect("piped")
            .read_to_string(&mut told)
            .expect("UTF-8");
        let status = child.wait().expect("ended");
        assert!(
            !told.contains("panicked") && !told.contains("error"),
            "{arguments:?}: {told}"
        );
        assert_eq!(status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn every_shell_gets_its_completions() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = home.run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let script = text(&output.stdout);
        assert!(
            script.contains("replay") && script.contains("compress"),
            "{shell}"
        );
    }
}

#[test]
fn reading_commands_write_nothing_to_the_home_but_caches_and_logs() {
    let home = Home::new();
    let before = names_below(&home.path());
    let session = hermes_tests::workspace().join("examples/session.jsonl");
    let session = session.to_str().expect("UTF-8");
    let (_, status) = home.json(&["replay", session, "--context-length", "32768"]);
    assert_eq!(status, 0);
    let (value, status) = home.json(&["compress", session, "--context-length", "32768"]);
    assert_eq!((value["outcome"].as_str(), status), (Some("compressed"), 0));
    let new = |path: &PathBuf| {
        !before.contains(path) && !path.ends_with("cache") && !path.ends_with("logs")
    };
    let unexpected: Vec<PathBuf> = names_below(&home.path()).into_iter().filter(new).collect();
    assert_eq!(unexpected, Vec::<PathBuf>::new());
}

#[test]
fn broken_configuration_is_told_and_the_built_in_serves() {
    let home = Home::new();
    home.config("context:\n  engine: [a, b\n");
    let file = home.outside().join("talk.json");
    fs::write(&file, r#"[{"role":"user","content":"hi"}]"#).expect("written");
    let output = home
        .command()
        .args(["replay", file.to_str().expect("UTF-8"), "--json"])
        .output()
        .expect("hermes runs");
    let told = text(&output.stderr);
    assert!(
        told.starts_with("warning: ") && told.contains("config.yaml"),
        "{told}"
    );
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value[0]["engines"][0]["engine"], "compressor");
}
