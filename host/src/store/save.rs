//! Bringing the rows in line with a list that was edited, repaired or folded.

use std::collections::HashSet;

use hermes_message::Message;
use rusqlite::{Transaction, params};

use super::append::{first_row, stamp_batch};
use super::compact::move_behind;
use super::error::StoreError;
use super::identity::{self, Pairing};
use super::resume::Mark;
use super::rows::{self, Stamper, StoredMessage};
use super::{Store, rewind, session};

/// What [`Store::save`] or [`Store::replace_messages`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// Rows that are new.
    pub inserted: usize,
    /// Rows that hold a newer version of their message now.
    pub rewritten: usize,
    /// Rows that are not live any more: their message was dropped, or folded into another.
    pub hidden: usize,
    /// What the caller knows now.
    pub mark: Mark,
}

/// How a list relates to the rows.
struct Plan {
    /// For each message of the list the row that holds it, up to the first new one.
    matched: Vec<usize>,
    /// Known rows that the list does not have.
    dropped: Vec<i64>,
    /// Whether only messages at the end are new, so that the rows can stay where they are.
    in_order: bool,
}

impl Store {
    /// Makes the live rows that `mark` knows hold `list`: a changed message is rewritten in its row under its
    /// uid (`UID-4`), new ones at the end are appended, rows that the list does not have are hidden. Saving
    /// the same list twice writes nothing. Rows that somebody else wrote since `mark` are left alone.
    ///
    /// On return `list` holds the messages with their ids; on an error it is as it was.
    ///
    /// # Errors
    /// [`StoreError::OutOfDate`] when older messages were changed since `mark`; or when the file cannot be
    /// written.
    pub fn save(&self, id: &str, list: &mut [Message], mark: &Mark) -> Result<Saved, StoreError> {
        const DOING: &str = "save a transcript";
        let failed = self.failed(DOING);
        let now = self.options.now();
        let (written, saved) = self.write(DOING, |tx| {
            current(tx, id, mark, &failed)?;
            let known = known_rows(tx, id, mark).map_err(&failed)?;
            let plan = plan(list, &known);
            let done = if plan.in_order {
                update(tx, id, list, &known, &plan, mark, now)
            } else {
                replace(tx, id, list, &known, mark, now)
            };
            done.map_err(&failed)
        })?;
        list.clone_from_slice(&written);
        Ok(saved)
    }

    /// Gives the session exactly `list` as its live messages, in new rows: for flows that rewrite a
    /// transcript. Messages keep their uids; rows that the list does not have stay in the file, hidden, and
    /// archived ones stay archived. Rows that somebody else wrote since `mark` follow behind.
    ///
    /// # Errors
    /// As [`Store::save`].
    pub fn replace_messages(
        &self,
        id: &str,
        list: &mut [Message],
        mark: &Mark,
    ) -> Result<Saved, StoreError> {
        const DOING: &str = "replace a transcript";
        let failed = self.failed(DOING);
        let now = self.options.now();
        let (written, saved) = self.write(DOING, |tx| {
            current(tx, id, mark, &failed)?;
            let known = known_rows(tx, id, mark).map_err(&failed)?;
            replace(tx, id, list, &known, mark, now).map_err(&failed)
        })?;
        list.clone_from_slice(&written);
        Ok(saved)
    }
}

fn current(
    tx: &Transaction<'_>,
    id: &str,
    mark: &Mark,
    failed: impl Fn(rusqlite::Error) -> StoreError,
) -> Result<(), StoreError> {
    if session::require(tx, id, failed)?.generation == mark.generation {
        return Ok(());
    }
    Err(StoreError::OutOfDate {
        session: id.to_owned(),
    })
}

fn known_rows(tx: &Transaction<'_>, id: &str, mark: &Mark) -> rusqlite::Result<Vec<StoredMessage>> {
    let mut ids = rows::live_ids(tx, id, mark.last_row)?;
    ids.retain(|row| mark.knows(*row));
    rows::load(tx, &ids)
}

/// Walks list and rows side by side. A message that lost its uid is known by its text at the same place.
fn plan(list: &[Message], known: &[StoredMessage]) -> Plan {
    let mut matched = Vec::with_capacity(list.len());
    let mut dropped = Vec::new();
    let mut next = 0;
    let mut new_seen = false;
    let mut in_order = true;
    for message in list {
        let found = match &message.identity().uid {
            Some(uid) => (next..known.len())
                .find(|at| known[*at].message.identity().uid.as_ref() == Some(uid)),
            None => known
                .get(next)
                .filter(|row| row.message.stored() == message.stored())
                .map(|_| next),
        };
        match found {
            Some(at) => {
                in_order &= !new_seen;
                dropped.extend(known[next..at].iter().map(|row| row.row_id));
                matched.push(at);
                next = at + 1;
            }
            None => new_seen = true,
        }
    }
    dropped.extend(known[next..].iter().map(|row| row.row_id));
    // A dropped row whose uid comes again later in the list was not dropped but moved.
    let gone: HashSet<i64> = dropped.iter().copied().collect();
    let new: HashSet<&str> = list
        .iter()
        .skip(matched.len())
        .filter_map(|message| message.identity().uid.as_deref())
        .collect();
    in_order &= !known.iter().any(|row| {
        gone.contains(&row.row_id)
            && row
                .message
                .identity()
                .uid
                .as_deref()
                .is_some_and(|uid| new.contains(uid))
    });
    Plan {
        matched,
        dropped,
        in_order,
    }
}

