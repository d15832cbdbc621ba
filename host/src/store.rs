//! The session store: every message kept, every identity stable.
//!
//! Conversations live in one SQLite file, `state.db`, in the layout that real Hermes uses, so that both
//! programs can take turns on one home.
//!
//! 1. [`Store::open`] brings the file up to date (schema 22 to 31) behind a lock and after a backup.
//! 2. [`Store::append`] writes a turn in one synced transaction and gives its messages their ids.
//!    [`Store::save`] brings the rows in line with a list that was edited, folded or repaired.
//! 3. [`Store::begin_pass`] takes the session's durable lock; [`Store::commit_in_place`] and
//!    [`Store::commit_rotation`] exchange the transcript in one transaction.
//! 4. [`Store::resume`], [`Store::branch`], [`Store::rewind`], [`Store::export`] and [`Store::import`] give
//!    everything back with the same ids.
//!
//! The store is synchronous. It may be shared by threads; processes share the file. Writers wait for each
//! other by time, readers never wait for writers.

mod append;
mod backfill;
mod branch;
mod check;
pub mod clock;
mod columns;
mod compact;
mod connection;
mod error;
mod export;
mod fts;
mod identity;
mod import;
mod options;
mod pass;
mod pyjson;
mod resume;
mod rewind;
mod rows;
mod save;
mod schema;
mod search;
mod session;
mod upgrade;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Transaction};

pub use append::Appended;
pub use backfill::Backfill;
pub use check::{CheckReport, Finding, Severity};
pub use compact::Committed;
pub use error::StoreError;
pub use fts::CatchUp;
pub use import::{ImportReport, Skipped};
pub use options::{Durability, Progress, StoreOptions, Waiting};
pub use pass::{PassLock, Refreshed};
pub use resume::{Mark, Resumed};
pub use rewind::Rewound;
pub use rows::StoredMessage;
pub use save::Saved;
pub use schema::{OLDEST_VERSION, SCHEMA_VERSION};
pub use search::{Hit, Query};
pub use session::{Deleted, NewSession, Session};
pub use upgrade::Upgrade;

pub(crate) use identity::stamp;

/// An id for a session that has no row yet.
pub(crate) fn new_session_id() -> String {
    session::new_id(StoreOptions::default().now())
}

/// The name of the store's file in a Hermes home.
pub const FILE_NAME: &str = "state.db";

/// An open session store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    options: StoreOptions,
    upgrade: Upgrade,
    reader: Mutex<Connection>,
    /// `None` for a store that was opened for reading. Closed last: only a connection that may write can move what is
    /// in the log into the file when it closes.
    writer: Option<Mutex<Connection>>,
}

impl Store {
    /// Opens the store at `path`, creating it or bringing it up to date.
    ///
    /// A file that is not usable (another format, a newer layout) is refused untouched. Every open also
    /// gives ids to a bounded number of rows from before schema 31.
    ///
    /// # Errors
    /// See [`StoreError`]; the file is then as it was.
    pub fn open(path: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        Self::open_with_progress(path, options, &mut |_, _, _| {})
    }

    /// [`Self::open`], reporting a backup's progress.
    ///
    /// # Errors
    /// See [`StoreError`]; the file is then as it was.
    pub fn open_with_progress(
        path: &Path,
        options: StoreOptions,
        progress: Progress<'_>,
    ) -> Result<Self, StoreError> {
        prepare_file(path)?;
        let mut writer = connection::open_writer(path, &options)?;
        let upgrade = upgrade::bring_up_to_date(&mut writer, path, &options, progress)?;
        let reader = connection::open_reader(path, &options)?;
        catch_up_at_start(&mut writer, path, &options);
        Ok(Self {
            path: path.to_owned(),
            options,
            upgrade,
            writer: Some(Mutex::new(writer)),
            reader: Mutex::new(reader),
        })
    }

    /// Opens an existing, up-to-date store for reading. Nothing is written, so that a store in a folder
    /// that cannot be written can still be listed, shown, searched and exported.
    ///
    /// # Errors
    /// See [`StoreError`]; an older layout is one.
    pub fn open_read_only(path: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let reader = connection::open_reader(path, &options)?;
        upgrade::require_current(&reader, path, &options)?;
        Ok(Self {
            path: path.to_owned(),
            options,
            upgrade: Upgrade::default(),
            writer: None,
            reader: Mutex::new(reader),
        })
    }

