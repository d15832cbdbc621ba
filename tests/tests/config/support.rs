//! A home folder, the program, and the real files beside the workspace.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The real files that lie beside the workspace, when they do.
pub(super) fn input(name: &str) -> Option<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/inputs")
        .join(name);
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        println!("skipped: {} is not there", path.display());
    }
    bytes
}

/// The `hermes` program, built once. `cargo test` of this package alone builds no binary of another one.
pub(super) fn hermes() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let output = Command::new(env!("CARGO"))
            .args([
                "build",
                "-p",
                "hermes",
                "--bin",
                "hermes",
                "--message-format=json",
            ])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let lines = String::from_utf8(output.stdout).expect("messages are UTF-8");
        let mut executables = lines.lines().filter_map(|line| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            message["executable"].as_str().map(PathBuf::from)
        });
        executables.next_back().expect("cargo names the program")
    })
}

/// A home folder of its own for one test.
pub(super) struct Home(tempfile::TempDir);

impl Home {
    /// A home without a configuration.
    pub(super) fn empty() -> Self {
        Self(tempfile::tempdir().expect("temporary folder"))
    }

    /// A home with this configuration.
    pub(super) fn with(content: impl AsRef<[u8]>) -> Self {
        let home = Self::empty();
        std::fs::write(home.config(), content).expect("write");
        home
    }

    pub(super) fn path(&self) -> &Path {
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
        let mut command = Command::new(hermes());
        command
            .arg("config")
            .args(args)
            .env("HERMES_HOME", self.path());
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
