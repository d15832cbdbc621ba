//! Looking whether a store is sound, and mending what can be mended without losing anything.

mod look;
mod mend;

use std::path::PathBuf;

use serde::Serialize;

use super::error::StoreError;
use super::options::Progress;
use super::{Store, upgrade};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// Something is out of step and can be put right.
    Warning,
    /// The file is damaged.
    Error,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A short stable name of what was looked at.
    pub check: &'static str,
    /// What was found.
    pub message: String,
    /// Whether `--repair` can put it right.
    pub repairable: bool,
    /// Whether it was put right just now.
    pub repaired: bool,
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CheckReport {
    /// Sessions in the store.
    pub sessions: u64,
    /// Message rows in the store.
    pub messages: u64,
    /// Messages that are not searchable yet.
    pub index_lag: u64,
    /// Rows from before schema 31 that have no uid yet.
    pub backfill_remaining: u64,
    /// Everything that was found.
    pub findings: Vec<Finding>,
    /// The copy that was made before anything was mended.
    pub backup: Option<PathBuf>,
}

impl CheckReport {
    /// Whether nothing is wrong, or everything that was has been put right.
    pub fn is_clean(&self) -> bool {
        self.findings
            .iter()
            .all(|finding| finding.severity == Severity::Note || finding.repaired)
    }
}

impl Store {
    /// Looks at the whole file: its pages, its index, identities, folds, counts and locks. With `repair`,
    /// what is out of step is put right, after a backup; a damaged file is only reported.
    ///
    /// # Errors
    /// When the file cannot be read at all, or the backup or a repair fails.
    pub fn check(&self, repair: bool, progress: Progress<'_>) -> Result<CheckReport, StoreError> {
        let now = self.options.now();
        let mut report = self.look(now, progress)?;
        if self.writer.is_some() {
            self.look_into_the_index(&mut report)?;
        }
        if report.index_lag > 0 || report.backfill_remaining > 0 {
            // Entries that an older SQLite made look damaged until the catch-up has renewed them.
            for finding in report.findings.iter_mut().filter(|f| f.check == "index") {
                finding.severity = Severity::Note;
            }
        }
        let mendable = report.findings.iter().any(|finding| finding.repairable);
        if !repair
            || !mendable
            || report
                .findings
                .iter()
                .any(|f| f.severity == Severity::Error)
        {
            return Ok(report);
        }
        let backup = {
            let conn = self.writer("back up the store")?;
            upgrade::back_up(&conn, &self.path, &self.options, "check", progress)?
        };
        report.backup = Some(backup);
        progress("repairing", 0, 0);
        self.write("repair the store", |tx| {
            mend::everything(tx, &self.path, now)
        })?;
        self.catch_up(std::time::Duration::from_secs(600))?;
        // What is still found was not put right, whatever was tried.
        let after = self.look(now, progress)?;
        for finding in &mut report.findings {
            finding.repaired = finding.repairable
                && !after
                    .findings
                    .iter()
                    .any(|left| left.check == finding.check);
        }
        report.index_lag = after.index_lag;
        Ok(report)
    }

    /// The checks that read. They have a connection of their own: in one that has been used before, SQLite's
    /// check of the index would compare it with what it remembers of it.
    fn look(&self, now: f64, progress: Progress<'_>) -> Result<CheckReport, StoreError> {
        const DOING: &str = "check the store";
        let mut conn = super::connection::open_reader(&self.path, &self.options)?;
        super::connection::read(&mut conn, &self.path, &self.options, DOING, |tx| {
            look::at_everything(tx, now, progress).map_err(self.failed(DOING))
        })
    }

    /// FTS5 checks itself by a statement that has the form of a write; it is rolled back.
    fn look_into_the_index(&self, report: &mut CheckReport) -> Result<(), StoreError> {
        let mut conn = self.writer("check the search index")?;
        let found =
            super::connection::retry(&self.path, &self.options, "check the search index", || {
                let tx = conn
                    .transaction()
                    .map_err(self.failed("check the search index"))?;
                look::inside_the_index(&tx).map_err(self.failed("check the search index"))
            })?;
        report.findings.extend(found);
        Ok(())
    }
}
