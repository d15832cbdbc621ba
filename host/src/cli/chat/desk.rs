//! The conversation where two threads can reach it: the one that talks, and the one that hears signals.
//!
//! The talking thread has the agent in hand while a turn runs, and lays it down while it waits for input. So a signal
//! finds it either way: in hand, and then the turn is interrupted and the talking thread ends the conversation itself;
//! or on the desk, and then the signal's thread ends it, for the other one may wait for input for ever.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::super::{CliError, output};
use crate::agent::{Agent, Closed, Interrupt};
use crate::engine::PassControl;

/// How long the talking thread may take to come to an end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// How long it may take when the user does not want to wait.
const SHORT_GRACE: Duration = Duration::from_secs(2);

/// After so long without an end, what the talking thread waits for by now is interrupted, too: the engine's work on the
/// turn that was interrupted.
const HURRY: Duration = Duration::from_millis(500);

/// How long it may take to end the session and the process once it has begun to.
const LAST_THINGS: Duration = Duration::from_secs(15);

/// What an editor takes to notice that it is to stop.
const EDITOR: Duration = Duration::from_secs(1);

/// What the process ends with when a signal ended it in the middle of something.
const BROKEN_OFF: i32 = 1;

/// A conversation that signals can reach. Clones are the same one.
#[derive(Clone, Default)]
pub(super) struct Desk(Arc<Shared>);

#[derive(Default)]
struct Shared {
    agent: Mutex<Option<Agent>>,
    interrupt: OnceLock<Interrupt>,
    /// What the engine does between turns.
    idle: Mutex<Option<PassControl>>,
    /// A turn has ended, and the engine is not done with its work after it.
    idle_is_due: AtomicBool,
    /// How often the user wanted to stop the turn under way.
    presses: AtomicU32,
    leaving: AtomicBool,
    /// Makes the editor give up its line.
    stop_editing: Arc<AtomicBool>,
    has_editor: AtomicBool,
}

impl Desk {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Lays the agent down.
    pub(super) fn seat(&self, agent: Agent) {
        // Only ever one agent.
        let _ = self.0.interrupt.set(agent.interrupt());
        *self.hold() = Some(agent);
    }

    /// Takes the agent in hand; nobody else has it meanwhile. `None` in it: the conversation is over.
    pub(super) fn hold(&self) -> MutexGuard<'_, Option<Agent>> {
        // A turn that panicked has its own end; the agent is still one.
        self.0.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn begins: the first signal from now on interrupts it.
    pub(super) fn begin_turn(&self) {
        self.0.presses.store(0, Ordering::Release);
    }

    /// A turn has ended.
    pub(super) fn end_turn(&self) {
        self.0.idle_is_due.store(true, Ordering::Release);
    }

    /// Whether the conversation is to end.
    pub(super) fn is_leaving(&self) -> bool {
        self.0.leaving.load(Ordering::Acquire)
    }

    /// The flag for an editor; from now on there is one.
    pub(super) fn stop_editing(&self) -> Arc<AtomicBool> {
        self.0.has_editor.store(true, Ordering::Release);
        Arc::clone(&self.0.stop_editing)
    }

    /// Waits for input while the engine may work on the agent, if it has not done so since the last turn.
    pub(super) fn while_idle<T>(&self, wait: impl FnOnce() -> T) -> T {
        if !self.0.idle_is_due.load(Ordering::Acquire) {
            return wait();
        }
        let control = PassControl::new(None, None);
        *lock(&self.0.idle) = Some(control.clone());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if let Some(agent) = self.hold().as_mut()
                    && !self.is_leaving()
                {
                    agent.idle(&control);
                    self.0
                        .idle_is_due
                        .store(control.is_cancelled(), Ordering::Release);
                }
            });
            let waited = wait();
            control.cancel();
            waited
        })
    }

    /// The signal's thread ends the process; there is nothing left to do in this one.
    pub(super) fn wait_for_the_end(&self) -> ! {
        loop {
            std::thread::park();
        }
    }

    /// From now on signals are heard: SIGINT interrupts a turn, and ends the conversation where there is none or it was
    /// interrupted already; SIGTERM and SIGHUP end it.
    #[cfg(unix)]
    pub(super) fn listen(&self) -> Result<(), CliError> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let failed = |error: std::io::Error| {
            CliError::new("io", format!("signals cannot be heard: {error}"))
        };
        let mut signals =
            signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
        let desk = self.clone();
        std::thread::Builder::new()
            .name("hermes-signals".to_owned())
            .spawn(move || {
                for signal in signals.forever() {
                    match signal {
                        SIGINT => desk.stop_or_leave(),
                        _ => desk.leave("terminated", GRACE),
                    }
                }
            })
            .map_err(failed)?;
        Ok(())
    }

    /// Signals do what the system makes of them.
    #[cfg(not(unix))]
    pub(super) fn listen(&self) -> Result<(), CliError> {
        Ok(())
    }

    #[cfg(unix)]
    fn stop_or_leave(&self) {
        let first = self.0.presses.fetch_add(1, Ordering::AcqRel) == 0;
        let stopped = self.0.interrupt.get().is_some_and(Interrupt::interrupt);
        if first && stopped {
            if output::shows_progress() {
                output::progress("interrupting; once more leaves the conversation");
            }
        } else {
            self.leave("interrupted", SHORT_GRACE);
        }
    }

    /// Ends the conversation and the process, if possible by the thread that talks.
    #[cfg(unix)]
    fn leave(&self, reason: &str, grace: Duration) {
        self.0.leaving.store(true, Ordering::Release);
        self.0.stop_editing.store(true, Ordering::Release);
        if let Some(control) = &*lock(&self.0.idle) {
            control.cancel();
        }
        let Some(interrupt) = self.0.interrupt.get() else {
            // Nothing has begun.
            output::stopped();
            end(BROKEN_OFF);
        };
        let in_turn = interrupt.interrupt();
        let began = Instant::now();
        if !in_turn && self.0.has_editor.load(Ordering::Acquire) {
            std::thread::sleep(EDITOR);
        }
        loop {
            match self.0.agent.try_lock() {
                Ok(mut agent) => return finish(agent.take(), reason, in_turn),
                Err(TryLockError::Poisoned(agent)) => {
                    return finish(agent.into_inner().take(), reason, in_turn);
                }
                Err(TryLockError::WouldBlock) if began.elapsed() < grace => {
                    if began.elapsed() > HURRY {
                        interrupt.interrupt();
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => {
                    output::warning(
                        "something is still at work and does not stop; left without it. What was said is saved, and the session is ended at the next start",
                    );
                    output::stopped();
                    end(BROKEN_OFF);
                }
            }
        }
    }
}

/// Says what there is to say about the end of a session, and whether all of it is saved.
pub(super) fn tell_closed(closed: &Closed) -> bool {
    for warning in &closed.warnings {
        output::warning(warning);
    }
    closed.is_saved
}

/// The agent was on the desk: its session gets its end here.
#[cfg(unix)]
fn finish(agent: Option<Agent>, reason: &str, in_turn: bool) {
    match agent {
        Some(agent) => {
            tell_closed(&agent.close(reason));
        }
        // The talking thread has ended the session and is about to end the process; it has results to print.
        None => std::thread::sleep(LAST_THINGS),
    }
    end(if in_turn { BROKEN_OFF } else { 0 });
}

/// Ends the process; no destructor runs, for the talking thread is still there.
#[cfg(unix)]
fn end(status: i32) -> ! {
    crate::engine::exit_is_expected();
    let _ = crate::engine::leave(u8::try_from(status).unwrap_or(1));
    signal_hook::low_level::exit(status)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
