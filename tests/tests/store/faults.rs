//! Disks that are full, files that are damaged, folders that cannot be written.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;

use hermes::store::{Query, Severity, Store, StoreError, StoreOptions};

use crate::support::*;

/// The system's own full disk: a small memory file system in a mount namespace of a child.
// case: 36
#[test]
fn a_full_disk_is_an_error_in_words_and_loses_nothing() {
    let home = Home::new();
    let script = r#"mount -t tmpfs -o size=1m none "$HERMES_STORE_CHILD" && exec "$0" "$@""#;
    in_namespace("faults::full_disk_child", home.folder.path(), script);
}

#[test]
#[ignore = "a child of the full-disk test"]
fn full_disk_child() {
    let Some(folder) = child_folder() else { return };
    let file = folder.join("state.db");
    let store = Store::open(&file, StoreOptions::default()).unwrap();
    let (id, mut list, mut mark) = filled(&store, turns(2));
    let error = loop {
        let mut turn = vec![user(&"x".repeat(20_000)), assistant("ok")];
        let before = mark.clone();
        match store.append(&id, &mut turn, &mut mark) {
            Ok(_) => list.extend(turn),
            Err(error) => {
                assert_eq!(mark, before);
                assert!(turn[0].identity().uid.is_none());
                break error;
            }
        }
    };
    assert!(
        matches!(error, StoreError::Full { .. }) && error.to_string().contains("full"),
        "{error}"
    );
    // What was acknowledged is there, in this process and in the next one.
    assert_eq!(store.resume(&id).unwrap().messages, list);
    let done = store.begin_pass(&id, &mark, "t", std::time::Duration::from_secs(60));
    if let Ok(lock) = done {
        let error = store.commit_in_place(&lock, "p", &list).unwrap_err();
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
    }
    drop(store);
    let back = match Store::open(&file, StoreOptions::default()) {
        Ok(store) => store.resume(&id).unwrap().messages,
        Err(_) => {
            Store::open_read_only(&file, StoreOptions::default())
                .unwrap()
                .resume(&id)
                .unwrap()
                .messages
        }
    };
    assert_eq!(back, list);
}

/// Runs an ignored test of this binary as the last words of `script`, in its own mount namespace.
fn in_namespace(test: &str, folder: &Path, script: &str) {
    let child = child(test, folder);
    let out = Command::new("unshare")
        .args(["-m", "sh", "-c", script])
        .arg(child.get_program())
        .args(child.get_args())
        .env("HERMES_STORE_CHILD", folder)
        .output();
    let out = match out {
        Ok(out) => out,
        Err(error) => return println!("skipped: no unshare ({error})"),
    };
    let stderr = String::from_utf8_lossy(&out.stderr);
    if stderr.contains("Operation not permitted") || stderr.contains("permission denied") {
        return println!("skipped: this user may not mount ({stderr})");
    }
    let stdout = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.status.success() && stdout.contains("1 passed"),
        "{stdout}\n{stderr}"
    );
}

// case: 36
#[test]
fn a_folder_that_cannot_be_written_can_still_be_read() {
    let home = Home::new();
    {
        let store = home.open();
        filled(&store, vec![user("readable")]);
        store.catch_up(std::time::Duration::from_secs(5)).unwrap();
    }
    let script = r#"mount --bind "$HERMES_STORE_CHILD" "$HERMES_STORE_CHILD" && mount -o remount,bind,ro "$HERMES_STORE_CHILD" && exec "$0" "$@""#;
    in_namespace("faults::read_only_child", home.folder.path(), script);
}

#[test]
#[ignore = "a child of the read-only test"]
fn read_only_child() {
    let Some(folder) = child_folder() else { return };
    let error = Store::open(&folder.join("state.db"), StoreOptions::default()).unwrap_err();
    assert!(
        matches!(error, StoreError::ReadOnly { .. } | StoreError::Open { .. }),
        "{error:?}"
    );
    let store = Store::open_read_only(&folder.join("state.db"), StoreOptions::default()).unwrap();
    let id = store.last_session().unwrap().unwrap();
    let back = store.resume(&id).unwrap();
    assert_eq!(texts(&back.messages), ["readable"]);
    assert_eq!(
        store
            .search(&Query {
                text: "readable",
                ..Query::default()
            })
            .unwrap()
            .len(),
        1
    );
    assert!(store.export(&id).unwrap().contains("readable"));
    assert!(store.check(false, &mut |_, _, _| {}).unwrap().is_clean());
    let mut turn = vec![user("no")];
    let mut mark = back.mark;
    let error = store.append(&id, &mut turn, &mut mark).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    // A new home there is refused with a sentence.
    let error = Store::open(&folder.join("new/state.db"), StoreOptions::default()).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let home = Home::new();
    for content in [
        b"this is a letter, not a database, and long enough to be read as one".repeat(20),
        vec![0xff; 5000],
    ] {
        std::fs::write(home.file(), &content).unwrap();
        let error = Store::open(&home.file(), quick()).unwrap_err();
        assert!(matches!(error, StoreError::NotADatabase { .. }), "{error}");
        assert!(Store::open_read_only(&home.file(), quick()).is_err());
        assert_eq!(std::fs::read(home.file()).unwrap(), content);
    }
    std::fs::remove_file(home.file()).unwrap();
    std::fs::create_dir(home.file()).unwrap();
    let error = Store::open(&home.file(), quick()).unwrap_err();
    assert!(error.to_string().contains("folder"), "{error}");
}

