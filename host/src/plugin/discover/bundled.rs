//! Where the engines lie that come with the program.

use std::env;
use std::path::{Path, PathBuf};

/// The folder whose children are bundled engines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BundledRoot {
    /// The folder; `None` if there is none.
    pub folder: Option<PathBuf>,
    /// In a source tree: the folder into which the compiler puts the libraries.
    pub build: Option<PathBuf>,
}

impl BundledRoot {
    /// A folder that somebody named: engines lie in its `context_engine`, or in itself if it has none.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        let engines = folder.join("context_engine");
        Self {
            folder: Some(if engines.is_dir() {
                engines
            } else {
                folder.to_owned()
            }),
            build: None,
        }
    }

    /// `HERMES_BUNDLED_PLUGINS`, else `plugins` beside the program, else the source tree when the program runs from a
    /// `target` folder below it.
    #[must_use]
    pub fn find() -> Self {
        let named = env::var_os("HERMES_BUNDLED_PLUGINS").filter(|value| !value.is_empty());
        if let Some(folder) = named {
            return Self::at(Path::new(&folder));
        }
        match env::current_exe().and_then(|program| program.canonicalize()) {
            Ok(program) => Self::for_program(&program),
            Err(_) => Self::default(),
        }
    }

    fn for_program(program: &Path) -> Self {
        let Some(beside) = program_folder(program) else {
            return Self::default();
        };
        let installed = beside.join("plugins/context_engine");
        if installed.is_dir() {
            return Self::at(&beside.join("plugins"));
        }
        let target = beside.ancestors().find(|folder| folder.ends_with("target"));
        let Some(tree) = target.and_then(Path::parent) else {
            return Self::default();
        };
        let engines = tree.join("plugins/context_engine");
        if engines.is_dir() && tree.join("Cargo.toml").is_file() {
            Self {
                folder: Some(engines),
                build: Some(beside),
            }
        } else {
            Self::default()
        }
    }
}

/// The folder of a program. Tests and examples lie in a folder of their own below the one that counts.
pub(crate) fn program_folder(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    let below = ["deps", "examples"];
    if below.iter().any(|name| folder.ends_with(name)) {
        folder.parent().map(Path::to_owned)
    } else {
        Some(folder.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().expect("a folder");
        let base = root.path().canonicalize().expect("real");
        (root, base)
    }

    // contract: DISC-1
    #[test]
    fn a_source_tree_is_found_from_the_folder_of_builds() {
        let (_root, base) = tree();
        let engines = base.join("plugins/context_engine");
        std::fs::create_dir_all(&engines).expect("a folder");
        std::fs::write(base.join("Cargo.toml"), "").expect("written");
        let build = base.join("target/debug");
        for program in ["hermes", "deps/loader-0123", "examples/embed"] {
            let found = BundledRoot::for_program(&build.join(program));
            assert_eq!(found.folder.as_ref(), Some(&engines), "{program}");
            assert_eq!(found.build.as_ref(), Some(&build), "{program}");
        }
        let elsewhere = BundledRoot::for_program(&base.join("bin/hermes"));
        assert_eq!(elsewhere, BundledRoot::default());
    }

    // contract: DISC-1
    #[test]
    fn an_installed_program_has_its_plugins_beside_it() {
        let (_root, base) = tree();
        let engines = base.join("plugins/context_engine");
        std::fs::create_dir_all(&engines).expect("a folder");
        let found = BundledRoot::for_program(&base.join("hermes"));
        assert_eq!(
            found,
            BundledRoot {
                folder: Some(engines.clone()),
                build: None
            }
        );
        assert_eq!(BundledRoot::at(&engines).folder, Some(engines));
    }
}
