//! Lines that describe a session by its columns: our own exports, and those of Hermes.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rusqlite::{Connection, params};
use serde_json::value::RawValue;

use super::{Body, Candidate, text_of};
use crate::store::columns::{self, STRUCTURED};
use crate::store::error::StoreError;
use crate::store::export::{FORMAT, VERSION};
use crate::store::rows::{self, Cell, NewRow, Stamper};
use crate::store::{compact, identity};

/// From so many bytes on a second thread is worth its start.
const LONG: usize = 1 << 20;

type Members<'a> = Vec<(Cow<'a, str>, &'a str)>;

/// One session, by columns.
pub(crate) struct Line<'a> {
    session: Members<'a>,
    messages: Vec<Members<'a>>,
    passes: Vec<&'a str>,
    /// A line of ours: its rows are taken over as they are.
    ours: bool,
}

/// Whether the first line is one of ours or of Hermes.
pub(crate) fn is_native(content: &[u8]) -> bool {
    let first = content
        .split(|byte| *byte == b'\n')
        .find(|line| !line.trim_ascii().is_empty())
        .unwrap_or_default();
    // What a bad byte stands in is a session all the same, to be refused as one.
    let first = String::from_utf8_lossy(first);
    let first = first.trim();
    // A cut line has no members to look at, but still says at its start what it wanted to be.
    if first.starts_with(&format!("{{\"format\":\"{FORMAT}\"")) {
        return true;
    }
    let members = columns::members(first);
    let has = |key: &str| members.iter().any(|(name, _)| name == key);
    text_of(&members, "format").as_deref() == Some(FORMAT)
        || (has("id") && has("started_at") && has("messages"))
}

/// Reads all lines, or says which one is not usable.
pub(crate) fn read(content: &[u8]) -> Result<Vec<Candidate<'_>>, StoreError> {
    let lines: Vec<(usize, &[u8])> = content
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let candidates = side_by_side(&lines, content.len(), |(_, line)| {
        let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        read_line(text)
    });
    let mut out: Vec<Candidate<'_>> = Vec::with_capacity(lines.len());
    let mut seen = HashSet::new();
    for ((at, _), candidate) in lines.iter().zip(candidates) {
        let refuse = |reason: String| StoreError::Import {
            line: at + 1,
            reason,
        };
        let candidate = candidate.map_err(refuse)?;
        if !seen.insert(candidate.id.clone()) {
            return Err(refuse(format!(
                "session {:?} is in the file twice",
                candidate.id
            )));
        }
        out.push(candidate);
    }
    Ok(out)
}

/// What `read` makes of each line, in their order; by two threads where there is much to read.
fn side_by_side<T: Sync, R: Send>(
    lines: &[T],
    bytes: usize,
    read: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    if bytes < LONG || !rows::has_second_processor() {
        return lines.iter().map(read).collect();
    }
    // Lines differ much in length, so each thread takes the next one when it is done with its last.
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        while let Some((at, line)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            lines.get(at).map(|line| (at, line))
        } {
            done.push((at, read(line)));
        }
        done
    };
    let mut all = thread::scope(|scope| {
        let helper = thread::Builder::new().spawn_scoped(scope, some);
        let mut all = some();
        match helper.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(others)) => all.extend(others),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // The system has no thread to give; everything was read here.
            Err(_) => {}
        }
        all
    });
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

fn read_line(text: &str) -> Result<Candidate<'_>, String> {
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map_err(|error| format!("not JSON ({error}); was the file cut?"))?;
    let mut session = columns::members(text);
    let ours = text_of(&session, "format").as_deref() == Some(FORMAT);
    if ours && take(&mut session, "version") != Some(VERSION.to_string().as_str()) {
        return Err("written by a newer program; update hermes".to_owned());
    }
    take(&mut session, "format");
    let id = text_of(&session, "id")
        .filter(|id| !id.is_empty())
        .ok_or("a session needs an id")?;
    let messages =
        list(take(&mut session, "messages").unwrap_or("[]")).ok_or("messages must be a list")?;
    let passes =
        list(take(&mut session, "passes").unwrap_or("[]")).ok_or("passes must be a list")?;
    let messages: Vec<Members<'_>> = messages.into_iter().map(columns::members).collect();
    for (at, message) in messages.iter().enumerate() {
        if text_of(message, "role").is_none_or(|role| role.is_empty()) {
            return Err(format!("message {at} of session {id:?} has no role"));
        }
    }
    let parent = text_of(&session, "parent_session_id").filter(|parent| !parent.is_empty());
    session.retain(|(key, _)| key != "id" && key != "parent_session_id");
    Ok(Candidate {
        id,
        parent,
        body: Body::Native(Line {
            session,
            messages,
            passes,
            ours,
        }),
    })
}

