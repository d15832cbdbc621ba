//! Keeps a tool inside the working directory.
//!
//! A path is resolved first (links are followed, and what they lead to must lie inside) and then opened one component
//! after the other without following any link. So a link that is put in the way between the two steps is refused,
//! not followed. Nothing but regular files and directories is opened at all: a FIFO would block, a device might act.

#[cfg_attr(unix, path = "confine/unix.rs")]
#[cfg_attr(not(unix), path = "confine/portable.rs")]
mod system;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::Place;
use super::error::{ToolError, shown};

pub(super) use system::Directory;

/// What stands behind a name, links not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Link,
    /// Named for people: `a FIFO`.
    Special(&'static str),
}

/// One entry of a directory.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: OsString,
    pub(super) kind: Kind,
}

/// The entries of a directory, sorted, and whether it has more than were asked for.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) list: Vec<Entry>,
    pub(super) more: bool,
}

/// What a path led to.
pub(super) enum Opened {
    File(File, u64),
    Directory(Directory),
    Special(&'static str),
}

/// Finds out where a path of the model's leads: relative to the working directory, with no link in it.
pub(super) fn resolve(place: &Place, path: &str) -> Result<PathBuf, ToolError> {
    let outside = || ToolError::Outside { path: shown(path) };
    if path.contains('\0') {
        return Err(ToolError::Pattern {
            problem: "`path` has a NUL character in it, which no file name has".to_owned(),
        });
    }
    let wanted = Path::new(path);
    // Said before the file system is asked, so that the answer tells nothing about what is outside.
    if !wanted.is_absolute() && climbs_out(wanted) {
        return Err(outside());
    }
    match place.directory.join(wanted).canonicalize() {
        Ok(real) => match real.strip_prefix(&place.directory) {
            Ok(inside) if place.keeps_back(inside) => {
                Err(ToolError::KeptBack { path: shown(path) })
            }
            Ok(inside) => Ok(inside.to_owned()),
            Err(_) => Err(outside()),
        },
        Err(_) if wanted.is_absolute() && !wanted.starts_with(&place.directory) => Err(outside()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ToolError::Missing {
            path: shown(path),
            similar: similar(place, wanted),
        }),
        Err(error) => Err(ToolError::io(path, error)),
    }
}

/// Opens what [`resolve`] found.
pub(super) fn open(place: &Place, real: &Path) -> io::Result<Opened> {
    let root = Directory::root(&place.directory)?;
    match (real.parent(), real.file_name()) {
        (Some(parent), Some(name)) => root.descend(parent)?.open(name),
        _ => Ok(Opened::Directory(root)),
    }
}

impl Directory {
    /// The directory at a relative path without links.
    pub(super) fn descend(self, path: &Path) -> io::Result<Self> {
        path.components().try_fold(self, |at, part| match part {
            Component::Normal(name) => at.enter(name),
            _ => Ok(at),
        })
    }
}

/// Whether a relative path names something above where it starts, going by its text alone.
fn climbs_out(path: &Path) -> bool {
    let mut depth = 0_usize;
    for part in path.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
}

/// Names that stand where the path's first missing part should be, and look like it.
fn similar(place: &Place, wanted: &Path) -> Vec<String> {
    const LOOKED_AT: usize = 4_000;
    let whole = place.directory.join(wanted);
    let Some((folder, missing)) = whole.ancestors().find_map(|part| {
        let folder = part.parent()?.canonicalize().ok()?;
        let inside = folder.strip_prefix(&place.directory).ok()?;
        Some((inside.to_owned(), part.file_name()?.to_owned()))
    }) else {
        return Vec::new();
    };
    let Ok(entries) = Directory::root(&place.directory)
        .and_then(|root| root.descend(&folder))
        .and_then(|at| at.entries(LOOKED_AT))
    else {
        return Vec::new();
    };
    let missing = lower(&missing);
    let mut alike: Vec<(f64, String)> = entries
        .list
        .iter()
        .filter_map(|entry| {
            let likeness = likeness(&missing, &lower(&entry.name))?;
            Some((likeness, display(&folder.join(&entry.name))))
        })
        .collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    alike.truncate(3);
    alike.into_iter().map(|(_, name)| name).collect()
}

/// How alike two names are, if they are at all: one has a typing mistake, or goes on where the other ends.
fn likeness(a: &str, b: &str) -> Option<f64> {
    let typed = strsim::normalized_damerau_levenshtein(a, b);
    let begun = strsim::jaro_winkler(a, b);
    (typed >= 0.6 || begun >= 0.85).then_some(typed.max(begun))
}

fn lower(name: &OsStr) -> String {
    name.to_string_lossy().to_lowercase()
}

/// A relative path as the model reads it; the directory itself is `.`.
pub(super) fn display(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return ".".to_owned();
    }
    path.to_string_lossy().into_owned()
}
