//! Stopping a turn from outside.

use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::PassControl;
use crate::provider::Cancel;

/// Stops what an agent is doing, from any thread, a signal's included. Clones stop the same agent.
///
/// A model call ends at once and what has arrived is kept; an engine at work (on a pass, a tool, a hook of the turn) is
/// told that it is cancelled, and left behind if it does not listen.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    turn: Option<Cancel>,
    pass: Option<PassControl>,
}

impl Interrupt {
    /// Stops the turn or the pass under way. Says whether there was one.
    pub fn interrupt(&self) -> bool {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = &shared.turn {
            turn.cancel();
        }
        if let Some(pass) = &shared.pass {
            pass.cancel();
        }
        shared.turn.is_some() || shared.pass.is_some()
    }

    /// A turn begins: what cancels it.
    pub(super) fn begin_turn(&self) -> Cancel {
        let cancel = Cancel::new();
        self.shared().turn = Some(cancel.clone());
        cancel
    }

    pub(super) fn end_turn(&self) {
        self.shared().turn = None;
    }

    /// A call that can be steered begins, or has ended. One that begins in a turn that was stopped is stopped, too.
    pub(crate) fn watch(&self, pass: Option<&PassControl>) {
        let mut shared = self.shared();
        if let (Some(pass), Some(turn)) = (pass, &shared.turn)
            && turn.is_cancelled()
        {
            pass.cancel();
        }
        shared.pass = pass.cloned();
    }

    fn shared(&self) -> std::sync::MutexGuard<'_, Shared> {
        // Two options: a panic elsewhere cannot have left them half written.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
