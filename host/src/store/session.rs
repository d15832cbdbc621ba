//! Rows of `sessions`.

use std::collections::HashSet;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;

use super::error::StoreError;
use super::{Store, clock};

/// What a new session begins with.
#[derive(Debug, Clone, Default)]
pub struct NewSession<'a> {
    /// Its id; made from the time and chance when absent.
    pub id: Option<&'a str>,
    /// Which surface runs it: `cli`, `gateway`, …
    pub source: &'a str,
    /// The model's name.
    pub model: Option<&'a str>,
    /// Settings of the model, a JSON object.
    pub model_config: Option<&'a str>,
    /// The system prompt.
    pub system_prompt: Option<&'a str>,
    /// The session it goes on from or works for.
    pub parent: Option<&'a str>,
    /// The working directory.
    pub cwd: Option<&'a str>,
    /// A title for people.
    pub title: Option<&'a str>,
}

/// A session as the store describes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Session {
    /// Its id.
    pub id: String,
    /// Which surface runs it.
    pub source: String,
    /// The model's name.
    pub model: Option<String>,
    /// Settings of the model, a JSON object.
    pub model_config: Option<String>,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// The session it came from.
    pub parent: Option<String>,
    /// When it began, in seconds since 1970.
    pub started_at: f64,
    /// When it ended.
    pub ended_at: Option<f64>,
    /// Why it ended: `compression` when it goes on in a child.
    pub end_reason: Option<String>,
    /// Live messages.
    pub message_count: i64,
    /// Tool calls in them.
    pub tool_call_count: i64,
    /// A title for people.
    pub title: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The last committed pass whose result is the transcript (`PASS-11`).
    pub last_pass_id: Option<String>,
    /// Raised by everything that changes older rows.
    pub generation: i64,
    /// The newest time stamp among its messages.
    pub last_active: Option<f64>,
    /// The beginning of its first user message.
    pub preview: Option<String>,
}

/// Another program, or a file that was imported, may have put a text where a number belongs; one such row must not
/// hide all sessions.
const COLUMNS: &str = "s.id, s.source, s.model, s.model_config, s.system_prompt, s.parent_session_id,
    CAST(s.started_at AS REAL), CAST(s.ended_at AS REAL), s.end_reason, CAST(COALESCE(s.message_count, 0) AS INTEGER),
    CAST(COALESCE(s.tool_call_count, 0) AS INTEGER), s.title, s.cwd, s.last_pass_id,
    CAST(COALESCE(s.transcript_generation, 0) AS INTEGER)";

/// A member of a session's settings, in SQL; NULL when the settings are no JSON.
macro_rules! setting {
    ($column:literal, $member:literal) => {
        concat!(
            "CASE WHEN json_valid(",
            $column,
            ") THEN json_extract(",
            $column,
            ", '$.",
            $member,
            "') END"
        )
    };
}

fn read(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        id: row.get(0)?,
        source: text(row, 1)?.unwrap_or_default(),
        model: text(row, 2)?,
        model_config: text(row, 3)?,
        system_prompt: text(row, 4)?,
        parent: text(row, 5)?,
        started_at: row.get::<_, Option<f64>>(6)?.unwrap_or_default(),
        ended_at: row.get(7)?,
        end_reason: text(row, 8)?,
        message_count: row.get(9)?,
        tool_call_count: row.get(10)?,
        title: text(row, 11)?,
        cwd: text(row, 12)?,
        last_pass_id: text(row, 13)?,
        generation: row.get(14)?,
        last_active: None,
        preview: None,
    })
}

fn text(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
    })
}

/// The session with exactly this id.
pub(crate) fn get(conn: &Connection, id: &str) -> rusqlite::Result<Option<Session>> {
    conn.prepare_cached(&format!("SELECT {COLUMNS} FROM sessions s WHERE s.id = ?1"))?
        .query_row([id], read)
        .optional()
}

