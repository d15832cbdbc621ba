//! Which sessions are being talked in, across processes: so that a session whose process was killed is told from one
//! that somebody still has open.
//!
//! Each open session is a small file that its process keeps locked. The lock goes with the process however that ends;
//! a file without one is a session that nobody has ended.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

/// So many sessions of killed processes are ended at one start.
const MOST: usize = 32;

/// The folder of the files.
#[derive(Debug)]
pub(crate) struct OpenSessions {
    folder: PathBuf,
}

/// A session that this process has open. Dropped, it is free.
#[derive(Debug)]
pub(crate) struct Held {
    session: String,
    path: PathBuf,
    /// Locked for as long as it is open.
    _file: File,
}

impl OpenSessions {
    pub(crate) fn below(home: &Path) -> Self {
        OpenSessions {
            folder: home.join("cache").join("open-sessions"),
        }
    }

    /// Takes a session. `Ok(None)`: another process, or another agent of this one, has it open.
    ///
    /// # Errors
    /// When the folder cannot be written; the session can be used all the same.
    pub(crate) fn hold(&self, session: &str) -> std::io::Result<Option<Held>> {
        std::fs::create_dir_all(&self.folder)?;
        let path = self
            .folder
            .join(format!("{:032x}", xxh3_128(session.as_bytes())));
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The last holder may have removed the file between the opening and the lock.
            if !is_at(&file, &path) {
                continue;
            }
            file.set_len(0)?;
            file.write_all(session.as_bytes())?;
            let session = session.to_owned();
            return Ok(Some(Held {
                session,
                path,
                _file: file,
            }));
        }
    }

    /// Sessions that nobody has open and nobody has ended, this process's own excepted. They are held until dropped.
    pub(crate) fn orphans(&self) -> Vec<(String, Held)> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| orphan(entry.ok()?.path()))
            .take(MOST)
            .collect()
    }
}

fn orphan(path: PathBuf) -> Option<(String, Held)> {
    let mut file = OpenOptions::new().read(true).write(true).open(&path).ok()?;
    file.try_lock().ok()?;
    if !is_at(&file, &path) {
        return None;
    }
    let mut session = String::new();
    // A process that was killed before it wrote the id leaves an empty file.
    file.read_to_string(&mut session).ok()?;
    let held = Held {
        session: session.clone(),
        path,
        _file: file,
    };
    (!session.is_empty()).then_some((session, held))
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(there)) => open.ino() == there.ino() && open.dev() == there.dev(),
        _ => false,
    }
}

/// Where an open file cannot be removed there is nothing to compare.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

impl Held {
    /// Which session it is.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Whoever opened it meanwhile sees that it is gone.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_open_once_and_free_when_it_is_dropped() {
        let home = tempfile::tempdir().expect("a folder");
        let open = OpenSessions::below(home.path());
        let held = open.hold("a").expect("writable").expect("free");
        assert!(open.hold("a").expect("writable").is_none(), "taken");
        assert!(
            open.hold("b").expect("writable").is_some(),
            "another one is free"
        );
        assert!(open.orphans().is_empty(), "it is open, no orphan");
        drop(held);
        assert!(open.hold("a").expect("writable").is_some());
    }

    #[test]
    fn a_file_without_a_lock_is_a_session_that_was_never_ended() {
        let home = tempfile::tempdir().expect("a folder");
        let open = OpenSessions::below(home.path());
        std::mem::forget(open.hold("kept").expect("writable"));
        std::fs::write(open.folder.join("0f"), "lost").expect("written");
        std::fs::write(open.folder.join("10"), "").expect("written");
        let orphans = open.orphans();
        assert_eq!(orphans.len(), 1);
        assert_eq!(orphans[0].0, "lost");
        drop(orphans);
        assert!(open.orphans().is_empty());
    }
}
