//! Remembers which third-party engine the host was inside when it ended.
//!
//! An engine that crashes takes the host along, and nobody is left to write that down. So a small file says for every
//! such library whether this process is inside one of its calls. It is made once and then written in place, which costs
//! about a microsecond a call. A file that still says "inside" when its process has gone names the culprit: that
//! library is set aside until somebody chooses it again (`hermes plugins use`) or its content changes.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::copies::private_folder;
use super::module::{EngineModule, Origin, Source};

/// The slot's name, padded, and a line feed.
const FIELD: usize = 64;

/// What stands there between calls.
const OUTSIDE: &str = "-";

/// This process's files, by path.
static OPEN: Mutex<Option<HashMap<PathBuf, Open>>> = Mutex::new(None);

struct Open {
    file: File,
    inside: usize,
}

/// The markers of one home folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Markers {
    folder: PathBuf,
}

/// A call that a process never came back from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The slot.
    pub slot: String,
    /// How long ago, for people.
    pub when: String,
    file: PathBuf,
}

/// The host is inside a call for as long as this lives.
#[derive(Debug)]
#[must_use = "dropping it says that the call has returned"]
pub struct Inside {
    path: Option<PathBuf>,
}

impl Markers {
    /// The markers below a home folder.
    #[must_use]
    pub fn new(home: &Path) -> Self {
        Self {
            folder: home.join("cache/in-call"),
        }
    }

    /// Says that a call into an engine begins. Engines that are part of the program or came with it are not marked.
    pub fn enter(&self, module: &EngineModule, slot: &str) -> Inside {
        let path = match module.origin() {
            Origin::Library(library) if library.source == Source::User => {
                self.path_of(&library.sha256)
            }
            _ => return Inside { path: None },
        };
        let entered = self.mark(&path, slot);
        if let Err(error) = &entered {
            tracing::debug!("a call into {} cannot be marked: {error}", module.name());
        }
        Inside {
            path: entered.is_ok().then_some(path),
        }
    }

    /// The call that a process did not come back from, for the library with this content.
    #[must_use]
    pub fn check(&self, sha256: &str) -> Option<Crash> {
        self.crashes()
            .into_iter()
            .find_map(|(known, crash)| (known == sha256).then_some(crash))
    }

    /// Gives the library with this content another chance.
    pub fn clear(&self, sha256: &str) {
        for (known, crash) in self.crashes() {
            if known == sha256 {
                let _ = fs::remove_file(crash.file);
            }
        }
    }

    /// All crashes, by content. Files of processes that ended well are removed on the way.
    pub(crate) fn crashes(&self) -> Vec<(String, Crash)> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let mut crashes = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some((sha256, process)) = name.to_str().and_then(|name| name.split_once('-'))
            else {
                continue;
            };
            if is_alive(process) {
                continue;
            }
            let path = entry.path();
            let text = fs::read_to_string(&path).unwrap_or_default();
            let slot = text.get(..FIELD).unwrap_or(OUTSIDE).trim();
            if slot == OUTSIDE || slot.is_empty() {
                let _ = fs::remove_file(&path);
                continue;
            }
            let written = entry.metadata().and_then(|metadata| metadata.modified());
            let crash = Crash {
                slot: slot.to_owned(),
                when: ago(written.ok()),
                file: path,
            };
            crashes.push((sha256.to_owned(), crash));
        }
        crashes
    }

    fn path_of(&self, sha256: &str) -> PathBuf {
        self.folder.join(format!("{sha256}-{}", this_process()))
    }

    fn mark(&self, path: &Path, slot: &str) -> io::Result<()> {
        let mut open = lock();
        let files = open.get_or_insert_default();
        if !files.contains_key(path) {
            private_folder(&self.folder)?;
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?;
            files.insert(path.to_owned(), Open { file, inside: 0 });
        }
        if let Some(open) = files.get_mut(path) {
            write_field(&mut open.file, slot)?;
            open.inside += 1;
        }
        Ok(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let Some(path) = &self.path else { return };
        let mut open = lock();
        if let Some(open) = open.as_mut().and_then(|files| files.get_mut(path)) {
            open.inside = open.inside.saturating_sub(1);
            if open.inside == 0 {
                let _ = write_field(&mut open.file, OUTSIDE);
            }
        }
    }
}

