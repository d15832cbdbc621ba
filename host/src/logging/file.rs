//! One log file that several processes may append to, and its rotation.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

/// A file is moved aside once it is this long.
const ROTATE_AT: u64 = 5 * 1024 * 1024;
/// `hermes.log.1` … `hermes.log.3` are kept.
const KEPT: u32 = 3;

/// The log file, opened on first use.
#[derive(Clone)]
pub(super) struct LogFile {
    shared: Arc<Mutex<State>>,
}

struct State {
    path: PathBuf,
    open: Option<(File, u64)>,
}

impl LogFile {
    pub(super) fn new(path: PathBuf) -> Self {
        LogFile {
            shared: Arc::new(Mutex::new(State { path, open: None })),
        }
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = Record;

    fn make_writer(&'a self) -> Record {
        Record {
            file: self.clone(),
            text: Vec::new(),
        }
    }
}

/// One record: collected whole, so that it is redacted whole and appended by one write.
pub(super) struct Record {
    file: LogFile,
    text: Vec<u8>,
}

impl Write for Record {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.text);
        let text = hermes_message::redact::redact(&text);
        let mut state = self
            .file
            .shared
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written must not stop the program.
        let _ = state.append(text.as_bytes());
    }
}

impl State {
    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        let (file, length) = match &mut self.open {
            Some(open) => open,
            None => self.open.insert(open(&self.path)?),
        };
        file.write_all(record)?;
        *length += u64::try_from(record.len()).unwrap_or(u64::MAX);
        if *length > ROTATE_AT {
            self.open = None;
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    if fs::metadata(path).is_ok_and(|about| about.len() > ROTATE_AT) {
        rotate(path);
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let file = options.open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// Moves `x.log` to `x.log.1`, `x.log.1` to `x.log.2`, …; the oldest goes. Two processes that rotate at once can
/// lose one old file between them, never the one being written.
fn rotate(path: &Path) {
    let numbered = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{n}"));
        PathBuf::from(name)
    };
    for n in (1..KEPT).rev() {
        let _ = fs::rename(numbered(n), numbered(n + 1));
    }
    let _ = fs::rename(path, numbered(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_reach_the_file() {
        let folder = tempfile::tempdir().expect("temp folder");
        let path = folder.path().join("hermes.log");
        let log = LogFile::new(path.clone());
        let line = b"request with Authorization: Bearer abcdef0123456789abcdef0123456789\n";
        log.make_writer().write_all(line).expect("memory");
        let written = fs::read_to_string(&path).expect("log");
        assert!(
            written.contains("request with") && !written.contains("abcdef01"),
            "{written}"
        );
    }

    #[test]
    fn the_file_appears_with_the_first_record_and_is_rotated_by_size() {
        let folder = tempfile::tempdir().expect("temp folder");
        let path = folder.path().join("logs").join("hermes.log");
        let log = LogFile::new(path.clone());
        assert!(!path.exists(), "nothing was logged yet");
        let write = |bytes: &[u8]| log.make_writer().write_all(bytes).expect("memory");
        write(b"first\n");
        assert_eq!(fs::read(&path).expect("log"), b"first\n");

        write(&vec![b'x'; usize::try_from(ROTATE_AT).expect("small")]);
        write(b"after\n");
        assert_eq!(fs::read(&path).expect("log"), b"after\n");
        let moved = folder.path().join("logs").join("hermes.log.1");
        assert!(fs::metadata(moved).expect("moved aside").len() > ROTATE_AT);
    }
}
