//! Exchanging a transcript for the result of a pass, in one transaction (`PASS-7`).

use hermes_message::Message;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::Store;
use super::append::first_row;
use super::error::StoreError;
use super::identity::Pairing;
use super::pass::{self, PassLock};
use super::resume::Mark;
use super::rows::{self, Inserted, Stamper};
use super::session::{self, NewSession, Session};

/// A committed pass.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Committed {
    /// Where the conversation goes on: the same session, or the child of a rotation.
    pub session: String,
    /// The whole new transcript with all its uids, what arrived during the pass at its end.
    pub messages: Vec<Message>,
    /// How many of `messages` arrived during the pass.
    pub tail: usize,
    /// How many live rows the pass replaced.
    pub archived: usize,
    /// What the caller knows now.
    pub mark: Mark,
}

impl Store {
    /// Replaces the live messages that the pass has seen by `result`, in the same session.
    ///
    /// The originals stay readable and searchable as archived rows. Rows that arrived since the pass began
    /// follow behind `result`. Messages of `result` keep the uids they have; the others get one. The pass id
    /// is written in the same transaction (`PASS-11`). The lock stays until [`Store::end_pass`].
    ///
    /// # Errors
    /// [`StoreError::PassSuperseded`] when the pass lost its lock or its ground; or when the file cannot be
    /// written. The transcript is then unchanged.
    pub fn commit_in_place(
        &self,
        lock: &PassLock,
        pass_id: &str,
        result: &[Message],
    ) -> Result<Committed, StoreError> {
        const DOING: &str = "commit a compaction";
        let failed = self.failed(DOING);
        refuse_empty(result)?;
        let now = self.options.now();
        self.write_long(DOING, |tx| {
            pass::fence(tx, lock, &failed)?;
            let session = lock.session.as_str();
            let work = || -> rusqlite::Result<Committed> {
                let (seen, tail) = lock.split(rows::live_ids(tx, session, i64::MAX)?);
                let written = write_result(tx, session, session, &seen, result, now)?;
                move_behind(tx, session, &tail)?;
                // `OR FAIL`, as every failure undoes the whole transaction: a statement that could be undone alone
                // would first have to copy each page of the session.
                tx.prepare_cached(
                    "UPDATE OR FAIL messages SET active = 0, compacted = 1
                     WHERE session_id = ?1 AND active = 1 AND id <= ?2",
                )?
                .execute(params![session, lock.watermark])?;
                let generation = session::bump(tx, session)?;
                record(
                    tx,
                    session,
                    generation,
                    pass_id,
                    "in_place",
                    lock.watermark,
                    &seen,
                    written,
                    None,
                    now,
                )?;
                finish(tx, session, pass_id, tail.len(), seen.len(), generation)
            };
            work().map_err(&failed)
        })
    }

    /// Ends the session with reason `compression` and goes on in a new child that begins with `result`.
    ///
    /// The parent's rows stay as they are. Rows that arrived since the pass began are copied into the child
    /// behind `result`, with their uids. What `new` leaves open comes from the parent.
    ///
    /// # Errors
    /// As [`Store::commit_in_place`].
    pub fn commit_rotation(
        &self,
        lock: &PassLock,
        pass_id: &str,
        new: &NewSession<'_>,
        result: &[Message],
    ) -> Result<Committed, StoreError> {
        const DOING: &str = "commit a compaction";
        let failed = self.failed(DOING);
        refuse_empty(result)?;
        let now = self.options.now();
        let child = new.id.map_or_else(|| session::new_id(now), str::to_owned);
        self.write_long(DOING, |tx| {
            let parent = pass::fence(tx, lock, &failed)?;
            if session::get(tx, &child).map_err(&failed)?.is_some() {
                return Err(StoreError::SessionExists { id: child.clone() });
            }
            let work = || -> rusqlite::Result<Committed> {
                tx.execute(
                    "UPDATE sessions SET ended_at = ?2, end_reason = 'compression' WHERE id = ?1",
                    params![parent.id, now],
                )?;
                let title = parent
                    .title
                    .as_deref()
                    .map(|title| next_title(tx, title))
                    .transpose()?;
                session::insert(tx, &child, &inherit(new, &parent, title.as_deref()), now)?;
                let (seen, tail) = lock.split(rows::live_ids(tx, &parent.id, i64::MAX)?);
                let written = write_result(tx, &parent.id, &child, &seen, result, now)?;
                let columns = rows::copied_columns(tx)?;
                for id in &tail {
                    rows::copy(tx, &columns, *id, &child)?;
                }
                session::bump(tx, &parent.id)?;
                let generation = session::bump(tx, &child)?;
                record(
                    tx,
                    &child,
                    generation,
                    pass_id,
                    "rotation",
                    lock.watermark,
                    &[],
                    written,
                    Some(&parent.id),
                    now,
                )?;
                finish(tx, &child, pass_id, tail.len(), seen.len(), generation)
            };
            work().map_err(&failed)
        })
    }
}

fn refuse_empty(result: &[Message]) -> Result<(), StoreError> {
    if result.is_empty() {
        return Err(StoreError::Invalid(
            "a pass cannot commit an empty transcript".to_owned(),
        ));
    }
    Ok(())
}

