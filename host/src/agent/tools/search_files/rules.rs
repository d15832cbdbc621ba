//! What `.gitignore` files say.
//!
//! The rules are the `ignore` crate's; the files are read here, because they lie in the same directory as all else: a
//! FIFO or a gigabyte named `.gitignore` must not stop a search.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::super::confine::{Directory, Opened};

const NAME: &str = ".gitignore";

/// A file of rules is read up to here.
const LONGEST: u64 = 1 << 20;

/// Data of version control, which nobody means when searching a directory.
const VERSION_CONTROL: [&str; 5] = [".git", ".hg", ".jj", ".svn", ".bzr"];

/// The rules that hold in one directory: its own, and those of the directories above.
#[derive(Clone, Default)]
pub(super) struct Rules(Option<Arc<Level>>);

struct Level {
    own: Gitignore,
    above: Rules,
}

impl Rules {
    /// The rules of the directories above the working directory, up to the root of its repository.
    pub(super) fn above(working: &Path) -> Self {
        let mut repository: Vec<&Path> = Vec::new();
        for directory in working.ancestors() {
            repository.push(directory);
            if directory.join(".git").symlink_metadata().is_ok() {
                return repository
                    .iter()
                    .skip(1)
                    .rev()
                    .fold(Self::default(), |rules, above| {
                        match Directory::root(above) {
                            Ok(open) => rules.inside(&open, above),
                            Err(_) => rules,
                        }
                    });
            }
        }
        Self::default()
    }

    /// The rules inside a directory, whose absolute path is given too.
    pub(super) fn inside(self, directory: &Directory, path: &Path) -> Self {
        let Ok(Opened::File(file, _)) = directory.open(OsStr::new(NAME)) else {
            return self;
        };
        let mut bytes = Vec::new();
        if file.take(LONGEST).read_to_end(&mut bytes).is_err() {
            return self;
        }
        let mut builder = GitignoreBuilder::new(path);
        for line in String::from_utf8_lossy(&bytes).lines() {
            // A line that is no glob ignores nothing, as in git.
            let _ = builder.add_line(None, line.trim_start_matches('\u{feff}'));
        }
        match builder.build() {
            Ok(own) if !own.is_empty() => Self(Some(Arc::new(Level { own, above: self }))),
            _ => self,
        }
    }

    /// Whether something is left out, by its absolute path. The rule nearest to it decides.
    pub(super) fn leave_out(&self, path: &Path, is_directory: bool) -> bool {
        let name = path.file_name().unwrap_or_default();
        if VERSION_CONTROL.iter().any(|data| name == *data) {
            return true;
        }
        let mut rules = self;
        while let Some(level) = &rules.0 {
            match level.own.matched(path, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => rules = &level.above,
            }
        }
        false
    }
}
