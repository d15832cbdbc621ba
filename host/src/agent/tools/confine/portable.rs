//! Directories by path, for systems without descriptors of directories. A link put in the way between a check and an
//! opening is noticed only if it is there when the check is made.

use std::ffi::OsStr;
use std::fs::{self, File, FileType};
use std::io;
use std::path::{Path, PathBuf};

use super::{Entries, Entry, Kind, Opened};

/// A directory.
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// A directory by its canonical path.
    pub(crate) fn root(path: &Path) -> io::Result<Self> {
        if fs::symlink_metadata(path)?.is_dir() {
            Ok(Self(path.to_owned()))
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    /// A directory in this one.
    pub(crate) fn enter(&self, name: &OsStr) -> io::Result<Self> {
        Self::root(&self.0.join(name))
    }

    /// Whatever has this name here.
    pub(crate) fn open(&self, name: &OsStr) -> io::Result<Opened> {
        let path = self.0.join(name);
        let about = fs::symlink_metadata(&path)?;
        match kind(about.file_type()) {
            Kind::Directory => Ok(Opened::Directory(Self(path))),
            Kind::File => Ok(Opened::File(File::open(path)?, about.len())),
            Kind::Link => Err(io::Error::other("it is a link")),
            Kind::Special(what) => Ok(Opened::Special(what)),
        }
    }

    /// What is in it, at most so many, sorted by name.
    pub(crate) fn entries(&self, most: usize) -> io::Result<Entries> {
        let mut found = Entries::default();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if found.list.len() == most {
                found.more = true;
                break;
            }
            let kind = kind(entry.file_type()?);
            let name = entry.file_name();
            found.list.push(Entry { name, kind });
        }
        found.list.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }
}

fn kind(file_type: FileType) -> Kind {
    if file_type.is_file() {
        Kind::File
    } else if file_type.is_dir() {
        Kind::Directory
    } else if file_type.is_symlink() {
        Kind::Link
    } else {
        Kind::Special("of an unknown kind")
    }
}
