//! Replacing a file in one step.

use super::EditError;
use crate::config::text::MAX_BYTES;
use std::fs::{File, Metadata, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a second writer waits for the first.
const PATIENCE: Duration = Duration::from_secs(10);

/// The beginning of the names of files that are being written.
const TEMPORARY: &str = ".hermes-config-";

/// A file as it was read, locked against other writers of our kind until dropped.
pub(super) struct Original {
    /// The real path, links followed: what is read and replaced.
    pub(super) path: PathBuf,
    /// None when there is no file yet.
    held: Option<Held>,
    bytes: Vec<u8>,
}

struct Held {
    /// Keeps the lock.
    file: File,
    metadata: Metadata,
}

impl Original {
    /// Reads a file and takes its lock. A missing file is an empty one.
    ///
    /// The lock lies on the file itself, so no second file is left behind; a writer that waited for it looks whether the
    /// file was replaced meanwhile, and if so takes the new one's.
    pub(super) fn open(path: &Path) -> Result<Self, EditError> {
        let start = Instant::now();
        loop {
            let real = match std::fs::canonicalize(path) {
                Ok(real) => real,
                Err(error) if error.kind() == ErrorKind::NotFound => return Self::missing(path),
                Err(source) => return Err(io("open", path, source)),
            };
            // Looked at before it is opened: opening a pipe would wait for its writer.
            let kind = std::fs::metadata(&real).map_err(|source| io("look at", &real, source))?;
            if !kind.is_file() {
                let reason = "it is not a regular file".to_owned();
                return Err(EditError::Unreadable { path: real, reason });
            }
            let file = File::open(&real).map_err(|source| io("open", &real, source))?;
            lock(&file, &real, start)?;
            let metadata = file
                .metadata()
                .map_err(|source| io("look at", &real, source))?;
            let current = std::fs::metadata(&real).ok();
            if !current.is_some_and(|current| same_file(&current, &metadata)) {
                continue; // replaced while we waited
            }
            let mut bytes = Vec::new();
            (&file)
                .take(MAX_BYTES + 1)
                .read_to_end(&mut bytes)
                .map_err(|source| io("read", &real, source))?;
            return Ok(Self {
                path: real,
                held: Some(Held { file, metadata }),
                bytes,
            });
        }
    }

    fn missing(path: &Path) -> Result<Self, EditError> {
        if std::fs::symlink_metadata(path).is_ok() {
            let reason = "it is a link to a file that is not there".to_owned();
            return Err(EditError::Unreadable {
                path: path.to_owned(),
                reason,
            });
        }
        Ok(Self {
            path: path.to_owned(),
            held: None,
            bytes: Vec::new(),
        })
    }

    /// The content.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Puts new content in place of the old: written beside it, flushed, given its owner and mode, and renamed over it.
    /// A crash at any moment leaves the old file or the new one.
    pub(super) fn replace(self, content: &[u8]) -> Result<(), EditError> {
        let folder = self
            .path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        if self.held.is_none() {
            create_folder(&folder).map_err(|source| io("create", &folder, source))?;
        }
        if let Some(held) = &self.held {
            writable(&self.path, &held.metadata)?;
        }
        remove_left_overs(&folder);
        let mut temporary = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .suffix(".tmp")
            .tempfile_in(&folder)
            .map_err(|source| io("write into", &folder, source))?;
        let write = |source| io("write", &self.path, source);
        temporary.write_all(content).map_err(write)?;
        if let Some(held) = &self.held {
            keep_owner_and_mode(temporary.as_file(), &held.metadata)
                .map_err(|source| io("keep the owner and mode of", &self.path, source))?;
        }
        temporary.as_file().sync_all().map_err(write)?;
        match &self.held {
            None => {
                temporary.persist_noclobber(&self.path).map_err(|error| {
                    if error.error.kind() == ErrorKind::AlreadyExists {
                        EditError::Changed {
                            path: self.path.clone(),
                        }
                    } else {
                        io("create", &self.path, error.error)
                    }
                })?;
            }
            Some(held) => {
                self.unchanged(held)?;
                temporary
                    .persist(&self.path)
                    .map_err(|error| io("replace", &self.path, error.error))?;
            }
        }
        // The rename is done; flushing the folder only makes it survive a power failure.
        if let Ok(folder) = File::open(&folder) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// Is the file still the one that was read?
    fn unchanged(&self, held: &Held) -> Result<(), EditError> {
        let changed = || EditError::Changed {
            path: self.path.clone(),
        };
        let current = std::fs::metadata(&self.path).map_err(|_| changed())?;
        let _lock = &held.file;
        if !same_file(&current, &held.metadata) || current.len() != held.metadata.len() {
            return Err(changed());
        }
        let now = std::fs::read(&self.path).map_err(|_| changed())?;
        if now == self.bytes {
            Ok(())
        } else {
            Err(changed())
        }
    }
}

fn io(action: &'static str, path: &Path, source: std::io::Error) -> EditError {
    EditError::Io {
        path: path.to_owned(),
        action,
        source,
    }
}

fn lock(file: &File, path: &Path, start: Instant) -> Result<(), EditError> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            // File systems without locks: the comparison before the rename still holds.
            Err(TryLockError::Error(_)) => return Ok(()),
            Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(EditError::Locked {
                    path: path.to_owned(),
                });
            }
        }
    }
}

