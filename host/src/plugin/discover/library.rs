//! Which file of a directory is the engine's library.

use std::path::{Path, PathBuf};

use crate::plugin::inspect::{Facts, InspectError};
use crate::plugin::manifest::Manifest;

/// The library that was chosen, and what it says about itself.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// Its real path, if a file was found at all.
    pub(crate) library: Option<PathBuf>,
    /// What it says, or why it is none.
    pub(crate) facts: Result<Facts, InspectError>,
}

/// Chooses the library of a directory.
///
/// `names` are the names after which a library may be called, best first; `build` is where the compiler puts
/// libraries when the directory is a part of the source tree.
pub(crate) fn choose(
    directory: &Path,
    manifest: &Manifest,
    names: &[&str],
    build: Option<&Path>,
) -> Choice {
    if let Some(library) = &manifest.library {
        let Some(file) = library.for_this_platform() else {
            return Choice::none("; plugin.yaml names one for other platforms only");
        };
        let built = build
            .map(|build| build.join(file))
            .filter(|path| path.exists());
        return Choice::of(&built.unwrap_or_else(|| directory.join(file)));
    }
    let expected = expected_names(names);
    if let Some(build) = build {
        let built = expected.iter().map(|name| build.join(name));
        if let Some(path) = built.into_iter().find(|path| path.exists()) {
            return Choice::of(&path);
        }
    }
    let files = match libraries_in(directory) {
        Ok(files) => files,
        Err(error) => {
            return Choice {
                library: None,
                facts: Err(InspectError::unreadable(&error)),
            };
        }
    };
    match files.as_slice() {
        [] => Choice::none(&match expected.first() {
            Some(name) => format!(" (such as {name})"),
            None => String::new(),
        }),
        [only] => Choice::of_file(directory, only),
        several => choose_among(directory, several, &expected),
    }
}

/// Only libraries with an entry count: the others are there for the engine.
fn choose_among(directory: &Path, files: &[File], expected: &[String]) -> Choice {
    let choices: Vec<(&String, Choice)> = files
        .iter()
        .map(|file| (&file.name, Choice::of_file(directory, file)))
        .collect();
    let named = |only_plugins: bool| {
        expected.iter().find_map(|name| {
            choices
                .iter()
                .find(|(file, choice)| *file == name && (!only_plugins || choice.is_plugin()))
        })
    };
    if let Some((_, choice)) = named(true) {
        return choice.clone();
    }
    let plugins: Vec<_> = choices
        .iter()
        .filter(|(_, choice)| choice.is_plugin())
        .collect();
    match plugins.as_slice() {
        [(_, only)] => only.clone(),
        [] => {
            let (_, choice) = named(false).unwrap_or(&choices[0]);
            choice.clone()
        }
        several => Choice {
            library: None,
            facts: Err(InspectError::Ambiguous {
                files: several.iter().map(|(file, _)| (*file).clone()).collect(),
            }),
        },
    }
}

impl Choice {
    /// A file of a real folder has a real path, unless it is a link.
    fn of_file(directory: &Path, file: &File) -> Self {
        let path = directory.join(&file.name);
        if file.is_link {
            return Self::of(&path);
        }
        Self {
            facts: Facts::read(&path),
            library: Some(path),
        }
    }

    fn of(path: &Path) -> Self {
        match path.canonicalize() {
            Ok(real) => Self {
                facts: Facts::read(&real),
                library: Some(real),
            },
            Err(error) => Self {
                library: None,
                facts: Err(unresolved(path, &error)),
            },
        }
    }

    fn none(hint: &str) -> Self {
        Self {
            library: None,
            facts: Err(InspectError::NoLibrary {
                hint: hint.to_owned(),
            }),
        }
    }

    fn is_plugin(&self) -> bool {
        self.facts.as_ref().is_ok_and(|facts| {
            facts.has_entry
                || facts.has_register
                || facts.other_major.is_some()
                || facts.entry_is_data.is_some()
        })
    }
}

fn unresolved(path: &Path, error: &std::io::Error) -> InspectError {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let reason = match std::fs::read_link(path) {
        Ok(target) => format!("{file} is a link to {}: {error}", target.display()),
        Err(_) => format!("{file}: {error}"),
    };
    InspectError::Unreadable { reason }
}

/// A file that may be a library.
struct File {
    name: String,
    is_link: bool,
}

/// Files with the platform's ending, by name. A file that is in the way is listed too, so that it can be named.
fn libraries_in(directory: &Path) -> std::io::Result<Vec<File>> {
    let ending = std::env::consts::DLL_SUFFIX;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let Ok(entry) = entry else { continue };
        if let Some(name) = entry.file_name().to_str()
            && name.ends_with(ending)
            && !name.starts_with('.')
        {
            files.push(File {
                name: name.to_owned(),
                is_link: entry.file_type().is_ok_and(|kind| kind.is_symlink()),
            });
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// `lcm` → `liblcm.so`, `lcm.so`, and both with `-` as `_`, which is how compilers name crates.
fn expected_names(names: &[&str]) -> Vec<String> {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    let mut expected = Vec::new();
    for name in names {
        for name in [(*name).to_owned(), name.replace('-', "_")] {
            for file in [
                format!("{DLL_PREFIX}{name}{DLL_SUFFIX}"),
                format!("{name}{DLL_SUFFIX}"),
            ] {
                if !expected.contains(&file) {
                    expected.push(file);
                }
            }
        }
    }
    expected
}
