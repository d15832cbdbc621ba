//! Waiting for a lane, within a budget.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::control::CallControl;

/// Where a lane puts the result of a call, and where its caller waits for it.
///
/// A call ends in two steps: its result, then the engine's state, which is read right behind it. A
/// caller that has the result but waits in vain for the state takes the result and goes on.
pub(crate) struct Reply<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    result: Option<T>,
    result_at: Option<Instant>,
    finished: bool,
    abandoned: bool,
}

/// What waiting has brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waited<T> {
    /// The call has ended, and the state was read.
    Done(T),
    /// The call has ended, but reading the state has not; it was given up.
    StateAbandoned(T),
    /// The call has not ended; it was given up.
    Abandoned,
    /// The lane has dropped the job without a result.
    Lost,
}

/// While a caller waits, how often it looks up without being woken.
const LOOK_UP: Duration = Duration::from_millis(250);
/// The same for a call that somebody may cancel from outside.
const LOOK_UP_STEERED: Duration = Duration::from_millis(20);

impl<T> Reply<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                result: None,
                result_at: None,
                finished: false,
                abandoned: false,
            }),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Each field is set by one assignment; a panic elsewhere cannot leave half a state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the call is over or its time is. `state_budget` is for the state behind the result.
    pub(crate) fn wait(
        &self,
        control: &CallControl,
        grace: Duration,
        state_budget: Duration,
    ) -> Waited<T> {
        let mut cancelled_at: Option<Instant> = None;
        let mut state = self.lock();
        loop {
            if state.finished {
                return state.result.take().map_or(Waited::Lost, Waited::Done);
            }
            let now = Instant::now();
            let left = if let Some(at) = state.result_at {
                let left = (state_budget + grace).saturating_sub(now - at);
                if left.is_zero() {
                    state.abandoned = true;
                    let result = state.result.take();
                    return result.map_or(Waited::Lost, Waited::StateAbandoned);
                }
                left
            } else {
                if cancelled_at.is_none() && (control.left().is_zero() || control.is_called_off()) {
                    control.cancel();
                    cancelled_at = Some(now);
                }
                match cancelled_at {
                    None => control.left(),
                    Some(at) => {
                        let left = grace.saturating_sub(now - at);
                        if left.is_zero() {
                            state.abandoned = true;
                            return Waited::Abandoned;
                        }
                        left
                    }
                }
            };
            let look_up = if control.is_steered() {
                LOOK_UP_STEERED
            } else {
                LOOK_UP
            };
            (state, _) = self
                .changed
                .wait_timeout(state, left.min(look_up))
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The lane's end of a [`Reply`]. Dropping it ends the call, with or without a result.
pub(crate) struct Answer<T> {
    reply: Arc<Reply<T>>,
}

impl<T> Answer<T> {
    pub(crate) fn new(reply: &Arc<Reply<T>>) -> Self {
        Self {
            reply: Arc::clone(reply),
        }
    }

    /// Hands the result over. False when nobody waits any more: the result is dropped here, on the lane.
    pub(crate) fn give(&self, result: T) -> bool {
        let mut state = self.reply.lock();
        if state.abandoned {
            drop(state);
            drop(result);
            return false;
        }
        state.result = Some(result);
        state.result_at = Some(Instant::now());
        true
    }

    /// Whether the caller is gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.reply.lock().abandoned
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        self.reply.lock().finished = true;
        self.reply.changed.notify_all();
    }
}
