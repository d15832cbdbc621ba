//! The repairs. Each leaves every message's text and every valid id as it is.

use std::path::Path;

use rusqlite::Transaction;

use crate::store::connection::classify;
use crate::store::error::StoreError;
use crate::store::schema::{FTS_TABLES, SQL_UUID4};
use crate::store::{pass, rows, upgrade};

pub(super) fn everything(tx: &Transaction<'_>, path: &Path, now: f64) -> Result<(), StoreError> {
    let failed = |e| classify(path, "repair the store", e);
    damaged_indexes(tx).map_err(failed)?;
    // Adds tables, columns, indexes and triggers that are missing.
    upgrade::lay_out(tx, path)?;
    rows_and_ids(tx).map_err(failed)?;
    locks(tx, now).map_err(failed)?;
    let mut sessions = tx
        .prepare("SELECT session_id FROM compaction_passes GROUP BY session_id")
        .map_err(failed)?;
    let sessions: Vec<String> = sessions
        .query_map([], |r| r.get(0))
        .and_then(Iterator::collect)
        .map_err(failed)?;
    for session in sessions {
        rows::recount(tx, &session).map_err(failed)?;
    }
    Ok(())
}

/// An index that does not hold together is made anew; the messages are its source.
fn damaged_indexes(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    for (table, create) in FTS_TABLES {
        if tx
            .execute_batch(&format!(
                "INSERT INTO {table}({table}) VALUES('integrity-check')"
            ))
            .is_err()
        {
            tx.execute_batch(&format!(
                "DROP TABLE IF EXISTS {table}; {create}; UPDATE messages SET fts_pending = 1;"
            ))?;
        }
    }
    for (table, _) in FTS_TABLES {
        tx.execute_batch(&format!(
            "DELETE FROM {table} WHERE rowid IN (SELECT id FROM {table}_docsize WHERE id NOT IN (SELECT id FROM messages))"
        ))?;
    }
    tx.execute_batch(
        "UPDATE messages SET fts_pending = 1 WHERE fts_pending IS NULL
           AND (id NOT IN (SELECT id FROM messages_fts_docsize) OR id NOT IN (SELECT id FROM messages_fts_trigram_docsize))",
    )
}

fn rows_and_ids(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    tx.execute_batch(&format!(
        "UPDATE messages SET active = 1 WHERE active IS NULL;
         UPDATE messages SET message_uid = {SQL_UUID4} WHERE (message_uid IS NULL OR message_uid = '')
           AND NOT (id > (SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = 'rust_host_backfill_cursor')
             AND id <= (SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = 'rust_host_backfill_end'));
         UPDATE messages SET absorbed_message_uids = NULL WHERE absorbed_message_uids IS NOT NULL
           AND (NOT json_valid(absorbed_message_uids) OR json_type(absorbed_message_uids) != 'array');
         UPDATE messages SET absorbed_message_uids = (
             SELECT CASE count(*) WHEN 0 THEN NULL ELSE json_group_array(e.value) END
             FROM json_each(messages.absorbed_message_uids) e
             WHERE e.type = 'text' AND e.value != '' AND e.value != messages.message_uid)
           WHERE absorbed_message_uids IS NOT NULL
             AND EXISTS (SELECT 1 FROM json_each(messages.absorbed_message_uids) e
                         WHERE e.type != 'text' OR e.value = '' OR e.value = messages.message_uid);
         UPDATE messages SET tool_call_uids = NULL WHERE tool_call_uids IS NOT NULL
           AND (NOT json_valid(tool_call_uids) OR json_type(tool_call_uids) != 'object');
         UPDATE sessions SET parent_session_id = NULL WHERE parent_session_id IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM sessions p WHERE p.id = sessions.parent_session_id);"
    ))
}

fn locks(tx: &Transaction<'_>, now: f64) -> rusqlite::Result<()> {
    let mut statement = tx.prepare("SELECT session_id FROM compression_locks")?;
    let all: Vec<String> = statement
        .query_map([], |r| r.get(0))?
        .collect::<Result<_, _>>()?;
    for session in all {
        if pass::holder_of(tx, &session, now)?.is_none() {
            tx.execute(
                "DELETE FROM compression_locks WHERE session_id = ?1",
                [&session],
            )?;
        }
    }
    Ok(())
}
