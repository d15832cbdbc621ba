//! One connection, and waiting for its locks by time instead of by attempts.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, ffi};

use super::error::StoreError;
use super::options::{Durability, StoreOptions, Waiting};

/// Pages in the log from which on a commit moves them into the file.
const LOG: u32 = 1000;
/// The same for a write of thousands of rows, which is long enough without that: a later, smaller commit does it, most
/// often that of the thread that makes rows searchable.
const LOG_OF_LONG_WRITES: u32 = 8000;
/// The memory for pages of the file, in KiB a connection: SQLite's own default. What does not fit is in the system's
/// cache, a system call away; more of it here would only fill by and by in a long conversation.
const CACHE: i64 = 2_000;
/// The same for long writes, which otherwise put pages into the log more than once.
const CACHE_OF_LONG_WRITES: i64 = 32_000;

/// What a failed statement means for the person at the terminal.
pub(crate) fn classify(path: &Path, doing: &'static str, error: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    let rusqlite::Error::SqliteFailure(failure, ref text) = error else {
        return StoreError::Database {
            path,
            doing,
            source: error,
        };
    };
    let detail = || text.clone().unwrap_or_else(|| failure.to_string());
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy {
            path,
            doing,
            waited: Duration::ZERO,
        },
        ErrorCode::DiskFull => StoreError::Full { path, doing },
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => StoreError::ReadOnly { path, doing },
        ErrorCode::NotADatabase => StoreError::NotADatabase { path },
        ErrorCode::DatabaseCorrupt => StoreError::Damaged {
            path,
            doing,
            detail: detail(),
        },
        ErrorCode::CannotOpen => StoreError::Open {
            reason: open_reason(&path, detail()),
            path,
        },
        _ => StoreError::Database {
            path,
            doing,
            source: error,
        },
    }
}

/// SQLite says only "unable to open database file"; the folder often knows more.
fn open_reason(path: &Path, detail: String) -> String {
    if path.is_dir() {
        return "it is a folder".to_owned();
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            format!("{detail} (there is no folder {})", folder.display())
        }
        _ => format!("{detail} (may this user read and write it and its folder?)"),
    }
}

/// Whether the statement only met a lock.
pub(crate) fn is_busy(error: &StoreError) -> bool {
    matches!(error, StoreError::Busy { waited, .. } if waited.is_zero())
}

/// Opens the file for reading and writing. The layout is not looked at.
pub(crate) fn open_writer(path: &Path, options: &StoreOptions) -> Result<Connection, StoreError> {
    const DOING: &str = "open the store";
    let failed = |e| classify(path, DOING, e);
    let conn = retry(path, options, DOING, || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let conn = connect(path, flags).map_err(failed)?;
        // SQLite opens what it may not write for reading, without a word.
        if conn.is_readonly("main").map_err(failed)? {
            return Err(StoreError::ReadOnly {
                path: path.to_owned(),
                doing: "open the store for writing",
            });
        }
        // A filesystem that cannot share memory keeps its own journal mode; everything still works.
        let mode: String = conn
            .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
            .map_err(failed)?;
        if !mode.eq_ignore_ascii_case("wal") {
            tracing::warn!(%mode, "the session store is not in WAL mode: readers and writers wait for each other");
        }
        Ok(conn)
    })?;
    set_durability(&conn, options.durability).map_err(failed)?;
    if let Some(pages) = options.max_pages {
        conn.pragma_update(None, "max_page_count", pages)
            .map_err(failed)?;
    }
    Ok(conn)
}

/// Opens the file for reading. A store in a folder that cannot be written is read as a fixed picture,
/// unless a log beside it holds changes that would be missed.
pub(crate) fn open_reader(path: &Path, options: &StoreOptions) -> Result<Connection, StoreError> {
    const DOING: &str = "read the store";
    let failed = |e| classify(path, DOING, e);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let usual = retry(path, options, DOING, || {
        let conn = connect(path, flags).map_err(failed)?;
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
            .map_err(failed)?;
        Ok(conn)
    });
    let error = match usual {
        Ok(conn) => return Ok(conn),
        Err(error @ (StoreError::Open { .. } | StoreError::ReadOnly { .. })) => error,
        Err(error) => return Err(error),
    };
    let log = path.with_file_name(format!(
        "{}-wal",
        path.file_name().unwrap_or_default().to_string_lossy()
    ));
    if !path.is_file() || log.metadata().is_ok_and(|m| m.len() > 0) {
        return Err(error);
    }
    let escaped: String = path.to_string_lossy().chars().flat_map(uri_char).collect();
    let name = format!("file:{escaped}?immutable=1");
    connect(Path::new(&name), flags | OpenFlags::SQLITE_OPEN_URI).map_err(|_| error)
}

