//! The verbs that only read.

use std::io::Write;

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::{CliError, Exit, output};
use super::{find, open_to_read};
use crate::store::{Query, Session, StoredMessage, clock};

fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(head);
    table
}

pub(super) fn list(limit: usize, json: bool) -> Result<Exit, CliError> {
    let sessions = match open_to_read()? {
        Some(store) => store.sessions(limit)?,
        None => Vec::new(),
    };
    if json {
        output::json(&sessions)?;
        return Ok(Exit::Done);
    }
    if sessions.is_empty() {
        output::text("No sessions yet.")?;
        return Ok(Exit::Done);
    }
    output::text(of_sessions(&sessions))?;
    Ok(Exit::Done)
}

/// Sessions as a person reads them.
pub(super) fn of_sessions(sessions: &[Session]) -> Table {
    let mut table = table(&["ID", "LAST USED (UTC)", "MESSAGES", "SOURCE", "TITLE"]);
    for session in sessions {
        table.add_row([
            session.id.clone(),
            clock::display(session.last_active.unwrap_or(session.started_at)),
            session.message_count.to_string(),
            session.source.clone(),
            output::one_line(name(session)),
        ]);
    }
    table
}

/// What a person knows a session by.
fn name(session: &Session) -> &str {
    session
        .title
        .as_deref()
        .or(session.preview.as_deref())
        .unwrap_or("")
}

pub(super) fn show(id: &str, all: bool, json: bool) -> Result<Exit, CliError> {
    let (store, id) = find(open_to_read()?, id)?;
    let session = store.session(&id)?;
    let rows = store.messages(&id, all)?;
    if json {
        let messages: Vec<Value> = rows.iter().map(row_json).collect::<Result<_, _>>()?;
        output::json(&json!({ "session": session, "messages": messages }))?;
        return Ok(Exit::Done);
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    writeln!(
        out,
        "{}  {}  {} messages",
        session.id,
        output::one_line(name(&session)),
        rows.len()
    )?;
    for row in &rows {
        write_row(&mut out, row)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn row_json(row: &StoredMessage) -> Result<Value, CliError> {
    let message: Box<RawValue> = RawValue::from_string(row.message.to_json_with_identity())
        .map_err(|error| {
            CliError::new(
                "damaged",
                format!("message {} is no JSON: {error}", row.row_id),
            )
        })?;
    Ok(json!({
        "row_id": row.row_id,
        "timestamp": row.timestamp,
        "active": row.active,
        "archived": row.compacted,
        "message": serde_json::to_value(&message).unwrap_or_default(),
    }))
}

fn write_row(out: &mut impl Write, row: &StoredMessage) -> std::io::Result<()> {
    let message = &row.message;
    let state = match (row.active, row.compacted) {
        (true, _) => "",
        (false, true) => " (archived)",
        (false, false) => " (taken back)",
    };
    let role = message.value("role").unwrap_or("\"?\"").trim_matches('"');
    writeln!(
        out,
        "\n── {}{state} · {}",
        output::one_line(role),
        clock::display(row.timestamp)
    )?;
    for line in message.text().lines() {
        writeln!(out, "{}", printable(line))?;
    }
    for call in message.tool_calls() {
        writeln!(
            out,
            "→ {}({})",
            output::one_line(&call.name),
            printable(&call.arguments())
        )?;
    }
    Ok(())
}

/// A line without what would steer the terminal.
fn printable(line: &str) -> String {
    line.chars()
        .map(|c| {
            if c.is_control() && c != '\t' {
                '\u{FFFD}'
            } else {
                c
            }
        })
        .collect()
}

pub(super) fn search(
    text: &str,
    rank: bool,
    limit: usize,
    session: Option<&str>,
    json: bool,
) -> Result<Exit, CliError> {
    let hits = match (open_to_read()?, session) {
        (None, _) => Vec::new(),
        (Some(store), None) => store.search(&Query {
            text,
            rank,
            limit,
            ..Query::default()
        })?,
        (Some(store), Some(session)) => {
            let session = store.find_session(session)?;
            store.search(&Query {
                text,
                rank,
                limit,
                session: Some(&session),
                ..Query::default()
            })?
        }
    };
    if json {
        output::json(&hits)?;
        return Ok(Exit::Done);
    }
    if hits.is_empty() {
        output::text("Nothing found.")?;
        return Ok(Exit::Done);
    }
    let mut table = table(&["SESSION", "WHEN (UTC)", "WHO", "TEXT"]);
    for hit in &hits {
        table.add_row([
            hit.session.clone(),
            clock::display(hit.timestamp),
            hit.role.clone(),
            output::one_line(&hit.snippet),
        ]);
    }
    output::text(table)?;
    Ok(Exit::Done)
}

pub(super) fn export(id: &str, lineage: bool, json: bool) -> Result<Exit, CliError> {
    let (store, id) = find(open_to_read()?, id)?;
    let ids = if lineage {
        store.lineage(&id)?
    } else {
        vec![id]
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    // Several lines are no single JSON value; with --json they become a list.
    let list = json && lineage;
    for (at, id) in ids.iter().enumerate() {
        if list {
            out.write_all(if at == 0 { b"[" } else { b"," })?;
        }
        out.write_all(store.export(id)?.as_bytes())?;
        if !list {
            out.write_all(b"\n")?;
        }
    }
    if list {
        out.write_all(b"]\n")?;
    }
    out.flush()?;
    Ok(Exit::Done)
}
