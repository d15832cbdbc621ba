//! No call leaves the working directory, and none waits for anything.
#![cfg(unix)]

use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Work, error, paths};

#[test]
fn no_path_leads_out() {
    let work = Work::new();
    work.write("inside.txt", "inside\n");
    let secret = work.outside().join("secret.txt");
    work.link(&secret, "link-to-file");
    work.link(work.outside(), "link-to-folder");
    work.link("../secret.txt", "relative-link");
    work.link("link-to-folder", "link-to-link");
    let table = [
        "../secret.txt",
        "..",
        "a/../../secret.txt",
        "./../secret.txt",
        "/etc/passwd",
        "/",
        "/no/such/file",
        "link-to-file",
        "link-to-folder",
        "link-to-folder/secret.txt",
        "link-to-link/secret.txt",
        "relative-link",
        &secret.display().to_string(),
    ];
    for path in table {
        let refused = work.read(&json!({"path": path}));
        assert!(
            error(&refused).contains("outside the working directory"),
            "{path}: {refused}"
        );
        assert!(
            !refused.to_string().contains("the secret"),
            "{path}: {refused}"
        );
        let refused = work.search(&json!({"pattern": "secret", "path": path}));
        assert!(
            error(&refused).contains("outside the working directory"),
            "{path}: {refused}"
        );
    }
    // Nor does a walk follow a link.
    for kind in ["content", "name"] {
        let found = work.search(&json!({"pattern": "secret", "kind": kind}));
        assert!(paths(&found).is_empty(), "{found}");
    }
    let nul = work.read(&json!({"path": "inside.txt\0/../../secret.txt"}));
    assert!(error(&nul).contains("NUL"), "{nul}");
}

#[test]
fn links_that_stay_inside_are_followed() {
    let work = Work::new();
    work.write("real/a.txt", "text\n");
    work.link("real", "alias");
    work.link(work.path("real/a.txt"), "absolute");
    work.link("circle", "circle");
    work.link("nowhere", "dangling");
    assert_eq!(
        work.read(&json!({"path": "alias/a.txt"}))["path"],
        "real/a.txt"
    );
    assert_eq!(
        work.read(&json!({"path": "absolute"}))["content"],
        "1|text\n"
    );
    assert!(error(&work.read(&json!({"path": "circle"}))).contains("circle"));
    assert!(error(&work.read(&json!({"path": "dangling"}))).contains("there is no"));
    // The file is found once, by its own name.
    assert_eq!(
        paths(&work.search(&json!({"pattern": "text"}))),
        ["real/a.txt"]
    );
    // A working directory that is reached through a link is still the same one.
    let other = work.outside().join("other");
    std::os::unix::fs::symlink(&work.place.directory, &other).expect("a link");
    let through = other.join("real/a.txt").display().to_string();
    assert_eq!(work.read(&json!({"path": through}))["content"], "1|text\n");
}

#[test]
fn nothing_but_files_is_opened() {
    let work = Work::new();
    work.fifo("pipe");
    work.fifo(".gitignore");
    let _socket = UnixListener::bind(work.path("socket")).expect("a socket");
    work.write("text.txt", "text\n");
    work.link("/dev/zero", "zero");
    let began = Instant::now();
    assert!(error(&work.read(&json!({"path": "pipe"}))).contains("a FIFO"));
    assert!(error(&work.read(&json!({"path": "socket"}))).contains("a socket"));
    assert!(error(&work.read(&json!({"path": "zero"}))).contains("outside"));
    assert!(error(&work.search(&json!({"pattern": "t", "path": "pipe"}))).contains("a FIFO"));
    assert_eq!(
        paths(&work.search(&json!({"pattern": "text"}))),
        ["text.txt"]
    );
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_device_is_refused_where_the_working_directory_holds_some() {
    let mut work = Work::new();
    work.place.directory = "/dev".into();
    assert!(error(&work.read(&json!({"path": "zero"}))).contains("a device"));
    assert!(error(&work.read(&json!({"path": "/dev/full"}))).contains("a device"));
    work.place.directory = "/".into();
    assert!(error(&work.read(&json!({"path": "/dev/zero"}))).contains("a device"));
    assert!(work.read(&json!({"path": "/proc/self/status"}))["content"].is_string());
}

#[test]
fn a_path_that_is_exchanged_while_it_is_opened_shows_nothing_from_outside() {
    let work = Work::new();
    work.write("folder/secret.txt", "harmless\n");
    let stop = AtomicBool::new(false);
    let (folder, away) = (work.path("folder"), work.path("away"));
    let outside = work.outside().to_owned();
    let mut seen = String::new();
    let mut read = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                std::fs::rename(&folder, &away).expect("moved");
                std::os::unix::fs::symlink(&outside, &folder).expect("a link");
                std::fs::remove_file(&folder).expect("removed");
                std::fs::rename(&away, &folder).expect("moved back");
            }
        });
        let began = Instant::now();
        let racing = |read: usize| {
            let passed = began.elapsed();
            // A busy machine needs longer until it has read it once.
            passed < Duration::from_millis(600) || (read == 0 && passed < Duration::from_secs(20))
        };
        while racing(read) && !seen.contains("the secret") {
            seen = work.read(&json!({"path": "folder/secret.txt"})).to_string();
            read += usize::from(seen.contains("harmless"));
            seen += &work
                .search(&json!({"pattern": "secret", "path": "folder"}))
                .to_string();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(!seen.contains("the secret"), "{seen}");
    assert!(read > 0, "the file was never there");
}

/// The host's own folder holds keys and other conversations; a chat that is begun in the folder above it must not show
/// them to a model.
#[cfg(unix)]
#[test]
fn the_hosts_own_folder_is_not_read_though_it_lies_inside() {
    let mut work = Work::new();
    work.write(".hermes/.env", "KEY=needle\n");
    work.write(".hermes/sub/config.yaml", "api_key: needle\n");
    work.write("notes.txt", "a needle in the open\n");
    work.place.kept_back = Some(work.path(".hermes"));
    work.link(work.path(".hermes"), "way-in");
    for path in [
        ".hermes/.env",
        ".hermes",
        ".hermes/sub/config.yaml",
        "way-in/.env",
        "./.hermes/../.hermes/.env",
    ] {
        let answer = work.read(&json!({ "path": path }));
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(
            error.contains("belongs to hermes itself"),
            "{path}: {answer}"
        );
    }
    for kind in ["content", "name"] {
        let pattern = if kind == "content" {
            "needle"
        } else {
            "env|yaml|txt"
        };
        let found = work
            .search(&json!({ "pattern": pattern, "kind": kind }))
            .to_string();
        assert!(found.contains("notes.txt"), "{found}");
        assert!(!found.contains(".hermes"), "{found}");
    }
    let inside = work.search(&json!({ "pattern": "needle", "path": ".hermes" }));
    assert!(inside["error"].is_string(), "{inside}");
}
