//! From rows to messages.
//!
//! A row is read in two steps: its texts are copied out of SQLite's hands, then they become a message. For a long
//! conversation two threads share that, so that one parses what the other has read.

use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use hermes_message::Message;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Row, Statement};

use super::{StoredMessage, has_second_processor};
use crate::store::columns::{self, RawColumns, SELECT};
use crate::store::identity::{self, Pairing};

/// Rows between two that are wanted are read along up to this distance: going on costs less than seeking.
const NEAR: i64 = 4;
/// From so many rows on a second thread is worth its start.
const LONG: usize = 2048;
/// Rows that are handed over together.
const BATCH: usize = 64;
/// What their texts usually fit in.
const BATCH_BYTES: usize = 64 << 10;
/// Batches that may wait; more would only take memory.
const AHEAD: usize = 16;

/// Where the message's own columns begin in the row that [`load`] reads.
const FIRST: usize = 9;

/// Reads rows by their ids, in the order given. Ids without a row are passed over.
pub(crate) fn load(conn: &Connection, ids: &[i64]) -> rusqlite::Result<Vec<StoredMessage>> {
    let mut statement = statement(conn)?;
    if let Some(rows) = load_side_by_side(&mut statement, ids)? {
        return Ok(rows.rows);
    }
    load_short(&mut statement, ids)
}

/// [`load`], with the results that an older program wrote without their call's uid paired with their calls.
pub(crate) fn load_paired(conn: &Connection, ids: &[i64]) -> rusqlite::Result<Vec<StoredMessage>> {
    let mut statement = statement(conn)?;
    let rows = match load_side_by_side(&mut statement, ids)? {
        Some(Loaded { rows, paired: true }) => return Ok(rows),
        Some(Loaded { rows, .. }) => rows,
        None => load_short(&mut statement, ids)?,
    };
    let mut pairing = Pairing::default();
    Ok(rows
        .into_iter()
        .map(|row| row.paired(&mut pairing))
        .collect())
}

fn statement(conn: &Connection) -> rusqlite::Result<CachedStatement<'_>> {
    conn.prepare_cached(&format!(
        "SELECT id, timestamp, active, compacted, message_uid, absorbed_message_uids, tool_call_uids, tool_call_uid,
           original_bytes, {SELECT} FROM messages WHERE id BETWEEN ?1 AND ?2 ORDER BY id"
    ))
}

fn load_short(statement: &mut Statement<'_>, ids: &[i64]) -> rusqlite::Result<Vec<StoredMessage>> {
    let mut out = Vec::with_capacity(ids.len());
    let (mut text, mut room) = (String::new(), String::new());
    each_row(statement, ids, |row| {
        text.clear();
        let message = match RowText::read(row, &mut text)?.message(&text, &mut room) {
            Some(message) => message,
            None => read_with_care(row)?,
        };
        out.push(message);
        Ok(())
    })?;
    Ok(out)
}

/// Steps through the rows with these ids, in the order given.
fn each_row(
    statement: &mut Statement<'_>,
    ids: &[i64],
    mut take: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    for run in ids.chunk_by(|a, b| (1..=NEAR).contains(&b.saturating_sub(*a))) {
        let mut rows = statement.query([run[0], run[run.len() - 1]])?;
        let mut wanted = run.iter().peekable();
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            while wanted.next_if(|next| **next < id).is_some() {}
            if wanted.next_if(|next| **next == id).is_some() {
                take(row)?;
            }
        }
    }
    Ok(())
}

/// Some rows and the text that all their texts stand in.
struct Batch {
    text: String,
    rows: Vec<RowText>,
}

impl Batch {
    fn new() -> Self {
        Self {
            text: String::with_capacity(BATCH_BYTES),
            rows: Vec::with_capacity(BATCH),
        }
    }
}

/// Rows, and whether results have the uids of their calls already.
struct Loaded {
    rows: Vec<StoredMessage>,
    paired: bool,
}

