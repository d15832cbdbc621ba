//! The files below a directory, in a fixed order: a directory's entries by name, then what is in its directories.
//!
//! No link is followed, so that nothing is found twice and nothing outside.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::super::Place;
use super::super::confine::{Directory, Entry, Kind};
use super::budget::{Budget, Stop};
use super::rules::Rules;

/// Entries of one directory that are looked at.
const MOST_ENTRIES: usize = 100_000;

/// One thing that was found.
pub(super) struct Found {
    /// The directory that it is in.
    pub(super) directory: Rc<Directory>,
    /// Its path, relative to the working directory.
    pub(super) path: PathBuf,
    /// What it is.
    pub(super) kind: Kind,
}

/// A walk under way.
pub(super) struct Walk<'a> {
    place: &'a Place,
    /// Directories that wait, the next one last.
    waiting: Vec<(PathBuf, Rules)>,
    current: Option<Current>,
    unreadable: u64,
}

struct Current {
    directory: Rc<Directory>,
    path: PathBuf,
    rules: Rules,
    entries: std::vec::IntoIter<Entry>,
    /// Its directories, in the order they were found.
    below: Vec<PathBuf>,
}

impl<'a> Walk<'a> {
    /// Begins at a directory, given relative to the working directory and without links.
    pub(super) fn new(place: &'a Place, start: &Path) -> Self {
        let mut rules = Rules::above(&place.directory);
        // The rules of the directories between; those of `start` itself come when it is opened.
        let mut between: Vec<&Path> = start.ancestors().skip(1).collect();
        between.reverse();
        for path in between {
            if let Ok(directory) = open(place, path) {
                rules = rules.inside(&directory, &place.directory.join(path));
            }
        }
        Self {
            place,
            waiting: vec![(start.to_owned(), rules)],
            current: None,
            unreadable: 0,
        }
    }

    /// What comes next.
    pub(super) fn next(&mut self, budget: &Budget) -> Result<Option<Found>, Stop> {
        loop {
            budget.check()?;
            let Some(current) = &mut self.current else {
                let Some((path, rules)) = self.waiting.pop() else {
                    return Ok(None);
                };
                self.enter(path, rules);
                continue;
            };
            let Some(entry) = current.entries.next() else {
                let Some(Current { rules, below, .. }) = self.current.take() else {
                    continue;
                };
                let below = below.into_iter().rev().map(|path| (path, rules.clone()));
                self.waiting.extend(below);
                continue;
            };
            let path = current.path.join(&entry.name);
            let is_directory = entry.kind == Kind::Directory;
            if self.place.keeps_back(&path)
                || current
                    .rules
                    .leave_out(&self.place.directory.join(&path), is_directory)
            {
                continue;
            }
            if is_directory {
                current.below.push(path.clone());
            }
            return Ok(Some(Found {
                directory: Rc::clone(&current.directory),
                path,
                kind: entry.kind,
            }));
        }
    }

    /// How many directories could not be read.
    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    fn enter(&mut self, path: PathBuf, rules: Rules) {
        let opened = open(self.place, &path).and_then(|directory| {
            let entries = directory.entries(MOST_ENTRIES)?;
            Ok((directory, entries))
        });
        match opened {
            Ok((directory, entries)) => {
                // What is over the limit is as unread as what may not be read.
                self.unreadable += u64::from(entries.more);
                self.current = Some(Current {
                    rules: rules.inside(&directory, &self.place.directory.join(&path)),
                    directory: Rc::new(directory),
                    path,
                    entries: entries.list.into_iter(),
                    below: Vec::new(),
                });
            }
            Err(_) => self.unreadable += 1,
        }
    }
}

fn open(place: &Place, path: &Path) -> std::io::Result<Directory> {
    Directory::root(&place.directory)?.descend(path)
}
