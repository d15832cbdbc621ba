//! Making messages searchable, after they were written.
//!
//! A turn's commit does not wait for the index: its rows carry `fts_pending`, and are indexed in batches
//! later. A row is first taken out and then put in, so indexing one twice does no harm.

mod words;

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, Transaction};

use super::Store;
use super::connection::{classify, write};
use super::error::StoreError;
use super::options::StoreOptions;
use super::schema::FTS_TABLES;

pub(crate) use words::{bigram_query, bigrams, has_cjk, indexed_text, unspaced};

/// Rows a transaction: some ten milliseconds of write lock.
const BATCH: i64 = 256;

/// How far the index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CatchUp {
    /// Messages that were indexed.
    pub indexed: u64,
    /// Messages that still are not.
    pub pending: u64,
}

impl Store {
    /// Indexes messages that are not searchable yet, until none is left or `budget` is used up. To be called
    /// when a turn is over.
    ///
    /// # Errors
    /// When the file cannot be written. The messages themselves are safe.
    pub fn catch_up(&self, budget: Duration) -> Result<CatchUp, StoreError> {
        catch_up(
            &mut *self.writer("index messages for search")?,
            &self.path,
            &self.options,
            budget,
        )
    }
}

/// Creates the tables where they are missing.
pub(crate) fn create_tables(tx: &Transaction<'_>, path: &Path) -> Result<(), StoreError> {
    for (_, statement) in FTS_TABLES {
        tx.execute_batch(statement)
            .map_err(|e| classify(path, "create the search index", e))?;
    }
    Ok(())
}

/// How many messages are not indexed yet.
pub(crate) fn pending(conn: &Connection) -> rusqlite::Result<u64> {
    let count: i64 = conn
        .prepare_cached("SELECT count(*) FROM messages INDEXED BY idx_messages_fts_pending WHERE fts_pending IS NOT NULL")?
        .query_row([], |r| r.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Indexes what is pending, in batches.
pub(crate) fn catch_up(
    conn: &mut Connection,
    path: &Path,
    options: &StoreOptions,
    budget: Duration,
) -> Result<CatchUp, StoreError> {
    const DOING: &str = "index messages for search";
    let failed = |e| classify(path, DOING, e);
    let start = Instant::now();
    let mut done = CatchUp::default();
    while pending_exists(conn).map_err(failed)? {
        if budget.is_zero() || (done.indexed > 0 && start.elapsed() >= budget) {
            done.pending = pending(conn).map_err(failed)?;
            break;
        }
        done.indexed += write(conn, path, options, DOING, |tx| batch(tx).map_err(failed))?;
    }
    Ok(done)
}

fn pending_exists(conn: &Connection) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT 1 FROM messages INDEXED BY idx_messages_fts_pending WHERE fts_pending IS NOT NULL LIMIT 1")?
        .query_row([], |_| Ok(()))
        .optional()
        .map(|found| found.is_some())
}

struct Pending {
    id: i64,
    kind: i64,
    content: String,
    tool_name: String,
    tool_calls: String,
}

fn batch(tx: &Transaction<'_>) -> rusqlite::Result<u64> {
    let rows: Vec<Pending> = tx
        .prepare_cached(
            "SELECT id, fts_pending, COALESCE(content, ''), COALESCE(tool_name, ''), COALESCE(tool_calls, '')
             FROM messages INDEXED BY idx_messages_fts_pending WHERE fts_pending IS NOT NULL ORDER BY id LIMIT ?1",
        )?
        .query_map([BATCH], |r| {
            let text = |at: usize| -> rusqlite::Result<String> {
                Ok(String::from_utf8_lossy(r.get_ref(at)?.as_bytes().unwrap_or_default()).into_owned())
            };
            Ok(Pending { id: r.get(0)?, kind: r.get(1)?, content: text(2)?, tool_name: text(3)?, tool_calls: text(4)? })
        })?
        .collect::<Result<_, _>>()?;
    for row in &rows {
        index(tx, row)?;
    }
    Ok(rows.len().try_into().unwrap_or(u64::MAX))
}

/// Puts one row into the index anew.
fn index(tx: &Transaction<'_>, row: &Pending) -> rusqlite::Result<()> {
    let text = indexed_text(&row.content, &row.tool_name, &row.tool_calls);
    // A row of another program (2) was indexed by the triggers, with the columns as they are.
    let there = row.kind == 2
        && text == [row.content.as_str(), &row.tool_name, &row.tool_calls].join(" ")
        && tx
            .prepare_cached("SELECT 1 FROM messages_fts WHERE rowid = ?1")?
            .exists([row.id])?;
    if !there {
        for (delete, insert) in [
            (
                "DELETE FROM messages_fts WHERE rowid = ?1",
                "INSERT INTO messages_fts(rowid, content) VALUES (?1, ?2)",
            ),
            (
                "DELETE FROM messages_fts_trigram WHERE rowid = ?1",
                "INSERT INTO messages_fts_trigram(rowid, content) VALUES (?1, ?2)",
            ),
        ] {
            tx.prepare_cached(delete)?.execute([row.id])?;
            tx.prepare_cached(insert)?
                .execute(rusqlite::params![row.id, text])?;
        }
    }
    tx.prepare_cached("DELETE FROM messages_fts_bigram WHERE rowid = ?1")?
        .execute([row.id])?;
    if has_cjk(&text) {
        tx.prepare_cached("INSERT INTO messages_fts_bigram(rowid, content) VALUES (?1, ?2)")?
            .execute(rusqlite::params![row.id, bigrams(&text)])?;
    }
    tx.prepare_cached("UPDATE messages SET fts_pending = NULL WHERE id = ?1")?
        .execute([row.id])?;
    Ok(())
}
