//! What can go wrong with the store, in sentences that say what to do next.

use std::path::PathBuf;
use std::time::Duration;

/// An error of the session store.
///
/// Nothing in here means that the conversation in memory is lost: every failed operation leaves the file
/// as it was before, and the caller's messages untouched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file or its folder could not be created or opened.
    #[error("cannot open the session store {path}: {reason}")]
    Open {
        /// The store's file.
        path: PathBuf,
        /// Why, in the system's or SQLite's words.
        reason: String,
    },
    /// The file is something else than a database.
    #[error(
        "{path} is not a SQLite database; it was left as it is. Move it away, or set HERMES_HOME to another folder"
    )]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// A newer program made the file.
    #[error(
        "{path} has layout {found}, which is newer than this program knows ({known}); it was left as it is. Update hermes"
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its layout.
        found: String,
        /// The newest that this program knows.
        known: String,
    },
    /// A program from before schema 22 made the file.
    #[error(
        "{path} has schema {found}; this program reads {oldest} and later. Start Hermes 0.19 once on it to bring it up to date"
    )]
    TooOld {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The oldest that can be opened.
        oldest: i64,
    },
    /// Another process kept the lock for too long.
    #[error("could not {doing}: another process has held the write lock of {path} for {} s. Nothing was written; it is worth trying again", .waited.as_secs())]
    Busy {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        doing: &'static str,
        /// How long it was tried.
        waited: Duration,
    },
    /// No room.
    #[error(
        "could not {doing}: the disk (or the database's size limit) is full at {path}. Nothing was written; free some space and try again"
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        doing: &'static str,
    },
    /// The file or its folder cannot be written.
    #[error("could not {doing}: {path} cannot be written (read-only file, folder or mount)")]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        doing: &'static str,
    },
    /// The file is damaged.
    #[error(
        "could not {doing}: {path} is damaged ({detail}). Run `hermes sessions check`; the backups lie beside the file"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        doing: &'static str,
        /// SQLite's words.
        detail: String,
    },
    /// Any other failure of the database.
    #[error("could not {doing}: {source} ({path})")]
    Database {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        doing: &'static str,
        /// SQLite's error.
        #[source]
        source: rusqlite::Error,
    },
    /// A file beside the store (a backup, an export) could not be read or written.
    #[error("could not {doing} {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        doing: &'static str,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// No session has this id.
    #[error(
        "no session has an id that is or begins with {id:?}; `hermes sessions list` shows them"
    )]
    NoSession {
        /// What was asked for.
        id: String,
    },
    /// Several sessions begin with the text.
    #[error("{prefix:?} is the beginning of several session ids: {}", .matches.join(", "))]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// Some of the ids.
        matches: Vec<String>,
    },
    /// A new session was given an id that is taken.
    #[error("a session {id:?} exists already")]
    SessionExists {
        /// The id.
        id: String,
    },
    /// Another pass works on the session.
    #[error("session {session} is being compacted by another path (holder {holder}); its lease ends in {} s", .expires_in.as_secs())]
    PassRunning {
        /// The session.
        session: String,
        /// Who holds the lock.
        holder: String,
        /// When the lease ends, if it is not refreshed.
        expires_in: Duration,
    },
    /// The pass lost its lock, or the transcript's older part changed after it started.
    #[error(
        "the result of this pass came too late for session {session}: {reason}. The transcript is unchanged"
    )]
    PassSuperseded {
        /// The session.
        session: String,
        /// What happened meanwhile.
        reason: String,
    },
    /// Another process changed older messages of the session.
    #[error(
        "session {session} was changed by another process since it was read; resume it to go on with what is there now"
    )]
    OutOfDate {
        /// The session.
        session: String,
    },
    /// The session was continued in a child by another pass.
    #[error("session {session} was already continued as {child}")]
    AlreadyRotated {
        /// The session.
        session: String,
        /// Where it goes on.
        child: String,
    },
    /// There are fewer turns than were to be undone.
    #[error("session {session} has {available} user turns that can be undone, not {asked}")]
    NothingToRewind {
        /// The session.
        session: String,
        /// How many there are.
        available: usize,
        /// How many were asked for.
        asked: usize,
    },
    /// A file to import is not usable; nothing of it was imported.
    #[error("cannot import: line {line}: {reason}. Nothing was imported")]
    Import {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A caller's input makes no sense.
    #[error("{0}")]
    Invalid(String),
}

/// What [`StoreError`] is worth to a program: stable words for `--json`.
impl StoreError {
    /// A short stable name of the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Open { .. } => "open",
            Self::NotADatabase { .. } => "not_a_database",
            Self::TooNew { .. } => "too_new",
            Self::TooOld { .. } => "too_old",
            Self::Busy { .. } => "busy",
            Self::Full { .. } => "disk_full",
            Self::ReadOnly { .. } => "read_only",
            Self::Damaged { .. } => "damaged",
            Self::Database { .. } => "database",
            Self::File { .. } => "file",
            Self::NoSession { .. } => "no_session",
            Self::Ambiguous { .. } => "ambiguous_id",
            Self::SessionExists { .. } => "session_exists",
            Self::PassRunning { .. } => "pass_running",
            Self::PassSuperseded { .. } => "pass_superseded",
            Self::OutOfDate { .. } => "out_of_date",
            Self::AlreadyRotated { .. } => "already_rotated",
            Self::NothingToRewind { .. } => "nothing_to_rewind",
            Self::Import { .. } => "import",
            Self::Invalid(_) => "invalid",
        }
    }

    /// Whether the same call may succeed later without anybody repairing anything.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::Full { .. } | Self::PassRunning { .. }
        )
    }
}
