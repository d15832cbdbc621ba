//! Giving a conversation back.

use hermes_message::Message;

use super::Store;
use super::error::StoreError;
use super::rows::{self, StoredMessage};
use super::session::{self, Session};

/// How much of a session a caller knows. `Mark::default()` is that of a session that was just begun.
///
/// What a caller does not know it cannot fold, drop or compact: rows of another writer stay live.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mark {
    /// The session's [`Session::generation`].
    pub generation: i64,
    /// The newest row that is known.
    pub last_row: i64,
    /// Older rows that are not known: another process wrote them in between.
    pub unseen: Vec<i64>,
}

impl Mark {
    /// The mark of somebody who has read these live rows, all there are.
    pub(crate) fn of(generation: i64, live: &[StoredMessage]) -> Self {
        Self {
            generation,
            last_row: live.last().map_or(0, |row| row.row_id),
            unseen: Vec::new(),
        }
    }

    /// Whether the caller knows this row.
    pub(crate) fn knows(&self, row: i64) -> bool {
        row <= self.last_row && !self.unseen.contains(&row)
    }

    /// Goes on to `last_row`; the live rows that were found on the way stay unknown.
    pub(crate) fn advance(&mut self, last_row: i64, foreign: &[i64]) {
        self.last_row = self.last_row.max(last_row);
        self.unseen.extend(foreign);
    }
}

/// A conversation as it was left.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Resumed {
    /// The session; after a rotation the one in which the conversation goes on. Its
    /// [`Session::last_pass_id`] is what the engine's next `on_session_start` carries (`PASS-11`).
    pub session: Session,
    /// The live messages, in order, each with its identity.
    pub messages: Vec<Message>,
    /// What the caller knows now.
    pub mark: Mark,
}

impl Store {
    /// Reads a conversation to go on with it. A session that was continued by a rotation leads to where it
    /// goes on. The cost is that of the live messages only.
    ///
    /// # Errors
    /// When there is no such session, or the file cannot be read.
    pub fn resume(&self, id: &str) -> Result<Resumed, StoreError> {
        const DOING: &str = "resume a session";
        let failed = self.failed(DOING);
        self.read(DOING, |tx| {
            session::require(tx, id, &failed)?;
            let tip = session::tip(tx, id).map_err(&failed)?;
            let session = session::require(tx, &tip, &failed)?;
            let rows = rows::load_live(tx, &tip).map_err(&failed)?;
            let mark = Mark::of(session.generation, &rows);
            Ok(Resumed {
                session,
                messages: rows.into_iter().map(|row| row.message).collect(),
                mark,
            })
        })
    }

    /// The id of the session that was used last.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn last_session(&self) -> Result<Option<String>, StoreError> {
        Ok(self.sessions(1)?.pop().map(|session| session.id))
    }

    /// The rows of exactly this session; with `archived`, also those that are not live any more.
    ///
    /// # Errors
    /// When there is no such session, or the file cannot be read.
    pub fn messages(&self, id: &str, archived: bool) -> Result<Vec<StoredMessage>, StoreError> {
        const DOING: &str = "read a session";
        let failed = self.failed(DOING);
        self.read(DOING, |tx| {
            session::require(tx, id, &failed)?;
            if archived {
                rows::all_ids(tx, id)
                    .and_then(|ids| rows::load(tx, &ids))
                    .map_err(&failed)
            } else {
                rows::load_live(tx, id).map_err(&failed)
            }
        })
    }

    /// The live rows that `mark` does not know: another process wrote them, or another part of this one.
    ///
    /// # Errors
    /// When there is no such session, or the file cannot be read.
    pub fn messages_since(&self, id: &str, mark: &Mark) -> Result<Vec<StoredMessage>, StoreError> {
        const DOING: &str = "read a session";
        let failed = self.failed(DOING);
        self.read(DOING, |tx| {
            session::require(tx, id, &failed)?;
            let mut ids = rows::live_ids(tx, id, i64::MAX).map_err(&failed)?;
            ids.retain(|row| !mark.knows(*row));
            rows::load(tx, &ids).map_err(&failed)
        })
    }
}
