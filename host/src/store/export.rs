//! A session as one line of JSON, with everything that makes it the same session again.
//!
//! A line holds the session's row and the rows of its messages, live or not, by column. Real Hermes reads
//! such a line too. Where a column holds JSON it is written as JSON, if that gives the column back exactly.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde_json::Value;

use super::columns::STRUCTURED;
use super::error::StoreError;
use super::pyjson::dumps;
use super::{Store, compact, rows, session};

/// What marks our lines.
pub(crate) const FORMAT: &str = "hermes-session";
/// Their version.
pub(crate) const VERSION: i64 = 1;

impl Store {
    /// The session as one line of JSON without its line feed. The same session always gives the same line.
    ///
    /// # Errors
    /// When there is no such session, or the file cannot be read.
    pub fn export(&self, id: &str) -> Result<String, StoreError> {
        const DOING: &str = "export a session";
        let failed = self.failed(DOING);
        self.read(DOING, |tx| {
            session::require(tx, id, &failed)?;
            line(tx, id).map_err(&failed)
        })
    }

    /// The session and those it continues or is continued by through rotations, oldest first.
    ///
    /// # Errors
    /// When there is no such session, or the file cannot be read.
    pub fn lineage(&self, id: &str) -> Result<Vec<String>, StoreError> {
        const DOING: &str = "read a session's lineage";
        let failed = self.failed(DOING);
        self.read(DOING, |tx| {
            let mut all = vec![session::require(tx, id, &failed)?.id];
            while let Some(parent) = session::get(tx, &all[0])
                .map_err(&failed)?
                .and_then(|row| row.parent)
                .filter(|parent| !all.contains(parent))
            {
                match session::get(tx, &parent).map_err(&failed)? {
                    Some(row) if row.end_reason.as_deref() == Some("compression") => {
                        all.insert(0, row.id)
                    }
                    _ => break,
                }
            }
            let tip = session::tip(tx, id).map_err(&failed)?;
            let mut later = Vec::new();
            let mut at = tip;
            while !all.contains(&at) {
                later.insert(0, at.clone());
                match session::get(tx, &at)
                    .map_err(&failed)?
                    .and_then(|row| row.parent)
                {
                    Some(parent) => at = parent,
                    None => break,
                }
            }
            all.extend(later);
            Ok(all)
        })
    }
}

fn line(conn: &Connection, id: &str) -> rusqlite::Result<String> {
    let mut out = format!("{{\"format\":\"{FORMAT}\",\"version\":{VERSION}");
    let mut sessions = conn.prepare("SELECT * FROM sessions WHERE id = ?1")?;
    sessions.query_row([id], |row| members(row, &[], &mut out))?;
    let ids = rows::all_ids(conn, id)?;
    out.push_str(",\"messages\":[");
    let mut messages = conn.prepare("SELECT * FROM messages WHERE id = ?1")?;
    for (at, row_id) in ids.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        messages.query_row([row_id], |row| {
            object(row, &["id", "session_id", "fts_pending"], &mut out)
        })?;
    }
    out.push_str("],\"passes\":[");
    passes(conn, id, &ids, &mut out)?;
    out.push_str("]}");
    Ok(out)
}

fn object(row: &Row<'_>, without: &[&str], out: &mut String) -> rusqlite::Result<()> {
    out.push('{');
    let start = out.len();
    members(row, without, out)?;
    // The first member brought a comma along.
    if out.len() > start {
        out.remove(start);
    }
    out.push('}');
    Ok(())
}

/// Appends `,"column":value` for every column that is not NULL.
fn members(row: &Row<'_>, without: &[&str], out: &mut String) -> rusqlite::Result<()> {
    for at in 0..row.as_ref().column_count() {
        let name = row.as_ref().column_name(at)?;
        if without.contains(&name) {
            continue;
        }
        let value = match row.get_ref(at)? {
            ValueRef::Null => continue,
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => real(number),
            ValueRef::Text(bytes) => text(name, &String::from_utf8_lossy(bytes)),
            ValueRef::Blob(bytes) => format!("{{\"hex\":\"{}\"}}", hex(bytes)),
        };
        out.push(',');
        out.push_str(&quote(name));
        out.push(':');
        out.push_str(&value);
    }
    Ok(())
}

fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}

/// A number that is read back as the same number, and as one that is not whole.
fn real(number: f64) -> String {
    if number.is_finite() {
        format!("{number:?}")
    } else {
        quote(&number.to_string())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Text, or the JSON that it holds where that leads back to the very same text.
fn text(column: &str, text: &str) -> String {
    let json = match column {
        "content" => text.strip_prefix(STRUCTURED),
        "tool_calls" => Some(text),
        _ => None,
    };
    let faithful = json.and_then(|json| {
        let value: Value = serde_json::from_str(json)
            .ok()
            .filter(|v: &Value| v.is_array() || v.is_object())?;
        let written = value.to_string();
        let again: Value = serde_json::from_str(&written).ok()?;
        (dumps(&again) == json).then_some(written)
    });
    faithful.unwrap_or_else(|| quote(text))
}

/// The session's passes, with rows named by their place in `messages`, as row ids do not outlive a copy.
fn passes(conn: &Connection, id: &str, ids: &[i64], out: &mut String) -> rusqlite::Result<()> {
    let place = |row: i64| ids.partition_point(|id| *id < row);
    let mut statement = conn.prepare(
        "SELECT generation, pass_id, mode, watermark, archived, first_row, last_row, source_session_id, committed_at, undone_at, previous_pass_id
         FROM compaction_passes WHERE session_id = ?1 ORDER BY generation",
    )?;
    let mut rows = statement.query([id])?;
    let mut first = true;
    while let Some(row) = rows.next()? {
        let source: Option<String> = row.get(7)?;
        let watermark: i64 = row.get(3)?;
        // A rotation's watermark lies among its parent's rows.
        let seen = match &source {
            Some(source) => rows::all_ids(conn, source)?.partition_point(|id| *id <= watermark),
            None => ids.partition_point(|id| *id <= watermark),
        };
        let archived: Vec<(usize, usize)> = compact::parse_ranges(&row.get::<_, String>(4)?)
            .into_iter()
            .map(|(from, to)| (place(from), ids.partition_point(|id| *id <= to)))
            .filter(|(from, to)| from < to)
            .collect();
        let pass = serde_json::json!({
            "generation": row.get::<_, i64>(0)?,
            "pass_id": row.get::<_, String>(1)?,
            "mode": row.get::<_, String>(2)?,
            "seen": seen,
            "archived": archived,
            "first": place(row.get(5)?),
            "end": ids.partition_point(|id| *id <= row.get(6).unwrap_or(0)),
            "source_session_id": source,
            "previous_pass_id": row.get::<_, Option<String>>(10)?,
        });
        if !first {
            out.push(',');
        }
        first = false;
        let mut pass = pass.to_string();
        pass.pop();
        out.push_str(&pass);
        out.push_str(&format!(",\"committed_at\":{}", real(row.get(8)?)));
        if let Some(undone) = row.get::<_, Option<f64>>(9)? {
            out.push_str(&format!(",\"undone_at\":{}", real(undone)));
        }
        out.push('}');
    }
    Ok(())
}
