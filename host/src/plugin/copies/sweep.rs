//! Removes copies that nobody has used for a while.
//!
//! Every build of an engine leaves a copy behind. One that is needed again is made again; the verdict on it is kept
//! elsewhere.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::hold::{age, is_at};

/// A copy that was not used for so long is removed.
const UNUSED: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// It is looked so often at most, by all processes together.
const EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// When it was last looked.
const STAMP: &str = ".swept";

/// Looks through the folder of copies, unless somebody has done so today. What cannot be removed stays.
pub(crate) fn sweep(cache: &Path) {
    let stamp = cache.join(STAMP);
    let looked = fs::symlink_metadata(&stamp).and_then(|metadata| metadata.modified());
    if looked.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < EVERY)) {
        return;
    }
    // First, so that others need not look at the same time.
    let stamped = File::create(&stamp).and_then(|file| file.set_modified(SystemTime::now()));
    let Ok(entries) = fs::read_dir(cache) else {
        return;
    };
    if let Err(error) = stamped {
        tracing::debug!(%error, "old copies of engines stay where they are");
        return;
    }
    for entry in entries.flatten() {
        let path = entry.path();
        let removed = match Kind::of(&entry.file_name()) {
            Some(Kind::Copy) => remove_copy(cache, &path),
            Some(Kind::LeftOver) => remove_left_over(&path),
            None => Ok(false),
        };
        match removed {
            Ok(true) => {
                tracing::info!(path = %path.display(), "removed an unused copy of an engine")
            }
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(%error, path = %path.display(), "an old copy of an engine stays");
            }
        }
    }
}

/// What lies in the folder, by its name. Anything else is not ours.
enum Kind {
    Copy,
    /// A draft of a process that was killed, or what was moved aside and not removed.
    LeftOver,
}

impl Kind {
    fn of(name: &OsStr) -> Option<Self> {
        let name = name.to_str()?;
        let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if is_hash(name) {
            return Some(Self::Copy);
        }
        let aside = name
            .split_once(".damaged-")
            .is_some_and(|(hash, _)| is_hash(hash));
        (aside || name.starts_with(".new-") || name.starts_with(ASIDE)).then_some(Self::LeftOver)
    }
}

const ASIDE: &str = ".old-";

fn remove_copy(cache: &Path, path: &Path) -> io::Result<bool> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return Ok(false);
    }
    let folder = File::open(path)?;
    if !is_old(&folder) || folder.try_lock().is_err() {
        return Ok(false);
    }
    // Nobody has it now, and nobody can take it before this function ends. It may have been used and given back, or
    // made anew, since it was looked at.
    if !is_old(&folder) || !is_at(&folder, path) {
        return Ok(false);
    }
    // In one step, so that nobody finds half of it.
    let aside = cache.join(format!("{ASIDE}{}", uuid::Uuid::new_v4().simple()));
    fs::rename(path, &aside)?;
    fs::remove_dir_all(&aside)?;
    Ok(true)
}

fn remove_left_over(path: &Path) -> io::Result<bool> {
    if !fs::symlink_metadata(path)?.is_dir() || !is_old(&File::open(path)?) {
        return Ok(false);
    }
    fs::remove_dir_all(path)?;
    Ok(true)
}

fn is_old(folder: &File) -> bool {
    age(folder).is_some_and(|age| age > UNUSED)
}
