//! How long a call may take.

use std::time::Duration;

use super::Slot;

/// The budget of each kind of call (`context.timeouts.*`). Zero means: no limit, and the call runs on
/// the caller's own thread, as PASS-1 says of a pass without a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// `select_context`, `turn_complete`, `preflight`.
    pub hooks: Duration,
    /// `state`, `update_from_response`, `update_model`, `session_reset`, `should_compress`, `status`.
    pub quick: Duration,
    /// `create`, `clone`, `session_start`, `session_end`, `pass_result`.
    pub lifecycle: Duration,
    /// `tool_call`, `tool_schemas`, `command`.
    pub tools: Duration,
    /// What a call is given to come back in after it was told that it is cancelled.
    pub grace: Duration,
    /// Budgets of single calls, which beat that of their kind.
    pub own: OwnTimeouts,
}

/// Budgets of single calls, by the place of the slot in [`Slot::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnTimeouts([Option<Duration>; Slot::ALL.len()]);

impl OwnTimeouts {
    /// With a budget for this slot; zero means no limit.
    #[must_use]
    pub fn with(mut self, slot: Slot, budget: Duration) -> Self {
        if let Some(own) = self.place(slot) {
            self.0[own] = Some(budget);
        }
        self
    }

    fn get(&self, slot: Slot) -> Option<Duration> {
        self.place(slot).and_then(|own| self.0[own])
    }

    fn place(&self, slot: Slot) -> Option<usize> {
        Slot::ALL.iter().position(|one| *one == slot)
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            hooks: Duration::from_secs(10),
            quick: Duration::from_secs(2),
            lifecycle: Duration::from_secs(10),
            tools: Duration::from_secs(60),
            grace: Duration::from_secs(1),
            own: OwnTimeouts::default(),
        }
    }
}

impl Timeouts {
    /// The budget of a slot; `None` means no limit. `compress` and `idle` are given theirs by the caller.
    #[must_use]
    pub fn of(&self, slot: Slot) -> Option<Duration> {
        let kind = match slot {
            Slot::SelectContext | Slot::TurnComplete | Slot::Preflight => self.hooks,
            Slot::State
            | Slot::UpdateFromResponse
            | Slot::UpdateModel
            | Slot::SessionReset
            | Slot::ShouldCompress
            | Slot::Status => self.quick,
            Slot::Create
            | Slot::Clone
            | Slot::SessionStart
            | Slot::SessionEnd
            | Slot::PassResult
            | Slot::Destroy => self.lifecycle,
            Slot::ToolCall | Slot::ToolSchemas | Slot::Command => self.tools,
            Slot::Compress | Slot::Idle => Duration::ZERO,
        };
        let budget = self.own.get(slot).unwrap_or(kind);
        (!budget.is_zero()).then_some(budget)
    }
}
