//! Reads a library as data. Nothing of it runs, and only the parts that say something are read.

mod elf;
mod error;
mod foreign;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use object::read::{ReadCache, ReadRef};

pub use error::InspectError;

/// What a library file says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// It exports the entry of a directory engine.
    pub has_entry: bool,
    /// It exports the entry of a general plugin.
    pub has_register: bool,
    /// It exports an entry of another major version of the border.
    pub other_major: Option<String>,
    /// An entry is exported, but as data.
    pub entry_is_data: Option<&'static str>,
    /// It exports the layout of the border (Rust libraries).
    pub has_layout: bool,
    /// The engine's name, as data.
    pub engine_name: Option<String>,
    /// What is wrong with the name that is there as data.
    pub bad_engine_name: Option<(String, &'static str)>,
    /// Libraries that it needs, by file name.
    pub needed: Vec<String>,
    /// It was built so that a panic ends the process.
    pub built_to_abort: bool,
    /// The newest C library that it asks for, where that is newer than this machine's.
    pub newer_c_library: Option<NewerC>,
}

/// A demand for a C library that is newer than the one in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewerC {
    /// As in `GLIBC_2.99`.
    pub needs: String,
    /// The version in use.
    pub have: String,
}

impl Facts {
    /// Reads a library of this platform.
    ///
    /// # Errors
    /// It is not one, or not for this machine.
    pub fn read(library: &Path) -> Result<Self, InspectError> {
        let (file, length) = open_regular(library)?;
        let mut parts = Parts {
            file,
            length,
            at: 0,
            head: Vec::new(),
        };
        let wanted = usize::try_from(length.min(WHOLE_BYTES)).unwrap_or(64);
        let mut head = vec![0; wanted];
        parts
            .read_exact(&mut head)
            .map_err(|error| InspectError::unreadable(&error))?;
        // A small library costs one read; of a large one only the parts that matter are read.
        if length <= WHOLE_BYTES {
            return Self::of_bytes(&head);
        }
        foreign::check_format(&head)?;
        parts.head = head;
        Self::of(&ReadCache::new(parts))
    }

    /// Reads a library that is in memory already.
    ///
    /// # Errors
    /// As [`Facts::read`].
    pub fn of_bytes(library: &[u8]) -> Result<Self, InspectError> {
        if library.is_empty() {
            return Err(InspectError::NotALibrary {
                what: "an empty file",
            });
        }
        foreign::check_format(&library[..library.len().min(64)])?;
        Self::of(library)
    }

    fn of<'a, R: ReadRef<'a>>(data: R) -> Result<Self, InspectError> {
        if cfg!(any(target_os = "macos", windows)) {
            foreign::read(data)
        } else {
            elf::read(data)
        }
    }

    /// Whether a host can use it: it exports an entry, and this machine has what it asks for.
    ///
    /// # Errors
    /// Says what it lacks.
    pub fn check(&self) -> Result<(), InspectError> {
        if let Some(symbol) = self.entry_is_data {
            return Err(InspectError::EntryIsData { symbol });
        }
        if !self.has_entry && !self.has_register {
            return Err(InspectError::NoEntry {
                other: self.other_major.clone(),
            });
        }
        if let Some((name, problem)) = &self.bad_engine_name {
            return Err(InspectError::BadEngineName {
                name: name.clone(),
                problem,
            });
        }
        match &self.newer_c_library {
            Some(newer) => Err(InspectError::NewerC(newer.clone())),
            None => Ok(()),
        }
    }

    /// Notes what an exported symbol says. `data` is for symbols that are no functions.
    fn note_export(&mut self, name: &[u8], is_data: bool) {
        use hermes_engine_abi as abi;
        for (symbol, exported) in [
            (abi::ENTRY_SYMBOL, &mut self.has_entry),
            (abi::REGISTER_SYMBOL, &mut self.has_register),
        ] {
            if name == symbol.as_bytes() {
                if is_data {
                    self.entry_is_data = Some(symbol);
                } else {
                    *exported = true;
                }
                return;
            }
        }
        if name == abi::LAYOUT_SYMBOL.as_bytes() {
            self.has_layout = true;
        } else if let Some(version) = name.strip_prefix(b"hermes_context_engine_v")
            && !version.is_empty()
            && version.iter().all(u8::is_ascii_digit)
        {
            self.other_major = Some(String::from_utf8_lossy(version).into_owned());
        }
    }

    /// Takes the engine's name from its bytes, which end at a NUL.
    fn note_name(&mut self, bytes: &[u8]) {
        let end = bytes.iter().position(|b| *b == 0);
        let shown = String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned();
        let problem = match end {
            None => Err("does not end with a NUL"),
            Some(_) if shown.contains('\u{fffd}') => Err("is not UTF-8"),
            Some(_) => crate::plugin::name::check(&shown),
        };
        match problem {
            Ok(()) => self.engine_name = Some(shown),
            Err(problem) => {
                self.bad_engine_name = Some((shown.escape_debug().to_string(), problem))
            }
        }
    }
}

/// Longest engine name as data, its NUL included.
const NAME_BYTES: u64 = 256;

/// Libraries up to this size are read as a whole.
const WHOLE_BYTES: u64 = 32 * 1024;

/// Opens a file that is one, without waiting for the other end of a pipe.
fn open_regular(path: &Path) -> Result<(File, u64), InspectError> {
    let metadata = std::fs::metadata(path).map_err(|error| InspectError::unreadable(&error))?;
    if metadata.is_dir() {
        return Err(InspectError::NotALibrary { what: "a folder" });
    }
    if !metadata.is_file() {
        return Err(InspectError::NotALibrary {
            what: "a pipe or a device",
        });
    }
    if metadata.len() == 0 {
        return Err(InspectError::NotALibrary {
            what: "an empty file",
        });
    }
    let file = File::open(path).map_err(|error| InspectError::unreadable(&error))?;
    Ok((file, metadata.len()))
}

/// A file that is read here and there: going somewhere else in it costs nothing until something is read.
struct Parts {
    file: File,
    length: u64,
    at: u64,
    /// What the file begins with: most of what is looked at lies there, and was read already.
    head: Vec<u8>,
}

impl Read for Parts {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let known = usize::try_from(self.at)
            .ok()
            .and_then(|at| self.head.get(at..at.checked_add(buffer.len())?));
        if let Some(known) = known {
            buffer.copy_from_slice(known);
            self.at = self.at.saturating_add(buffer.len() as u64);
            return Ok(buffer.len());
        }
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(&self.file, buffer, self.at)?;
        #[cfg(not(unix))]
        let read = {
            self.file.seek(SeekFrom::Start(self.at))?;
            self.file.read(buffer)?
        };
        self.at = self.at.saturating_add(read as u64);
        Ok(read)
    }
}

impl Seek for Parts {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
