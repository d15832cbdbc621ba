//! What an engine must not miss: its model, the usage of each call, the ends and beginnings of sessions.

use std::sync::Arc;

use super::{Delivery, EngineHandle, Serving};
use crate::engine::args::SlotArgs;
use crate::engine::core::Request;
use crate::engine::{FaultKind, ModelInfo, SessionInfo, Slot, StartReason, Usage};

impl EngineHandle {
    /// The model or its window: before anything else, and at every switch.
    pub fn update_model(&mut self, model: &ModelInfo) -> Delivery {
        self.model = Some(model.clone());
        self.deliver(Slot::UpdateModel, SlotArgs::Model(model.clone()))
    }

    /// What a model call of the conversation has used (ENG-2).
    pub fn update_from_response(&mut self, usage: &Usage) -> Delivery {
        self.deliver(Slot::UpdateFromResponse, SlotArgs::Usage(usage.clone()))
    }

    /// Between the end of a session and the start of a fresh one (LIFE-2).
    pub fn session_reset(&mut self) -> Delivery {
        self.deliver(Slot::SessionReset, SlotArgs::None)
    }

    /// A session begins, goes on, is set back, or was compacted.
    pub fn session_start(&mut self, session: &SessionInfo) -> Delivery {
        let other = *self.session_id != *session.session_id;
        if other && session.reason != StartReason::Compression {
            // Another conversation: what was held against the engine in the last one is forgotten.
            self.failures.clear();
            self.warned.clear();
            self.panics = 0;
            self.return_to_wanted();
        }
        self.session_id = Arc::from(session.session_id.as_str());
        // Not the transcript: it would be kept from growing in place.
        self.session = Some(SessionInfo {
            messages: None,
            ..session.clone()
        });
        self.deliver(Slot::SessionStart, SlotArgs::Session(session.clone()))
    }

    /// A session is over, with its final messages.
    pub fn session_end(&mut self, session: &SessionInfo) -> Delivery {
        self.deliver(Slot::SessionEnd, SlotArgs::Session(session.clone()))
    }

    /// Delivers a call, or queues it behind a call that was given up (PASS-10).
    pub(super) fn deliver(&mut self, slot: Slot, args: SlotArgs) -> Delivery {
        self.leave_if_out();
        if !self.has(slot) {
            return Delivery::Absent;
        }
        if self.is_busy() {
            let request = Request {
                slot,
                args,
                session: Arc::clone(&self.session_id),
                control: self.core.control(slot),
                emitted: None,
            };
            if self.core.defer(request) {
                return Delivery::Waiting;
            }
            let why = "could not be queued: the system gives no more threads";
            return Delivery::Failed(self.core.fault(FaultKind::Error, slot, why));
        }
        match self.ask(slot, args, None) {
            Ok(_) => Delivery::Done,
            Err(fault) => Delivery::Failed(fault),
        }
    }

    /// A new session tries the wanted engine again.
    fn return_to_wanted(&mut self) {
        let Serving::FallenBack { wanted, .. } = &self.serving else {
            return;
        };
        if *wanted != self.template.name() || self.name() == self.template.name() {
            return;
        }
        // Why it cannot is known already: the user was told when it was taken out.
        if let Ok(core) = self.template.clone_core() {
            self.core = core;
            self.serving = Serving::Itself;
            self.open_pass = None;
            if let Some(model) = self.model.clone() {
                self.update_model(&model);
            }
        }
    }
}