/// Reads many rows with a second thread that makes messages of them; `None` where they are few, or the system has no
/// second processor or thread to give.
fn load_side_by_side(
    statement: &mut Statement<'_>,
    ids: &[i64],
) -> rusqlite::Result<Option<Loaded>> {
    if ids.len() < LONG || !has_second_processor() {
        return Ok(None);
    }
    let (send, receive) = sync_channel::<Batch>(AHEAD);
    let parsed = thread::scope(|scope| {
        let parser = thread::Builder::new()
            .name("hermes-parse".to_owned())
            .spawn_scoped(scope, move || Parsed::of(&receive, ids.len()));
        let Ok(parser) = parser else {
            return Ok(None);
        };
        let mut batch = Batch::new();
        let read = each_row(statement, ids, |row| {
            batch.rows.push(RowText::read(row, &mut batch.text)?);
            if batch.rows.len() == BATCH {
                // Nobody takes it only when the parser has panicked, which the join tells.
                let _ = send.send(std::mem::replace(&mut batch, Batch::new()));
            }
            Ok(())
        });
        let _ = send.send(batch);
        drop(send);
        match parser.join() {
            Ok(parsed) => read.map(|()| Some(parsed)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })?;
    let Some(mut parsed) = parsed else {
        return Ok(None);
    };
    for (place, id) in &parsed.left_out {
        each_row(statement, &[*id], |row| {
            parsed.rows.insert(*place, read_with_care(row)?);
            Ok(())
        })?;
    }
    Ok(Some(Loaded {
        rows: parsed.rows,
        paired: parsed.left_out.is_empty(),
    }))
}

/// What the second thread makes.
struct Parsed {
    rows: Vec<StoredMessage>,
    /// The places and ids of rows that need a closer look, in their order.
    left_out: Vec<(usize, i64)>,
}

impl Parsed {
    fn of(batches: &Receiver<Batch>, count: usize) -> Self {
        let mut rows: Vec<StoredMessage> = Vec::with_capacity(count);
        let mut left_out = Vec::new();
        let mut pairing = Pairing::default();
        let mut room = String::new();
        for batch in batches {
            for row in &batch.rows {
                match row.message(&batch.text, &mut room) {
                    Some(message) if left_out.is_empty() => {
                        rows.push(message.paired(&mut pairing));
                    }
                    Some(message) => rows.push(message),
                    None => left_out.push((rows.len() + left_out.len(), row.row_id)),
                }
            }
        }
        Self { rows, left_out }
    }
}

/// A row as its texts, which stand somewhere in one text.
struct RowText {
    row_id: i64,
    timestamp: f64,
    active: bool,
    compacted: bool,
    /// The four columns of the identity.
    identity: [Option<Range<usize>>; 4],
    /// The message; none where the bytes it came from have to be read again.
    columns: Option<RawColumns>,
}

impl RowText {
    /// Appends the row's texts to `text`.
    fn read(row: &Row<'_>, text: &mut String) -> rusqlite::Result<Self> {
        let mut identity = [None, None, None, None];
        for (at, place) in identity.iter_mut().enumerate() {
            if let Some(column) = text_column(row, 4 + at) {
                *place = Some(text.len()..text.len() + column.len());
                text.push_str(column);
            }
        }
        let columns = match row.get_ref(8)? {
            ValueRef::Blob(_) => None,
            _ => Some(RawColumns::read(row, FIRST, text)?),
        };
        Ok(Self {
            row_id: row.get(0)?,
            timestamp: match row.get_ref(1)? {
                ValueRef::Real(seconds) => seconds,
                // The column turns every number into a float; what is none was written by hand.
                _ => 0.0,
            },
            active: row.get::<_, Option<i64>>(2)?.unwrap_or(1) != 0,
            compacted: row.get::<_, Option<i64>>(3)?.unwrap_or(0) != 0,
            identity,
            columns,
        })
    }

    /// The message; `None` where the row needs a closer look. `message` is room for its text.
    fn message(&self, text: &str, message: &mut String) -> Option<StoredMessage> {
        let [uid, absorbed, calls, call] = &self.identity;
        let column = |range: &Option<Range<usize>>| range.clone().map(|range| &text[range]);
        let identity =
            identity::from_columns(column(uid), column(absorbed), column(calls), column(call));
        message.clear();
        columns::restore(&self.columns.as_ref()?.columns(text), message);
        let message = Message::with_identity(message, identity).ok()?;
        Some(self.with(message))
    }

    fn with(&self, message: Message) -> StoredMessage {
        StoredMessage {
            row_id: self.row_id,
            timestamp: self.timestamp,
            active: self.active,
            compacted: self.compacted,
            message,
        }
    }
}

fn text_column<'r>(row: &'r Row<'_>, at: usize) -> Option<&'r str> {
    match row.get_ref(at) {
        Ok(ValueRef::Text(bytes)) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// Reads a row whose message is kept as the bytes it came from, or whose text is no message.
fn read_with_care(row: &Row<'_>) -> rusqlite::Result<StoredMessage> {
    let column = |at: usize| text_column(row, at);
    let identity = || identity::from_columns(column(4), column(5), column(6), column(7));
    let original = match row.get_ref(8)? {
        // Read again from the very bytes, so that they stay with the message.
        ValueRef::Blob(original) => Message::parse_bytes(original).ok(),
        _ => None,
    };
    let mut texts = String::new();
    let columns = RawColumns::read_all(row, FIRST, &mut texts)?;
    let columns = columns.columns(&texts);
    let mut text = String::new();
    let message = original
        .map(|message| message.replaced_identity(identity()))
        .or_else(|| {
            columns::restore(&columns, &mut text);
            Message::with_identity(&text, identity()).ok()
        })
        // A text that is no message (a damaged row) is rebuilt from the columns, which always give one.
        .or_else(|| Message::with_identity(&columns::rebuild(&columns), identity()).ok());
    let Some(message) = message else {
        return Err(rusqlite::Error::InvalidColumnType(
            FIRST,
            "role".to_owned(),
            rusqlite::types::Type::Text,
        ));
    };
    Ok(RowText::read(row, &mut String::new())?.with(message))
}