    /// The store's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What opening did to the file.
    pub fn upgraded(&self) -> &Upgrade {
        &self.upgrade
    }

    /// The version of the SQLite inside.
    pub fn sqlite_version() -> &'static str {
        connection::sqlite_version()
    }

    /// Goes on giving ids to rows from before schema 31, for `budget`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn backfill(&self, budget: Duration) -> Result<Backfill, StoreError> {
        backfill::run(
            &mut *self.writer("give ids to older messages")?,
            &self.path,
            &self.options,
            budget,
        )
    }

    /// Moves what is in the log into the file itself and empties the log, unless somebody else is in the way: for the
    /// end of a program that does not drop its store. Nothing is lost without it.
    pub fn tidy(&self) {
        if let Ok(writer) = self.writer("tidy the store") {
            let done = writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            if let Err(error) = done {
                tracing::info!(%error, "the store's log is emptied at another time");
            }
        }
    }

    /// Gives the memory back that holds pages of the file. What is needed again comes from the system's own cache.
    pub fn release_memory(&self) {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done = reader.execute_batch("PRAGMA shrink_memory");
        drop(reader);
        if let Ok(writer) = self.writer("release memory") {
            done = done.and(writer.execute_batch("PRAGMA shrink_memory"));
        }
        if let Err(error) = done {
            tracing::debug!(%error, "memory of the store stays in use");
        }
    }

    fn writer(&self, doing: &'static str) -> Result<MutexGuard<'_, Connection>, StoreError> {
        match &self.writer {
            // A panic in another call rolled its transaction back; the connection is as good as before.
            Some(writer) => Ok(writer.lock().unwrap_or_else(PoisonError::into_inner)),
            None => Err(StoreError::ReadOnly {
                path: self.path.clone(),
                doing,
            }),
        }
    }

    pub(crate) fn write<T>(
        &self,
        doing: &'static str,
        body: impl FnMut(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        connection::write(
            &mut *self.writer(doing)?,
            &self.path,
            &self.options,
            doing,
            body,
        )
    }

    /// [`Self::write`] for thousands of rows.
    pub(crate) fn write_long<T>(
        &self,
        doing: &'static str,
        body: impl FnMut(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        connection::write_long(
            &mut *self.writer(doing)?,
            &self.path,
            &self.options,
            doing,
            body,
        )
    }

    pub(crate) fn read<T>(
        &self,
        doing: &'static str,
        body: impl FnMut(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        connection::read(&mut reader, &self.path, &self.options, doing, body)
    }

    /// Turns an SQLite error of this store into ours.
    pub(crate) fn failed(
        &self,
        doing: &'static str,
    ) -> impl Fn(rusqlite::Error) -> StoreError + '_ {
        move |error| connection::classify(&self.path, doing, error)
    }
}

/// What was left for later. A store that has no room or no time for it just now is as usable as before.
fn catch_up_at_start(writer: &mut Connection, path: &Path, options: &StoreOptions) {
    let patience = StoreOptions {
        busy_wait: options.busy_wait.min(Duration::from_millis(100)),
        ..options.clone()
    };
    let done = backfill::run(writer, path, &patience, options.backfill_budget)
        .and_then(|_| fts::catch_up(writer, path, &patience, options.catch_up_budget));
    if let Err(error) = done {
        tracing::info!(%error, "older messages get their ids, and newer ones become searchable, at a later start");
    }
}

/// Makes the folder, and a new file that only its owner can read: conversations are private.
fn prepare_file(path: &Path) -> Result<(), StoreError> {
    if path.exists() {
        return Ok(());
    }
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::ReadOnly {
                path: path.to_owned(),
                doing: "create the store",
            }
        }
        std::io::ErrorKind::StorageFull => StoreError::Full {
            path: path.to_owned(),
            doing: "create the store",
        },
        _ => StoreError::Open {
            path: path.to_owned(),
            reason: source.to_string(),
        },
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(|_| ()).map_err(failed)
}
