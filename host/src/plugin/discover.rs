//! Finds plugin directories and the library in each. Nothing runs.

pub(crate) mod bundled;
pub(crate) mod library;

use std::io;
use std::path::{Path, PathBuf};

use super::report::Status;

pub use bundled::BundledRoot;

/// Why a directory cannot be used, whatever is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// A link that leads nowhere.
    #[error("it is a link to {target}, which does not exist")]
    Dangling {
        /// Where it points.
        target: PathBuf,
    },
    /// A link that leads to itself or to a folder above it.
    #[error("it is a link that leads back to a folder above it")]
    Loop,
    /// A link to something else than a folder.
    #[error("it is a link to {target}, which is not a folder")]
    NotAFolder {
        /// Where it leads.
        target: PathBuf,
    },
    /// It cannot be read.
    #[error("the folder cannot be read: {reason}")]
    Unreadable {
        /// The system's reason.
        reason: String,
    },
    /// Its name is none.
    #[error("the folder's name {problem}")]
    BadName {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Neither the manifest nor the library says a name.
    #[error("neither plugin.yaml nor the library says the engine's name")]
    Nameless,
    /// It wants the built-in engine's name.
    #[error("its engine is called `compressor`, which always means the built-in engine")]
    Reserved,
    /// An engine of the same name comes first.
    #[error("the {source_kind} engine in {by} has the same name {engine:?} and comes first")]
    Shadowed {
        /// The shared name.
        engine: String,
        /// `bundled` or `user`.
        source_kind: &'static str,
        /// The directory of the one that comes first.
        by: PathBuf,
    },
    /// A general plugin that is not switched on.
    #[error("it is a general plugin that is not in `plugins.enabled`")]
    NotEnabled,
    /// An engine was registered by another plugin already.
    #[error(
        "it wants to register the engine {engine:?}, but plugin {by} has registered {first:?} already; only one engine can be registered through plugins"
    )]
    SecondRegistration {
        /// The engine that is refused.
        engine: String,
        /// The engine that stays.
        first: String,
        /// The plugin that registered it.
        by: String,
    },
}

impl DiscoverError {
    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Dangling { .. } | Self::Loop | Self::NotAFolder { .. } => {
                "remove the link, or make it lead to the plugin's folder".to_owned()
            }
            Self::Unreadable { .. } => "make the folder readable for you".to_owned(),
            Self::BadName { .. } => "rename the folder".to_owned(),
            Self::Nameless => "write `name:` or `engine:` into plugin.yaml".to_owned(),
            Self::Reserved => "give the engine another name".to_owned(),
            Self::Shadowed { .. } => {
                "remove one of the two, or rename one engine (`engine:` in plugin.yaml and in its code)".to_owned()
            }
            Self::NotEnabled => "add its name to `plugins.enabled` in config.yaml".to_owned(),
            Self::SecondRegistration { .. } => {
                "take one of the two plugins out of `plugins.enabled`".to_owned()
            }
        }
    }

    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Shadowed { .. } | Self::Reserved => Status::Shadowed,
            Self::NotEnabled | Self::SecondRegistration { .. } => Status::Unavailable,
            _ => Status::Broken,
        }
    }
}

/// A directory in a root of plugins.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Its name there.
    pub(crate) name: String,
    /// Its path there.
    pub(crate) listed: PathBuf,
    /// Where it really lies.
    pub(crate) real: Result<PathBuf, DiscoverError>,
}

/// The directories of a root, by name. A root that does not exist has none.
pub(crate) fn list(root: &Path) -> io::Result<Vec<Found>> {
    let real_root = match root.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&real_root)? {
        // An entry that vanishes meanwhile is none.
        let Ok(entry) = entry else { continue };
        let raw_name = entry.file_name();
        let name = raw_name.to_string_lossy().into_owned();
        if name.starts_with(['.', '_']) {
            continue;
        }
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let listed = entry.path();
        let real = if kind.is_symlink() {
            follow(&listed, &real_root)
        } else if kind.is_dir() {
            Ok(listed.clone())
        } else {
            // A file that somebody left beside the plugins.
            continue;
        };
        let problem = match raw_name.to_str() {
            Some(name) => super::name::check(name).err(),
            None => Some("is not UTF-8"),
        };
        found.push(Found {
            name,
            listed,
            real: match problem {
                Some(problem) => Err(DiscoverError::BadName { problem }),
                None => real,
            },
        });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Where a link leads.
fn follow(link: &Path, root: &Path) -> Result<PathBuf, DiscoverError> {
    let target = || std::fs::read_link(link).unwrap_or_default();
    let real = link.canonicalize().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => DiscoverError::Dangling { target: target() },
        _ if is_loop(&error) => DiscoverError::Loop,
        io::ErrorKind::NotADirectory => DiscoverError::NotAFolder { target: target() },
        _ => DiscoverError::Unreadable {
            reason: error.to_string(),
        },
    })?;
    if root.starts_with(&real) {
        return Err(DiscoverError::Loop);
    }
    if !real.is_dir() {
        return Err(DiscoverError::NotAFolder { target: real });
    }
    Ok(real)
}

#[cfg(unix)]
fn is_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(not(unix))]
fn is_loop(_: &io::Error) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests;
