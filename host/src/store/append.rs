//! Writing a turn.

use hermes_message::{Message, Role};
use rusqlite::Connection;

use super::error::StoreError;
use super::identity::{self, Pairing};
use super::resume::Mark;
use super::rows::{self, Inserted, Stamper};
use super::{Store, session};

/// What [`Store::append`] wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Appended {
    /// The new rows, one a message.
    pub row_ids: Vec<i64>,
    /// Live rows of other writers that were found in between; `mark` remembers them as unseen.
    pub foreign: usize,
    /// The session's generation: another than the mark's says that somebody has changed older messages.
    pub generation: i64,
}

impl Store {
    /// Writes a turn's messages behind the session's others, in one transaction that is synced when this
    /// returns (with [`super::Durability::Full`]).
    ///
    /// Messages without an identity get one, tool calls and results too (`UID-1`, `UID-8`): on return
    /// `turn` holds the messages with their ids, and `mark` knows them. On an error nothing was written, and
    /// `turn` and `mark` are as they were.
    ///
    /// # Errors
    /// When there is no such session, or the file cannot be written.
    pub fn append(
        &self,
        session: &str,
        turn: &mut [Message],
        mark: &mut Mark,
    ) -> Result<Appended, StoreError> {
        const DOING: &str = "save a turn";
        let failed = self.failed(DOING);
        let now = self.options.now();
        let (written, row_ids, foreign, generation) = self.write(DOING, |tx| {
            let generation = session::require(tx, session, &failed)?.generation;
            let foreign = rows::live_ids_after(tx, session, mark.last_row).map_err(&failed)?;
            let stamped = stamp_batch(tx, session, turn).map_err(&failed)?;
            let mut stamper = Stamper::new(now);
            let (row_ids, inserted) =
                rows::insert_all(tx, session, &stamped, &mut stamper).map_err(&failed)?;
            add_counts(tx, session, inserted).map_err(&failed)?;
            Ok((stamped, row_ids, foreign, generation))
        })?;
        turn.clone_from_slice(&written);
        mark.advance(row_ids.last().copied().unwrap_or(0), &foreign);
        Ok(Appended {
            row_ids,
            foreign: foreign.len(),
            generation,
        })
    }
}

fn add_counts(tx: &Connection, session: &str, inserted: Inserted) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "UPDATE sessions SET message_count = COALESCE(message_count, 0) + ?2,
           tool_call_count = COALESCE(tool_call_count, 0) + ?3 WHERE id = ?1",
    )?
    .execute(rusqlite::params![
        session,
        inserted.messages,
        inserted.calls
    ])
    .map(|_| ())
}

/// Gives a batch its ids: new messages a uid and uids for their calls, results the uid of their call.
pub(crate) fn stamp_batch(
    tx: &Connection,
    session: &str,
    batch: &[Message],
) -> rusqlite::Result<Vec<Message>> {
    let mut pairing = Pairing::default();
    // Results at the batch's start answer calls that were written before.
    let mut asked = false;
    let mut out = Vec::with_capacity(batch.len());
    for message in batch {
        if !asked && message.role() == Role::User {
            asked = true;
        }
        if !asked
            && message.role() == Role::Tool
            && message.identity().tool_call_uid.is_none()
            && message.tool_call_id().is_some_and(|id| !pairing.knows(id))
        {
            asked = true;
            let walked = std::mem::replace(&mut pairing, rows::open_calls(tx, session)?);
            pairing.append(walked);
        }
        out.push(pairing.next(first_row(tx, session, message)?));
    }
    Ok(out)
}

/// A message about to be written: one that has no row yet is given its ids, a copy keeps what it has.
pub(crate) fn first_row(
    tx: &Connection,
    session: &str,
    message: &Message,
) -> rusqlite::Result<Message> {
    if let Some(uid) = &message.identity().uid
        && rows::row_of_uid(tx, session, uid)?.is_some()
    {
        return Ok(message.clone());
    }
    Ok(identity::stamp(message))
}
