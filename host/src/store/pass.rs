//! The durable lock of a session's compaction pass (`PASS-5`): one pass a session, across processes.

mod holder;

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::Store;
use super::error::StoreError;
use super::resume::Mark;
use super::session;

/// A pass that holds its session's lock.
///
/// The lock is a row with a lease. It is given back by [`Store::end_pass`]; a holder that died loses it at
/// once to the next one on the same machine, any other when its lease is over. Losing it is harmless: a
/// commit checks the holder and the transcript's generation inside its own transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassLock {
    /// The session.
    pub session: String,
    /// Who holds the lock, as the row says it.
    pub holder: String,
    /// The generation of the transcript that the pass works on.
    pub generation: i64,
    /// The newest row that the pass has seen; what comes later is its tail.
    pub watermark: i64,
    /// Older rows that it has not seen either.
    pub unseen: Vec<i64>,
    /// How long the lease is at each refresh.
    pub lease: Duration,
}

impl PassLock {
    /// Which live rows the pass has seen, and which are its tail.
    pub(crate) fn split(&self, live: Vec<i64>) -> (Vec<i64>, Vec<i64>) {
        live.into_iter()
            .partition(|row| *row <= self.watermark && !self.unseen.contains(row))
    }
}

/// What a refresh found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refreshed {
    /// The lease begins anew.
    Held,
    /// Somebody else has the lock, or nobody; the pass cannot commit any more.
    Lost,
}

/// No lease is longer than this; one that seems to be was made before the clock went back.
const LONGEST_LEASE: f64 = 3600.0;

/// The lock's holder and the seconds until its lease ends, unless it may be taken over.
pub(crate) fn holder_of(
    conn: &Connection,
    session: &str,
    now: f64,
) -> rusqlite::Result<Option<(String, f64)>> {
    let row: Option<(String, f64)> = conn
        .prepare_cached("SELECT holder, expires_at FROM compression_locks WHERE session_id = ?1")?
        .query_row([session], |r| Ok((r.get(0)?, r.get(1)?)))
        .optional()?;
    Ok(row
        .map(|(holder, expires)| (holder, expires - now))
        .filter(|(holder, left)| {
            // A holder that lives keeps its lock over a clock that jumps; its refresh sets the lease right.
            *left >= 0.0 && *left <= LONGEST_LEASE && !holder::is_dead(holder)
        }))
}

impl Store {
    /// Begins a pass over what `mark` describes: takes the session's lock for `lease`.
    ///
    /// # Errors
    /// [`StoreError::PassRunning`] while another pass lives, [`StoreError::OutOfDate`] when the session's
    /// older messages are not those of `mark` any more, [`StoreError::AlreadyRotated`] when the session goes
    /// on elsewhere; or when the file cannot be written.
    pub fn begin_pass(
        &self,
        session: &str,
        mark: &Mark,
        agent: &str,
        lease: Duration,
    ) -> Result<PassLock, StoreError> {
        const DOING: &str = "lock a session for its compaction";
        let failed = self.failed(DOING);
        let lease = lease.clamp(
            Duration::from_millis(1),
            Duration::from_secs_f64(LONGEST_LEASE),
        );
        let holder = holder::name(agent);
        self.write(DOING, |tx| {
            let now = self.options.now();
            let row = session::require(tx, session, &failed)?;
            refuse_rotated(tx, &row, &failed)?;
            if row.generation != mark.generation {
                return Err(StoreError::OutOfDate { session: session.to_owned() });
            }
            if let Some((holder, left)) = holder_of(tx, session, now).map_err(&failed)? {
                return Err(StoreError::PassRunning {
                    session: session.to_owned(),
                    holder,
                    expires_in: Duration::from_secs_f64(left),
                });
            }
            tx.execute(
                "INSERT OR REPLACE INTO compression_locks (session_id, holder, acquired_at, expires_at)
                 VALUES (?1, ?2, ?3, ?4)",
                params![session, holder, now, now + lease.as_secs_f64()],
            )
            .map_err(&failed)?;
            Ok(PassLock {
                session: session.to_owned(),
                holder: holder.clone(),
                generation: row.generation,
                watermark: mark.last_row,
                unseen: mark.unseen.clone(),
                lease,
            })
        })
    }

    /// Begins the lease anew. To be called a few times a lease.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn refresh_pass(&self, lock: &PassLock) -> Result<Refreshed, StoreError> {
        const DOING: &str = "keep a session locked for its compaction";
        let failed = self.failed(DOING);
        self.write(DOING, |tx| {
            let until = self.options.now() + lock.lease.as_secs_f64();
            let changed = tx
                .execute(
                    "UPDATE compression_locks SET expires_at = ?3 WHERE session_id = ?1 AND holder = ?2",
                    params![lock.session, lock.holder, until],
                )
                .map_err(&failed)?;
            Ok(if changed == 1 { Refreshed::Held } else { Refreshed::Lost })
        })
    }

    /// Gives the lock back. A late call cannot take it from a later holder.
    ///
    /// # Errors
    /// When the file cannot be written; the lease ends all the same.
    pub fn end_pass(&self, lock: &PassLock) -> Result<(), StoreError> {
        const DOING: &str = "unlock a session after its compaction";
        let failed = self.failed(DOING);
        self.write(DOING, |tx| {
            tx.execute(
                "DELETE FROM compression_locks WHERE session_id = ?1 AND holder = ?2",
                params![lock.session, lock.holder],
            )
            .map(|_| ())
            .map_err(&failed)
        })
    }

    /// Who is compacting the session now.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn pass_holder(&self, session: &str) -> Result<Option<String>, StoreError> {
        const DOING: &str = "look who compacts a session";
        let failed = self.failed(DOING);
        self.read(DOING, |tx| {
            let now = self.options.now();
            holder_of(tx, session, now)
                .map(|found| found.map(|(holder, _)| holder))
                .map_err(&failed)
        })
    }
}

/// A session that was continued by a rotation has no more passes of its own.
fn refuse_rotated(
    conn: &Connection,
    row: &session::Session,
    failed: impl Fn(rusqlite::Error) -> StoreError,
) -> Result<(), StoreError> {
    let child = session::tip(conn, &row.id).map_err(failed)?;
    if child == row.id {
        Ok(())
    } else {
        Err(StoreError::AlreadyRotated {
            session: row.id.clone(),
            child,
        })
    }
}

/// Makes sure, inside the commit's transaction, that the pass still has the session to itself and that
/// nothing it has seen was changed.
pub(crate) fn fence(
    conn: &Connection,
    lock: &PassLock,
    failed: impl Fn(rusqlite::Error) -> StoreError,
) -> Result<session::Session, StoreError> {
    let superseded = |reason: &str| StoreError::PassSuperseded {
        session: lock.session.clone(),
        reason: reason.to_owned(),
    };
    let row = session::require(conn, &lock.session, &failed)?;
    refuse_rotated(conn, &row, &failed)?;
    let holder: Option<String> = conn
        .prepare_cached("SELECT holder FROM compression_locks WHERE session_id = ?1")
        .and_then(|mut s| s.query_row([&lock.session], |r| r.get(0)).optional())
        .map_err(&failed)?;
    match holder {
        Some(holder) if holder == lock.holder => {}
        Some(_) => return Err(superseded("another pass has taken the lock over")),
        None => return Err(superseded("its lock was given up")),
    }
    if row.generation != lock.generation {
        return Err(superseded(
            "the messages it worked on were changed meanwhile",
        ));
    }
    Ok(row)
}
