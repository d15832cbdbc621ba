//! A home folder with a configuration, and `hermes config` in it.

use std::path::PathBuf;
use std::process::{Command, Output};

/// A home folder of its own for one test.
pub(super) struct Home(hermes_tests::Home);

impl Home {
    /// A home without a configuration.
    pub(super) fn empty() -> Self {
        Self(hermes_tests::Home::new())
    }

    /// A home with this configuration.
    pub(super) fn with(content: impl AsRef<[u8]>) -> Self {
        let home = Self::empty();
        std::fs::write(home.config(), content).expect("write");
        home
    }

    pub(super) fn path(&self) -> PathBuf {
        self.0.path()
    }

    pub(super) fn config(&self) -> PathBuf {
        self.path().join("config.yaml")
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.config()).expect("read")
    }

    /// `hermes config …` in this home.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.command();
        command.arg("config").args(args);
        command
    }

    pub(super) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().expect("the program runs"))
    }
}

/// What a command printed and how it ended.
pub(super) struct Ran {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            err: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}{}", self.out, self.err))
    }
}
