//! Modes and owners on real files. Only root can give a file away, so that part asks who runs it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use super::*;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
}

fn check(path: &Path) -> Result<(), TrustError> {
    TrustCheck::new().file(path)
}

struct Tree {
    root: tempfile::TempDir,
    folder: PathBuf,
    file: PathBuf,
}

fn tree() -> Tree {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().canonicalize().expect("real").join("plugins");
    let file = folder.join("libx.so");
    fs::create_dir(&folder).expect("a folder");
    fs::write(&file, "x").expect("a file");
    mode(&folder, 0o755);
    mode(&file, 0o755);
    Tree { root, folder, file }
}

// contract: SAFE-3
#[test]
fn a_file_that_only_its_owner_can_change_is_trusted_even_below_tmp() {
    let tree = tree();
    assert_eq!(check(&tree.file), Ok(()));
    drop(tree.root);
}

// contract: SAFE-3
#[test]
fn what_anybody_can_change_is_refused_at_every_height() {
    let tree = tree();
    mode(&tree.file, 0o757);
    assert!(matches!(check(&tree.file), Err(TrustError::World { path, .. }) if path == tree.file));
    mode(&tree.file, 0o755);
    mode(&tree.folder, 0o777);
    let error = check(&tree.file).expect_err("folder");
    assert!(error.to_string().contains("0777"), "{error}");
    assert!(error.fix().contains("chmod o-w"));
    mode(&tree.folder, 0o755);
    let above = tree.folder.parent().expect("above").to_owned();
    mode(&above, 0o707);
    assert!(matches!(check(&tree.file), Err(TrustError::World { path, .. }) if path == above));
}

// contract: SAFE-3
#[test]
fn a_group_is_trusted_only_if_it_is_the_owners_own() {
    let tree = tree();
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can change a file's group freely");
        return;
    }
    mode(&tree.file, 0o775);
    assert_eq!(check(&tree.file), Ok(()), "root's own group");
    chown(&tree.file, None, Some(65_533)).expect("chgrp");
    assert!(matches!(check(&tree.file), Err(TrustError::Group { .. })));
    mode(&tree.file, 0o755);
    assert_eq!(check(&tree.file), Ok(()));
}

// contract: SAFE-3
#[test]
fn strangers_files_and_folders_are_refused() {
    let tree = tree();
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give a file away");
        return;
    }
    chown(&tree.file, Some(65_534), None).expect("chown");
    assert!(matches!(check(&tree.file), Err(TrustError::Owner { .. })));
    chown(&tree.file, Some(0), None).expect("chown");
    chown(&tree.folder, Some(65_534), None).expect("chown");
    // Sticky helps only where root owns the folder.
    mode(&tree.folder, 0o1777);
    assert!(
        matches!(check(&tree.file), Err(TrustError::Owner { path, .. }) if path == tree.folder)
    );
    chown(&tree.folder, Some(0), None).expect("chown");
    assert_eq!(check(&tree.file), Ok(()), "a sticky folder of root's");
}

// contract: SAFE-3
#[test]
fn only_regular_files_are_libraries() {
    let tree = tree();
    assert!(matches!(
        check(&tree.folder),
        Err(TrustError::NotAFile { .. })
    ));
    assert!(matches!(
        check(&tree.folder.join("no")),
        Err(TrustError::Unreadable { .. })
    ));
}
