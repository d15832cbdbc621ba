//! What one search may use.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::provider::Cancel;

/// How long a search takes at most.
const TIME: Duration = Duration::from_secs(10);

/// Files and directories that are looked at.
const ENTRIES: u64 = 200_000;

/// Bytes that are read of all files together.
const BYTES: u64 = 512 << 20;

/// Bytes of matches in the result.
const OUTPUT: usize = 64 << 10;

/// Why a search ended before all was searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Interrupted,
    Matches,
    Output,
    Time,
    Entries,
    Bytes,
}

impl Stop {
    pub(super) fn sentence(self) -> String {
        let why = match self {
            Stop::Interrupted => "the user interrupted it",
            Stop::Matches => "the limit of matches was reached",
            Stop::Output => "the matches fill 64 KiB",
            Stop::Time => "it took over 10 seconds",
            Stop::Entries => "there are over 200000 files",
            Stop::Bytes => "over 512 MiB were read",
        };
        format!(
            "the search ended early because {why}; there may be more. A narrower pattern, path or glob finds the rest"
        )
    }
}

/// What is left. Shared by those who read and those who keep what was found.
pub(super) struct Budget {
    cancel: Cancel,
    until: Instant,
    matches: Cell<u64>,
    output: Cell<usize>,
    entries: Cell<u64>,
    bytes: Cell<u64>,
}

impl Budget {
    pub(super) fn new(matches: u64, cancel: Cancel) -> Self {
        Self {
            cancel,
            until: Instant::now() + TIME,
            matches: Cell::new(matches),
            output: Cell::new(OUTPUT),
            entries: Cell::new(ENTRIES),
            bytes: Cell::new(BYTES),
        }
    }

    /// Whether the search may go on.
    pub(super) fn check(&self) -> Result<(), Stop> {
        if self.cancel.is_cancelled() {
            Err(Stop::Interrupted)
        } else if Instant::now() >= self.until {
            Err(Stop::Time)
        } else {
            Ok(())
        }
    }

    /// One more file or directory.
    pub(super) fn spend_entry(&self) -> Result<(), Stop> {
        spend(&self.entries, 1, Stop::Entries)
    }

    /// Bytes that were read.
    pub(super) fn spend_bytes(&self, bytes: usize) -> Result<(), Stop> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        spend(&self.bytes, bytes, Stop::Bytes)
    }

    /// One more match with so many bytes. The first one always has room.
    pub(super) fn spend_match(&self, bytes: usize) -> Result<(), Stop> {
        if self.output.get() == 0 {
            return Err(Stop::Output);
        }
        spend(&self.matches, 1, Stop::Matches)?;
        self.output.set(self.output.get().saturating_sub(bytes));
        Ok(())
    }

    /// Matches that are not given after all.
    pub(super) fn give_back(&self, matches: usize) {
        let matches = u64::try_from(matches).unwrap_or(0);
        self.matches.set(self.matches.get() + matches);
    }
}

fn spend(from: &Cell<u64>, amount: u64, or: Stop) -> Result<(), Stop> {
    from.set(from.get().checked_sub(amount).ok_or(or)?);
    Ok(())
}