/// The session with exactly this id, or the error that it does not exist.
pub(crate) fn require(
    conn: &Connection,
    id: &str,
    failed: impl Fn(rusqlite::Error) -> StoreError,
) -> Result<Session, StoreError> {
    get(conn, id)
        .map_err(failed)?
        .ok_or_else(|| StoreError::NoSession { id: id.to_owned() })
}

/// Raises the counter that tells a running pass that its picture of the session is out of date.
pub(crate) fn bump(conn: &Connection, id: &str) -> rusqlite::Result<i64> {
    conn.prepare_cached(
        "UPDATE sessions SET transcript_generation = COALESCE(transcript_generation, 0) + 1 WHERE id = ?1
         RETURNING transcript_generation",
    )?
    .query_row([id], |r| r.get(0))
}

/// A new id, as Hermes makes them.
pub(crate) fn new_id(now: f64) -> String {
    let random = super::identity::mint();
    format!("{}_{}", clock::compact(now), &random[..6])
}

/// Writes the row of a new session.
pub(crate) fn insert(
    conn: &Connection,
    id: &str,
    new: &NewSession<'_>,
    now: f64,
) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO sessions (id, source, model, model_config, system_prompt, parent_session_id, cwd, title, started_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        id,
        if new.source.is_empty() { "cli" } else { new.source },
        new.model,
        new.model_config,
        new.system_prompt,
        new.parent,
        new.cwd,
        new.title,
        now
    ])?;
    Ok(())
}

/// Where a session that was compacted by rotation goes on; the session itself when it does not.
pub(crate) fn tip(conn: &Connection, id: &str) -> rusqlite::Result<String> {
    let mut current = id.to_owned();
    let mut seen = HashSet::from([current.clone()]);
    loop {
        // Branches, sub-agents and tool runs have the parent too, but do not continue it.
        let child: Option<String> = conn
            .prepare_cached(concat!(
                "SELECT child.id FROM sessions parent JOIN sessions child ON child.parent_session_id = parent.id
                 WHERE parent.id = ?1 AND parent.end_reason = 'compression'
                   AND ",
                setting!("child.model_config", "_branched_from"),
                " IS NULL
                   AND ",
                setting!("child.model_config", "_delegate_from"),
                " IS NULL
                   AND COALESCE(child.source, '') != 'tool'
                 ORDER BY CASE WHEN child.end_reason = 'compression' THEN 0 WHEN child.ended_at IS NULL THEN 1 ELSE 2 END,
                   COALESCE((SELECT max(timestamp) FROM messages m WHERE m.session_id = child.id), child.started_at) DESC,
                   child.started_at DESC, child.id DESC
                 LIMIT 1",
            ))?
            .query_row([&current], |r| r.get(0))
            .optional()?;
        match child {
            Some(child) if seen.insert(child.clone()) => current = child,
            _ => return Ok(current),
        }
    }
}

/// What [`Store::delete_session`] removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Deleted {
    /// The session and the sub-agent runs that went with it.
    pub sessions: Vec<String>,
    /// Message rows.
    pub messages: usize,
}

impl Store {
    /// Begins a session and returns its id.
    ///
    /// # Errors
    /// When the id is taken, the parent is unknown, or the file cannot be written.
    pub fn create_session(&self, new: &NewSession<'_>) -> Result<String, StoreError> {
        const DOING: &str = "begin a session";
        let failed = self.failed(DOING);
        let now = self.options.now();
        let id = new.id.map_or_else(|| new_id(now), str::to_owned);
        if id.is_empty() || id.chars().any(char::is_control) {
            return Err(StoreError::Invalid(format!(
                "{id:?} cannot be the id of a session"
            )));
        }
        self.write(DOING, |tx| {
            if get(tx, &id).map_err(&failed)?.is_some() {
                return Err(StoreError::SessionExists { id: id.clone() });
            }
            if let Some(parent) = new.parent {
                require(tx, parent, &failed)?;
            }
            insert(tx, &id, new, now).map_err(&failed)
        })?;
        Ok(id)
    }

