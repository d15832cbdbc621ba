//! From rows to messages.
//!
//! A row is read in two steps: its texts are copied out of SQLite's hands, then they become a message. For a long
//! conversation two threads share that, so that one parses what the other has read.

use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use hermes_message::Message;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Statement};

use super::StoredMessage;
use crate::store::columns::{self, SELECT, SELECT_COUNT};
use crate::store::identity;

/// Rows between two that are wanted are read along up to this distance: going on costs less than seeking.
const NEAR: i64 = 4;
/// From so many rows on a second thread is worth its start.
const LONG: usize = 2048;
/// Rows that are handed over together.
const BATCH: usize = 256;
/// Batches that may wait; more would only take memory.
const AHEAD: usize = 4;

/// Where the message's own columns begin in the row that [`load`] reads.
const FIRST: usize = 9;
const _: () = assert!(SELECT_COUNT == 17);

/// Reads rows by their ids, in the order given. Ids without a row are passed over.
pub(crate) fn load(conn: &Connection, ids: &[i64]) -> rusqlite::Result<Vec<StoredMessage>> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT id, CAST(timestamp AS REAL), active, compacted, message_uid, absorbed_message_uids, tool_call_uids,
           tool_call_uid, original_bytes, {SELECT} FROM messages WHERE id BETWEEN ?1 AND ?2 ORDER BY id"
    ))?;
    let alone = thread::available_parallelism().map_or(1, usize::from) < 2;
    if ids.len() >= LONG
        && !alone
        && let Some(rows) = load_long(&mut statement, ids)?
    {
        return Ok(rows);
    }
    load_short(&mut statement, ids)
}

fn load_short(statement: &mut Statement<'_>, ids: &[i64]) -> rusqlite::Result<Vec<StoredMessage>> {
    let mut out = Vec::with_capacity(ids.len());
    let mut text = String::new();
    each_row(statement, ids, |row| {
        text.clear();
        let message = match RowText::read(row, &mut text)?.message(&text) {
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
#[derive(Default)]
struct Batch {
    text: String,
    rows: Vec<RowText>,
}

/// [`load`] with a second thread that parses; `None` where the system has no thread to give.
fn load_long(
    statement: &mut Statement<'_>,
    ids: &[i64],
) -> rusqlite::Result<Option<Vec<StoredMessage>>> {
    let (send, receive) = sync_channel::<Batch>(AHEAD);
    let mut order = Vec::with_capacity(ids.len());
    let parsed = thread::scope(|scope| {
        let parser = thread::Builder::new()
            .name("hermes-parse".to_owned())
            .spawn_scoped(scope, move || parse(&receive, ids.len()));
        let Ok(parser) = parser else {
            return Ok(None);
        };
        let mut batch = Batch::default();
        let read = each_row(statement, ids, |row| {
            batch.rows.push(RowText::read(row, &mut batch.text)?);
            order.push(row.get(0)?);
            if batch.rows.len() == BATCH {
                let next = Batch {
                    text: String::with_capacity(batch.text.len() + batch.text.len() / 4),
                    rows: Vec::with_capacity(BATCH),
                };
                // Nobody takes it only when the parser has panicked, which the join tells.
                let _ = send.send(std::mem::replace(&mut batch, next));
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
    let Some(parsed) = parsed else {
        return Ok(None);
    };
    let mut out = Vec::with_capacity(parsed.len());
    for (message, id) in parsed.into_iter().zip(order) {
        match message {
            Some(message) => out.push(message),
            None => each_row(statement, &[id], |row| {
                out.push(read_with_care(row)?);
                Ok(())
            })?,
        }
    }
    Ok(Some(out))
}

fn parse(batches: &Receiver<Batch>, count: usize) -> Vec<Option<StoredMessage>> {
    let mut out = Vec::with_capacity(count);
    for batch in batches {
        out.extend(batch.rows.iter().map(|row| row.message(&batch.text)));
    }
    out
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
    message: Option<Range<usize>>,
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
        let message = match row.get_ref(8)? {
            ValueRef::Blob(_) => None,
            _ => {
                let start = text.len();
                columns::restore(&columns::from_row(row, FIRST)?, text);
                Some(start..text.len())
            }
        };
        Ok(Self {
            row_id: row.get(0)?,
            timestamp: row.get::<_, Option<f64>>(1)?.unwrap_or_default(),
            active: row.get::<_, Option<i64>>(2)?.unwrap_or(1) != 0,
            compacted: row.get::<_, Option<i64>>(3)?.unwrap_or(0) != 0,
            identity,
            message,
        })
    }

    /// The message; `None` where the row needs a closer look.
    fn message(&self, text: &str) -> Option<StoredMessage> {
        let [uid, absorbed, calls, call] = &self.identity;
        let column = |range: &Option<Range<usize>>| range.clone().map(|range| &text[range]);
        let identity =
            identity::from_columns(column(uid), column(absorbed), column(calls), column(call));
        let message = Message::with_identity(&text[self.message.clone()?], identity).ok()?;
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
    let columns = columns::from_row(row, FIRST)?;
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
