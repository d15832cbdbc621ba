//! Programs and libraries of this workspace, built on the way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// Everything that the workspace builds, by name.
#[derive(Debug)]
pub struct Built {
    programs: BTreeMap<String, PathBuf>,
    libraries: BTreeMap<String, PathBuf>,
}

impl Built {
    /// A program, such as `hermes`.
    ///
    /// # Panics
    /// The workspace has none of that name.
    #[must_use]
    pub fn program(&self, name: &str) -> &Path {
        match self.programs.get(name) {
            Some(path) => path,
            None => panic!("no program {name}; there are {:?}", self.programs.keys()),
        }
    }

    /// The `hermes` program.
    #[must_use]
    pub fn hermes(&self) -> &Path {
        self.program("hermes")
    }

    /// A library that engines are shipped in, by its crate's target name, such as `window`.
    ///
    /// # Panics
    /// The workspace has none of that name.
    #[must_use]
    pub fn library(&self, name: &str) -> &Path {
        match self.libraries.get(name) {
            Some(path) => path,
            None => panic!("no library {name}; there are {:?}", self.libraries.keys()),
        }
    }
}

/// `cargo test` builds neither programs nor shared libraries of other crates. This does, once in a test process, and
/// takes every path from what cargo says.
///
/// # Panics
/// The workspace does not build.
pub fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        // What cargo tells this process about the package it belongs to. A build script that looks at it (ring's does)
        // would be run again, with everything above it, here and at the next `cargo test`.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_of_a_package) {
                cargo.env_remove(name);
            }
        }
        let output = cargo
            .args(["build", "--workspace", "--message-format=json", "--quiet"])
            .current_dir(crate::workspace())
            .stderr(Stdio::inherit())
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "the workspace does not build");
        parse(&String::from_utf8_lossy(&output.stdout))
    })
}

fn is_of_a_package(variable: &str) -> bool {
    let ones = ["CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"];
    let families = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CFG_"];
    ones.contains(&variable) || families.iter().any(|start| variable.starts_with(start))
}

fn parse(messages: &str) -> Built {
    let mut built = Built {
        programs: BTreeMap::new(),
        libraries: BTreeMap::new(),
    };
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if message["reason"] != "compiler-artifact" {
            continue;
        }
        let Some(name) = message["target"]["name"].as_str() else {
            continue;
        };
        if let Some(program) = message["executable"].as_str() {
            built.programs.insert(name.to_owned(), program.into());
        }
        let is_shared = message["target"]["crate_types"]
            .as_array()
            .is_some_and(|types| types.iter().any(|kind| kind == "cdylib"));
        let file = message["filenames"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .find(|file| file.ends_with(std::env::consts::DLL_SUFFIX));
        if let (true, Some(file)) = (is_shared, file) {
            built.libraries.insert(name.to_owned(), file.into());
        }
    }
    built
}
