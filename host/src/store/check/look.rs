//! The checks. None of them writes.

use hermes_message::Message;
use rusqlite::Connection;

use super::{CheckReport, Finding, Severity};
use crate::store::options::Progress;
use crate::store::schema::{FTS_TABLES, triggers};
use crate::store::{backfill, fts, pass};

fn finding(severity: Severity, check: &'static str, repairable: bool, message: String) -> Finding {
    Finding {
        severity,
        check,
        message,
        repairable,
        repaired: false,
    }
}

/// A count that should be 0: its name, what a count above 0 means, the query, and whether it can be mended.
struct Zero {
    check: &'static str,
    message: &'static str,
    sql: &'static str,
    repairable: bool,
}

const ZEROES: &[Zero] = &[
    Zero {
        check: "uids",
        message: "messages have no uid although the back-fill has passed them",
        sql: "SELECT count(*) FROM messages WHERE (message_uid IS NULL OR message_uid = '')
              AND NOT (id > (SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = 'rust_host_backfill_cursor')
                AND id <= (SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = 'rust_host_backfill_end'))",
        repairable: true,
    },
    Zero {
        check: "folds",
        message: "messages have a record of folded messages that is no list of uids, or that names the message itself",
        sql: "SELECT count(*) FROM messages m WHERE absorbed_message_uids IS NOT NULL AND (
                NOT json_valid(absorbed_message_uids) OR json_type(absorbed_message_uids) != 'array'
                OR EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(m.absorbed_message_uids)
                             THEN m.absorbed_message_uids ELSE '[]' END) e
                           WHERE e.type != 'text' OR e.value = '' OR e.value = m.message_uid))",
        repairable: true,
    },
    Zero {
        check: "call_uids",
        message: "messages have tool-call uids that are no map",
        sql: "SELECT count(*) FROM messages WHERE tool_call_uids IS NOT NULL
                AND (NOT json_valid(tool_call_uids) OR json_type(tool_call_uids) != 'object')",
        repairable: true,
    },
    Zero {
        check: "active",
        message: "messages are neither live nor archived (active is NULL), so that nobody shows them",
        sql: "SELECT count(*) FROM messages WHERE active IS NULL",
        repairable: true,
    },
    Zero {
        check: "orphans",
        message: "messages belong to a session that is not there",
        sql: "SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = m.session_id)",
        repairable: false,
    },
    Zero {
        check: "parents",
        message: "sessions name a parent that is not there",
        sql: "SELECT count(*) FROM sessions c WHERE parent_session_id IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM sessions p WHERE p.id = c.parent_session_id)",
        repairable: true,
    },
    Zero {
        check: "counts",
        message: "sessions count another number of live messages than they have",
        sql: "SELECT count(*) FROM sessions s WHERE COALESCE(message_count, 0) !=
                (SELECT count(*) FROM messages m INDEXED BY idx_messages_session_active
                 WHERE m.session_id = s.id AND m.active = 1)
              AND EXISTS (SELECT 1 FROM compaction_passes p WHERE p.session_id = s.id)",
        repairable: true,
    },
    Zero {
        check: "passes",
        message: "committed passes name rows of another session, or none",
        sql: "SELECT count(*) FROM compaction_passes p WHERE undone_at IS NULL
                AND EXISTS (SELECT 1 FROM messages m WHERE m.id BETWEEN p.first_row AND p.last_row
                            AND m.session_id = p.session_id AND m.active = 1)
                AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = p.first_row AND m.session_id = p.session_id)
                AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = p.last_row AND m.session_id = p.session_id)",
        repairable: false,
    },
    Zero {
        check: "index_missing",
        message: "messages are not in the search index",
        sql: "SELECT count(*) FROM messages WHERE fts_pending IS NULL
                AND (id NOT IN (SELECT id FROM messages_fts_docsize) OR id NOT IN (SELECT id FROM messages_fts_trigram_docsize))",
        repairable: true,
    },
    Zero {
        check: "index_left_over",
        message: "entries of the search index have no message",
        sql: "SELECT (SELECT count(*) FROM messages_fts_docsize WHERE id NOT IN (SELECT id FROM messages))
                + (SELECT count(*) FROM messages_fts_trigram_docsize WHERE id NOT IN (SELECT id FROM messages))
                + (SELECT count(*) FROM messages_fts_bigram_docsize WHERE id NOT IN (SELECT id FROM messages))",
        repairable: true,
    },
];

