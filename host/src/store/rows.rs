//! Rows of `messages`: writing one, reading a session's.

mod insert;
mod read;

use std::sync::OnceLock;
use std::thread;

use hermes_message::{Message, Role};
use rusqlite::{Connection, params};

use super::columns;
use super::identity::{self, Pairing};

pub(crate) use insert::{Cell, NewRow, insert, insert_all, insert_made};
pub(crate) use read::{load, load_paired};

/// A message with the facts of its row.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StoredMessage {
    /// The physical row. Not an identity: every copy has another one.
    pub row_id: i64,
    /// When the message was written, in seconds since 1970. Clocks go back; the order is that of `row_id`.
    pub timestamp: f64,
    /// Whether it is part of the live transcript.
    pub active: bool,
    /// Whether a compaction took it out of the live transcript.
    pub compacted: bool,
    /// The message itself.
    pub message: Message,
}

impl StoredMessage {
    fn paired(self, pairing: &mut Pairing) -> Self {
        Self {
            message: pairing.next(self.message),
            ..self
        }
    }
}

/// Whether two threads get further than one. Asked of the system once, as it reads files to know.
pub(crate) fn has_second_processor() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| thread::available_parallelism().is_ok_and(|count| count.get() > 1))
}

/// What inserting a batch did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Inserted {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) messages: i64,
    pub(crate) calls: i64,
}

impl Inserted {
    pub(crate) fn count(&mut self, id: i64, calls: i64) {
        if self.messages == 0 {
            self.first = id;
        }
        self.last = id;
        self.messages += 1;
        self.calls += calls;
    }
}

/// Gives rows that are written in one go rising time stamps, as Hermes does.
pub(crate) struct Stamper {
    now: f64,
}

impl Stamper {
    pub(crate) fn new(now: f64) -> Self {
        Self { now }
    }

    pub(crate) fn next(&mut self, own: Option<f64>) -> f64 {
        let stamp = own.unwrap_or(self.now);
        self.now = self.now.max(stamp) + 1e-6;
        stamp
    }
}

/// Makes an existing row hold another version of its message. The row id stays, and so does the uid
/// unless the message has its own.
pub(crate) fn rewrite(conn: &Connection, id: i64, message: &Message) -> rusqlite::Result<()> {
    let columns = columns::fill(message.stored());
    conn.prepare_cached(
        "UPDATE messages SET role = ?2, content = ?3, tool_call_id = ?4, tool_calls = ?5, tool_name = ?6,
           effect_disposition = ?7, finish_reason = ?8, reasoning = ?9, reasoning_content = ?10,
           reasoning_details = ?11, codex_reasoning_items = ?12, codex_message_items = ?13,
           platform_message_id = ?14, observed = ?15, api_content = ?16, _compressed_summary = ?17,
           stored_json = ?18, original_bytes = ?19, fts_pending = 1
         WHERE id = ?1",
    )?
    .execute(params![
        id,
        columns.role,
        columns.content,
        columns.tool_call_id,
        columns.tool_calls,
        columns.tool_name,
        columns.effect_disposition,
        columns.finish_reason,
        columns.reasoning,
        columns.reasoning_content,
        columns.reasoning_details,
        columns.codex_reasoning_items,
        columns.codex_message_items,
        columns.platform_message_id,
        columns.observed,
        columns.api_content,
        columns.summary.then_some(1),
        columns.stored_json,
        message.original(),
    ])?;
    reidentify(conn, id, message)
}

/// Writes the identity of a message to its row.
pub(crate) fn reidentify(conn: &Connection, id: i64, message: &Message) -> rusqlite::Result<()> {
    let identity = message.identity();
    conn.prepare_cached(
        "UPDATE messages SET message_uid = COALESCE(?2, message_uid), absorbed_message_uids = ?3,
           tool_call_uids = ?4, tool_call_uid = ?5 WHERE id = ?1",
    )?
    .execute(params![
        id,
        identity.uid.as_deref(),
        identity::absorbed_column(identity),
        identity::calls_column(identity),
        identity.tool_call_uid.as_deref(),
    ])?;
    Ok(())
}

/// The columns of `messages` that a copy of a row takes over; those that this program does not know too.
pub(crate) fn copied_columns(conn: &Connection) -> rusqlite::Result<String> {
    let mut names = conn.prepare_cached("SELECT name FROM pragma_table_info('messages')")?;
    let names: Vec<String> = names
        .query_map([], |r| r.get(0))?
        .collect::<Result<_, _>>()?;
    let own = ["id", "session_id", "active", "compacted", "fts_pending"];
    Ok(names
        .iter()
        .filter(|name| !own.contains(&name.as_str()))
        .map(|name| format!("\"{}\"", name.replace('"', "\"\"")))
        .collect::<Vec<_>>()
        .join(", "))
}

/// Copies a row behind all others, into this or another session, as a live one.
pub(crate) fn copy(
    conn: &Connection,
    columns: &str,
    id: i64,
    session: &str,
) -> rusqlite::Result<i64> {
    conn.prepare_cached(&format!(
        "INSERT INTO messages (session_id, active, compacted, fts_pending, {columns})
         SELECT ?2, 1, 0, 1, {columns} FROM messages WHERE id = ?1"
    ))?
    .insert(params![id, session])
}

/// Deletes a row whose message stands in another one.
pub(crate) fn delete(conn: &Connection, id: i64) -> rusqlite::Result<()> {
    super::fts::make_removable(conn, id)?;
    conn.prepare_cached("DELETE FROM messages WHERE id = ?1")?
        .execute([id])?;
    Ok(())
}

