//! The columns of a row before they become a message, so that another thread can do that.

use std::borrow::Cow;
use std::ops::Range;

use rusqlite::Row;
use rusqlite::types::ValueRef;

use super::Columns;

/// The columns that [`RawColumns::read`] reads, in its order.
pub(crate) const SELECT: &str = "role, content, tool_call_id, tool_calls, tool_name, effect_disposition, finish_reason, reasoning, reasoning_content, reasoning_details, codex_reasoning_items, codex_message_items, platform_message_id, api_content, stored_json, observed, _compressed_summary";

/// How many of them are texts; they come first.
const TEXTS: usize = 15;
/// The place of `stored_json`.
const STORED: usize = 14;

/// The columns of a row as places in a text.
#[derive(Debug, Default)]
pub(crate) struct RawColumns {
    texts: [Option<Range<usize>>; TEXTS],
    observed: bool,
    summary: bool,
}

impl RawColumns {
    /// Appends the texts of the columns of [`SELECT`], which begin at `first`, to `out`.
    pub(crate) fn read(row: &Row<'_>, first: usize, out: &mut String) -> rusqlite::Result<Self> {
        let mut raw = Self::default();
        raw.texts[STORED] = append(row.get_ref(first + STORED)?, out);
        let stored = raw.texts[STORED].clone();
        if stored.is_some_and(|place| out[place].starts_with('{')) {
            // The text says it all; nothing else has to be fetched from the row.
            return Ok(raw);
        }
        raw.read_others(row, first, out)?;
        Ok(raw)
    }

    /// [`Self::read`] without trust in `stored_json`.
    pub(crate) fn read_all(
        row: &Row<'_>,
        first: usize,
        out: &mut String,
    ) -> rusqlite::Result<Self> {
        let mut raw = Self::default();
        raw.texts[STORED] = append(row.get_ref(first + STORED)?, out);
        raw.read_others(row, first, out)?;
        Ok(raw)
    }

    fn read_others(
        &mut self,
        row: &Row<'_>,
        first: usize,
        out: &mut String,
    ) -> rusqlite::Result<()> {
        for at in 0..STORED {
            self.texts[at] = append(row.get_ref(first + at)?, out);
        }
        let truthy = |at: usize| -> rusqlite::Result<bool> {
            Ok(matches!(row.get_ref(first + at)?, ValueRef::Integer(number) if number != 0))
        };
        self.observed = truthy(TEXTS)?;
        self.summary = truthy(TEXTS + 1)?;
        Ok(())
    }

    /// The columns; `text` is the one that [`Self::read`] appended to.
    pub(crate) fn columns<'t>(&self, text: &'t str) -> Columns<'t> {
        let column = |at: usize| {
            self.texts[at]
                .clone()
                .map(|place| Cow::Borrowed(&text[place]))
        };
        Columns {
            role: column(0).unwrap_or(Cow::Borrowed("unknown")),
            content: column(1),
            tool_call_id: column(2),
            tool_calls: column(3),
            tool_name: column(4),
            effect_disposition: column(5),
            finish_reason: column(6),
            reasoning: column(7),
            reasoning_content: column(8),
            reasoning_details: column(9),
            codex_reasoning_items: column(10),
            codex_message_items: column(11),
            platform_message_id: column(12),
            api_content: column(13),
            stored_json: column(STORED),
            observed: self.observed,
            summary: self.summary,
            ..Columns::default()
        }
    }
}

/// Appends a value as text; where it stands then.
fn append(value: ValueRef<'_>, out: &mut String) -> Option<Range<usize>> {
    let start = out.len();
    match value {
        ValueRef::Null => return None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => out.push_str(text),
            Err(_) => out.push_str(&String::from_utf8_lossy(bytes)),
        },
        ValueRef::Integer(number) => out.push_str(&number.to_string()),
        ValueRef::Real(number) => out.push_str(&number.to_string()),
    }
    Some(start..out.len())
}
