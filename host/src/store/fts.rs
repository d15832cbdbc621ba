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

/// Makes the trigram entry of a row one that this SQLite can take out again.
///
/// An entry with a NUL may come from an SQLite that ended the text there. Taking it out by the whole text would
/// take out words that were never put in, which damages the index; so the entry's text is first cut to what
/// was indexed.
pub(crate) fn make_removable(tx: &Connection, id: i64) -> rusqlite::Result<()> {
    let text: Option<Vec<u8>> = tx
        .prepare_cached("SELECT CAST(content AS BLOB) FROM messages_fts_trigram WHERE rowid = ?1")?
        .query_row([id], |r| r.get(0))
        .optional()?;
    let Some(text) = text else { return Ok(()) };
    let Some(end) = text.iter().position(|byte| *byte == 0) else {
        return Ok(());
    };
    // A text of n characters has n - 2 trigrams; the index keeps count.
    let counted: Option<Vec<u8>> = tx
        .prepare_cached("SELECT sz FROM messages_fts_trigram_docsize WHERE id = ?1")?
        .query_row([id], |r| r.get(0))
        .optional()?;
    let trigrams = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes)
            .chars()
            .count()
            .saturating_sub(2)
    };
    let whole = counted.as_deref().and_then(varint) != Some(trigrams(&text[..end]));
    if !whole {
        tx.prepare_cached(
            "UPDATE messages_fts_trigram_content SET c0 = CAST(?2 AS TEXT) WHERE id = ?1",
        )?
        .execute(rusqlite::params![id, &text[..end]])?;
    }
    Ok(())
}

/// SQLite's own number format: seven bits a byte, the highest first.
fn varint(bytes: &[u8]) -> Option<usize> {
    let mut value = 0usize;
    for byte in bytes.iter().take(8) {
        value = value.checked_mul(128)? + usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// [`make_removable`] for all rows of a session, before they are deleted.
pub(crate) fn make_session_removable(tx: &Connection, session: &str) -> rusqlite::Result<()> {
    let ids: Vec<i64> = tx
        .prepare_cached(
            "SELECT id FROM messages WHERE session_id = ?1 AND instr(CAST(COALESCE(content, '') AS BLOB), x'00') > 0",
        )?
        .query_map([session], |r| r.get(0))?
        .collect::<Result<_, _>>()?;
    ids.into_iter().try_for_each(|id| make_removable(tx, id))
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
        make_removable(tx, row.id)?;
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
