//! Directories by descriptor: no name is looked up twice.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, open, openat, statat};

use super::{Entries, Entry, Kind, Opened};

/// An open directory.
pub(crate) struct Directory(OwnedFd);

/// No link is followed, nothing waits, nothing becomes a controlling terminal.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

impl Directory {
    /// A directory by its canonical path.
    pub(crate) fn root(path: &Path) -> io::Result<Self> {
        Ok(Self(open(path, FLAGS | OFlags::DIRECTORY, Mode::empty())?))
    }

    /// A directory in this one.
    pub(crate) fn enter(&self, name: &OsStr) -> io::Result<Self> {
        Ok(Self(openat(
            &self.0,
            name,
            FLAGS | OFlags::DIRECTORY,
            Mode::empty(),
        )?))
    }

    /// Whatever has this name here. What it is, is asked before it is opened, and again of what was opened.
    pub(crate) fn open(&self, name: &OsStr) -> io::Result<Opened> {
        let before = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match kind(FileType::from_raw_mode(before.st_mode)) {
            Kind::Directory => Ok(Opened::Directory(self.enter(name)?)),
            Kind::Special(what) => Ok(Opened::Special(what)),
            // Opening a link says that it is one.
            Kind::File | Kind::Link => {
                let file = openat(&self.0, name, FLAGS, Mode::empty())?;
                let after = fstat(&file)?;
                match kind(FileType::from_raw_mode(after.st_mode)) {
                    Kind::Special(what) => Ok(Opened::Special(what)),
                    Kind::Directory => Ok(Opened::Directory(Self(file))),
                    Kind::File | Kind::Link => Ok(Opened::File(
                        File::from(file),
                        u64::try_from(after.st_size).unwrap_or(0),
                    )),
                }
            }
        }
    }

    /// What is in it, at most so many, sorted by name.
    pub(crate) fn entries(&self, most: usize) -> io::Result<Entries> {
        let mut found = Entries::default();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if found.list.len() == most {
                found.more = true;
                break;
            }
            let kind = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(about) => kind(FileType::from_raw_mode(about.st_mode)),
                    Err(_) => continue,
                },
                known => kind(known),
            };
            let name = name.to_owned();
            found.list.push(Entry { name, kind });
        }
        found.list.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }
}

fn kind(file_type: FileType) -> Kind {
    match file_type {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        FileType::Fifo => Kind::Special("a FIFO"),
        FileType::Socket => Kind::Special("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Kind::Special("a device"),
        FileType::Unknown => Kind::Special("of an unknown kind"),
    }
}
