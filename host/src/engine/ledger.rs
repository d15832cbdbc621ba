//! What is counted over all engines: permits of passes, and calls that had to be given up.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many passes may run at once.
const PERMITS: usize = 4;
/// After so many abandoned calls a library is out until restart.
const PER_LIBRARY: u32 = 3;
/// After so many abandoned calls in the process every third-party library is out until restart.
const PER_PROCESS: u32 = 16;

/// Counts abandoned calls and holds the permits. Programs use the one [`Ledger::of_process`]; a test
/// that abandons calls on purpose makes its own.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    counts: Mutex<Counts>,
    permit_back: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    passes: usize,
    abandoned: HashMap<String, u32>,
    total: u32,
}

impl Ledger {
    /// A ledger of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The one that all engines of this process share.
    #[must_use]
    pub fn of_process() -> Self {
        static PROCESS: LazyLock<Ledger> = LazyLock::new(Ledger::new);
        PROCESS.clone()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // Plain numbers: a panic elsewhere cannot have left them half written.
        self.shared
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits at most `wait` for one of the permits.
    pub(crate) fn permit(&self, wait: Option<Duration>) -> Option<Permit> {
        let until = wait.map(|wait| Instant::now() + wait);
        let mut counts = self.counts();
        while counts.passes >= PERMITS {
            let left = until.map_or(Duration::from_secs(1), |until| {
                until.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return None;
            }
            (counts, _) = self
                .shared
                .permit_back
                .wait_timeout(counts, left)
                .unwrap_or_else(PoisonError::into_inner);
        }
        counts.passes += 1;
        Some(Permit {
            ledger: self.clone(),
        })
    }

    /// Notes that a call of `library` was given up.
    pub(crate) fn abandoned(&self, library: &str) {
        let mut counts = self.counts();
        counts.total += 1;
        *counts.abandoned.entry(library.to_owned()).or_default() += 1;
    }

    /// Why `library` may not be entered any more, if so.
    #[must_use]
    pub fn is_out(&self, library: &str) -> Option<String> {
        let counts = self.counts();
        let own = counts.abandoned.get(library).copied().unwrap_or(0);
        if own >= PER_LIBRARY {
            return Some(format!("{own} calls into it had to be given up"));
        }
        (counts.total >= PER_PROCESS).then(|| {
            format!(
                "{} calls into engines had to be given up in this process",
                counts.total
            )
        })
    }
}

/// The right to run one pass; given back when it is dropped, also by a caller that gave the pass up.
#[derive(Debug)]
pub(crate) struct Permit {
    ledger: Ledger,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.ledger.counts().passes -= 1;
        self.ledger.shared.permit_back.notify_one();
    }
}