/// The live rows of a session up to `last`, in order. Reads only an index.
pub(crate) fn live_ids(conn: &Connection, session: &str, last: i64) -> rusqlite::Result<Vec<i64>> {
    let (count, first, newest): (i64, Option<i64>, Option<i64>) = conn
        .prepare_cached(
            "SELECT count(*), min(id), max(id) FROM messages INDEXED BY idx_messages_session_active
             WHERE session_id = ?1 AND active = 1",
        )?
        .query_row([session], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?;
    if let (Some(first), Some(newest)) = (first, newest)
        && newest.checked_sub(first) == Some(count - 1)
    {
        // Without gaps, as most conversations are: no need to be told each of them.
        return Ok((first..=newest.min(last)).collect());
    }
    let mut ids: Vec<i64> = conn
        .prepare_cached(
            "SELECT id FROM messages INDEXED BY idx_messages_session_active WHERE session_id = ?1 AND active = 1",
        )?
        .query_map([session], |r| r.get(0))?
        .filter(|id| !matches!(id, Ok(id) if *id > last))
        .collect::<Result<_, _>>()?;
    // The index is in the order of the clock, which can go back.
    ids.sort_unstable();
    Ok(ids)
}

/// The live rows of a session behind `first`, in order.
pub(crate) fn live_ids_after(
    conn: &Connection,
    session: &str,
    first: i64,
) -> rusqlite::Result<Vec<i64>> {
    let newest: Option<i64> = conn
        .prepare_cached("SELECT max(id) FROM messages")?
        .query_row([], |r| r.get(0))?;
    let span = newest.unwrap_or(0) - first;
    // Few rows were written since, by whomever: look at those. Otherwise the session's own index is shorter.
    if first > 0 && span < 4096 {
        return conn
            .prepare_cached(
                "SELECT id FROM messages NOT INDEXED WHERE id > ?1 AND session_id = ?2 AND active = 1 ORDER BY id",
            )?
            .query_map(params![first, session], |r| r.get(0))?
            .collect();
    }
    let mut ids = live_ids(conn, session, i64::MAX)?;
    ids.retain(|id| *id > first);
    Ok(ids)
}

/// All rows of a session, in order.
pub(crate) fn all_ids(conn: &Connection, session: &str) -> rusqlite::Result<Vec<i64>> {
    let mut ids: Vec<i64> = conn
        .prepare_cached(
            "SELECT id FROM messages INDEXED BY idx_messages_session WHERE session_id = ?1",
        )?
        .query_map([session], |r| r.get(0))?
        .collect::<Result<_, _>>()?;
    ids.sort_unstable();
    Ok(ids)
}

/// How many live messages and tool calls a session has now; what `sessions` counts.
pub(crate) fn recount(conn: &Connection, session: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "UPDATE sessions SET
           message_count = (SELECT count(*) FROM messages INDEXED BY idx_messages_session_active
                            WHERE session_id = ?1 AND active = 1),
           tool_call_count = (SELECT COALESCE(sum(CASE WHEN json_valid(tool_calls) AND json_type(tool_calls) = 'array'
                                THEN json_array_length(tool_calls) ELSE 1 END), 0)
                              FROM messages WHERE session_id = ?1 AND active = 1 AND tool_calls IS NOT NULL)
         WHERE id = ?1",
    )?
    .execute([session])?;
    Ok(())
}

/// Reads the live rows of a session and pairs results that an older program wrote without their call's uid.
pub(crate) fn load_live(conn: &Connection, session: &str) -> rusqlite::Result<Vec<StoredMessage>> {
    load_paired(conn, &live_ids(conn, session, i64::MAX)?)
}

/// What was called since the session's last user turn, as far back as results may reach.
pub(crate) fn open_calls(conn: &Connection, session: &str) -> rusqlite::Result<Pairing> {
    // The last rows of the file are usually this session's own; only otherwise is its index asked.
    let mut recent = conn.prepare_cached(
        "SELECT id, role FROM (SELECT id, role, session_id, active FROM messages ORDER BY id DESC LIMIT 256)
         WHERE session_id = ?1 AND active = 1",
    )?;
    let mut ids = Vec::new();
    let mut complete = false;
    let mut rows = recent.query([session])?;
    while let Some(row) = rows.next()? {
        if row.get_ref(1)?.as_str().unwrap_or_default() == "user" {
            complete = true;
            break;
        }
        ids.push(row.get(0)?);
    }
    let rows = if complete {
        ids.reverse();
        load(conn, &ids)?
    } else {
        let all = live_ids(conn, session, i64::MAX)?;
        let mut tail = Vec::new();
        for chunk in all.rchunks(64) {
            let mut part = load(conn, chunk)?;
            let user = part
                .iter()
                .rposition(|row| row.message.role() == Role::User);
            part.drain(..user.map_or(0, |at| at + 1));
            part.append(&mut tail);
            tail = part;
            if user.is_some() {
                break;
            }
        }
        tail
    };
    let mut pairing = Pairing::default();
    for row in rows {
        pairing.next(row.message);
    }
    Ok(pairing)
}

/// The newest row of a session that carries this uid.
pub(crate) fn row_of_uid(
    conn: &Connection,
    session: &str,
    uid: &str,
) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached(
        "SELECT max(id) FROM messages INDEXED BY idx_messages_session_uid WHERE session_id = ?1 AND message_uid = ?2",
    )?
    .query_row([session, uid], |r| r.get(0))
}
