//! The engine that breaks one rule on command, in all its builds.

use std::path::{Path, PathBuf};

use hermes::config::{Config, HermesHome};
use hermes::plugin::discover::BundledRoot;
use hermes::plugin::{Catalog, ScanOptions};
use hermes_tests::{Compile, Home, built, workspace};

/// A build of the misfit engine with a name and some `-D`.
pub(crate) fn misfit(name: &str, defines: &[&str]) -> PathBuf {
    compile(name, defines).library()
}

/// The same, for builds that need more.
pub(crate) fn compile(name: &str, defines: &[&str]) -> Compile {
    let source = workspace().join("tests/misfit/misfit.c");
    let start = Compile::source(source).define(&format!("NAME=\"{name}\""));
    defines.iter().fold(start, |run, define| run.define(define))
}

/// Puts an engine into a folder of its own name.
pub(crate) fn install(home: &Home, name: &str, library: &Path) {
    let _ = home
        .plugin(name)
        .manifest(&format!("name: {name}\n"))
        .library(&format!("lib{name}.so"), library);
}

/// The catalog of a home, in this process.
pub(crate) fn catalog(home: &Home) -> Catalog {
    let at = HermesHome::at(home.path());
    Catalog::scan(ScanOptions {
        config: Config::load(&at),
        home: at,
        bundled: BundledRoot::at(&home.bundled()),
        helper: Some(built().hermes().to_owned()),
    })
}
