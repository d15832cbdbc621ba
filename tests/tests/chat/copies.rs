//! Private copies of engines that nobody uses any more.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::support::{Chat, finish};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn cache(chat: &Chat) -> PathBuf {
    chat.home.path().join("cache/engines")
}

/// The copies that are there.
fn copies(chat: &Chat) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache(chat)).expect("a folder");
    entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.file_name().is_some_and(|name| name.len() == 64))
        .collect()
}

/// As if it had last been touched so many days ago.
fn make_old(path: &Path, days: u32) {
    let then = SystemTime::now() - DAY * days;
    File::open(path)
        .and_then(|file| file.set_modified(then))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn folder(path: PathBuf, days: u32) -> PathBuf {
    fs::create_dir(&path).expect("a folder");
    fs::write(path.join("libx.so"), "a library").expect("written");
    make_old(&path, days);
    path
}

fn look_again(chat: &Chat) {
    fs::remove_file(cache(chat).join(".swept")).expect("it was looked before");
}

// contract: SAFE-3
#[test]
fn old_copies_go_and_those_in_use_stay() {
    let chat = Chat::with_diary();
    chat.echo();
    chat.run(&["-q", "x"], "");
    let mine = copies(&chat);
    assert_eq!(mine.len(), 1);
    let cache = cache(&chat);
    let old = folder(cache.join("0a".repeat(32)), 20);
    let recent = folder(cache.join("0b".repeat(32)), 3);
    let draft = folder(cache.join(".new-x"), 20);
    let damaged = folder(cache.join(format!("{}.damaged-1", "0c".repeat(32))), 20);
    let not_ours = folder(cache.join("notes"), 20);
    let outside = folder(chat.home.outside().join("outside"), 20);
    let link = cache.join("0d".repeat(32));
    std::os::unix::fs::symlink(&outside, &link).expect("linked");

    // Looked at once a day.
    chat.run(&["-q", "x"], "");
    assert!(old.exists());
    look_again(&chat);
    let said = chat.run(&["-q", "x"], "");
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    for gone in [&old, &draft, &damaged] {
        assert!(!gone.exists(), "{}", gone.display());
    }
    for stays in [&recent, &not_ours, &mine[0], &outside.join("libx.so")] {
        assert!(stays.exists(), "{}", stays.display());
    }
    assert!(fs::symlink_metadata(&link).is_ok());
    let left: Vec<_> = fs::read_dir(&cache)
        .expect("a folder")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(".old-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

// contract: SAFE-3
#[test]
fn a_copy_that_another_process_has_loaded_is_never_removed() {
    let chat = Chat::with_diary();
    chat.echo();
    // One process has it open for weeks…
    let mut open = chat.open();
    assert_eq!(open.ask("one"), "answer to: one\n");
    let copy = copies(&chat).pop().expect("a copy");
    make_old(&copy, 60);
    // … while the user installs a new build, and others use that.
    let build = chat.home.path().join("plugins/diary/diary.so");
    let mut bytes = fs::read(&build).expect("a library");
    bytes.push(0);
    fs::write(&build, bytes).expect("a new build");
    look_again(&chat);
    let (value, said) = chat.json(&["-q", "x"]);
    assert_eq!((said.code, &value["engine"]), (Some(0), &"diary".into()));
    assert_eq!(copies(&chat).len(), 2);
    assert!(copy.exists(), "it is in use");
    assert_eq!(open.close().code, Some(0));
    // Now it is not.
    make_old(&copy, 60);
    look_again(&chat);
    chat.run(&["-q", "x"], "");
    assert!(!copy.exists());
    assert_eq!(copies(&chat).len(), 1);
}

// contract: SAFE-3, SEL-5
#[test]
fn many_processes_that_clean_up_and_load_at_once_do_not_disturb_each_other() {
    let chat = Chat::with_diary();
    chat.echo();
    chat.run(&["-q", "x"], "");
    for _ in 0..3 {
        let copy = copies(&chat).pop().expect("a copy");
        make_old(&copy, 60);
        look_again(&chat);
        let children: Vec<_> = (0..6).map(|_| chat.start(&["-q", "x", "--json"])).collect();
        for child in children {
            let said = finish(child);
            assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
            assert!(said.out.contains("\"engine\": \"diary\""), "{said:?}");
        }
    }
}