/// Removes a member and returns its value.
fn take<'a>(members: &mut Members<'a>, key: &str) -> Option<&'a str> {
    let at = members.iter().rposition(|(name, _)| name == key)?;
    Some(members.remove(at).1)
}

fn list(raw: &str) -> Option<Vec<&str>> {
    serde_json::from_str::<Vec<&RawValue>>(raw)
        .ok()
        .map(|all| all.into_iter().map(RawValue::get).collect())
}

/// Whether the session that is there has other messages than the line.
pub(crate) fn differs(tx: &Connection, id: &str, line: &Line<'_>) -> rusqlite::Result<bool> {
    let there: HashSet<String> = tx
        .prepare_cached(
            "SELECT message_uid FROM messages WHERE session_id = ?1 AND message_uid IS NOT NULL",
        )?
        .query_map([id], |r| r.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(line
        .messages
        .iter()
        .filter_map(|message| text_of(message, "message_uid"))
        .any(|uid| !there.contains(&uid)))
}

/// A column's value from its JSON.
fn value<'a>(column: &str, raw: &'a str) -> Cell<'a> {
    let text = |text: String| Cell::Text(Cow::Owned(text));
    match (column, raw.as_bytes().first()) {
        (_, Some(b'n') | None) => Cell::Null,
        (_, Some(b't')) => Cell::Integer(1),
        (_, Some(b'f')) => Cell::Integer(0),
        (_, Some(b'"')) => Cell::Text(columns::string(raw).unwrap_or_default()),
        ("content", Some(b'[' | b'{')) => text([STRUCTURED, &columns::python(raw)].concat()),
        (_, Some(b'{')) if raw.starts_with("{\"hex\":") => Cell::Blob(Cow::Owned(unhex(raw))),
        (_, Some(b'[' | b'{')) => Cell::Text(columns::python(raw)),
        _ => match raw.parse::<i64>() {
            Ok(number) => Cell::Integer(number),
            Err(_) => raw.parse().map_or(Cell::Null, Cell::Real),
        },
    }
}

