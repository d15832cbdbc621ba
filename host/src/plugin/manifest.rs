//! Reads `plugin.yaml`. A manifest describes; it never decides whether a library may run.

mod keys;
mod library;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub use library::LibraryKey;

/// A manifest larger than this is none.
pub const MAX_BYTES: u64 = 64 * 1024;

/// The newest `manifest_version` whose keys we know.
const MAX_VERSION: f64 = 2.0;

/// File names of a manifest, the first one wins.
const FILE_NAMES: [&str; 2] = ["plugin.yaml", "plugin.yml"];

/// What a manifest says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The plugin's name; need not be the engine's.
    pub name: Option<String>,
    /// A name for people.
    pub display_name: Option<String>,
    /// One line about it.
    pub description: Option<String>,
    /// The plugin's version, spelled as in the file.
    pub version: Option<String>,
    /// The engine's own name. That it is there makes the directory an engine's.
    pub engine: Option<String>,
    /// Which file is the library.
    pub library: Option<LibraryKey>,
    /// What is odd about the file, one sentence each; nothing here keeps the plugin from serving.
    pub notes: Vec<String>,
}

/// Why there is no manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The directory has none.
    #[error("there is no plugin.yaml in the folder")]
    Missing,
    /// The file cannot be read.
    #[error("{file} cannot be read: {reason}")]
    Unreadable {
        /// `plugin.yaml` or `plugin.yml`.
        file: &'static str,
        /// The system's reason.
        reason: String,
    },
    /// It is a folder, a pipe or a device.
    #[error("{file} is not a regular file")]
    NotAFile {
        /// `plugin.yaml` or `plugin.yml`.
        file: &'static str,
    },
    /// It is too large.
    #[error("{file} is larger than 64 KiB")]
    TooLarge {
        /// `plugin.yaml` or `plugin.yml`.
        file: &'static str,
    },
    /// It is not UTF-8.
    #[error("{file} is not UTF-8 (byte {at})")]
    NotText {
        /// `plugin.yaml` or `plugin.yml`.
        file: &'static str,
        /// Offset of the first bad byte.
        at: usize,
    },
    /// It is not YAML, or not a map of keys.
    #[error("{file} is not a plugin manifest: {reason}")]
    Syntax {
        /// `plugin.yaml` or `plugin.yml`.
        file: &'static str,
        /// What the parser says, with line and column.
        reason: String,
    },
    /// A name that is no name.
    #[error("`{key}: {value}` in {file} {problem}")]
    BadName {
        /// `plugin.yaml` or `plugin.yml`.
        file: &'static str,
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl ManifestError {
    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Missing => {
                "add a plugin.yaml with at least `name:`, or remove the folder".to_owned()
            }
            Self::Unreadable { file, .. } | Self::NotAFile { file } => {
                format!("make {file} a file that you can read")
            }
            Self::TooLarge { file } => format!("shorten {file}"),
            Self::NotText { file, .. } => format!("save {file} as UTF-8"),
            Self::Syntax { file, .. } => format!("correct {file} at that place"),
            Self::BadName { key: "library", .. } => {
                "write the plain name of a file that lies beside plugin.yaml".to_owned()
            }
            Self::BadName { key, .. } => format!("give `{key}` a plain name"),
        }
    }
}

impl Manifest {
    /// Reads the manifest of a directory.
    ///
    /// # Errors
    /// There is none, or it cannot be used.
    pub fn read(directory: &Path) -> Result<Self, ManifestError> {
        for file in FILE_NAMES {
            if let Some(bytes) = read_capped(&directory.join(file), file)? {
                return Self::parse(&bytes, file);
            }
        }
        Err(ManifestError::Missing)
    }

    /// Reads a manifest's bytes; `file` is its name in messages.
    ///
    /// # Errors
    /// It is not text, not a map, or holds names that are none.
    pub fn parse(bytes: &[u8], file: &'static str) -> Result<Self, ManifestError> {
        let text = std::str::from_utf8(bytes).map_err(|error| ManifestError::NotText {
            file,
            at: error.valid_up_to(),
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let raw: keys::Raw = serde_yaml::from_str(text).map_err(|error| ManifestError::Syntax {
            file,
            reason: error.to_string(),
        })?;
        raw.into_manifest(file)
    }
}

/// `Ok(None)`: there is no such file.
fn read_capped(path: &PathBuf, file: &'static str) -> Result<Option<Vec<u8>>, ManifestError> {
    let unreadable = |error: std::io::Error| ManifestError::Unreadable {
        file,
        reason: error.to_string(),
    };
    // Asked before opening, because opening a pipe would wait for its other end.
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // A dangling link is a manifest that somebody meant to be there.
            return match std::fs::symlink_metadata(path) {
                Ok(_) => Err(unreadable(error)),
                Err(_) => Ok(None),
            };
        }
        Err(error) => return Err(unreadable(error)),
    };
    if !metadata.is_file() {
        return Err(ManifestError::NotAFile { file });
    }
    if metadata.len() > MAX_BYTES {
        return Err(ManifestError::TooLarge { file });
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ManifestError::TooLarge { file });
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests;
