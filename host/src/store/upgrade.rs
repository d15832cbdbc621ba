//! From whatever layout the file has to the one this host writes.
//!
//! A file that is up to date is recognised by two small reads. Only a new or an older one takes the lock
//! file beside it, so that of several processes that start at once one does the work and the others wait.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::connection::{classify, retry, write};
use super::error::StoreError;
use super::options::{Progress, StoreOptions};
use super::schema::{
    HOST_LAYOUT, HOST_LAYOUT_KEY, INDEXES, OLDEST_VERSION, SCHEMA_VERSION, TABLES, TITLE_INDEX,
    triggers,
};
use super::{backfill, fts};

/// What opening did to the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Upgrade {
    /// The schema version that was found; 0 for a new file.
    pub from: i64,
    /// Whether the layout was written or changed.
    pub changed: bool,
    /// The copy of the file from before the change.
    pub backup: Option<PathBuf>,
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Empty,
    Current,
    Older(i64),
}

/// Brings the file up to date.
pub(crate) fn bring_up_to_date(
    conn: &mut Connection,
    path: &Path,
    options: &StoreOptions,
    progress: Progress<'_>,
) -> Result<Upgrade, StoreError> {
    if look(conn, path, options)? == Found::Current {
        return Ok(Upgrade {
            from: SCHEMA_VERSION,
            ..Upgrade::default()
        });
    }
    let _lock = lock_file(path, options)?;
    // Whoever held the lock before may have done it all.
    match look(conn, path, options)? {
        Found::Current => Ok(Upgrade {
            from: SCHEMA_VERSION,
            ..Upgrade::default()
        }),
        Found::Empty => {
            write(conn, path, options, "create the store", |tx| {
                lay_out(tx, path)?;
                backfill::mark_finished(tx).map_err(|e| classify(path, "create the store", e))
            })?;
            Ok(Upgrade {
                from: 0,
                changed: true,
                backup: None,
            })
        }
        Found::Older(from) => {
            let backup = back_up(conn, path, options, &format!("v{from}"), progress)?;
            write(conn, path, options, "upgrade the store", |tx| {
                lay_out(tx, path)?;
                backfill::begin(tx).map_err(|e| classify(path, "upgrade the store", e))
            })?;
            tracing::info!(from, to = SCHEMA_VERSION, backup = %backup.display(), "the session store was upgraded");
            Ok(Upgrade {
                from,
                changed: true,
                backup: Some(backup),
            })
        }
    }
}

/// Refuses a file that would have to be changed before it can be read.
pub(crate) fn require_current(
    conn: &Connection,
    path: &Path,
    options: &StoreOptions,
) -> Result<(), StoreError> {
    match look(conn, path, options)? {
        Found::Current => Ok(()),
        Found::Empty => Err(StoreError::Open {
            path: path.to_owned(),
            reason: "it is empty".to_owned(),
        }),
        Found::Older(version) => Err(StoreError::Open {
            path: path.to_owned(),
            reason: format!(
                "it has schema {version} and must be brought up to {SCHEMA_VERSION} first, for which it has to be writable"
            ),
        }),
    }
}

/// Refuses a file that is not usable and says what is to be done with the others.
fn look(conn: &Connection, path: &Path, options: &StoreOptions) -> Result<Found, StoreError> {
    retry(path, options, "read the store's version", || {
        let failed = |e| classify(path, "read the store's version", e);
        let has = |table: &str| {
            conn.query_row(
                "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?",
                [table],
                |_| Ok(()),
            )
            .optional()
            .map(|found| found.is_some())
            .map_err(failed)
        };
        if !has("schema_version")? {
            let tables: i64 = conn
                .query_row(
                    "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'",
                    [],
                    |r| r.get(0),
                )
                .map_err(failed)?;
            return match tables {
                0 => Ok(Found::Empty),
                _ => Err(StoreError::Open {
                    path: path.to_owned(),
                    reason:
                        "it is a database, but not a Hermes session store (no table schema_version)"
                            .to_owned(),
                }),
            };
        }
        let version: i64 = conn
            .query_row("SELECT max(version) FROM schema_version", [], |r| {
                r.get::<_, Option<i64>>(0)
            })
            .map_err(failed)?
            .unwrap_or(0);
        if version > SCHEMA_VERSION {
            return Err(StoreError::TooNew {
                path: path.to_owned(),
                found: version.to_string(),
                known: SCHEMA_VERSION.to_string(),
            });
        }
        if version < OLDEST_VERSION {
            return Err(StoreError::TooOld {
                path: path.to_owned(),
                found: version,
                oldest: OLDEST_VERSION,
            });
        }
        let layout: Option<String> = if has("state_meta")? {
            conn.query_row(
                "SELECT value FROM state_meta WHERE key = ?",
                [HOST_LAYOUT_KEY],
                |r| r.get(0),
            )
            .optional()
            .map_err(failed)?
        } else {
            None
        };
        let layout = layout
            .and_then(|text| text.parse::<i64>().ok())
            .unwrap_or(0);
        if layout > HOST_LAYOUT {
            return Err(StoreError::TooNew {
                path: path.to_owned(),
                found: format!("{version}.{layout}"),
                known: format!("{SCHEMA_VERSION}.{HOST_LAYOUT}"),
            });
        }
        Ok(if version == SCHEMA_VERSION && layout == HOST_LAYOUT {
            Found::Current
        } else {
            Found::Older(version)
        })
    })
}

