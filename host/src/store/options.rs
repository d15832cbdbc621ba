//! How a store is opened.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What must be on the disk before a commit is reported as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Every commit is synced: a power cut loses no acknowledged turn.
    #[default]
    Full,
    /// Commits are synced at checkpoints: a power cut may lose the last turns, never consistency.
    Normal,
    /// Nothing is synced. For tests and throw-away copies.
    Off,
}

/// What a caller is told while a lock is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Waiting<'a> {
    /// The store's file.
    pub path: &'a Path,
    /// What is to be done.
    pub doing: &'static str,
    /// For how long now.
    pub waited: Duration,
}

/// Progress of long work: what is done, how far, of how much (0 = unknown).
pub type Progress<'a> = &'a mut dyn FnMut(&'static str, u64, u64);

type OnWait = Arc<dyn Fn(&Waiting<'_>) + Send + Sync>;
type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// How a store is opened. `StoreOptions::default()` is right for a conversation.
#[derive(Clone)]
pub struct StoreOptions {
    /// What a commit promises.
    pub durability: Durability,
    /// How long a lock of another process is waited for before the call fails.
    pub busy_wait: Duration,
    /// Called about once a second while a lock is waited for.
    pub on_wait: Option<OnWait>,
    /// How much time each open may spend on giving ids to rows from before schema 31.
    pub backfill_budget: Duration,
    /// How much time each open may spend on indexing messages that are not searchable yet.
    pub catch_up_budget: Duration,
    /// An upper limit of the file's size, in pages; `None` is SQLite's own.
    pub max_pages: Option<u32>,
    /// The clock behind every time stamp and lease.
    pub clock: Clock,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            busy_wait: Duration::from_secs(30),
            on_wait: None,
            backfill_budget: Duration::from_millis(300),
            catch_up_budget: Duration::from_millis(200),
            max_pages: None,
            clock: Arc::new(SystemTime::now),
        }
    }
}

impl std::fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreOptions")
            .field("durability", &self.durability)
            .field("busy_wait", &self.busy_wait)
            .field("backfill_budget", &self.backfill_budget)
            .field("catch_up_budget", &self.catch_up_budget)
            .field("max_pages", &self.max_pages)
            .finish_non_exhaustive()
    }
}

impl StoreOptions {
    /// The time as Hermes stores it: seconds since 1970.
    pub(crate) fn now(&self) -> f64 {
        (self.clock)()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs_f64()
    }

    pub(crate) fn tell_waiting(&self, waiting: &Waiting<'_>) {
        tracing::warn!(
            doing = waiting.doing,
            seconds = waiting.waited.as_secs(),
            path = %waiting.path.display(),
            "waiting for another process to give the write lock back"
        );
        if let Some(tell) = &self.on_wait {
            tell(waiting);
        }
    }
}