fn unhex(raw: &str) -> Vec<u8> {
    let digits: Vec<u8> = text_of(&columns::members(raw), "hex")
        .unwrap_or_default()
        .into_bytes();
    digits
        .chunks(2)
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

fn known_columns(tx: &Connection, table: &str) -> rusqlite::Result<HashSet<String>> {
    tx.prepare_cached("SELECT name FROM pragma_table_info(?1)")?
        .query_map([table], |r| r.get(0))?
        .collect()
}

/// Inserts the members that are columns of the table.
fn insert(
    tx: &Connection,
    table: &str,
    known: &HashSet<String>,
    all: Vec<(&str, Cell<'_>)>,
) -> rusqlite::Result<i64> {
    let all: Vec<(&str, Cell<'_>)> = all
        .into_iter()
        .filter(|(name, _)| known.contains(*name))
        .collect();
    let names: Vec<String> = all
        .iter()
        .map(|(name, _)| format!("\"{}\"", name.replace('"', "\"\"")))
        .collect();
    let marks = vec!["?"; all.len()].join(",");
    tx.prepare_cached(&format!(
        "INSERT INTO {table} ({}) VALUES ({marks})",
        names.join(",")
    ))?
    .insert(rusqlite::params_from_iter(
        all.into_iter().map(|(_, value)| value),
    ))
}

/// Writes the session with all its rows.
pub(crate) fn write(
    tx: &Connection,
    id: &str,
    parent: Option<&str>,
    line: &Line<'_>,
    now: f64,
) -> rusqlite::Result<usize> {
    write_session(tx, id, parent, line, now)?;
    let known = known_columns(tx, "messages")?;
    let mut stamper = Stamper::new(now);
    let (ids, _) = rows::insert_made(tx, &line.messages, |message| {
        row_of(id, message, &known, &mut stamper, line.ours)
    })?;
    write_passes(tx, id, line, &ids)?;
    rows::recount(tx, id)?;
    Ok(line.messages.len())
}

fn write_session(
    tx: &Connection,
    id: &str,
    parent: Option<&str>,
    line: &Line<'_>,
    now: f64,
) -> rusqlite::Result<()> {
    let known = known_columns(tx, "sessions")?;
    // Who owns a live channel or a hand-over is not a matter of history.
    let transient = ["handoff_state", "handoff_platform", "handoff_error"];
    let mut all: Vec<(&str, Cell<'_>)> = line
        .session
        .iter()
        .filter(|(name, _)| line.ours || !transient.contains(&&**name))
        .map(|(name, raw)| (&**name, value(name, raw)))
        .filter(|(_, value)| *value != Cell::Null)
        .collect();
    all.retain(|(name, value)| *name != "title" || !title_taken(tx, value));
    let mut add = |name: &'static str, value: Cell<'static>| {
        if !all.iter().any(|(there, _)| *there == name) {
            all.push((name, value));
        }
    };
    add("source", Cell::Text("import".into()));
    add("started_at", Cell::Real(now));
    all.push(("id", Cell::Text(id.into())));
    if let Some(parent) = parent {
        all.push(("parent_session_id", Cell::Text(parent.into())));
    }
    insert(tx, "sessions", &known, all).map(|_| ())
}

fn title_taken(tx: &Connection, title: &Cell<'_>) -> bool {
    tx.prepare_cached("SELECT 1 FROM sessions WHERE title = ?1")
        .is_ok_and(|mut s| s.exists([title]).unwrap_or(false))
}

/// A message's row from its columns.
fn row_of<'a>(
    session: &'a str,
    message: &'a Members<'_>,
    known: &HashSet<String>,
    stamper: &mut Stamper,
    ours: bool,
) -> NewRow<'a> {
    let mut row = NewRow::empty(session);
    for (name, raw) in message {
        // Last comes the last of a repeated member, as always.
        match (&**name, value(name, raw)) {
            ("id" | "session_id" | "fts_pending", _) | (_, Cell::Null) => {}
            (name, cell) => row.set(name, cell, known),
        }
    }
    if !ours || *row.get("timestamp") == Cell::Null {
        let said = message.iter().rev().find(|(name, _)| name == "timestamp");
        let own = said.and_then(|(_, raw)| columns::seconds(raw));
        row.set("timestamp", Cell::Real(stamper.next(own)), known);
    }
    if *row.get("message_uid") == Cell::Null {
        row.set("message_uid", Cell::Text(identity::mint().into()), known);
    }
    row
}

fn write_passes(tx: &Connection, id: &str, line: &Line<'_>, ids: &[i64]) -> rusqlite::Result<()> {
    let row = |at: i64| usize::try_from(at).ok().and_then(|at| ids.get(at)).copied();
    for raw in &line.passes {
        let Ok(pass) = serde_json::from_str::<serde_json::Value>(raw) else {
            continue;
        };
        let number = |key: &str| pass[key].as_i64().unwrap_or(0);
        let source = pass["source_session_id"].as_str();
        let theirs = match source {
            Some(source) => Some(rows::all_ids(tx, source)?),
            None => None,
        };
        let seen = usize::try_from(number("seen")).unwrap_or(0);
        let watermark = seen
            .checked_sub(1)
            .and_then(|at| theirs.as_deref().unwrap_or(ids).get(at))
            .copied()
            .unwrap_or(0);
        let archived: Vec<i64> =
            serde_json::from_value::<Vec<(usize, usize)>>(pass["archived"].clone())
                .unwrap_or_default()
                .into_iter()
                .flat_map(|(from, to)| ids.get(from..to).unwrap_or_default().to_vec())
                .collect();
        let members = columns::members(raw);
        let time = |key: &str| {
            members
                .iter()
                .find(|(name, _)| name == key)
                .and_then(|(_, raw)| raw.parse::<f64>().ok())
        };
        tx.prepare_cached(
            "INSERT OR IGNORE INTO compaction_passes (session_id, generation, pass_id, mode, watermark, archived,
               first_row, last_row, source_session_id, committed_at, undone_at, previous_pass_id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            id,
            number("generation"),
            pass["pass_id"].as_str().unwrap_or_default(),
            pass["mode"].as_str().unwrap_or("in_place"),
            watermark,
            compact::ranges(&archived),
            row(number("first")).unwrap_or(0),
            row(number("end") - 1).unwrap_or(0),
            source,
            time("committed_at").unwrap_or(0.0),
            time("undone_at"),
            pass["previous_pass_id"].as_str(),
        ])?;
    }
    Ok(())
}
