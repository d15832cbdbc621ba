//! Writing new rows, several with each statement.
//!
//! What a statement costs apart from its rows (a copy of every page it touches, so that it could be undone alone; the
//! frames of the triggers; the counter of row ids) is paid once for all of its rows.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::mpsc::sync_channel;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use hermes_message::Message;
use rusqlite::Connection;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};

use super::{Inserted, Stamper, has_second_processor};
use crate::store::{columns, identity};

/// The columns that a new row is given, in the order of [`NewRow`]'s cells. All others have their defaults.
const COLUMNS: [&str; 32] = [
    "session_id",
    "role",
    "content",
    "tool_call_id",
    "tool_calls",
    "tool_name",
    "effect_disposition",
    "timestamp",
    "token_count",
    "finish_reason",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
    "platform_message_id",
    "observed",
    "active",
    "compacted",
    "api_content",
    "_compressed_summary",
    "display_kind",
    "display_metadata",
    "display_identity",
    "display_order",
    "message_uid",
    "absorbed_message_uids",
    "tool_call_uids",
    "tool_call_uid",
    "stored_json",
    "original_bytes",
    "fts_pending",
];

/// How many rows a statement may have. Each size is prepared once.
const SIZES: [usize; 6] = [64, 16, 8, 4, 2, 1];

static STATEMENTS: LazyLock<[String; SIZES.len()]> = LazyLock::new(|| {
    let row = format!("({})", ["?"; COLUMNS.len()].join(","));
    SIZES.map(|size| {
        format!(
            "INSERT INTO messages ({}) VALUES {} RETURNING id",
            COLUMNS.join(","),
            vec![row.as_str(); size].join(",")
        )
    })
});

/// From so many rows on a second thread is worth its start.
const LONG: usize = 256;
/// Parts of rows that may wait; more would only take memory.
const AHEAD: usize = 4;

/// A value of a new row.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Cell<'a> {
    #[default]
    Null,
    Integer(i64),
    Real(f64),
    Text(Cow<'a, str>),
    Blob(Cow<'a, [u8]>),
}

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl<'a> From<Option<Cow<'a, str>>> for Cell<'a> {
    fn from(text: Option<Cow<'a, str>>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

impl<'a> From<Option<&'a str>> for Cell<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map(Cow::Borrowed).into()
    }
}

impl From<Option<i64>> for Cell<'_> {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Self::Null, Self::Integer)
    }
}

/// A row that is about to be written: live and waiting for the index unless told otherwise.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewRow<'a> {
    cells: [Cell<'a>; COLUMNS.len()],
    /// Columns of the table that this program does not know, from an export of such a store.
    others: Vec<(&'a str, Cell<'a>)>,
    /// How many tool calls the message makes.
    calls: i64,
}

impl<'a> NewRow<'a> {
    /// A row of this session without a message.
    pub(crate) fn empty(session: &'a str) -> Self {
        let mut row = Self {
            cells: std::array::from_fn(|_| Cell::Null),
            others: Vec::new(),
            calls: 0,
        };
        for (column, value) in [
            ("session_id", Cell::Text(Cow::Borrowed(session))),
            ("observed", Cell::Integer(0)),
            ("active", Cell::Integer(1)),
            ("compacted", Cell::Integer(0)),
            ("fts_pending", Cell::Integer(1)),
        ] {
            if let Some(cell) = row.cell(column) {
                *cell = value;
            }
        }
        row
    }

    /// The row of a message with its identity as it is.
    pub(crate) fn of(
        session: &'a str,
        message: &'a Message,
        stamper: &mut Stamper,
        timestamp: Option<f64>,
    ) -> Self {
        let columns = columns::fill(message.stored());
        let identity = message.identity();
        let timestamp = stamper.next(timestamp.or(columns.timestamp));
        let cells = [
            Cell::Text(Cow::Borrowed(session)),
            Cell::Text(columns.role),
            columns.content.into(),
            columns.tool_call_id.into(),
            columns.tool_calls.into(),
            columns.tool_name.into(),
            columns.effect_disposition.into(),
            Cell::Real(timestamp),
            columns.token_count.into(),
            columns.finish_reason.into(),
            columns.reasoning.into(),
            columns.reasoning_content.into(),
            columns.reasoning_details.into(),
            columns.codex_reasoning_items.into(),
            columns.codex_message_items.into(),
            columns.platform_message_id.into(),
            Cell::Integer(columns.observed.into()),
            Cell::Integer(1),
            Cell::Integer(0),
            columns.api_content.into(),
            columns.summary.then_some(1).into(),
            columns.display_kind.into(),
            columns.display_metadata.into(),
            Cell::Null,
            Cell::Null,
            identity.uid.as_deref().into(),
            identity::absorbed_column(identity).map(Cow::Owned).into(),
            identity::calls_column(identity).map(Cow::Owned).into(),
            identity.tool_call_uid.as_deref().into(),
            columns.stored_json.into(),
            message
                .original()
                .map_or(Cell::Null, |bytes| Cell::Blob(Cow::Borrowed(bytes))),
            Cell::Integer(1),
        ];
        Self {
            cells,
            others: Vec::new(),
            calls: columns.call_count,
        }
    }

