//! The C and C++ compilers, with every warning an error.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// `tests/abi`: C sources, the golden file, the frozen headers.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("abi")
}

/// `plugin-api`: the headers and the examples.
pub(crate) fn plugin_api() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin-api")
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// One run of a compiler in a folder of its own.
pub(crate) struct Compiler {
    folder: TempDir,
    cpp: bool,
    arguments: Vec<OsString>,
}

impl Compiler {
    /// For a standard such as `c99` or `c++11`, with the current headers.
    pub(crate) fn new(standard: &str) -> Self {
        Self::with_headers(standard, &plugin_api().join("include"))
    }

    pub(crate) fn with_headers(standard: &str, headers: &Path) -> Self {
        let mut include = OsString::from("-I");
        include.push(headers);
        let fixed = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fPIC"];
        let mut arguments: Vec<OsString> = fixed.iter().map(OsString::from).collect();
        arguments.extend([format!("-std={standard}").into(), include]);
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            cpp: standard.contains("++"),
            arguments,
        }
    }

    pub(crate) fn file(mut self, path: PathBuf) -> Self {
        self.arguments.push(path.into());
        self
    }

    pub(crate) fn flag(mut self, flag: &str) -> Self {
        self.arguments.push(flag.into());
        self
    }

    pub(crate) fn text(self, text: &str) -> Self {
        let name = if self.cpp { "text.cpp" } else { "text.c" };
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("a source file");
        self.file(path)
    }

    /// Compiles, or says what the compiler said.
    pub(crate) fn build(self) -> Result<Built, String> {
        let (variable, usual) = if self.cpp {
            ("CXX", "c++")
        } else {
            ("CC", "cc")
        };
        let program = std::env::var_os(variable).unwrap_or_else(|| usual.into());
        let output = self.folder.path().join("built");
        let done = Command::new(&program)
            .args(&self.arguments)
            .arg("-o")
            .arg(&output)
            .output()
            .unwrap_or_else(|e| panic!("these tests need a compiler; {program:?}: {e}"));
        if done.status.success() {
            Ok(Built {
                _folder: self.folder,
                output,
            })
        } else {
            Err(String::from_utf8_lossy(&done.stderr).into_owned())
        }
    }

    /// Compiles, or fails the test.
    pub(crate) fn built(self) -> Built {
        self.build().unwrap_or_else(|said| panic!("{said}"))
    }
}

/// What came out; gone with the value.
pub(crate) struct Built {
    _folder: TempDir,
    pub(crate) output: PathBuf,
}

impl Built {
    /// Runs it and gives what it printed.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        self.run_with(arguments, Stdio::null())
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: Stdio) -> String {
        let done = Command::new(&self.output)
            .args(arguments)
            .stdin(input)
            .output()
            .expect("the program starts");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{}: {said}", done.status);
        String::from_utf8(done.stdout).expect("UTF-8")
    }
}
