//! A user's folder for one test, with plugins in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::built;

/// A `HERMES_HOME` of its own, beside an empty folder of bundled plugins.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
    real: PathBuf,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// An empty one, without a `config.yaml`.
    ///
    /// # Panics
    /// There is no place for it.
    #[must_use]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let real = folder.path().canonicalize().expect("a real path");
        fs::create_dir_all(real.join("home/plugins")).expect("a folder");
        fs::create_dir_all(real.join("bundled/context_engine")).expect("a folder");
        Self { folder, real }
    }

    /// `HERMES_HOME`.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.real.join("home")
    }

    /// `HERMES_BUNDLED_PLUGINS`.
    #[must_use]
    pub fn bundled(&self) -> PathBuf {
        self.real.join("bundled")
    }

    /// A folder beside both, for what tests link to.
    #[must_use]
    pub fn outside(&self) -> &Path {
        self.folder.path()
    }

    /// Writes `config.yaml`.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn config(&self, text: &str) {
        fs::write(self.path().join("config.yaml"), text).expect("written");
    }

    /// A folder for a user plugin.
    #[must_use]
    pub fn plugin(&self, folder: &str) -> Plugin {
        Plugin::at(self.path().join("plugins").join(folder))
    }

    /// A folder for a bundled engine.
    #[must_use]
    pub fn bundled_plugin(&self, folder: &str) -> Plugin {
        Plugin::at(self.bundled().join("context_engine").join(folder))
    }

    /// The `hermes` program with this home, and nothing of the tester's own settings.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(built().hermes());
        command
            .env("HERMES_HOME", self.path())
            .env("HERMES_BUNDLED_PLUGINS", self.bundled())
            .env_remove("HERMES_HELPER")
            .env_remove("HERMES_LOG");
        command
    }

    /// Runs `hermes` with arguments.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command()
            .args(arguments)
            .output()
            .expect("hermes runs")
    }

    /// Runs `hermes … --json` and reads what it prints.
    ///
    /// # Panics
    /// It does not print exactly one JSON value.
    #[must_use]
    pub fn json(&self, arguments: &[&str]) -> (Value, i32) {
        let output = self
            .command()
            .args(arguments)
            .arg("--json")
            .output()
            .expect("hermes runs");
        let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!(
                "{arguments:?}: {error}\nstdout: {}\nstderr: {}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            )
        });
        (value, output.status.code().unwrap_or(-1))
    }
}

/// A plugin's folder under construction.
#[derive(Debug)]
pub struct Plugin {
    folder: PathBuf,
}

impl Plugin {
    fn at(folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).expect("a folder");
        Self { folder }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Writes `plugin.yaml`.
    ///
    /// # Panics
    /// It cannot be written.
    #[must_use]
    pub fn manifest(self, text: &str) -> Self {
        self.file("plugin.yaml", text)
    }

    /// Writes any file.
    ///
    /// # Panics
    /// It cannot be written.
    #[must_use]
    pub fn file(self, name: &str, contents: impl AsRef<[u8]>) -> Self {
        fs::write(self.folder.join(name), contents).expect("written");
        self
    }

    /// Copies a library to `name`.
    ///
    /// # Panics
    /// It cannot be copied.
    #[must_use]
    pub fn library(self, name: &str, from: &Path) -> Self {
        fs::copy(from, self.folder.join(name)).expect("copied");
        self
    }
}
