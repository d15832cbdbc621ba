//! Ids for rows from before schema 31, a bounded number at each open (`UID-11`).
//!
//! Rows are visited once in the order of their row ids, so nothing ever has to look for the ones that
//! are still without: newer rows get their id when they are inserted.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use uuid::Uuid;

use super::connection::{classify, write};
use super::error::StoreError;
use super::options::StoreOptions;
use super::upgrade::{meta, set_meta};

/// Hermes's own key: `"1"` when every row has a uid.
const FINISHED: &str = "message_uid_backfill";
/// The last row id that was visited.
const CURSOR: &str = "rust_host_backfill_cursor";
/// The last row id that has to be visited.
const END: &str = "rust_host_backfill_end";
/// Rows a transaction; a few milliseconds of write lock.
const STEP: i64 = 500;

/// How far the back-fill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backfill {
    /// Rows from before schema 31 that have not been visited yet, at most.
    pub remaining: u64,
    /// The longest time that one step held the write lock.
    pub longest_step: Duration,
}

/// Notes that a new store has nothing to fill.
pub(crate) fn mark_finished(conn: &Connection) -> rusqlite::Result<()> {
    set_meta(conn, FINISHED, "1")?;
    set_meta(conn, CURSOR, "0")?;
    set_meta(conn, END, "0")
}

/// Notes where an upgraded store's old rows end. They are also handed to the search catch-up, as they
/// were indexed without this host's words.
pub(crate) fn begin(conn: &Connection) -> rusqlite::Result<()> {
    if meta(conn, END)?.is_some() {
        return Ok(());
    }
    let end: i64 = conn.query_row("SELECT COALESCE(max(id), 0) FROM messages", [], |r| {
        r.get(0)
    })?;
    set_meta(conn, CURSOR, "0")?;
    set_meta(conn, END, &end.to_string())?;
    if end == 0 {
        set_meta(conn, FINISHED, "1")
    } else {
        Ok(())
    }
}

fn number(conn: &Connection, key: &str) -> rusqlite::Result<i64> {
    Ok(meta(conn, key)?
        .and_then(|text| text.parse().ok())
        .unwrap_or(0))
}

/// How many old rows are left.
pub(crate) fn remaining(conn: &Connection) -> rusqlite::Result<u64> {
    Ok(u64::try_from(number(conn, END)? - number(conn, CURSOR)?).unwrap_or(0))
}

/// Gives ids to old rows until `budget` is used up or all have one.
pub(crate) fn run(
    conn: &mut Connection,
    path: &Path,
    options: &StoreOptions,
    budget: Duration,
) -> Result<Backfill, StoreError> {
    const DOING: &str = "give ids to older messages";
    let failed = |e| classify(path, DOING, e);
    let start = Instant::now();
    let mut longest_step = Duration::ZERO;
    loop {
        let left = remaining(conn).map_err(failed)?;
        // However short the time, each start comes one step further.
        let over = budget.is_zero() || (longest_step > Duration::ZERO && start.elapsed() >= budget);
        if left == 0 || over {
            return Ok(Backfill {
                remaining: left,
                longest_step,
            });
        }
        let step = Instant::now();
        write(conn, path, options, DOING, |tx| {
            step_once(tx).map_err(failed)
        })?;
        longest_step = longest_step.max(step.elapsed());
    }
}

fn step_once(conn: &Connection) -> rusqlite::Result<()> {
    let (cursor, end) = (number(conn, CURSOR)?, number(conn, END)?);
    let mut rows = conn.prepare_cached(
        "SELECT id, message_uid IS NULL OR message_uid = '' FROM messages WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3",
    )?;
    let visited: Vec<(i64, bool)> = rows
        .query_map(params![cursor, end, STEP], |r| Ok((r.get(0)?, r.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut mint = conn.prepare_cached(
        "UPDATE messages SET message_uid = ?2, fts_pending = COALESCE(fts_pending, 2) WHERE id = ?1",
    )?;
    let mut index = conn.prepare_cached(
        "UPDATE messages SET fts_pending = COALESCE(fts_pending, 2) WHERE id = ?1",
    )?;
    for (id, bare) in &visited {
        if *bare {
            mint.execute(params![id, Uuid::new_v4().simple().to_string()])?;
        } else {
            index.execute([id])?;
        }
    }
    let short = visited.len() < usize::try_from(STEP).unwrap_or(usize::MAX);
    let reached = if short {
        end
    } else {
        visited.last().map_or(end, |(id, _)| *id)
    };
    set_meta(conn, CURSOR, &reached.to_string())?;
    if reached >= end {
        set_meta(conn, FINISHED, "1")?;
    }
    Ok(())
}
