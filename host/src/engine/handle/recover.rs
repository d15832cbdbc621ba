//! What a fault leads to: a warning, a new instance, or the built-in for the rest of the session.

use std::sync::Arc;

use super::{EngineHandle, Notice, Serving};
use crate::engine::args::SlotArgs;
use crate::engine::core::{Core, Request};
use crate::engine::{EngineFault, FaultKind, SessionInfo, Slot, StartReason};

/// So many failures of one call in a row, and the engine is taken out (SAFE-4).
const FAILURES: u32 = 3;
/// So often in a session a dead instance is replaced.
const REPLACEMENTS: u32 = 2;

impl EngineHandle {
    /// Keeps the books about one call, and does what the failure table says.
    pub(super) fn keep_books(&mut self, slot: Slot, fault: Option<&EngineFault>) {
        let excused = self.excused.take();
        let Some(fault) = fault else {
            self.excused = self.failures.remove(&slot).map(|row| (slot, row));
            return;
        };
        // A call that succeeded and put out what cannot be used has failed all the same.
        if let (FaultKind::InvalidOutput, Some((excused, row))) = (fault.kind, excused)
            && excused == slot
        {
            self.failures.insert(slot, row);
        }
        self.warn_once(fault);
        // That a tool or a command did not like its arguments says nothing about the engine.
        let about_arguments =
            matches!(slot, Slot::ToolCall | Slot::Command) && fault.kind == FaultKind::Error;
        if !fault.kind.is_failure() || about_arguments {
            return;
        }
        if fault.kind == FaultKind::Panic {
            self.panics += 1;
            let why = fault.why.clone();
            if self.panics > REPLACEMENTS {
                self.fall_back(&format!(
                    "it panicked {} times, last: {slot} {why}",
                    self.panics
                ));
            } else if let Err(cause) = self.replace() {
                self.fall_back(&format!("{slot} {why}, and no new instance: {cause}"));
            }
            return;
        }
        let failures = self.failures.entry(slot).or_default();
        *failures += 1;
        if *failures >= FAILURES {
            let times = *failures;
            self.fall_back(&format!(
                "{slot} failed {times} times in a row, last: {}",
                fault.why
            ));
        }
    }

    /// One warning per session and kind of fault. That a call was skipped or cancelled is no news.
    fn warn_once(&mut self, fault: &EngineFault) {
        if matches!(fault.kind, FaultKind::Busy | FaultKind::Cancelled) {
            tracing::debug!("{fault}");
        } else if self.warned.insert((fault.slot, fault.kind)) {
            tracing::warn!(session = &*self.session_id, "{fault}");
            self.notices.push(Notice::Warning(fault.to_string()));
        } else {
            tracing::debug!("{fault}");
        }
    }

    /// A library of which too many calls were given up is not entered again.
    pub(super) fn leave_if_out(&mut self) {
        let ledger = &self.core.services.ledger;
        if !self.is_builtin()
            && let Some(why) = ledger.is_out(&self.core.library())
        {
            self.fall_back(&why);
        }
    }

    fn is_builtin(&self) -> bool {
        let builtin = self.template.builtin().unwrap_or(&self.template);
        self.core.module.is_same(builtin.module())
    }

    /// A new instance in place of a dead one.
    fn replace(&mut self) -> Result<(), String> {
        let template = match (&self.serving, self.template.builtin()) {
            (Serving::FallenBack { .. }, Some(builtin)) => builtin.clone(),
            _ => self.template.clone(),
        };
        let core = template.clone_core().map_err(|fault| fault.to_string())?;
        self.bring_up(&core, StartReason::Recover)?;
        self.adopt(core);
        Ok(())
    }

    /// The built-in serves the rest of the session. The user is told once why, and how to go back.
    pub(super) fn fall_back(&mut self, why: &str) {
        self.failures.clear();
        if self.is_builtin() {
            // There is nothing to fall back to but a fresh instance of the same.
            if let Err(cause) = self.replace() {
                tracing::error!("the built-in engine could not be made anew: {cause}");
            }
            return;
        }
        let core = match self.builtin_core() {
            Ok(core) => core,
            Err(cause) => {
                tracing::error!(
                    "context engine '{}' should be taken out ({why}), but there is nothing to take its place: {cause}",
                    self.name()
                );
                return;
            }
        };
        let wanted = self.template.name().to_owned();
        let text = format!(
            "context engine '{wanted}' was taken out for the rest of this session: {why}. The built-in engine serves. \
             A new session tries '{wanted}' again; `hermes plugins why {wanted}` says more."
        );
        tracing::warn!(session = &*self.session_id, "{text}");
        self.notices.push(Notice::TakenOut(text));
        self.adopt(core);
        self.serving = Serving::FallenBack {
            wanted,
            reason: why.to_owned(),
        };
    }

    fn adopt(&mut self, core: Core) {
        // The old lane delivers what is queued and destroys its instance, whenever that is.
        self.core = core;
        self.open_pass = None;
    }

    /// An instance of the built-in, brought up to date.
    pub(super) fn builtin_core(&self) -> Result<Core, String> {
        let builtin = self
            .template
            .builtin()
            .ok_or("no built-in engine was set up beside it")?;
        let core = builtin.clone_core().map_err(|fault| fault.to_string())?;
        self.bring_up(&core, StartReason::Resume)?;
        Ok(core)
    }

    /// What an instance that comes late has missed: the model, then the session (LIFE-1's order).
    fn bring_up(&self, core: &Core, reason: StartReason) -> Result<(), String> {
        let tell = |slot: Slot, args: SlotArgs| {
            if !core.has(slot) {
                return Ok(());
            }
            let control = core.control(slot);
            let here = control.budget().is_none();
            let request = Request {
                slot,
                args,
                session: Arc::clone(&self.session_id),
                control,
                emitted: None,
            };
            let told = core.ask(request, here);
            told.map(drop).map_err(|fault| fault.to_string())
        };
        if let Some(model) = self.model.clone() {
            tell(Slot::UpdateModel, SlotArgs::Model(model))?;
        }
        if let Some(session) = self.session.clone() {
            let session = SessionInfo { reason, ..session };
            tell(Slot::SessionStart, SlotArgs::Session(session))?;
        }
        Ok(())
    }
}
