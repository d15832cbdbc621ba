//! Which copies are in use, across processes.
//!
//! A process that is about to load a copy takes a shared lock on its folder and keeps it until it ends, however it ends.
//! Whoever cleans up must get the folder for itself first.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The folders that this process uses.
static HELD: Mutex<Option<HashMap<PathBuf, File>>> = Mutex::new(None);

/// A use is noted so often at most.
const NOTED: Duration = Duration::from_secs(60 * 60);

/// Takes a folder for this process. `false`: it has just been removed or replaced. Where folders cannot be locked they
/// are used all the same: what is loaded stays, whatever happens to its file.
pub(super) fn hold(folder: &Path) -> bool {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let held = held.get_or_insert_default();
    if held.get(folder).is_some_and(|file| is_at(file, folder)) {
        return true;
    }
    let file = match File::open(folder) {
        Ok(file) => file,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    // Somebody who has it alone is about to remove it, which takes a moment.
    if let Err(error) = file.lock_shared() {
        tracing::debug!(%error, "the use of an engine's copy cannot be noted");
    }
    if !is_at(&file, folder) {
        return false;
    }
    if age(&file).is_none_or(|age| age > NOTED) {
        let _ = file.set_modified(SystemTime::now());
    }
    held.insert(folder.to_owned(), file);
    true
}

/// How long ago a folder was made or used.
pub(super) fn age(folder: &File) -> Option<Duration> {
    folder.metadata().ok()?.modified().ok()?.elapsed().ok()
}

#[cfg(unix)]
pub(super) fn is_at(open: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (open.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(open), Ok(there)) => open.ino() == there.ino() && open.dev() == there.dev(),
        _ => false,
    }
}

/// Where an open folder cannot be removed there is nothing to compare.
#[cfg(not(unix))]
pub(super) fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}
