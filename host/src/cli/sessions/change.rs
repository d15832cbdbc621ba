//! The verbs that change the store.

use std::path::Path;

use serde_json::json;

use super::super::{CliError, Exit, files, output};
use super::{Bar, find, open, open_to_read};
use crate::config::HermesHome;
use crate::store::{NewSession, Severity};

pub(super) fn import(file: &Path, json: bool) -> Result<Exit, CliError> {
    let bytes = files::read_sessions(file)?;
    let store = open()?;
    let mut bar = Bar::new();
    let report = store.import(&bytes, &mut |what, done, of| bar.tell(what, done, of));
    bar.done();
    let report = report?;
    for id in &report.detached {
        output::warning(format!(
            "the session that {id} came from is not here; it stands alone now"
        ));
    }
    if json {
        output::json(&report)?;
        return Ok(Exit::Done);
    }
    for id in &report.imported {
        output::text(id)?;
    }
    for skipped in &report.skipped {
        output::warning(format!(
            "session {} was not imported: {}",
            skipped.id, skipped.reason
        ));
    }
    output::text(format!(
        "{} sessions with {} messages imported",
        report.imported.len(),
        report.messages
    ))?;
    Ok(Exit::Done)
}

pub(super) fn branch(id: &str, title: Option<&str>, json: bool) -> Result<Exit, CliError> {
    let (store, id) = find(open_existing()?, id)?;
    let branch = store.branch(
        &id,
        &NewSession {
            title,
            ..NewSession::default()
        },
    )?;
    let messages = branch.messages.len();
    if json {
        output::json(
            &json!({ "session_id": branch.session.id, "parent": branch.session.parent, "messages": messages }),
        )?;
    } else {
        output::text(format!(
            "{}  a branch of {id} with {messages} messages",
            branch.session.id
        ))?;
    }
    Ok(Exit::Done)
}

pub(super) fn rewind(id: &str, turns: u32, json: bool) -> Result<Exit, CliError> {
    let (store, id) = find(open_existing()?, id)?;
    // It goes on in the newest of its line, and that is the one that is rewound.
    for session in store.lineage(&id)? {
        refuse_open(&session, "rewind")?;
    }
    let done = store.rewind(&id, usize::try_from(turns).unwrap_or(usize::MAX))?;
    if json {
        output::json(&json!({
            "session_id": done.session,
            "removed": done.removed,
            "passes_undone": done.passes_undone,
            "target": done.target.text(),
            "messages": done.messages.len(),
        }))?;
        return Ok(Exit::Done);
    }
    output::text(format!(
        "{} messages taken back, {} left in {}",
        done.removed,
        done.messages.len(),
        done.session
    ))?;
    if done.passes_undone > 0 {
        output::text("A compaction was undone on the way; its originals are back.")?;
    }
    output::text(format!(
        "The first of them said: {}",
        output::one_line(&done.target.text())
    ))?;
    Ok(Exit::Done)
}

/// Somebody is talking in it, and would go on without knowing.
fn refuse_open(id: &str, doing: &str) -> Result<(), CliError> {
    if crate::agent::is_open(&HermesHome::from_env(), id) {
        return Err(CliError::new(
            "open",
            format!("cannot {doing} session {id}: it is open in another process"),
        )
        .hint("close it there first"));
    }
    Ok(())
}

pub(super) fn delete(id: &str, json: bool) -> Result<Exit, CliError> {
    let (store, id) = find(open_existing()?, id)?;
    refuse_open(&id, "delete")?;
    let deleted = store.delete_session(&id)?;
    if json {
        output::json(&deleted)?;
    } else {
        output::text(format!(
            "{} with {} messages deleted",
            deleted.sessions.join(", "),
            deleted.messages
        ))?;
    }
    Ok(Exit::Done)
}

pub(super) fn check(repair: bool, json: bool) -> Result<Exit, CliError> {
    let Some(store) = (if repair {
        open_existing()?
    } else {
        open_to_read()?
    }) else {
        output_nothing(json)?;
        return Ok(Exit::Done);
    };
    let mut bar = Bar::new();
    let report = store.check(repair, &mut |what, done, of| bar.tell(what, done, of));
    bar.done();
    let report = report?;
    let exit = if report.is_clean() {
        Exit::Done
    } else {
        Exit::Failed
    };
    if json {
        output::json(&report)?;
        return Ok(exit);
    }
    for finding in &report.findings {
        let word = match (finding.severity, finding.repaired) {
            (_, true) => "repaired",
            (Severity::Note, _) => "note",
            (Severity::Warning, _) => "warning",
            (Severity::Error, _) => "error",
        };
        let fix = if finding.repairable && !finding.repaired {
            " (--repair puts it right)"
        } else {
            ""
        };
        output::text(format!(
            "{word}: {}: {}{fix}",
            finding.check,
            output::one_line(&finding.message)
        ))?;
    }
    if let Some(backup) = &report.backup {
        output::text(format!("as it was before: {}", backup.display()))?;
    }
    let verdict = if exit == Exit::Done {
        "sound"
    } else {
        "not sound"
    };
    output::text(format!(
        "{} sessions, {} messages: {verdict}",
        report.sessions, report.messages
    ))?;
    Ok(exit)
}

fn output_nothing(json: bool) -> Result<(), CliError> {
    if json {
        output::json(&crate::store::CheckReport::default())
    } else {
        output::text("No session store yet.")
    }
}

/// The store for changes, if there is one: changing a session does not make an empty store.
fn open_existing() -> Result<Option<crate::store::Store>, CliError> {
    let path = HermesHome::from_env().path().join(crate::store::FILE_NAME);
    if path.exists() {
        open().map(Some)
    } else {
        Ok(None)
    }
}
