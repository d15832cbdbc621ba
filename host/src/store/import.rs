//! Sessions from files: our own exports, Hermes's, and any list of chat messages.
//!
//! The whole file is read and checked before anything is written; then each session is one transaction.

mod foreign;
mod native;

use rusqlite::Connection;
use serde::Serialize;

use super::error::StoreError;
use super::options::Progress;
use super::{Store, columns, session};

/// A session that was in the file and was not written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Skipped {
    /// Its id.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// The new sessions.
    pub imported: Vec<String>,
    /// How many messages they have.
    pub messages: usize,
    /// Sessions that were there already.
    pub skipped: Vec<Skipped>,
    /// New sessions whose parent is neither in the store nor in the file.
    pub detached: Vec<String>,
}

/// A session of the file, checked.
pub(crate) struct Candidate<'a> {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) body: Body<'a>,
}

pub(crate) enum Body<'a> {
    /// A line of ours, or of Hermes, by columns.
    Native(native::Line<'a>),
    /// Chat messages.
    Foreign(foreign::Dialogue),
}

impl Store {
    /// Imports every session of a file's bytes. Sessions that are there already are skipped, so importing a
    /// file twice adds nothing. Messages without an identity get one; those of our own exports keep theirs.
    ///
    /// # Errors
    /// [`StoreError::Import`] with the line when any part of the file is unusable: then nothing was written.
    /// Or when the store cannot be written; then every session is there as a whole or not at all.
    pub fn import(&self, bytes: &[u8], progress: Progress<'_>) -> Result<ImportReport, StoreError> {
        const DOING: &str = "import sessions";
        let failed = self.failed(DOING);
        let candidates = in_order(read(bytes)?);
        let total = u64::try_from(candidates.len()).unwrap_or(0);
        let mut report = ImportReport::default();
        for (done, candidate) in candidates.iter().enumerate() {
            progress("importing", u64::try_from(done).unwrap_or(0), total);
            let now = self.options.now();
            let outcome =
                self.write_long(DOING, |tx| write_one(tx, candidate, now).map_err(&failed))?;
            match outcome {
                Outcome::Written { messages, detached } => {
                    report.messages += messages;
                    report.imported.push(candidate.id.clone());
                    if detached {
                        report.detached.push(candidate.id.clone());
                    }
                }
                Outcome::Skipped(reason) => {
                    report.skipped.push(Skipped {
                        id: candidate.id.clone(),
                        reason: reason.to_owned(),
                    });
                }
            }
        }
        Ok(report)
    }
}

enum Outcome {
    Written { messages: usize, detached: bool },
    Skipped(&'static str),
}

/// The sessions of a file, all of them usable.
fn read(bytes: &[u8]) -> Result<Vec<Candidate<'_>>, StoreError> {
    let content = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if native::is_native(content) {
        return native::read(content);
    }
    foreign::read(bytes)
}

/// Parents before their children, otherwise as in the file.
fn in_order(candidates: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    let mut waiting: Vec<Candidate<'_>> = candidates;
    let mut out: Vec<Candidate<'_>> = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let before = waiting.len();
        let (ready, later): (Vec<_>, Vec<_>) = {
            let ids: std::collections::HashSet<String> =
                waiting.iter().map(|c| c.id.clone()).collect();
            waiting.into_iter().partition(|c| {
                c.parent
                    .as_ref()
                    .is_none_or(|parent| !ids.contains(parent) || *parent == c.id)
            })
        };
        out.extend(ready);
        waiting = later;
        if waiting.len() == before {
            // A ring of parents: whichever comes first is detached.
            out.append(&mut waiting);
        }
    }
    out
}

fn write_one(tx: &Connection, candidate: &Candidate<'_>, now: f64) -> rusqlite::Result<Outcome> {
    if session::get(tx, &candidate.id)?.is_some() {
        return Ok(Outcome::Skipped(match &candidate.body {
            Body::Native(line) if native::differs(tx, &candidate.id, line)? => {
                "a session with this id is there already, with other messages"
            }
            _ => "is there already",
        }));
    }
    let parent = match &candidate.parent {
        Some(parent) => session::get(tx, parent)?.map(|row| row.id),
        None => None,
    };
    let detached = candidate.parent.is_some() && parent.is_none();
    let messages = match &candidate.body {
        Body::Native(line) => native::write(tx, &candidate.id, parent.as_deref(), line, now)?,
        Body::Foreign(dialogue) => foreign::write(tx, &candidate.id, dialogue, now)?,
    };
    Ok(Outcome::Written { messages, detached })
}

/// The value of a member that is text.
pub(crate) fn text_of<'a>(
    members: &[(std::borrow::Cow<'a, str>, &'a str)],
    key: &str,
) -> Option<String> {
    members
        .iter()
        .rev()
        .find(|(name, _)| name == key)
        .and_then(|(_, raw)| columns::string(raw))
        .map(Into::into)
}