/// Says that this process ends by itself: an engine that is still inside a call was slow, and did not take it down.
pub fn ended_well() {
    for open in lock().iter_mut().flat_map(HashMap::values_mut) {
        let _ = write_field(&mut open.file, OUTSIDE);
    }
}

fn lock() -> MutexGuard<'static, Option<HashMap<PathBuf, Open>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_field(file: &mut File, text: &str) -> io::Result<()> {
    let mut field = [b' '; FIELD];
    let length = text.len().min(FIELD - 1);
    field[..length].copy_from_slice(&text.as_bytes()[..length]);
    field[FIELD - 1] = b'\n';
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&field)
}

/// Number and start time: numbers are used again.
fn this_process() -> String {
    let id = std::process::id();
    format!("{id}-{}", start_of(id).unwrap_or_default())
}

fn is_alive(process: &str) -> bool {
    let Some((id, start)) = process.split_once('-') else {
        return false;
    };
    let Ok(id) = id.parse::<u32>() else {
        return false;
    };
    match start_of(id) {
        Some(now) => start == now,
        None => exists(id),
    }
}

/// When a process was started, in the system's own unit.
fn start_of(id: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The second field is a name in parentheses that may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19).map(str::to_owned)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn exists(id: u32) -> bool {
    i32::try_from(id)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .is_some_and(|id| rustix::process::test_kill_process(id).is_ok())
}

#[cfg(not(all(unix, not(target_os = "linux"))))]
fn exists(_: u32) -> bool {
    false
}

fn ago(then: Option<SystemTime>) -> String {
    let passed = then.and_then(|then| SystemTime::now().duration_since(then).ok());
    let seconds = passed.as_ref().map_or(0, Duration::as_secs);
    let (number, unit) = match seconds {
        0..60 => return "a moment ago".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that ran and ended, so that its number is nobody's now.
    fn ended_process() -> String {
        let mut child = std::process::Command::new("true").spawn().expect("started");
        let name = format!(
            "{}-{}",
            child.id(),
            start_of(child.id()).unwrap_or_default()
        );
        child.wait().expect("ended");
        name
    }

    fn write(markers: &Markers, sha256: &str, process: &str, slot: &str) -> PathBuf {
        fs::create_dir_all(&markers.folder).expect("a folder");
        let path = markers.folder.join(format!("{sha256}-{process}"));
        let mut file = File::create(&path).expect("created");
        write_field(&mut file, slot).expect("written");
        path
    }

    // contract: SAFE-4
    #[cfg(target_os = "linux")]
    #[test]
    fn only_a_process_that_has_gone_inside_a_call_is_a_crash() {
        let home = tempfile::tempdir().expect("a folder");
        let markers = Markers::new(home.path());
        let gone = ended_process();
        write(&markers, "aa", &gone, "compress");
        let well = write(&markers, "bb", &gone, OUTSIDE);
        write(&markers, "cc", &this_process(), "compress");
        // The number is in use again, by a process that began at another time.
        write(
            &markers,
            "dd",
            &format!("{}-1", std::process::id()),
            "state",
        );

        assert_eq!(markers.check("aa").expect("crashed").slot, "compress");
        assert_eq!(markers.check("aa").expect("crashed").when, "a moment ago");
        assert_eq!(markers.check("bb"), None);
        assert!(!well.exists(), "left-overs are removed");
        assert_eq!(markers.check("cc"), None, "this process is alive");
        assert_eq!(markers.check("dd").expect("crashed").slot, "state");
        markers.clear("aa");
        assert_eq!(markers.check("aa"), None);
        assert!(markers.check("dd").is_some());
    }

    #[test]
    fn times_are_for_people() {
        let before = |seconds| SystemTime::now().checked_sub(Duration::from_secs(seconds));
        assert_eq!(ago(before(61)), "1 minute ago");
        assert_eq!(ago(before(7_300)), "2 hours ago");
        assert_eq!(ago(before(90_000)), "1 day ago");
        assert_eq!(ago(None), "a moment ago");
    }
}
