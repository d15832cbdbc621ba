//! Taking turns back, over compactions too.

use hermes_message::{Message, Role, flags};
use rusqlite::{OptionalExtension, Transaction, params};

use super::Store;
use super::compact::parse_ranges;
use super::error::StoreError;
use super::resume::Mark;
use super::rows::{self, StoredMessage};
use super::session;

/// What a rewind left.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Rewound {
    /// Where the conversation goes on: another session when a rotation was undone.
    pub session: String,
    /// The user message that was taken back first in order: what a person may want to edit and send again.
    pub target: Message,
    /// How many live messages went.
    pub removed: usize,
    /// How many compactions were undone on the way.
    pub passes_undone: usize,
    /// The live messages now.
    pub messages: Vec<Message>,
    /// What the caller knows now.
    pub mark: Mark,
}

/// A committed pass whose result is still in the transcript.
struct Pass {
    generation: i64,
    mode: String,
    watermark: i64,
    archived: String,
    last_row: i64,
    source: Option<String>,
}

impl Store {
    /// Takes the last `turns` user turns back, with everything behind them. The rows stay in the file,
    /// hidden.
    ///
    /// A turn from before a compaction cannot be taken out of its summary: the compaction is undone, its
    /// originals become live again, and the turn is taken back there. A summary is never taken for a turn.
    ///
    /// # Errors
    /// [`StoreError::NothingToRewind`] when there are fewer turns, [`StoreError::PassRunning`] never: a pass
    /// that runs meanwhile can no longer commit. Or when the file cannot be written.
    pub fn rewind(&self, id: &str, turns: usize) -> Result<Rewound, StoreError> {
        const DOING: &str = "take turns back";
        let failed = self.failed(DOING);
        if turns == 0 {
            return Err(StoreError::Invalid(
                "0 turns to take back: nothing to do".to_owned(),
            ));
        }
        let now = self.options.now();
        self.write(DOING, |tx| {
            session::require(tx, id, &failed)?;
            let mut session = session::tip(tx, id).map_err(&failed)?;
            let mut left = turns;
            let mut removed = 0;
            let mut passes_undone = 0;
            let target = loop {
                let live = rows::load_live(tx, &session).map_err(&failed)?;
                let pass = last_pass(tx, &session).map_err(&failed)?;
                let border = pass.as_ref().map_or(0, |pass| pass.last_row);
                let turns_here: Vec<&StoredMessage> = live
                    .iter()
                    .filter(|row| row.row_id > border && is_turn(&row.message))
                    .collect();
                if let Some(at) = turns_here.len().checked_sub(left) {
                    let target = turns_here[at];
                    removed += live
                        .iter()
                        .filter(|row| row.row_id >= target.row_id)
                        .count();
                    hide_from(tx, &session, target.row_id).map_err(&failed)?;
                    break target.message.clone();
                }
                left -= turns_here.len();
                let Some(pass) = pass else {
                    return Err(StoreError::NothingToRewind {
                        session: id.to_owned(),
                        available: turns - left,
                        asked: turns,
                    });
                };
                removed += live.iter().filter(|row| row.row_id > border).count();
                session = undo(tx, &session, &pass, now).map_err(&failed)?;
                passes_undone += 1;
            };
            let generation = session::bump(tx, &session).map_err(&failed)?;
            tx.execute(
                "UPDATE sessions SET rewind_count = COALESCE(rewind_count, 0) + 1 WHERE id = ?1",
                [&session],
            )
            .map_err(&failed)?;
            rows::recount(tx, &session).map_err(&failed)?;
            let live = rows::load_live(tx, &session).map_err(&failed)?;
            Ok(Rewound {
                session,
                target,
                removed,
                passes_undone,
                mark: Mark::of(generation, &live),
                messages: live.into_iter().map(|row| row.message).collect(),
            })
        })
    }
}

/// Whether a person said this: no summary, and nothing that the host put there.
pub(crate) fn is_turn(message: &Message) -> bool {
    message.role() == Role::User && message.flags() & (flags::SUMMARY | flags::SYNTHETIC) == 0
}

/// Hides the live rows from `first` on. They are not part of the conversation any more, unlike archived ones.
fn hide_from(tx: &Transaction<'_>, session: &str, first: i64) -> rusqlite::Result<()> {
    tx.prepare_cached("UPDATE messages SET active = 0, compacted = 0 WHERE session_id = ?1 AND active = 1 AND id >= ?2")?
        .execute(params![session, first])
        .map(|_| ())
}

fn last_pass(tx: &Transaction<'_>, session: &str) -> rusqlite::Result<Option<Pass>> {
    tx.prepare_cached(
        "SELECT generation, mode, watermark, archived, last_row, source_session_id FROM compaction_passes
         WHERE session_id = ?1 AND undone_at IS NULL ORDER BY generation DESC LIMIT 1",
    )?
    .query_row([session], |r| {
        Ok(Pass {
            generation: r.get(0)?,
            mode: r.get(1)?,
            watermark: r.get(2)?,
            archived: r.get(3)?,
            last_row: r.get(4)?,
            source: r.get(5)?,
        })
    })
    .optional()
}

/// Undoes a pass and returns the session in which its originals are live again.
fn undo(tx: &Transaction<'_>, session: &str, pass: &Pass, now: f64) -> rusqlite::Result<String> {
    hide_from(tx, session, 0)?;
    tx.prepare_cached(
        "UPDATE compaction_passes SET undone_at = ?3 WHERE session_id = ?1 AND generation = ?2",
    )?
    .execute(params![session, pass.generation, now])?;
    // An engine's work under the undone pass is void; the pass before it counts again.
    tx.prepare_cached(
        "UPDATE sessions SET last_pass_id = (SELECT previous_pass_id FROM compaction_passes
           WHERE session_id = ?1 AND generation = ?2) WHERE id = ?1",
    )?
    .execute(params![session, pass.generation])?;
    session::bump(tx, session)?;
    rows::recount(tx, session)?;
    match (pass.mode.as_str(), &pass.source) {
        ("rotation", Some(parent)) if session::get(tx, parent)?.is_some() => {
            tx.execute(
                "UPDATE sessions SET ended_at = ?2, end_reason = 'rewound' WHERE id = ?1",
                params![session, now],
            )?;
            tx.execute(
                "UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = ?1",
                [parent],
            )?;
            // What arrived during the pass was taken back in the child already.
            hide_from(tx, parent, pass.watermark + 1)?;
            Ok(parent.clone())
        }
        _ => {
            let mut back = tx.prepare_cached(
                "UPDATE messages SET active = 1, compacted = 0 WHERE session_id = ?1 AND id BETWEEN ?2 AND ?3 AND compacted = 1",
            )?;
            for (first, last) in parse_ranges(&pass.archived) {
                back.execute(params![session, first, last])?;
            }
            Ok(session.to_owned())
        }
    }
}

/// After rows were given new places: the border of the last pass moves with its rows.
pub(crate) fn move_border(
    tx: &Transaction<'_>,
    session: &str,
    moved: &[(i64, i64)],
) -> rusqlite::Result<()> {
    let Some(pass) = last_pass(tx, session)? else {
        return Ok(());
    };
    let Some(last) = moved
        .iter()
        .filter(|(old, _)| *old <= pass.last_row)
        .map(|(_, new)| *new)
        .max()
    else {
        return Ok(());
    };
    tx.prepare_cached(
        "UPDATE compaction_passes SET last_row = max(last_row, ?3) WHERE session_id = ?1 AND generation = ?2",
    )?
    .execute(params![session, pass.generation, last])
    .map(|_| ())
}
