//! The file as a file: link, mode, owner, other writers, and a process that dies in the middle.

use super::support::Home;
use hermes::config::edit::{self, EditError, Outcome};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::Duration;

const OLD: &str = "# top\ncontext:\n  engine: compressor  # c\n";

fn entries(home: &Home) -> Vec<String> {
    let names = std::fs::read_dir(home.path())
        .expect("list")
        .map(|entry| entry.expect("entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    // What every home has, and what every run leaves in it.
    names.retain(|name| name != "plugins" && name != "logs");
    names.sort();
    names
}

// contract: CLI-2
// case: 56
#[test]
fn the_same_value_leaves_the_file_untouched() {
    let home = Home::with(OLD);
    let long_ago = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    std::fs::File::options()
        .write(true)
        .open(home.config())
        .expect("open")
        .set_modified(long_ago)
        .expect("mtime");
    let before = std::fs::metadata(home.config()).expect("metadata");
    let ran = home.run(&["set", "context.engine", "compressor"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("not touched"), "{}", ran.out);
    let after = std::fs::metadata(home.config()).expect("metadata");
    assert_eq!(
        (before.ino(), before.mtime(), before.ctime()),
        (after.ino(), after.mtime(), after.ctime())
    );
    assert_eq!(home.bytes(), OLD.as_bytes());
}

// contract: CFG-5
// case: 56
#[test]
fn mode_owner_and_link_are_kept() {
    let home = Home::empty();
    let elsewhere = tempfile::tempdir().expect("folder");
    let real = elsewhere.path().join("dotfiles.yaml");
    std::fs::write(&real, OLD).expect("write");
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).expect("mode");
    // Only root can give a file away; others see that their own id stays.
    let owner = if std::os::unix::fs::chown(&real, Some(1234), Some(4321)).is_ok() {
        (1234, 4321)
    } else {
        let now = std::fs::metadata(&real).expect("metadata");
        (now.uid(), now.gid())
    };
    let middle = elsewhere.path().join("middle.yaml");
    symlink("dotfiles.yaml", &middle).expect("link");
    symlink(&middle, home.config()).expect("link");

    let ran = home.run(&["set", "context.engine", "lcm"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(
        std::fs::read_link(home.config()).expect("still a link"),
        middle
    );
    assert_eq!(
        std::fs::read_link(&middle).expect("still a link").to_str(),
        Some("dotfiles.yaml")
    );
    let after = std::fs::metadata(&real).expect("metadata");
    assert_eq!(after.mode() & 0o7777, 0o640);
    assert_eq!((after.uid(), after.gid()), owner);
    assert_eq!(
        std::fs::read_to_string(&real).expect("read"),
        OLD.replace("compressor", "lcm")
    );
    assert_eq!(entries(&home), ["config.yaml"]);
    assert_eq!(
        std::fs::read_dir(elsewhere.path()).expect("list").count(),
        2,
        "no file left behind"
    );
}

// contract: CLI-2
// case: 56
#[test]
fn a_missing_file_is_made_with_the_key_alone() {
    let home = Home::empty();
    let path = home.path().join("new/home/config.yaml");
    let outcome = edit::write_engine(&path, "lcm").expect("written");
    assert_eq!(outcome, Outcome::Changed { line: 2 });
    assert_eq!(
        std::fs::read_to_string(&path).expect("read"),
        "context:\n  engine: lcm\n"
    );
    assert_eq!(
        std::fs::metadata(&path).expect("metadata").mode() & 0o777,
        0o600
    );

    let home = Home::empty();
    symlink("nowhere.yaml", home.config()).expect("link");
    let ran = home.run(&["set", "context.engine", "lcm"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("link to a file that is not there"),
        "{}",
        ran.err
    );
}

#[test]
fn files_that_a_rename_would_harm_are_refused() {
    let home = Home::with(OLD);
    std::fs::hard_link(home.config(), home.path().join("other.yaml")).expect("link");
    let ran = home.run(&["set", "context.engine", "lcm"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("hard links"), "{}", ran.err);
    assert_eq!(home.bytes(), OLD.as_bytes());

    let home = Home::empty();
    std::fs::create_dir(home.config()).expect("folder");
    for args in [&["set", "a", "b"][..], &["get", "a"], &["check"]] {
        let ran = home.run(args);
        assert_ne!(ran.code, Some(0));
        assert!(ran.err.contains("not a regular file"), "{}", ran.err);
    }
}

/// A pipe in the file's place must not make a command wait for its writer.
#[test]
fn a_pipe_is_not_opened() {
    let home = Home::empty();
    let made = Command::new("mkfifo")
        .arg(home.config())
        .status()
        .expect("mkfifo runs");
    assert!(made.success());
    for args in [&["set", "a", "b"][..], &["get", "a"], &["check"]] {
        assert!(home.run(args).err.contains("not a regular file"));
    }
}

/// What a killed writer left is removed by a later one, but not what another writes at this moment.
#[test]
fn old_left_overs_are_removed() {
    let home = Home::with(OLD);
    for (name, age) in [
        (".hermes-config-old.tmp", 7200),
        (".hermes-config-new.tmp", 1),
        ("mine.tmp", 7200),
    ] {
        let path = home.path().join(name);
        std::fs::write(&path, "x").expect("write");
        let when = std::time::SystemTime::now() - Duration::from_secs(age);
        std::fs::File::options()
            .write(true)
            .open(&path)
            .expect("open")
            .set_modified(when)
            .expect("mtime");
    }
    edit::write_engine(&home.config(), "lcm").expect("written");
    assert_eq!(
        entries(&home),
        [".hermes-config-new.tmp", "config.yaml", "mine.tmp"]
    );
}

#[test]
fn a_second_writer_waits_and_then_says_so() {
    let home = Home::with(OLD);
    let held = std::fs::File::open(home.config()).expect("open");
    held.lock().expect("lock");
    let path = home.config();
    let waiting = std::thread::spawn(move || edit::write_engine(&path, "lcm"));
    std::thread::sleep(Duration::from_millis(100));
    assert!(!waiting.is_finished());
    held.unlock().expect("unlock");
    waiting.join().expect("thread").expect("written in the end");

    let held = std::fs::File::open(home.config()).expect("open");
    held.lock().expect("lock");
    let refused = edit::write_engine(&home.config(), "other").expect_err("locked");
    assert!(matches!(refused, EditError::Locked { .. }), "{refused}");
}

/// Many writers at once: each value arrives, and none takes another's change away.
#[test]
fn writers_do_not_lose_each_others_changes() {
    let home = Home::with(OLD);
    let children: Vec<_> = (0..8)
        .map(|n| {
            let key = format!("own.key{n}");
            home.command(&["set", &key, "1"])
                .stdout(Stdio::null())
                .spawn()
                .expect("the program runs")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("ends").success());
    }
    let text = String::from_utf8(home.bytes()).expect("UTF-8");
    for n in 0..8 {
        assert!(text.contains(&format!("  key{n}: 1\n")), "{text}");
    }
    assert_eq!(text.matches("own:").count(), 1);
    assert_eq!(entries(&home), ["config.yaml"]);
}

// contract: CLI-2
// case: 56
#[test]
fn a_killed_writer_leaves_the_old_file_or_the_new_one() {
    let old = format!("{OLD}{}", "# filler\n".repeat(20_000));
    let new = old.replace("compressor", "lcm");
    let (mut olds, mut news) = (0, 0);
    for round in 0..40_u64 {
        let home = Home::with(&old);
        let mut child = home
            .command(&["set", "context.engine", "lcm"])
            .stdout(Stdio::null())
            .spawn()
            .expect("the program runs");
        std::thread::sleep(Duration::from_micros(round * 1500));
        child.kill().expect("killed"); // SIGKILL
        child.wait().expect("ends");
        let found = String::from_utf8(home.bytes()).expect("UTF-8");
        if found == old {
            olds += 1;
        } else {
            assert!(found == new, "neither the old nor the new file");
            news += 1;
        }
        // Whatever it left behind is in nobody's way.
        edit::write_engine(&home.config(), "lcm").expect("written");
        assert_eq!(home.bytes(), new.as_bytes());
    }
    println!("old {olds}, new {news}");
    assert!(olds > 0, "no kill came early enough");
}

#[test]
fn reading_and_checking_write_nothing() {
    let home = Home::with(OLD);
    let before = std::fs::metadata(home.config()).expect("metadata");
    for args in [
        &["get", "context.engine"][..],
        &["path"],
        &["check"],
        &["get", "context", "--json"],
    ] {
        assert_eq!(home.run(args).code, Some(0));
    }
    let after = std::fs::metadata(home.config()).expect("metadata");
    assert_eq!(
        (before.ino(), before.mtime_nsec(), before.ctime_nsec()),
        (after.ino(), after.mtime_nsec(), after.ctime_nsec())
    );
    assert_eq!(entries(&home), ["config.yaml"]);
}
