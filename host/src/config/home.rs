//! Where the user's files are.

use std::path::{Path, PathBuf};

/// The folder that holds everything of one user: `$HERMES_HOME`, else `~/.hermes`.
///
/// A value never touches the disk by itself: it only names paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HermesHome(PathBuf);

impl HermesHome {
    /// Takes a folder as the home, as tests and `--home`-like options do.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Finds the home from the environment.
    ///
    /// An empty `HERMES_HOME` counts as unset. A relative one is taken from the current folder once, here, so
    /// that a later change of folder moves nothing. Without a home folder of the user (some services have none)
    /// it is `.hermes` in the current folder.
    pub fn from_env() -> Self {
        let named = std::env::var_os("HERMES_HOME").filter(|value| !value.is_empty());
        let path = match named {
            Some(value) => PathBuf::from(value),
            None => dirs::home_dir().unwrap_or_default().join(".hermes"),
        };
        Self(std::path::absolute(&path).unwrap_or(path))
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// `config.yaml`.
    pub fn config_path(&self) -> PathBuf {
        self.0.join("config.yaml")
    }

    /// The folder of user plugins.
    pub fn plugins_dir(&self) -> PathBuf {
        self.0.join("plugins")
    }

    /// The private data folder of one engine. The name must be a valid engine name (DISC-5).
    pub fn engine_data_dir(&self, engine: &str) -> PathBuf {
        self.0.join("context_engines").join(engine)
    }

    /// The folder of log files.
    pub fn logs_dir(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// The folder of checked copies of engine libraries.
    pub fn engine_cache_dir(&self) -> PathBuf {
        self.0.join("cache").join("engines")
    }
}
