//! Engines in C and C++, compiled by the machine's own compiler.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

use tempfile::TempDir;

/// One run of the compiler. Equal runs share one result in a test process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Compile {
    sources: Vec<PathBuf>,
    flags: Vec<OsString>,
}

impl Compile {
    /// A shared library from one file; `.cpp` is C++.
    #[must_use]
    pub fn source(source: impl Into<PathBuf>) -> Self {
        Self {
            sources: vec![source.into()],
            flags: Vec::new(),
        }
    }

    /// Another file of the same library.
    #[must_use]
    pub fn and(mut self, source: impl Into<PathBuf>) -> Self {
        self.sources.push(source.into());
        self
    }

    /// A `-D`, as `NAME` or `NAME=VALUE`.
    #[must_use]
    pub fn define(self, define: &str) -> Self {
        self.flag(format!("-D{define}"))
    }

    /// Any other flag. It comes after the sources, so libraries (`-l`) work.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<OsString>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// The library. It lies in a folder that only this test process uses, and is removed with it.
    ///
    /// # Panics
    /// It does not compile; what the compiler says is in the message.
    #[must_use]
    pub fn library(self) -> PathBuf {
        static DONE: LazyLock<Mutex<HashMap<Compile, PathBuf>>> = LazyLock::new(Mutex::default);
        let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = done.get(&self) {
            return path.clone();
        }
        let folder = folder();
        let output = folder.join(format!(
            "{}{}{}",
            std::env::consts::DLL_PREFIX,
            done.len(),
            std::env::consts::DLL_SUFFIX
        ));
        let is_cpp = self
            .sources
            .iter()
            .any(|source| source.extension().is_some_and(|ending| ending == "cpp"));
        let (variable, usual) = if is_cpp { ("CXX", "c++") } else { ("CC", "cc") };
        let program = std::env::var_os(variable).unwrap_or_else(|| usual.into());
        let run = Command::new(&program)
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-I"])
            .arg(crate::workspace().join("plugin-api/include"))
            .args(&self.sources)
            .args(&self.flags)
            .arg("-o")
            .arg(&output)
            .output()
            .unwrap_or_else(|error| panic!("these tests need a C compiler; {program:?}: {error}"));
        assert!(
            run.status.success(),
            "{self:?}:\n{}",
            String::from_utf8_lossy(&run.stderr)
        );
        done.insert(self, output.clone());
        output
    }
}

/// A shared library from one C or C++ file, with some `-D`.
#[must_use]
pub fn compile_c(source: impl AsRef<Path>, defines: &[&str]) -> PathBuf {
    let start = Compile::source(source.as_ref());
    defines
        .iter()
        .fold(start, |run, define| run.define(define))
        .library()
}

/// Whether this machine has a C compiler; says so if it has none.
#[must_use]
pub fn has_compiler() -> bool {
    let program = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let there = Command::new(&program).arg("--version").output().is_ok();
    if !there {
        println!("skipped: no C compiler ({program:?})");
    }
    there
}

/// Removed when the process ends well; else left to the system's own cleaning.
fn folder() -> PathBuf {
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));
    FOLDER.path().to_owned()
}