fn uri_char(c: char) -> Vec<char> {
    match c {
        '%' => "%25".chars().collect(),
        '?' => "%3f".chars().collect(),
        '#' => "%23".chars().collect(),
        other => vec![other],
    }
}

/// A connection that is set up; the file's contents are not looked at.
fn connect(name: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let conn = Connection::open_with_flags(name, flags)?;
    // Waiting is done in `retry`, where it can be bounded by time and talked about.
    conn.busy_timeout(Duration::ZERO)?;
    conn.set_prepared_statement_cache_capacity(96);
    // Otherwise a plan may depend on a value that is bound, and the statement is prepared anew for each other value.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "cache_size", -CACHE)?;
    Ok(conn)
}

fn set_durability(conn: &Connection, durability: Durability) -> rusqlite::Result<()> {
    let level = match durability {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
        Durability::Off => "OFF",
    };
    conn.pragma_update(None, "synchronous", level)
}

/// Runs `attempt` until it does not meet a lock any more, or the time that `options` allow is over.
pub(crate) fn retry<T>(
    path: &Path,
    options: &StoreOptions,
    doing: &'static str,
    mut attempt: impl FnMut() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let start = Instant::now();
    let mut told = 0u64;
    let mut pause = Duration::from_micros(300);
    loop {
        match attempt() {
            Err(error) if is_busy(&error) => {}
            other => return other,
        }
        let waited = start.elapsed();
        if waited >= options.busy_wait {
            return Err(StoreError::Busy {
                path: path.to_owned(),
                doing,
                waited,
            });
        }
        if waited.as_secs() > told {
            told = waited.as_secs();
            options.tell_waiting(&Waiting {
                path,
                doing,
                waited,
            });
        }
        // Different sleepers wake at different moments, so that they do not queue behind one another.
        std::thread::sleep(jittered(pause).min(options.busy_wait - waited));
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Between half of `pause` and one and a half of it.
fn jittered(pause: Duration) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(0u8) % 1024;
    pause / 2 + pause * u32::try_from(random).unwrap_or(0) / 1024
}

/// Runs `body` in one write transaction. It begins by taking the write lock, so `body` never loses a
/// race half-way; where it meets a lock all the same, everything is rolled back and tried again.
pub(crate) fn write<T>(
    conn: &mut Connection,
    path: &Path,
    options: &StoreOptions,
    doing: &'static str,
    mut body: impl FnMut(&Transaction<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    retry(path, options, doing, || {
        let tx = conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|e| classify(path, doing, e))?;
        let value = body(&tx)?;
        tx.commit().map_err(|e| classify(path, doing, e))?;
        Ok(value)
    })
}

/// [`write()`] for thousands of rows.
pub(crate) fn write_long<T>(
    conn: &mut Connection,
    path: &Path,
    options: &StoreOptions,
    doing: &'static str,
    body: impl FnMut(&Transaction<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let allow = |conn: &Connection, log: u32, cache: i64| {
        conn.pragma_update_and_check(None, "wal_autocheckpoint", log, |_| Ok(()))
            .and_then(|()| conn.pragma_update(None, "cache_size", -cache))
            .map_err(|e| classify(path, doing, e))
    };
    allow(conn, LOG_OF_LONG_WRITES, CACHE_OF_LONG_WRITES)?;
    let result = write(conn, path, options, doing, body);
    allow(conn, LOG, CACHE)?;
    result
}

/// Runs `body` on one consistent picture of the file.
pub(crate) fn read<T>(
    conn: &mut Connection,
    path: &Path,
    options: &StoreOptions,
    doing: &'static str,
    mut body: impl FnMut(&Transaction<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    retry(path, options, doing, || {
        let tx = conn
            .transaction_with_behavior(TransactionBehavior::Deferred)
            .map_err(|e| classify(path, doing, e))?;
        body(&tx)
    })
}

/// The version of SQLite in use, for reports.
pub(crate) fn sqlite_version() -> &'static str {
    ffi::SQLITE_VERSION.to_str().unwrap_or("unknown")
}