#[test]
fn a_damaged_page_is_named_and_the_rest_can_be_read() {
    let home = Home::new();
    let (id, healthy) = {
        let store = home.open();
        let (_, _, _) = filled(
            &store,
            (0..200)
                .map(|n| user(&format!("{n} {}", "x".repeat(1500))))
                .collect(),
        );
        let (id, list, _) = filled(&store, turns(1));
        home.sql()
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .unwrap();
        (id, list)
    };
    // Rows of the first session fill their pages; one page of those is overwritten.
    let page = home.number("SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf' ORDER BY path LIMIT 1 OFFSET 20");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .open(home.file())
        .unwrap();
    file.seek(SeekFrom::Start(u64::try_from((page - 1) * 4096).unwrap()))
        .unwrap();
    file.write_all(&[0xAB; 4096]).unwrap();
    drop(file);
    let before = std::fs::read(home.file()).unwrap();

    let store = home.open();
    assert_eq!(
        store.resume(&id).unwrap().messages,
        healthy,
        "what is not damaged is there"
    );
    let report = store.check(true, &mut |_, _, _| {}).unwrap();
    assert!(
        report
            .findings
            .iter()
            .any(|f| f.severity == Severity::Error),
        "{:?}",
        report.findings
    );
    assert!(
        !report.is_clean() && report.backup.is_none(),
        "a damaged file is not mended"
    );
    let damaged = store
        .sessions(0)
        .unwrap()
        .into_iter()
        .map(|s| s.id)
        .find(|other| *other != id)
        .unwrap();
    let error = store.resume(&damaged).unwrap_err();
    assert!(
        matches!(error, StoreError::Damaged { .. }) && error.to_string().contains("sessions check"),
        "{error}"
    );
    drop(store);
    assert_eq!(
        std::fs::read(home.file()).unwrap()[..],
        before[..],
        "no worse than before"
    );
}

#[test]
fn a_log_that_was_cut_loses_only_what_was_cut() {
    let home = Home::new();
    let copy = Home::new();
    let store = home.open();
    let (id, list, mut mark) = filled(&store, turns(1));
    home.sql()
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    let mut lengths = Vec::new();
    let log = home.folder.path().join("state.db-wal");
    for n in 0..5 {
        store
            .append(&id, &mut [user(&format!("later {n}"))], &mut mark)
            .unwrap();
        lengths.push(std::fs::metadata(&log).unwrap().len());
    }
    // A copy of the moment, as after a crash, with the log cut in its middle and inside a frame.
    for (cut, kept) in [
        (lengths[4], 5),
        (lengths[2], 3),
        (lengths[2] - 100, 2),
        (lengths[0] - 1, 0),
        (10, 0),
        (0, 0),
    ] {
        for file in ["state.db", "state.db-wal"] {
            std::fs::copy(home.folder.path().join(file), copy.folder.path().join(file)).unwrap();
        }
        let _ = std::fs::remove_file(copy.folder.path().join("state.db-shm"));
        let log = std::fs::OpenOptions::new()
            .write(true)
            .open(copy.folder.path().join("state.db-wal"))
            .unwrap();
        log.set_len(cut).unwrap();
        let store = copy.open();
        let back = store.resume(&id).unwrap().messages;
        assert_eq!(back.len(), list.len() + kept, "cut at {cut}");
        assert_clean(&store);
    }
}

// case: 36
#[test]
fn another_user_gets_a_sentence() {
    let home = Home::new();
    filled(&home.open(), turns(1));
    let child = child("faults::other_user_child", home.folder.path());
    let out = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(child.get_program())
        .args(child.get_args())
        .env("HERMES_STORE_CHILD", home.folder.path())
        .output();
    let Ok(out) = out else {
        return println!("skipped: no setpriv");
    };
    let (stdout, stderr) = (
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr),
    );
    if stderr.contains("setpriv:") {
        return println!("skipped: {stderr}");
    }
    assert!(
        out.status.success() && stdout.contains("1 passed"),
        "{stdout}{stderr}"
    );
}

#[test]
#[ignore = "a child of the other-user test"]
fn other_user_child() {
    let Some(folder) = child_folder() else { return };
    let error = Store::open(&folder.join("state.db"), StoreOptions::default()).unwrap_err();
    assert!(
        matches!(error, StoreError::Open { .. } | StoreError::ReadOnly { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("state.db"), "{error}");
}
