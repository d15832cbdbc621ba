//! Copies of real libraries, and what happens when somebody tampers with them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::*;

struct Place {
    _root: tempfile::TempDir,
    plugin: PathBuf,
    cache: PathBuf,
}

/// An engine that needs a library beside it; `None` without a C compiler.
fn place_with_sibling() -> Option<Place> {
    let root = tempfile::tempdir().expect("a folder");
    let base = root.path().canonicalize().expect("real");
    let place = Place {
        plugin: base.join("plugin"),
        cache: base.join("cache/engines"),
        _root: root,
    };
    fs::create_dir(&place.plugin).expect("a folder");
    let make = |source: &str, output: &str, extra: &[&str]| {
        let code = place.plugin.join("x.c");
        fs::write(&code, source).expect("written");
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(place.plugin.join(output))
            .arg(&code)
            .args(extra)
            .current_dir(&place.plugin)
            .status();
        made.map(|status| assert!(status.success()))
    };
    if let Err(error) = make("int two(void) { return 2; }", "libtwo.so", &[]) {
        println!("skipped: no C compiler ({error})");
        return None;
    }
    make(
        "int two(void); int hermes_context_engine_v1(void) { return two(); }",
        "libone.so",
        &["-L.", "-ltwo", "-Wl,-rpath,$ORIGIN"],
    )
    .expect("compiled");
    Some(place)
}

fn copy(place: &Place) -> Result<PrivateCopy, CopyError> {
    super::place(
        &place.plugin.join("libone.so"),
        &place.plugin,
        &place.cache,
        &mut TrustCheck::new(),
    )
}

// contract: SAFE-3, DISC-1
#[test]
fn the_library_and_what_it_brings_along_are_copied_once() {
    let Some(place) = place_with_sibling() else {
        return;
    };
    let first = copy(&place).expect("copied");
    assert!(first.facts.has_entry);
    assert_ne!(first.sha256, first.library_sha256);
    assert_eq!(
        first.library_sha256,
        sha256_of_file(&place.plugin.join("libone.so")).expect("read")
    );
    let folder = first.library.parent().expect("a folder");
    assert_eq!(
        folder.file_name().and_then(|n| n.to_str()),
        Some(first.sha256.as_str())
    );
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(folder), 0o700);
    for name in ["libone.so", "libtwo.so"] {
        assert_eq!(mode(&folder.join(name)), 0o500);
        assert_eq!(
            fs::read(folder.join(name)).expect("read"),
            fs::read(place.plugin.join(name)).expect("read")
        );
    }
    let written = fs::metadata(&first.library)
        .expect("there")
        .modified()
        .expect("time");
    assert_eq!(copy(&place).expect("again"), first);
    assert_eq!(
        fs::metadata(&first.library)
            .expect("there")
            .modified()
            .expect("time"),
        written
    );
    // Only the one folder is left.
    assert_eq!(fs::read_dir(&place.cache).expect("read").count(), 1);
}

// contract: SAFE-3
#[test]
fn a_copy_that_was_tampered_with_is_never_loaded() {
    let Some(place) = place_with_sibling() else {
        return;
    };
    let good = copy(&place).expect("copied");
    for name in ["libone.so", "libtwo.so"] {
        let target = good.library.with_file_name(name);
        fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).expect("chmod");
        fs::write(&target, "evil").expect("written");
        assert_eq!(copy(&place).expect("made again"), good);
        assert_ne!(fs::read(&target).expect("read"), b"evil");
    }
    fs::set_permissions(&place.cache, fs::Permissions::from_mode(0o777)).expect("chmod");
    assert!(matches!(
        copy(&place),
        Err(CopyError::Trust(TrustError::World { .. }))
    ));
}

// contract: SAFE-3
#[test]
fn another_sibling_is_another_copy_and_an_untrusted_one_none() {
    let Some(place) = place_with_sibling() else {
        return;
    };
    let first = copy(&place).expect("copied");
    let sibling = place.plugin.join("libtwo.so");
    let mut bytes = fs::read(&sibling).expect("read");
    bytes.push(0);
    fs::write(&sibling, bytes).expect("written");
    let second = copy(&place).expect("copied");
    assert_ne!(first.sha256, second.sha256);
    assert_eq!(first.library_sha256, second.library_sha256);
    fs::set_permissions(&sibling, fs::Permissions::from_mode(0o777)).expect("chmod");
    assert!(matches!(copy(&place), Err(CopyError::Trust(_))));
    fs::set_permissions(&sibling, fs::Permissions::from_mode(0o755)).expect("chmod");
    fs::write(&sibling, "text").expect("written");
    assert!(matches!(copy(&place), Err(CopyError::Sibling { .. })));
}

// contract: SAFE-3
#[test]
fn many_threads_copy_the_same_library_at_once() {
    let Some(place) = place_with_sibling() else {
        return;
    };
    let copies: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| copy(&place))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic").expect("copied"))
            .collect()
    });
    assert!(copies.windows(2).all(|pair| pair[0] == pair[1]));
}