/// Writes a pass's messages as new live rows of `into`. A message that is one of `seen`, unchanged, is a
/// copy of that row with everything the row knows; a changed one keeps the row's time.
fn write_result(
    tx: &Transaction<'_>,
    from: &str,
    into: &str,
    seen: &[i64],
    result: &[Message],
    now: f64,
) -> rusqlite::Result<Inserted> {
    let columns = rows::copied_columns(tx)?;
    let mut stamper = Stamper::new(now);
    let mut pairing = Pairing::default();
    let mut inserted = Inserted::default();
    for message in result {
        let message = pairing.next(first_row(tx, from, message)?);
        let original = match &message.identity().uid {
            Some(uid) => {
                rows::row_of_uid(tx, from, uid)?.filter(|id| seen.binary_search(id).is_ok())
            }
            None => None,
        };
        let original = match original {
            Some(id) => rows::load(tx, &[id])?.pop(),
            None => None,
        };
        let (id, calls) = match original {
            Some(row) if row.message.stored() == message.stored() => {
                let id = rows::copy(tx, &columns, row.row_id, into)?;
                if row.message.identity() != message.identity() {
                    rows::reidentify(tx, id, &message)?;
                }
                (id, 0)
            }
            Some(row) => rows::insert(tx, into, &message, &mut stamper, Some(row.timestamp))?,
            None => rows::insert(tx, into, &message, &mut stamper, None)?,
        };
        inserted.count(id, calls);
    }
    Ok(inserted)
}

/// Gives rows new places behind all others: what arrived during a pass belongs after its result.
pub(crate) fn move_behind(
    tx: &Transaction<'_>,
    session: &str,
    ids: &[i64],
) -> rusqlite::Result<Vec<i64>> {
    let columns = rows::copied_columns(tx)?;
    let mut moved = Vec::with_capacity(ids.len());
    for id in ids {
        moved.push(rows::copy(tx, &columns, *id, session)?);
        rows::delete(tx, *id)?;
    }
    Ok(moved)
}

#[expect(
    clippy::too_many_arguments,
    reason = "one argument a column of the record"
)]
fn record(
    tx: &Transaction<'_>,
    session: &str,
    generation: i64,
    pass_id: &str,
    mode: &str,
    watermark: i64,
    archived: &[i64],
    written: Inserted,
    source: Option<&str>,
    now: f64,
) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO compaction_passes (session_id, generation, pass_id, mode, watermark, archived, first_row, last_row,
           source_session_id, committed_at, previous_pass_id)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, (SELECT last_pass_id FROM sessions WHERE id = ?1))",
    )?
    .execute(params![
        session,
        generation,
        pass_id,
        mode,
        watermark,
        ranges(archived),
        written.first,
        written.last,
        source,
        now
    ])?;
    tx.prepare_cached("UPDATE sessions SET last_pass_id = ?2 WHERE id = ?1")?
        .execute([session, pass_id])?;
    Ok(())
}

/// Counts, reads the new transcript back, and says what was done.
fn finish(
    tx: &Transaction<'_>,
    session: &str,
    pass_id: &str,
    tail: usize,
    archived: usize,
    generation: i64,
) -> rusqlite::Result<Committed> {
    rows::recount(tx, session)?;
    let live = rows::load_live(tx, session)?;
    tracing::info!(
        session,
        pass_id,
        archived,
        live = live.len(),
        "compaction committed"
    );
    Ok(Committed {
        session: session.to_owned(),
        mark: Mark::of(generation, &live),
        messages: live.into_iter().map(|row| row.message).collect(),
        tail,
        archived,
    })
}

/// Row ids as text: `[[1,5],[8,8]]`, first and last of each run.
pub(crate) fn ranges(ids: &[i64]) -> String {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for id in ids {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *id => *last = *id,
            _ => runs.push((*id, *id)),
        }
    }
    serde_json::to_string(&runs).unwrap_or_else(|_| "[]".to_owned())
}

/// What [`ranges`] wrote; empty for text that it did not.
pub(crate) fn parse_ranges(text: &str) -> Vec<(i64, i64)> {
    serde_json::from_str(text).unwrap_or_default()
}

fn inherit<'a>(
    new: &NewSession<'a>,
    parent: &'a Session,
    title: Option<&'a str>,
) -> NewSession<'a> {
    NewSession {
        id: new.id,
        source: if new.source.is_empty() {
            &parent.source
        } else {
            new.source
        },
        model: new.model.or(parent.model.as_deref()),
        model_config: new.model_config.or(parent.model_config.as_deref()),
        system_prompt: new.system_prompt.or(parent.system_prompt.as_deref()),
        parent: Some(&parent.id),
        cwd: new.cwd.or(parent.cwd.as_deref()),
        title: new.title.or(title),
    }
}

/// `Title #2` after `Title`, and so on; titles are unique.
pub(crate) fn next_title(conn: &Connection, title: &str) -> rusqlite::Result<String> {
    let base = match title.rsplit_once(" #") {
        Some((base, number))
            if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            base
        }
        _ => title,
    };
    let mut number = 2u64;
    loop {
        let candidate = format!("{base} #{number}");
        let taken: Option<i64> = conn
            .query_row(
                "SELECT 1 FROM sessions WHERE title = ?1",
                [&candidate],
                |r| r.get(0),
            )
            .optional()?;
        if taken.is_none() {
            return Ok(candidate);
        }
        number += 1;
    }
}
