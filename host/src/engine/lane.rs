//! One instance's lane: the only way into it.
//!
//! A lane is a queue and a plain thread, made when it is first needed. Jobs run one after the other, so
//! that no instance is ever entered twice at once; which thread that is, an engine cannot rely on.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Slot;
use super::handle::Instance;

/// What runs on a lane. It finds the instance, or the empty place of one, and may take or put it.
pub(crate) type Job = Box<dyn FnOnce(&mut Option<Instance>) -> Done + Send>;

/// What a job leaves to be dropped once the lane is free again. Whoever waits is woken by that drop, and
/// must be able to make the next call at once.
pub(crate) type Done = Option<Box<dyn Send>>;

pub(crate) struct Task {
    pub(crate) slot: Slot,
    pub(crate) job: Job,
}

/// Closes when it is dropped: what is queued still runs, then the instance is destroyed on the lane.
pub(crate) struct Lane {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    queue: VecDeque<Task>,
    instance: Option<Instance>,
    /// The slot that is being called, on the lane's thread or on a caller's.
    inside: Option<Slot>,
    closing: bool,
    ended: bool,
    thread: Option<JoinHandle<()>>,
}

/// All lanes of the process that may still have something to do, for [`shutdown`].
static LANES: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

impl Lane {
    pub(crate) fn new(engine: &str, instance: Option<Instance>) -> Self {
        let inner = Arc::new(Inner {
            name: engine.to_owned(),
            state: Mutex::new(State {
                queue: VecDeque::new(),
                instance,
                inside: None,
                closing: false,
                ended: false,
                thread: None,
            }),
            changed: Condvar::new(),
        });
        let mut lanes = LANES.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.retain(|lane| lane.strong_count() > 0);
        lanes.push(Arc::downgrade(&inner));
        Self { inner }
    }

    /// Whether a call is inside, or waits to get in.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.inner.lock();
        state.inside.is_some() || !state.queue.is_empty()
    }

    /// The slot that is being called right now.
    pub(crate) fn inside(&self) -> Option<Slot> {
        self.inner.lock().inside
    }

    /// Queues a task. False when the system gives no thread to run it; the task is gone then.
    pub(crate) fn push(&self, task: Task) -> bool {
        let mut state = self.inner.lock();
        if !self.inner.has_thread(&mut state) {
            return false;
        }
        state.queue.push_back(task);
        drop(state);
        self.inner.changed.notify_all();
        true
    }

    /// Queues a task if nothing else is inside or waits; false, and the task is gone, if so.
    pub(crate) fn push_if_idle(&self, task: Task) -> bool {
        let mut state = self.inner.lock();
        if state.inside.is_some() || !state.queue.is_empty() || !self.inner.has_thread(&mut state) {
            return false;
        }
        state.queue.push_back(task);
        drop(state);
        self.inner.changed.notify_all();
        true
    }

    /// Runs a task on the caller's own thread if nothing else is inside; false, and nothing run, if so.
    pub(crate) fn run_here(
        &self,
        slot: Slot,
        job: impl FnOnce(&mut Option<Instance>) -> Done,
    ) -> bool {
        let mut state = self.inner.lock();
        if state.inside.is_some() || !state.queue.is_empty() {
            return false;
        }
        state.inside = Some(slot);
        let mut instance = state.instance.take();
        drop(state);
        // The place must be given back also if the job panics.
        let outcome = catch_unwind(AssertUnwindSafe(|| job(&mut instance)));
        let mut state = self.inner.lock();
        state.instance = instance;
        state.inside = None;
        drop(state);
        self.inner.changed.notify_all();
        match outcome {
            Ok(done) => drop(done),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        true
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        state.closing = true;
        // Destroying is the engine's code too, and may hang: never on the caller's thread.
        if state.instance.is_none() && state.inside.is_none() && state.queue.is_empty() {
            state.ended = true;
        } else if !self.inner.has_thread(&mut state) {
            // Without a thread the instance stays: a leak is better than a hang here.
            std::mem::forget(state.instance.take());
            state.ended = true;
        }
        drop(state);
        self.inner.changed.notify_all();
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change of the state is one assignment, so a panic leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_thread(self: &Arc<Self>, state: &mut State) -> bool {
        if state.thread.is_none() {
            let inner = Arc::clone(self);
            state.thread = std::thread::Builder::new()
                .name(format!("engine {}", self.name))
                .spawn(move || inner.run())
                .ok();
        }
        state.thread.is_some()
    }

    fn run(&self) {
        let mut state = self.lock();
        loop {
            if state.inside.is_some() {
                state = self.wait(state);
            } else if let Some(task) = state.queue.pop_front() {
                state.inside = Some(task.slot);
                let mut instance = state.instance.take();
                drop(state);
                // A panic here is the host's own; whoever waits for the job sees that its reply is gone.
                let done = catch_unwind(AssertUnwindSafe(|| (task.job)(&mut instance)));
                state = self.lock();
                state.instance = instance;
                state.inside = None;
                drop(state);
                drop(done);
                self.changed.notify_all();
                state = self.lock();
            } else if state.closing {
                let instance = state.instance.take();
                state.inside = Some(Slot::Destroy);
                drop(state);
                drop(instance);
                state = self.lock();
                state.inside = None;
                state.ended = true;
                self.changed.notify_all();
                return;
            } else {
                state = self.wait(state);
            }
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was not done when the time for shutting down was over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shutdown {
    /// `engine: slot` of every call that never reached its engine.
    pub undelivered: Vec<String>,
    /// `engine: slot` of every call that is still inside. While there is one, leave without running
    /// static destructors: they would run under a live engine.
    pub still_inside: Vec<String>,
}

/// Gives all lanes together `limit` to finish what is queued and, where the owner has let go of the
/// instance, to destroy it. Says what was not done, and logs it.
pub fn shutdown(limit: Duration) -> Shutdown {
    let until = Instant::now() + limit;
    let lanes: Vec<Arc<Inner>> = LANES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
        .filter_map(Weak::upgrade)
        .collect();
    let mut report = Shutdown::default();
    for lane in lanes {
        let mut state = lane.lock();
        let pending = |state: &State| {
            state.inside.is_some() || !state.queue.is_empty() || (state.closing && !state.ended)
        };
        while pending(&state) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            (state, _) = lane
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let name = &lane.name;
        report
            .still_inside
            .extend(state.inside.map(|slot| format!("{name}: {slot}")));
        report
            .undelivered
            .extend(state.queue.iter().map(|t| format!("{name}: {}", t.slot)));
        let ended = state.ended.then(|| state.thread.take()).flatten();
        drop(state);
        if let Some(thread) = ended {
            // It has left its loop; joining waits for its last instruction only.
            let _ = thread.join();
        }
    }
    for call in &report.undelivered {
        tracing::warn!(
            "the program ends before this call could be delivered to its engine: {call}"
        );
    }
    for call in &report.still_inside {
        tracing::warn!("the program ends while this call is still inside its engine: {call}");
    }
    report
}
