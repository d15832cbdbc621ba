//! Files that the user names: reading conversations, writing results.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use hermes_message::format;

use super::CliError;

/// A conversation file may be this long. What is larger is no conversation, and would be held in memory whole.
const LARGEST: u64 = 256 * 1024 * 1024;

/// A file of sessions may be this long: it can hold all that a store has.
const LARGEST_SESSIONS: u64 = 4 * 1024 * 1024 * 1024;

/// Reads a file of conversations in any of the supported formats.
pub fn read_conversations(path: &Path) -> Result<format::File, CliError> {
    let bytes = read(path, LARGEST)?;
    format::read(&bytes).map_err(|error| {
        CliError::input(format!("{}: {error}", path.display())).hint(
            "a conversation is a JSON array of messages, an object with \"messages\", or JSONL of either",
        )
    })
}

/// Reads a file of sessions; `-` is the standard input.
pub fn read_sessions(path: &Path) -> Result<Vec<u8>, CliError> {
    if path != Path::new("-") {
        return read(path, LARGEST_SESSIONS);
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(LARGEST_SESSIONS + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CliError::input(format!("cannot read the standard input: {error}")))?;
    within(path, &bytes, LARGEST_SESSIONS)?;
    Ok(bytes)
}

fn read(path: &Path, largest: u64) -> Result<Vec<u8>, CliError> {
    let shown = path.display();
    let failed = |error: std::io::Error| {
        CliError::input(format!("cannot read {shown}: {error}"))
            .hint("name a file with recorded messages")
    };
    // Asked before it is opened: opening a FIFO would wait for a writer that may never come.
    let about = fs::metadata(path).map_err(failed)?;
    if !about.is_file() {
        return Err(not_a_file(path, &about).hint("write the messages to a file first"));
    }
    if about.len() > largest {
        return Err(too_large(path, about.len(), largest));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(largest + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    within(path, &bytes, largest)?;
    Ok(bytes)
}

/// Some files (of /proc, say) are longer than they say.
fn within(path: &Path, bytes: &[u8], largest: u64) -> Result<(), CliError> {
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > largest {
        return Err(too_large(path, largest + 1, largest));
    }
    Ok(())
}

fn too_large(path: &Path, length: u64, largest: u64) -> CliError {
    CliError::input(format!(
        "{} has {length} bytes; such a file may have {largest}",
        path.display()
    ))
    .hint("split it into smaller files")
}

fn not_a_file(path: &Path, about: &fs::Metadata) -> CliError {
    let kind = if about.is_dir() {
        "a directory"
    } else {
        "no regular file"
    };
    CliError::input(format!("{} is {kind}", path.display()))
}

/// A result file: nothing is visible under its name until [`NewFile::finish`], and then all of it.
pub struct NewFile {
    target: PathBuf,
    temporary: tempfile::NamedTempFile,
}

impl NewFile {
    /// Begins a file that will stand at `path`, in place of what is there.
    pub fn create(path: &Path) -> Result<Self, CliError> {
        let shown = path.display();
        // A link stays, and what it points to is replaced.
        let target = match fs::metadata(path) {
            Ok(about) if !about.is_file() => {
                return Err(not_a_file(path, &about).hint("name a file for the result"));
            }
            Ok(_) => fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
            // What a link points to need not be there yet.
            Err(_) => match fs::read_link(path) {
                Ok(to) => path.parent().unwrap_or(Path::new("")).join(to),
                Err(_) => path.to_owned(),
            },
        };
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".hermes-").suffix(".tmp");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode =
                fs::metadata(&target).map_or(0o666, |about| about.permissions().mode() & 0o777);
            builder.permissions(fs::Permissions::from_mode(mode));
        }
        let temporary = builder.tempfile_in(folder).map_err(|error| {
            CliError::new("io", format!("cannot write {shown}: {error}"))
                .hint("name a file in a folder that exists and that you may write to")
        })?;
        Ok(NewFile { target, temporary })
    }

    /// Appends to the file.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.temporary
            .write_all(bytes)
            .map_err(|error| self.failed(&error))
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> Result<(), CliError> {
        let flushed = self
            .temporary
            .flush()
            .and_then(|()| self.temporary.as_file().sync_all());
        flushed.map_err(|error| self.failed(&error))?;
        let NewFile { target, temporary } = self;
        temporary.persist(&target).map(drop).map_err(|error| {
            CliError::new(
                "io",
                format!("cannot write {}: {}", target.display(), error.error),
            )
        })
    }

    fn failed(&self, error: &std::io::Error) -> CliError {
        CliError::new(
            "io",
            format!("cannot write {}: {error}", self.target.display()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("temp folder");
        let path = folder.path().join("out.json");
        fs::write(&path, "old").expect("old file");
        let mut new = NewFile::create(&path).expect("begun");
        new.write(b"new").expect("written");
        assert_eq!(fs::read(&path).expect("read"), b"old");
        drop(new);
        assert_eq!(fs::read_dir(folder.path()).expect("listing").count(), 1);

        let mut new = NewFile::create(&path).expect("begun");
        new.write(b"new").expect("written");
        new.finish().expect("named");
        assert_eq!(fs::read(&path).expect("read"), b"new");
    }

    #[test]
    fn only_files_are_replaced() {
        let folder = tempfile::tempdir().expect("temp folder");
        assert!(NewFile::create(folder.path()).is_err());
        assert!(NewFile::create(Path::new("/dev/null")).is_err());
    }
}