/// Everything that can be seen by reading.
pub(super) fn at_everything(
    conn: &Connection,
    now: f64,
    progress: Progress<'_>,
) -> rusqlite::Result<CheckReport> {
    let count = |sql: &str| -> rusqlite::Result<u64> {
        conn.query_row(sql, [], |r| r.get::<_, i64>(0))
            .map(|n| u64::try_from(n).unwrap_or(0))
    };
    let steps = u64::try_from(ZEROES.len()).unwrap_or(0) + 3;
    progress("checking", 0, steps);
    let mut report = CheckReport {
        findings: pages(conn)?,
        ..CheckReport::default()
    };
    if report
        .findings
        .iter()
        .any(|f| f.severity == Severity::Error)
    {
        // The other checks would only read the same damage.
        return Ok(report);
    }
    progress("checking", 1, steps);
    report.sessions = count("SELECT count(*) FROM sessions")?;
    report.messages = count("SELECT count(*) FROM messages")?;
    report.index_lag = fts::pending(conn)?;
    report.backfill_remaining = backfill::remaining(conn)?;
    for (at, zero) in ZEROES.iter().enumerate() {
        progress("checking", u64::try_from(at).unwrap_or(0) + 2, steps);
        let found = count(zero.sql)?;
        if found > 0 {
            let message = format!("{found} {}", zero.message);
            report.findings.push(finding(
                Severity::Warning,
                zero.check,
                zero.repairable,
                message,
            ));
        }
    }
    report.findings.extend(stored_texts(conn)?);
    report.findings.extend(missing_triggers(conn)?);
    report.findings.extend(locks(conn, now)?);
    if report.index_lag > 0 {
        let message = format!(
            "{} messages are not searchable yet; the next search indexes them",
            report.index_lag
        );
        report
            .findings
            .push(finding(Severity::Note, "index_lag", false, message));
    }
    if report.backfill_remaining > 0 {
        let message = format!(
            "up to {} older messages get their uid at later starts",
            report.backfill_remaining
        );
        report
            .findings
            .push(finding(Severity::Note, "backfill", false, message));
    }
    progress("checking", steps, steps);
    Ok(report)
}

fn pages(conn: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let mut statement = conn.prepare("PRAGMA integrity_check(20)")?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    loop {
        match rows.next() {
            Ok(Some(row)) => {
                let text: String = row.get(0)?;
                if text.contains("fts5") || text.contains("inverted index") {
                    found.push(finding(Severity::Warning, "index", true, text));
                } else if text != "ok" {
                    found.push(finding(Severity::Error, "pages", false, text));
                }
            }
            Ok(None) => return Ok(found),
            // Damage may be such that not even the check gets through.
            Err(error) => {
                found.push(finding(Severity::Error, "pages", false, error.to_string()));
                return Ok(found);
            }
        }
    }
}

/// SQLite narrows the choice; we decide. It takes no text that is nested deeper than 1000 levels, which we do.
fn stored_texts(conn: &Connection) -> rusqlite::Result<Option<Finding>> {
    let mut statement = conn.prepare(
        "SELECT stored_json FROM messages WHERE stored_json IS NOT NULL AND NOT json_valid(ltrim(stored_json, '~'))",
    )?;
    let mut rows = statement.query([])?;
    let mut found = 0_u64;
    while let Some(row) = rows.next()? {
        let text = row.get_ref(0)?.as_str().unwrap_or_default();
        if Message::parse(text.trim_start_matches('~')).is_err() {
            found += 1;
        }
    }
    Ok((found > 0).then(|| {
        let message = format!(
            "{found} messages have a stored text that is no JSON object; they are rebuilt from their columns"
        );
        finding(Severity::Warning, "stored_text", false, message)
    }))
}

fn missing_triggers(conn: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let mut found = Vec::new();
    let mut statement =
        conn.prepare("SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?1")?;
    for (name, body) in triggers() {
        let there: Option<String> = statement
            .query_map([name], |r| r.get(0))?
            .next()
            .transpose()?;
        if there.as_deref() != Some(body.as_str()) {
            let message = match there {
                None => format!("the trigger {name} is missing"),
                Some(_) => format!("the trigger {name} was replaced by another program"),
            };
            found.push(finding(Severity::Warning, "triggers", true, message));
        }
    }
    Ok(found)
}

fn locks(conn: &Connection, now: f64) -> rusqlite::Result<Vec<Finding>> {
    let mut statement = conn.prepare("SELECT session_id, holder FROM compression_locks")?;
    let all: Vec<(String, String)> = statement
        .query_map([], |r| Ok((r.get(0)?, r.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    for (session, holder) in all {
        found.push(match pass::holder_of(conn, &session, now)? {
            Some(_) => finding(Severity::Note, "locks", false, format!("session {session} is being compacted by {holder}")),
            None => finding(
                Severity::Note,
                "locks",
                true,
                format!("session {session} has a lock of {holder}, which is gone; the next pass takes it over"),
            ),
        });
    }
    Ok(found)
}

/// Lets FTS5 look at its own tables.
pub(super) fn inside_the_index(conn: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let mut found = Vec::new();
    for (table, _) in FTS_TABLES {
        if let Err(error) = conn.execute_batch(&format!(
            "INSERT INTO {table}({table}) VALUES('integrity-check')"
        )) {
            if matches!(
                error.sqlite_error_code(),
                Some(rusqlite::ErrorCode::DatabaseBusy)
            ) {
                return Err(error);
            }
            found.push(finding(
                Severity::Warning,
                "index",
                true,
                format!("{table} is damaged: {error}"),
            ));
        }
    }
    Ok(found)
}