/// Adds what is missing. Tables, columns, indexes and triggers that are not named here stay as they are.
pub(crate) fn lay_out(tx: &Transaction<'_>, path: &Path) -> Result<(), StoreError> {
    let failed = |e| classify(path, "write the store's layout", e);
    for table in TABLES {
        tx.execute_batch(&table.create()).map_err(failed)?;
        let mut known = tx
            .prepare(&format!(
                "SELECT name FROM pragma_table_info('{}')",
                table.name
            ))
            .map_err(failed)?;
        let present: Vec<String> = known
            .query_map([], |r| r.get(0))
            .and_then(Iterator::collect)
            .map_err(failed)?;
        for (name, declaration) in table.columns {
            if !present
                .iter()
                .any(|column| column.eq_ignore_ascii_case(name))
            {
                tx.execute_batch(&format!(
                    "ALTER TABLE {} ADD COLUMN {name} {declaration}",
                    table.name
                ))
                .map_err(failed)?;
            }
        }
    }
    for index in INDEXES {
        tx.execute_batch(index).map_err(failed)?;
    }
    if let Err(error) = tx.execute_batch(TITLE_INDEX) {
        tracing::warn!(%error, "two sessions have the same title; titles are not kept apart in this store");
    }
    fts::create_tables(tx, path)?;
    for (name, body) in triggers() {
        tx.execute_batch(&format!("DROP TRIGGER IF EXISTS {name}; {body}"))
            .map_err(failed)?;
    }
    let rows: i64 = tx
        .query_row("SELECT count(*) FROM schema_version", [], |r| r.get(0))
        .map_err(failed)?;
    let statement = if rows == 0 {
        "INSERT INTO schema_version (version) VALUES (?)"
    } else {
        "UPDATE schema_version SET version = ?"
    };
    tx.execute(statement, [SCHEMA_VERSION]).map_err(failed)?;
    set_meta(tx, HOST_LAYOUT_KEY, &HOST_LAYOUT.to_string()).map_err(failed)
}

/// Sets a value in `state_meta`.
pub(crate) fn set_meta(conn: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    conn.execute(
        "INSERT INTO state_meta (key, value) VALUES (?1, ?2) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
        [key, value],
    )
    .map(|_| ())
}

/// A value in `state_meta`.
pub(crate) fn meta(conn: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    conn.query_row("SELECT value FROM state_meta WHERE key = ?", [key], |r| {
        r.get::<_, Option<String>>(0)
    })
    .optional()
    .map(Option::flatten)
}

/// Copies the file as it is now to a name beside it. Writers are not held up.
pub(crate) fn back_up(
    conn: &Connection,
    path: &Path,
    options: &StoreOptions,
    label: &str,
    progress: Progress<'_>,
) -> Result<PathBuf, StoreError> {
    let target = free_name(path, label);
    let part = target.with_extension("part");
    let copied = retry(path, options, "back up the store", || {
        // What an earlier attempt left behind must not end up in the copy.
        match std::fs::remove_file(&part) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::File {
                    path: part.clone(),
                    doing: "replace",
                    source,
                });
            }
            _ => {}
        }
        let mut to =
            Connection::open(&part).map_err(|e| classify(&part, "back up the store", e))?;
        let backup =
            Backup::new(conn, &mut to).map_err(|e| classify(path, "back up the store", e))?;
        loop {
            let state = backup
                .step(4096)
                .map_err(|e| classify(&part, "back up the store", e))?;
            let done = backup.progress();
            let total = u64::try_from(done.pagecount).unwrap_or(0);
            progress(
                "backing up",
                total.saturating_sub(u64::try_from(done.remaining).unwrap_or(0)),
                total,
            );
            match state {
                rusqlite::backup::StepResult::Done => return Ok(()),
                rusqlite::backup::StepResult::More => {}
                _ => {
                    return Err(StoreError::Busy {
                        path: path.to_owned(),
                        doing: "back up the store",
                        waited: Duration::ZERO,
                    });
                }
            }
        }
    });
    if let Err(error) = copied {
        // Half a backup is worth nothing and takes room, often the very room that was missing.
        let _ = std::fs::remove_file(&part);
        return Err(error);
    }
    let published = File::open(&part)
        .and_then(|file| file.sync_all())
        .and_then(|()| std::fs::rename(&part, &target));
    published.map_err(|source| StoreError::File {
        path: target.clone(),
        doing: "write the backup",
        source,
    })?;
    Ok(target)
}

fn free_name(path: &Path, label: &str) -> PathBuf {
    let stem = path.file_name().unwrap_or_default().to_string_lossy();
    (0u32..)
        .map(|n| {
            if n == 0 {
                format!("{stem}.{label}.bak")
            } else {
                format!("{stem}.{label}.{n}.bak")
            }
        })
        .map(|name| path.with_file_name(name))
        .find(|candidate| !candidate.exists())
        .unwrap_or_else(|| path.with_extension("bak"))
}

/// Takes the lock file beside the store; it is given back when the file is closed.
fn lock_file(path: &Path, options: &StoreOptions) -> Result<File, StoreError> {
    let name = path.with_file_name(format!(
        "{}.upgrade.lock",
        path.file_name().unwrap_or_default().to_string_lossy()
    ));
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&name)
        .map_err(|source| match source.kind() {
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                StoreError::ReadOnly {
                    path: path.to_owned(),
                    doing: "upgrade the store",
                }
            }
            std::io::ErrorKind::StorageFull => StoreError::Full {
                path: path.to_owned(),
                doing: "upgrade the store",
            },
            _ => StoreError::File {
                path: name.clone(),
                doing: "create the lock file",
                source,
            },
        })?;
    retry(path, options, "upgrade the store", || {
        match file.try_lock() {
            Ok(()) => Ok(()),
            Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::Busy {
                path: path.to_owned(),
                doing: "upgrade the store",
                waited: Duration::ZERO,
            }),
            Err(std::fs::TryLockError::Error(source)) => Err(StoreError::File {
                path: name.clone(),
                doing: "lock",
                source,
            }),
        }
    })?;
    Ok(file)
}
