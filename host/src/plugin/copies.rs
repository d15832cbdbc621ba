//! The private copy of a library that is really loaded.
//!
//! What is checked and what is loaded must be the same bytes, so a library is read once, hashed, and written to a
//! folder that only we can write to; that copy is loaded. It also means that replacing the plugin's file never
//! disturbs a running host. Libraries that the plugin brings along for itself are copied with it.

mod folder;
mod hold;
mod sweep;
pub(crate) use folder::private_folder;
pub(crate) use sweep::sweep;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::inspect::{Facts, InspectError};
use super::trust::{TrustCheck, TrustError};

/// A library larger than this is not read.
const MAX_BYTES: u64 = 1 << 30;

/// A checked copy of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateCopy {
    /// The copy of the library itself.
    pub library: PathBuf,
    /// SHA-256 of the library file, in hex: what a pin is compared with.
    pub library_sha256: String,
    /// SHA-256 over the library and those beside it; the same where there are none.
    pub sha256: String,
    /// What the bytes say about themselves.
    pub facts: Facts,
}

/// Why there is no copy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// Somebody else could change it.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The bytes are no library.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// A library that it brings along is none.
    #[error("its library {name} cannot be used: {reason}")]
    Sibling {
        /// File name.
        name: String,
        /// What is wrong with it.
        reason: InspectError,
    },
    /// It is too large.
    #[error("{path} is larger than 1 GiB")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The copy cannot be written or read.
    #[error("the private copy in {folder} cannot be {what}: {reason}")]
    Cache {
        /// Where copies lie.
        folder: PathBuf,
        /// `written` or `read`.
        what: &'static str,
        /// The system's reason.
        reason: String,
    },
}

impl CopyError {
    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Trust(error) => error.fix(),
            Self::Inspect(error) | Self::Sibling { reason: error, .. } => error.fix(),
            Self::TooLarge { .. } => "install a smaller build (strip it)".to_owned(),
            Self::Cache { folder, .. } => format!(
                "make {} a folder that you can write to, on a disk with space",
                folder.display()
            ),
        }
    }
}

/// Reads a library and makes sure that there is a private copy of it below `cache`.
///
/// `library` is a real path; `directory` is the plugin's real folder, where the libraries lie that it brings along.
///
/// # Errors
/// It is not trusted, not a library, or cannot be copied.
pub fn place(
    library: &Path,
    directory: &Path,
    cache: &Path,
    trust: &mut TrustCheck,
) -> Result<PrivateCopy, CopyError> {
    let main = Piece::read(library, trust)?;
    let facts = Facts::of_bytes(&main.bytes)?;
    let library_sha256 = main.sha256.clone();
    let name = main.name.clone();

    let mut pieces = vec![main];
    let mut wanted = facts.needed.clone();
    while let Some(needed) = wanted.pop() {
        let known = pieces.iter().any(|piece| piece.name == needed);
        if known || super::name::check(&needed).is_err() {
            continue;
        }
        let beside = [Some(directory), library.parent()];
        let found = beside
            .into_iter()
            .flatten()
            .find_map(|folder| folder.join(&needed).canonicalize().ok());
        // What does not lie there is the system's.
        let Some(path) = found else { continue };
        let mut piece = Piece::read(&path, trust)?;
        piece.name.clone_from(&needed);
        let facts = Facts::of_bytes(&piece.bytes).map_err(|reason| CopyError::Sibling {
            name: needed,
            reason,
        })?;
        wanted.extend(facts.needed);
        pieces.push(piece);
    }
    pieces[1..].sort_by(|a, b| a.name.cmp(&b.name));

    let sha256 = hash_of_all(&pieces);
    let folder = folder::ensure(cache, &sha256, &pieces, trust)?;
    Ok(PrivateCopy {
        library: folder.join(name),
        library_sha256,
        sha256,
        facts,
    })
}

/// The SHA-256 of a file, in hex.
///
/// # Errors
/// The file cannot be read.
pub fn sha256_of_file(path: &Path) -> std::io::Result<String> {
    let mut hasher = Sha256::new();
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// One file of a copy.
struct Piece {
    name: String,
    bytes: Vec<u8>,
    sha256: String,
}

impl Piece {
    /// Reads a file whose owner and mode are good, through a descriptor that follows no link.
    fn read(path: &Path, trust: &mut TrustCheck) -> Result<Self, CopyError> {
        trust.file(path)?;
        let unreadable =
            |error: std::io::Error| CopyError::Inspect(InspectError::unreadable(&error));
        let file = open_no_follow(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        // The path may have been exchanged since it was checked; the descriptor cannot be.
        trust.opened(path, &metadata)?;
        let too_large = || CopyError::TooLarge {
            path: path.to_owned(),
        };
        if metadata.len() > MAX_BYTES {
            return Err(too_large());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
        let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
        if read.map_err(unreadable)? as u64 > MAX_BYTES {
            return Err(too_large());
        }
        let name = path.file_name().unwrap_or_default();
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            sha256: hex(&Sha256::digest(&bytes)),
            bytes,
        })
    }
}

#[cfg(unix)]
fn open_no_follow(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open_no_follow(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

/// The library's own hash; with siblings, the hash of the list that `sha256sum` would print.
fn hash_of_all(pieces: &[Piece]) -> String {
    if let [only] = pieces {
        return only.sha256.clone();
    }
    let mut hasher = Sha256::new();
    for piece in pieces {
        hasher.update(format!("{}  {}\n", piece.sha256, piece.name));
    }
    hex(&hasher.finalize())
}

fn hex(digest: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(digest.len() * 2);
    for byte in digest {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