/// The rows stay where they are.
fn update(
    tx: &Transaction<'_>,
    id: &str,
    list: &[Message],
    known: &[StoredMessage],
    plan: &Plan,
    mark: &Mark,
    now: f64,
) -> rusqlite::Result<(Vec<Message>, Saved)> {
    let (kept, new) = list.split_at(plan.matched.len());
    let mut written = Vec::with_capacity(list.len());
    let mut rewritten = 0;
    for (message, at) in kept.iter().zip(&plan.matched) {
        let row = &known[*at];
        let message = if message.identity().uid.is_none() {
            identity::with(message, row.message.identity().clone())
        } else {
            message.clone()
        };
        if message.stored() != row.message.stored() {
            rows::rewrite(tx, row.row_id, &message)?;
            rewritten += 1;
        } else if message.identity() != row.message.identity() {
            rows::reidentify(tx, row.row_id, &message)?;
            rewritten += 1;
        }
        written.push(message);
    }
    hide(tx, &plan.dropped)?;
    let foreign = rows::live_ids_after(tx, id, mark.last_row)?;
    let mut mark = mark.clone();
    let mut stamper = Stamper::new(now);
    let stamped = stamp_batch(tx, id, new)?;
    let (ids, _) = rows::insert_all(tx, id, &stamped, &mut stamper)?;
    mark.advance(ids.last().copied().unwrap_or(0), &[]);
    written.extend(stamped);
    if !new.is_empty() {
        mark.advance(0, &foreign);
    }
    let saved = Saved {
        inserted: new.len(),
        rewritten,
        hidden: plan.dropped.len(),
        mark,
    };
    settle(tx, id, saved, written)
}

/// All rows get new places.
fn replace(
    tx: &Transaction<'_>,
    id: &str,
    list: &[Message],
    known: &[StoredMessage],
    mark: &Mark,
    now: f64,
) -> rusqlite::Result<(Vec<Message>, Saved)> {
    let foreign: Vec<i64> = rows::live_ids(tx, id, i64::MAX)?
        .into_iter()
        .filter(|row| !mark.knows(*row))
        .collect();
    let columns = rows::copied_columns(tx)?;
    let mut stamper = Stamper::new(now);
    let mut pairing = Pairing::default();
    let mut used = HashSet::new();
    let mut moved = Vec::new();
    let mut written = Vec::with_capacity(list.len());
    let mut saved = Saved {
        inserted: 0,
        rewritten: 0,
        hidden: 0,
        mark: Mark {
            generation: mark.generation,
            ..Mark::default()
        },
    };
    for message in list {
        let row = known.iter().find(|row| {
            !used.contains(&row.row_id)
                && match &message.identity().uid {
                    Some(uid) => row.message.identity().uid.as_ref() == Some(uid),
                    None => row.message.stored() == message.stored(),
                }
        });
        let message = match row {
            Some(row) if message.identity().uid.is_none() => {
                identity::with(message, row.message.identity().clone())
            }
            _ => first_row(tx, id, message)?,
        };
        let message = pairing.next(message);
        let new = match row {
            Some(row) if row.message.stored() == message.stored() => {
                let new = rows::copy(tx, &columns, row.row_id, id)?;
                if row.message.identity() != message.identity() {
                    rows::reidentify(tx, new, &message)?;
                }
                new
            }
            Some(row) => rows::insert(tx, id, &message, &mut stamper, Some(row.timestamp))?.0,
            None => rows::insert(tx, id, &message, &mut stamper, None)?.0,
        };
        saved.inserted += 1;
        if let Some(row) = row {
            used.insert(row.row_id);
            moved.push((row.row_id, new));
            if row.message.stored() == message.stored() {
                // The same message stands in its new row; nothing is lost with the old one.
                rows::delete(tx, row.row_id)?;
            } else {
                saved.rewritten += 1;
            }
        }
        saved.mark.last_row = new;
        written.push(message);
    }
    let mut rest = rows::live_ids(tx, id, mark.last_row)?;
    rest.retain(|row| mark.knows(*row));
    saved.hidden = rest.iter().filter(|row| !used.contains(row)).count();
    hide(tx, &rest)?;
    rewind::move_border(tx, id, &moved)?;
    move_behind(tx, id, &foreign)?;
    session::bump(tx, id)?;
    settle_counts(tx, id, saved, written, true)
}

/// Takes rows out of the conversation. Their text stays in the file.
fn hide(tx: &Transaction<'_>, ids: &[i64]) -> rusqlite::Result<()> {
    let mut hide =
        tx.prepare_cached("UPDATE messages SET active = 0, compacted = 0 WHERE id = ?1")?;
    for id in ids {
        hide.execute(params![id])?;
    }
    Ok(())
}

fn settle(
    tx: &Transaction<'_>,
    id: &str,
    saved: Saved,
    written: Vec<Message>,
) -> rusqlite::Result<(Vec<Message>, Saved)> {
    let older_changed = saved.rewritten > 0 || saved.hidden > 0;
    if older_changed {
        session::bump(tx, id)?;
    }
    let changed = older_changed || saved.inserted > 0;
    settle_counts(tx, id, saved, written, changed)
}

fn settle_counts(
    tx: &Transaction<'_>,
    id: &str,
    mut saved: Saved,
    written: Vec<Message>,
    changed: bool,
) -> rusqlite::Result<(Vec<Message>, Saved)> {
    if changed {
        rows::recount(tx, id)?;
        if let Some(session) = session::get(tx, id)? {
            saved.mark.generation = session.generation;
        }
    }
    Ok((written, saved))
}
