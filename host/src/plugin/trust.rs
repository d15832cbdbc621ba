//! Who may write to what we are about to load.
//!
//! A library is loaded only if the real file and each folder above it belong to the user or to root, and nobody else
//! may write there (SAFE-3). Whoever can write to one of them decides what the host runs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

#[cfg(unix)]
mod groups;

/// Why a file is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// Somebody else owns it.
    #[error("{path} belongs to user {owner}, not to you or root")]
    Owner {
        /// The file or folder.
        path: PathBuf,
        /// Numeric id, and the name if there is one.
        owner: String,
    },
    /// Anybody may write to it.
    #[error("{path} can be changed by anybody (mode {mode:04o})")]
    World {
        /// The file or folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A group of several people may write to it.
    #[error("{path} can be changed by the group {group} (mode {mode:04o})")]
    Group {
        /// The file or folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// Numeric id, and the name if there is one.
        group: String,
    },
    /// It is not a regular file.
    #[error("{path} is not a regular file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Its owner and mode cannot be read.
    #[error("{path} cannot be checked: {reason}")]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// Its content is another than `config.yaml` allows.
    #[error("{path} has SHA-256 {found}, but config.yaml pins {pinned}")]
    Pinned {
        /// The library.
        path: PathBuf,
        /// Its hash.
        found: String,
        /// The pin.
        pinned: String,
    },
}

impl TrustError {
    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Owner { path, .. } => format!(
                "if you trust what is in it, make it yours: chown \"$(id -u)\" '{}'",
                path.display()
            ),
            Self::World { path, .. } => format!("chmod o-w '{}'", path.display()),
            Self::Group { path, .. } => format!("chmod g-w '{}'", path.display()),
            Self::NotAFile { .. } => "put the library itself there, or a link to it".to_owned(),
            Self::Unreadable { .. } => "make the path readable for you".to_owned(),
            Self::Pinned { found, .. } => format!(
                "if the change is wanted, write plugins.entries.NAME.sha256: {found}; else install the pinned build again"
            ),
        }
    }
}

/// Checks paths, and remembers the folders it has seen for as long as it lives: a short time.
#[derive(Default)]
pub struct TrustCheck {
    folders: HashMap<PathBuf, Result<(), TrustError>>,
    #[cfg(unix)]
    groups: groups::Groups,
}

impl TrustCheck {
    /// A check with nothing remembered.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks a regular file and each folder above it. `real` is a canonical path.
    ///
    /// # Errors
    /// The first path, from the file upwards, that somebody else can change.
    pub fn file(&mut self, real: &Path) -> Result<(), TrustError> {
        let metadata = metadata(real)?;
        self.opened(real, &metadata)?;
        match real.parent() {
            Some(folder) => self.folder(folder),
            None => Ok(()),
        }
    }

    /// Checks a file that is open already; its folders have been checked by [`TrustCheck::file`].
    ///
    /// # Errors
    /// As [`TrustCheck::file`].
    pub fn opened(&mut self, real: &Path, metadata: &std::fs::Metadata) -> Result<(), TrustError> {
        if !metadata.is_file() {
            return Err(TrustError::NotAFile {
                path: real.to_owned(),
            });
        }
        self.one(real, metadata)
    }

    /// Checks a folder and each folder above it. `real` is a canonical path.
    ///
    /// # Errors
    /// As [`TrustCheck::file`].
    pub fn folder(&mut self, real: &Path) -> Result<(), TrustError> {
        if let Some(known) = self.folders.get(real) {
            return known.clone();
        }
        let here = metadata(real).and_then(|metadata| self.one(real, &metadata));
        let result = match (here, real.parent()) {
            (Ok(()), Some(above)) => self.folder(above),
            (here, _) => here,
        };
        self.folders.insert(real.to_owned(), result.clone());
        result
    }

    #[cfg(unix)]
    fn one(&mut self, path: &Path, metadata: &std::fs::Metadata) -> Result<(), TrustError> {
        use std::os::unix::fs::MetadataExt;

        let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
        if owner != 0 && owner != rustix::process::geteuid().as_raw() {
            return Err(TrustError::Owner {
                path: path.to_owned(),
                owner: self.groups.user(owner),
            });
        }
        // In a sticky folder of root's nobody can replace what belongs to another.
        if metadata.is_dir() && owner == 0 && mode & 0o1000 != 0 {
            return Ok(());
        }
        if mode & 0o002 != 0 {
            return Err(TrustError::World {
                path: path.to_owned(),
                mode,
            });
        }
        if mode & 0o020 != 0 && !self.groups.is_own(metadata.gid(), owner) {
            return Err(TrustError::Group {
                path: path.to_owned(),
                mode,
                group: self.groups.group(metadata.gid()),
            });
        }
        Ok(())
    }

    #[cfg(not(unix))]
    #[allow(clippy::unused_self, clippy::unnecessary_wraps)]
    fn one(&mut self, _: &Path, _: &std::fs::Metadata) -> Result<(), TrustError> {
        Ok(())
    }
}

fn metadata(path: &Path) -> Result<std::fs::Metadata, TrustError> {
    std::fs::symlink_metadata(path).map_err(|error| TrustError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

#[cfg(all(test, unix))]
mod tests;
