//! The clock and the off-switch of one call.

use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How a caller steers a pass (or an idle call) from outside: its time, and a switch to cancel it.
#[derive(Clone, Debug)]
pub struct PassControl {
    timeout: Option<Duration>,
    ceiling: Option<Duration>,
    shared: Arc<Outside>,
}

#[derive(Debug, Default)]
struct Outside {
    cancelled: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
}

impl PassControl {
    /// A pass that may be silent for `timeout`; each sign of progress gives it that time again, up to
    /// `ceiling` in all. Without a timeout the pass runs on the caller's thread for as long as it likes.
    #[must_use]
    pub fn new(timeout: Option<Duration>, ceiling: Option<Duration>) -> Self {
        Self {
            timeout: timeout.filter(|timeout| !timeout.is_zero()),
            ceiling,
            shared: Arc::default(),
        }
    }

    /// Asks the pass to stop. From any thread; the caller of the pass gets `Cancelled`.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Release);
    }

    /// Whether it was asked to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Acquire)
    }

    /// What the engine last said about its progress: done, and of how much (0 = unknown).
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (
            self.shared.done.load(Ordering::Relaxed),
            self.shared.total.load(Ordering::Relaxed),
        )
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}

/// One call's clock. Shared by the caller, the lane and the callbacks of the call.
#[derive(Debug)]
pub(crate) struct CallControl {
    id: u64,
    budget: Option<Duration>,
    ceiling: Option<Duration>,
    started: AtomicU64,
    deadline: AtomicU64,
    cancelled: AtomicBool,
    outside: Option<PassControl>,
}

/// No deadline (yet).
const NEVER: u64 = u64::MAX;

/// Nanoseconds since the program's first call. Atomics can hold this, but no `Instant`.
fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    nanos(START.elapsed())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER)
}

impl CallControl {
    /// A call with a fixed budget; `None` = no limit.
    pub(crate) fn new(budget: Option<Duration>) -> Self {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Self {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            budget,
            ceiling: None,
            started: AtomicU64::new(0),
            deadline: AtomicU64::new(NEVER),
            cancelled: AtomicBool::new(false),
            outside: None,
        }
    }

    /// A call that the caller steers.
    pub(crate) fn steered(outside: &PassControl) -> Self {
        Self {
            ceiling: outside.ceiling,
            outside: Some(outside.clone()),
            ..Self::new(outside.timeout)
        }
    }

    /// A call with a fixed budget that can be called off from outside.
    pub(crate) fn stoppable(budget: Option<Duration>, outside: &PassControl) -> Self {
        Self {
            outside: Some(outside.clone()),
            ..Self::new(budget)
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn budget(&self) -> Option<Duration> {
        self.budget
    }

    /// The clock starts: when the engine is entered, not when the call was queued.
    pub(crate) fn start(&self) {
        let now = now();
        self.started.store(now, Ordering::Release);
        if let Some(budget) = self.budget {
            self.deadline
                .store(now.saturating_add(nanos(budget)), Ordering::Release);
        }
    }

    /// A sign of life: the budget begins anew, within the ceiling.
    pub(crate) fn progress(&self, done: u64, total: u64) {
        if self.is_cancelled() {
            return;
        }
        if let Some(outside) = &self.outside {
            outside.shared.done.store(done, Ordering::Relaxed);
            outside.shared.total.store(total, Ordering::Relaxed);
        }
        if let (Some(budget), Some(ceiling)) = (self.budget, self.ceiling) {
            let last = self
                .started
                .load(Ordering::Acquire)
                .saturating_add(nanos(ceiling));
            let next = now().saturating_add(nanos(budget)).min(last);
            self.deadline.fetch_max(next, Ordering::AcqRel);
        }
    }

    /// Counts as progress without a figure: text that streams in.
    pub(crate) fn alive(&self) {
        let (done, total) = self.outside.as_ref().map_or((0, 0), PassControl::progress);
        self.progress(done, total);
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Cancelled from outside, by the caller that has lost patience, or by the clock.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire) || self.is_called_off() || self.left().is_zero()
    }

    /// Cancelled by whoever steers the call.
    pub(crate) fn is_called_off(&self) -> bool {
        self.outside.as_ref().is_some_and(PassControl::is_cancelled)
    }

    /// Whether somebody may cancel it at any time, so that waiting must look up now and then.
    pub(crate) fn is_steered(&self) -> bool {
        self.outside.is_some()
    }

    /// The time until its deadline; very long if it has none.
    pub(crate) fn left(&self) -> Duration {
        match self.deadline.load(Ordering::Acquire) {
            NEVER => Duration::MAX,
            deadline => Duration::from_nanos(deadline.saturating_sub(now())),
        }
    }
}
