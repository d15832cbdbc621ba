//! Sessions from files: our own exports, Hermes's, and any list of chat messages.
//!
//! The whole file is read and checked before anything is written; then each session is one transaction.

mod foreign;
mod native;

use std::borrow::Cow;
use std::collections::HashMap;

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
        let mended = native_text(bytes);
        let candidates = in_order(read(mended.as_deref().map_or(bytes, str::as_bytes))?);
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

/// The text of a file of sessions by columns, where halves of characters are replaced as at every other border: what
/// reads it would take a text with one for no text. `None` for other files, and for bytes that are no text.
fn native_text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(without_mark(bytes)).ok()?;
    native::is_native(text.as_bytes()).then(|| hermes_message::replace_lone_surrogates(text))
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// The sessions of a file, all of them usable.
fn read(bytes: &[u8]) -> Result<Vec<Candidate<'_>>, StoreError> {
    let content = without_mark(bytes);
    if native::is_native(content) {
        return native::read(content);
    }
    foreign::read(bytes)
}

/// Parents before their children, otherwise as in the file. In a ring of parents whichever comes last is detached.
fn in_order(candidates: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    let places: HashMap<&str, usize> = candidates
        .iter()
        .enumerate()
        .map(|(at, candidate)| (candidate.id.as_str(), at))
        .collect();
    let mut order = Vec::with_capacity(candidates.len());
    let mut seen = vec![false; candidates.len()];
    for at in 0..candidates.len() {
        let mut line = Vec::new();
        let mut next = Some(at);
        while let Some(at) = next.filter(|at| !seen[*at]) {
            seen[at] = true;
            line.push(at);
            let parent = candidates[at].parent.as_deref();
            next = parent.and_then(|parent| places.get(parent).copied());
        }
        order.extend(line.into_iter().rev());
    }
    let mut candidates: Vec<Option<Candidate<'_>>> = candidates.into_iter().map(Some).collect();
    order
        .into_iter()
        .filter_map(|at| candidates[at].take())
        .collect()
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
pub(crate) fn text_of<'a>(members: &[(Cow<'a, str>, &'a str)], key: &str) -> Option<String> {
    members
        .iter()
        .rev()
        .find(|(name, _)| name == key)
        .and_then(|(_, raw)| columns::string(raw))
        .map(Into::into)
}