    /// A session by its exact id.
    ///
    /// # Errors
    /// When there is none, or the file cannot be read.
    pub fn session(&self, id: &str) -> Result<Session, StoreError> {
        const DOING: &str = "read a session";
        let failed = self.failed(DOING);
        self.read(DOING, |tx| {
            let mut session = require(tx, id, &failed)?;
            describe(tx, &mut session).map_err(&failed)?;
            Ok(session)
        })
    }

    /// The full id of the one session whose id is, or begins with, `prefix`.
    ///
    /// # Errors
    /// When there is none or more than one.
    pub fn find_session(&self, prefix: &str) -> Result<String, StoreError> {
        const DOING: &str = "look for a session";
        let failed = self.failed(DOING);
        self.read(DOING, |tx| {
            if let Some(session) = get(tx, prefix).map_err(&failed)? {
                return Ok(session.id);
            }
            let matches: Vec<String> = tx
                .prepare_cached("SELECT id FROM sessions WHERE substr(id, 1, length(?1)) = ?1 ORDER BY started_at DESC LIMIT 6")
                .and_then(|mut s| s.query_map([prefix], |r| r.get(0))?.collect())
                .map_err(&failed)?;
            match matches.as_slice() {
                [] => Err(StoreError::NoSession { id: prefix.to_owned() }),
                _ if prefix.is_empty() => Err(StoreError::NoSession { id: String::new() }),
                [only] => Ok(only.clone()),
                _ => Err(StoreError::Ambiguous { prefix: prefix.to_owned(), matches }),
            }
        })
    }

    /// All sessions, the one used last first. `limit` 0 means all.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn sessions(&self, limit: usize) -> Result<Vec<Session>, StoreError> {
        const DOING: &str = "list the sessions";
        let failed = self.failed(DOING);
        self.read(DOING, |tx| {
            let limit = if limit == 0 { -1 } else { i64::try_from(limit).unwrap_or(i64::MAX) };
            let mut statement = tx
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM sessions s ORDER BY COALESCE(
                       (SELECT max(timestamp) FROM messages m WHERE m.session_id = s.id), s.started_at) DESC, s.id DESC
                     LIMIT ?1"
                ))
                .map_err(&failed)?;
            let mut all: Vec<Session> =
                statement.query_map([limit], read).and_then(Iterator::collect).map_err(&failed)?;
            for session in &mut all {
                describe(tx, session).map_err(&failed)?;
            }
            Ok(all)
        })
    }

    /// Marks a session as ended. The first reason stays.
    ///
    /// # Errors
    /// When there is no such session, or the file cannot be written.
    pub fn end_session(&self, id: &str, reason: &str) -> Result<(), StoreError> {
        const DOING: &str = "end a session";
        let failed = self.failed(DOING);
        let now = self.options.now();
        self.write(DOING, |tx| {
            require(tx, id, &failed)?;
            tx.execute(
                "UPDATE sessions SET ended_at = ?2, end_reason = ?3 WHERE id = ?1 AND ended_at IS NULL",
                params![id, now, reason],
            )
            .map(|_| ())
            .map_err(&failed)
        })
    }

    /// Opens an ended session again, so that it can be continued.
    ///
    /// # Errors
    /// When there is no such session, or the file cannot be written.
    pub fn reopen_session(&self, id: &str) -> Result<(), StoreError> {
        const DOING: &str = "reopen a session";
        let failed = self.failed(DOING);
        self.write(DOING, |tx| {
            require(tx, id, &failed)?;
            tx.execute(
                "UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = ?1",
                [id],
            )
            .map(|_| ())
            .map_err(&failed)
        })
    }

    /// Sets or clears the title.
    ///
    /// # Errors
    /// When another session has it, there is no such session, or the file cannot be written.
    pub fn set_title(&self, id: &str, title: Option<&str>) -> Result<(), StoreError> {
        const DOING: &str = "set a title";
        let failed = self.failed(DOING);
        self.write(DOING, |tx| {
            require(tx, id, &failed)?;
            if let Some(title) = title {
                let other: Option<String> = tx
                    .query_row(
                        "SELECT id FROM sessions WHERE title = ?1 AND id != ?2",
                        [title, id],
                        |r| r.get(0),
                    )
                    .optional()
                    .map_err(&failed)?;
                if let Some(other) = other {
                    return Err(StoreError::Invalid(format!(
                        "session {other} has the title {title:?} already"
                    )));
                }
            }
            tx.execute(
                "UPDATE sessions SET title = ?2 WHERE id = ?1",
                params![id, title],
            )
            .map(|_| ())
            .map_err(&failed)
        })
    }

    /// Deletes a session with all its messages. Sub-agent runs of it go too; branches and continuations stay.
    ///
    /// # Errors
    /// When there is no such session, or the file cannot be written.
    pub fn delete_session(&self, id: &str) -> Result<Deleted, StoreError> {
        const DOING: &str = "delete a session";
        let failed = self.failed(DOING);
        self.write(DOING, |tx| {
            require(tx, id, &failed)?;
            let mut deleted = Deleted::default();
            for doomed in family(tx, id).map_err(&failed)? {
                deleted.messages += erase(tx, &doomed).map_err(&failed)?;
                deleted.sessions.push(doomed);
            }
            Ok(deleted)
        })
    }
}

