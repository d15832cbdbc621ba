//! Roots with folders, links and left-overs.

use std::os::unix::fs::symlink;

use super::*;

// contract: DISC-5, DISC-4
// case: 42
#[test]
fn links_are_followed_and_bad_ones_are_one_line_each() {
    let base = tempfile::tempdir().expect("a folder");
    let base_real = base.path().canonicalize().expect("real");
    let (root, outside) = (base_real.join("plugins"), base_real.join("src/a"));
    std::fs::create_dir_all(&outside).expect("a folder");
    std::fs::create_dir_all(root.join("plain")).expect("a folder");
    for hidden in ["__pycache__", ".git"] {
        std::fs::create_dir(root.join(hidden)).expect("a folder");
    }
    std::fs::write(root.join("README.md"), "text").expect("written");
    symlink(&outside, root.join("a")).expect("a link");
    symlink("missing", root.join("b")).expect("a link");
    symlink("/etc/passwd", root.join("c")).expect("a link");
    symlink("..", root.join("d")).expect("a link");
    symlink("e", root.join("e")).expect("a link");
    symlink(".", root.join("f")).expect("a link");

    let found = list(&root).expect("listed");
    let by_name = |name: &str| {
        &found
            .iter()
            .find(|found| found.name == name)
            .expect(name)
            .real
    };
    assert_eq!(by_name("a"), &Ok(outside));
    assert!(matches!(by_name("b"), Err(DiscoverError::Dangling { .. })));
    assert!(matches!(
        by_name("c"),
        Err(DiscoverError::NotAFolder { .. })
    ));
    for circle in ["d", "e", "f"] {
        assert_eq!(by_name(circle), &Err(DiscoverError::Loop), "{circle}");
    }
    assert!(by_name("plain").is_ok());
    assert_eq!(found.len(), 7, "{found:?}");
    for error in found.iter().filter_map(|found| found.real.as_ref().err()) {
        assert!(!error.to_string().contains('\n') && !error.fix().is_empty());
    }
}

// contract: DISC-5
#[test]
fn names_that_are_none_are_reported() {
    use std::os::unix::ffi::OsStrExt;
    let root = tempfile::tempdir().expect("a folder");
    let odd = [&b"a\nb"[..], b"x..y", b"\xff", b" blank"];
    for name in odd {
        std::fs::create_dir(root.path().join(std::ffi::OsStr::from_bytes(name))).expect("a folder");
    }
    let found = list(root.path()).expect("listed");
    assert_eq!(found.len(), odd.len());
    assert!(
        found
            .iter()
            .all(|found| matches!(found.real, Err(DiscoverError::BadName { .. })))
    );
}

// contract: DISC-4
#[test]
fn a_root_that_is_missing_is_empty_and_a_file_is_an_error() {
    let base = tempfile::tempdir().expect("a folder");
    assert!(list(&base.path().join("none")).expect("empty").is_empty());
    let file = base.path().join("file");
    std::fs::write(&file, "").expect("written");
    assert!(list(&file).is_err());
}