#[cfg(unix)]
fn same_file(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    a.dev() == b.dev() && a.ino() == b.ino()
}

#[cfg(not(unix))]
fn same_file(a: &Metadata, b: &Metadata) -> bool {
    a.len() == b.len() && a.modified().ok() == b.modified().ok()
}

/// A rename needs no permission of the file itself; its owner's wish is respected all the same.
#[cfg(unix)]
fn writable(path: &Path, metadata: &Metadata) -> Result<(), EditError> {
    use std::os::unix::fs::MetadataExt;
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK)
        .map_err(|error| io("write", path, error.into()))?;
    if metadata.nlink() > 1 {
        let reason =
            "the file has several names (hard links), which replacing it would part".to_owned();
        return Err(EditError::Unreadable {
            path: path.to_owned(),
            reason,
        });
    }
    Ok(())
}

#[cfg(not(unix))]
fn writable(path: &Path, metadata: &Metadata) -> Result<(), EditError> {
    if metadata.permissions().readonly() {
        return Err(io("write", path, ErrorKind::PermissionDenied.into()));
    }
    Ok(())
}

#[cfg(unix)]
fn keep_owner_and_mode(file: &File, old: &Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(old.permissions())
}

#[cfg(not(unix))]
fn keep_owner_and_mode(file: &File, old: &Metadata) -> std::io::Result<()> {
    file.set_permissions(old.permissions())
}

/// The home may be new; its content is nobody else's business.
fn create_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Removes what a writer that was killed has left, once it is old enough to be nobody's any more.
fn remove_left_overs(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(TEMPORARY);
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if ours && age().is_some_and(|age| age > Duration::from_secs(3600)) {
            // Somebody else may have been quicker, or it is not ours to remove.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An editor that saves while we think about the change wins, whether it writes in place or renames.
    #[test]
    fn a_file_that_changes_in_between_is_left_alone() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("config.yaml");
        let save_in_place = || std::fs::write(&path, "b: 2\n");
        let save_by_rename = || {
            let other = folder.path().join("other");
            std::fs::write(&other, "a: 1\n").and_then(|()| std::fs::rename(&other, &path))
        };
        for save in [
            &save_in_place as &dyn Fn() -> std::io::Result<()>,
            &save_by_rename,
        ] {
            std::fs::write(&path, "a: 1\n").expect("write");
            let original = Original::open(&path).expect("open");
            save().expect("saved");
            let saved = std::fs::read(&path).expect("read");
            let refused = original.replace(b"c: 3\n").expect_err("changed");
            assert!(matches!(refused, EditError::Changed { .. }), "{refused}");
            assert_eq!(std::fs::read(&path).expect("read"), saved);
        }
        std::fs::remove_file(&path).expect("removed");
        let original = Original::open(&path).expect("nothing there");
        std::fs::write(&path, "new: 1\n").expect("write");
        let refused = original.replace(b"c: 3\n").expect_err("appeared");
        assert!(matches!(refused, EditError::Changed { .. }), "{refused}");
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("list").count(),
            1,
            "no left over"
        );
    }
}