/// The session and the sub-agent runs below it.
fn family(conn: &Connection, id: &str) -> rusqlite::Result<Vec<String>> {
    let mut found = vec![id.to_owned()];
    let mut at = 0;
    while let Some(parent) = found.get(at).cloned() {
        let mut children = conn.prepare_cached(concat!(
            "SELECT id FROM sessions WHERE ",
            setting!("model_config", "_delegate_from"),
            " = ?1 OR (parent_session_id = ?1 AND ",
            setting!("model_config", "_delegate_from"),
            " IS NOT NULL)",
        ))?;
        for child in children.query_map([&parent], |r| r.get::<_, String>(0))? {
            let child = child?;
            if !found.contains(&child) {
                found.push(child);
            }
        }
        at += 1;
    }
    Ok(found)
}

fn erase(conn: &Connection, id: &str) -> rusqlite::Result<usize> {
    conn.execute(
        "UPDATE sessions SET parent_session_id = NULL WHERE parent_session_id = ?1",
        [id],
    )?;
    super::fts::make_session_removable(conn, id)?;
    let messages = conn.execute("DELETE FROM messages WHERE session_id = ?1", [id])?;
    conn.execute("DELETE FROM compression_locks WHERE session_id = ?1", [id])?;
    conn.execute("DELETE FROM sessions WHERE id = ?1", [id])?;
    Ok(messages)
}

/// Adds what a list shows.
fn describe(conn: &Connection, session: &mut Session) -> rusqlite::Result<()> {
    session.last_active = conn
        .prepare_cached("SELECT CAST(max(timestamp) AS REAL) FROM messages INDEXED BY idx_messages_session WHERE session_id = ?1")?
        .query_row([&session.id], |r| r.get(0))?;
    // By time, which an index has: in a list the very first row does not have to be exact.
    let first: Option<i64> = conn
        .prepare_cached(
            "SELECT id FROM messages INDEXED BY idx_messages_session WHERE session_id = ?1 AND role = 'user'
             ORDER BY timestamp LIMIT 1",
        )?
        .query_row([&session.id], |r| r.get(0))
        .optional()?;
    if let Some(first) = first {
        let text = super::rows::load(conn, &[first])?
            .pop()
            .map(|row| row.message.text().into_owned());
        session.preview = text.map(|text| {
            let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
            line.chars().take(80).collect()
        });
    }
    Ok(())
}