    fn cell(&mut self, column: &str) -> Option<&mut Cell<'a>> {
        let place = COLUMNS.iter().position(|name| *name == column)?;
        Some(&mut self.cells[place])
    }

    /// Sets a column, if it is one of `table`'s.
    pub(crate) fn set(&mut self, column: &'a str, value: Cell<'a>, table: &HashSet<String>) {
        if let Some(cell) = self.cell(column) {
            *cell = value;
        } else if table.contains(column) {
            self.others.retain(|(name, _)| *name != column);
            self.others.push((column, value));
        }
    }

    /// The value of a column that this program knows.
    pub(crate) fn get(&self, column: &str) -> &Cell<'a> {
        let place = COLUMNS.iter().position(|name| *name == column);
        place.map_or(&Cell::Null, |place| &self.cells[place])
    }
}

/// Writes rows behind all others, in their order, and appends their ids to `ids`.
pub(crate) fn insert_rows(
    conn: &Connection,
    rows: &[NewRow<'_>],
    ids: &mut Vec<i64>,
) -> rusqlite::Result<()> {
    for alike in rows.chunk_by(|a, b| a.others.is_empty() && b.others.is_empty()) {
        match alike {
            [row] if !row.others.is_empty() => ids.push(insert_with_others(conn, row)?),
            rows => insert_alike(conn, rows, ids)?,
        }
    }
    Ok(())
}

/// Rows of the columns that this program knows, several with a statement.
fn insert_alike(
    conn: &Connection,
    rows: &[NewRow<'_>],
    ids: &mut Vec<i64>,
) -> rusqlite::Result<()> {
    let mut rest = rows;
    for (size, statement) in SIZES.into_iter().zip(STATEMENTS.iter()) {
        while let Some((some, others)) = rest.split_at_checked(size) {
            rest = others;
            let mut statement = conn.prepare_cached(statement)?;
            for (at, cell) in some.iter().flat_map(|row| &row.cells).enumerate() {
                statement.raw_bind_parameter(at + 1, cell)?;
            }
            let start = ids.len();
            let mut written = statement.raw_query();
            while let Some(row) = written.next()? {
                ids.push(row.get(0)?);
            }
            // Ids rise in the order of the rows; the order in which they are told is not promised.
            ids[start..].sort_unstable();
        }
    }
    Ok(())
}

/// A row with columns that only its own table knows. What it does not have keeps the table's default.
fn insert_with_others(conn: &Connection, row: &NewRow<'_>) -> rusqlite::Result<i64> {
    let known = COLUMNS.into_iter().zip(&row.cells);
    let others = row.others.iter().map(|(name, cell)| (*name, cell));
    let (names, cells): (Vec<String>, Vec<&Cell<'_>>) = known
        .chain(others)
        .map(|(name, cell)| (format!("\"{}\"", name.replace('"', "\"\"")), cell))
        .unzip();
    conn.prepare_cached(&format!(
        "INSERT INTO messages ({}) VALUES ({})",
        names.join(","),
        vec!["?"; cells.len()].join(",")
    ))?
    .insert(rusqlite::params_from_iter(cells))
}

/// Writes the rows of many things, in their order. Where they are so many that it pays, another thread makes the rows
/// while this one writes.
pub(crate) fn insert_made<'m, T: Sync>(
    conn: &Connection,
    things: &'m [T],
    mut row_of: impl FnMut(&'m T) -> NewRow<'m> + Send,
) -> rusqlite::Result<(Vec<i64>, Inserted)> {
    let mut ids = Vec::with_capacity(things.len());
    let mut inserted = Inserted::default();
    let mut write = |rows: &[NewRow<'m>]| -> rusqlite::Result<()> {
        let start = ids.len();
        insert_rows(conn, rows, &mut ids)?;
        for (id, row) in ids[start..].iter().zip(rows) {
            inserted.count(*id, row.calls);
        }
        Ok(())
    };
    let parts = Mutex::new(
        things
            .chunks(SIZES[0])
            .map(|part| part.iter().map(&mut row_of).collect::<Vec<_>>()),
    );
    // Whoever makes the rows has them alone, so nobody ever waits for this lock.
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        if things.len() >= LONG && has_second_processor() {
            let (send, receive) = sync_channel(AHEAD);
            let make = move || {
                // Nobody takes rows any more only after an error, which is told below.
                while next().is_some_and(|rows| send.send(rows).is_ok()) {}
            };
            let maker = thread::Builder::new().name("hermes-rows".to_owned());
            if maker.spawn_scoped(scope, make).is_ok() {
                return receive.into_iter().try_for_each(|rows| write(&rows));
            }
        }
        std::iter::from_fn(next).try_for_each(|rows| write(&rows))
    })?;
    Ok((ids, inserted))
}

/// Writes messages as new live rows, in their order, with their identities as they are.
pub(crate) fn insert_all(
    conn: &Connection,
    session: &str,
    messages: &[Message],
    stamper: &mut Stamper,
) -> rusqlite::Result<(Vec<i64>, Inserted)> {
    insert_made(conn, messages, |message| {
        NewRow::of(session, message, stamper, None)
    })
}

/// Writes one message as a new live row, with its identity as it is. Returns its id and how many calls it
/// makes.
pub(crate) fn insert(
    conn: &Connection,
    session: &str,
    message: &Message,
    stamper: &mut Stamper,
    timestamp: Option<f64>,
) -> rusqlite::Result<(i64, i64)> {
    let row = NewRow::of(session, message, stamper, timestamp);
    let calls = row.calls;
    let mut ids = Vec::with_capacity(1);
    insert_rows(conn, &[row], &mut ids)?;
    Ok((ids.first().copied().unwrap_or_default(), calls))
}
