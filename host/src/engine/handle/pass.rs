//! The engine's side of a pass.

use super::{Delivery, EngineHandle};
use crate::engine::args::SlotArgs;
use crate::engine::control::CallControl;
use crate::engine::core::{Core, Request};
use crate::engine::emission::{Collector, Order};
use crate::engine::{
    CompressRequest, Emission, EngineFault, FaultKind, IdleOutcome, PassControl, PassOutcome, Slot,
};
use hermes_engine_abi as abi;
use std::sync::Arc;

impl EngineHandle {
    /// Runs one pass over a snapshot. What it emits is raw: whether it is a sequence that may be
    /// committed is for the checks of a pass to say, and [`EngineHandle::pass_result`] tells the engine.
    ///
    /// # Errors
    /// Says why there is no result; the transcript then stays as it is.
    pub fn compress(
        &mut self,
        request: CompressRequest,
        control: &PassControl,
    ) -> Result<Emission, EngineFault> {
        const SLOT: Slot = Slot::Compress;
        self.leave_if_out();
        if self.is_busy() {
            return Err(self.core.busy(SLOT));
        }
        let ledger = self.core.services.ledger.clone();
        // Given back when this function ends, also if the pass is given up.
        let Some(_permit) = ledger.permit(control.timeout()) else {
            let why = "was skipped: too many passes of other conversations are running";
            return Err(self.core.fault(FaultKind::Busy, SLOT, why));
        };
        let pass_id = request.pass_id.clone();
        let collector = Collector::new(Order::Increasing, vec![request.messages.clone()]);
        let args = SlotArgs::Compress(request);
        let answer = self.ask_steered(SLOT, args, Some(collector), control)?;
        if answer.status == abi::OK {
            self.open_pass = Some(pass_id.clone());
        }
        self.emission(SLOT, answer).inspect_err(|fault| {
            // The engine thinks that it has succeeded.
            self.pass_result(&pass_id, PassOutcome::Discarded(fault.why.clone()));
        })
    }

    /// Tells the engine what became of its pass: once for each that it thinks has succeeded.
    pub fn pass_result(&mut self, pass_id: &str, outcome: PassOutcome) -> Delivery {
        if self.open_pass.as_deref() != Some(pass_id) {
            return Delivery::Absent;
        }
        self.open_pass = None;
        let args = SlotArgs::Pass {
            pass_id: pass_id.to_owned(),
            outcome,
        };
        self.deliver(Slot::PassResult, args)
    }

    /// One pass by the built-in, for a request that must fit while the engine could not make it fit. The
    /// engine goes on serving, and hears nothing of it but the commit's `session_start`.
    ///
    /// # Errors
    /// Says why the built-in has no result either.
    pub fn compress_with_builtin(
        &mut self,
        request: CompressRequest,
        control: &PassControl,
    ) -> Result<Emission, EngineFault> {
        const SLOT: Slot = Slot::Compress;
        let collector = Collector::new(Order::Increasing, vec![request.messages.clone()]);
        let here = control.timeout().is_none();
        let session = Arc::clone(&self.session_id);
        let spare = self.spare()?;
        let answer = spare.ask(
            Request {
                slot: SLOT,
                args: SlotArgs::Compress(request),
                session,
                control: Arc::new(CallControl::steered(control)),
                emitted: Some(collector),
            },
            here,
        );
        // Its own state counts for nothing here, so each such pass gets a fresh one.
        self.spare = None;
        self.emission(SLOT, answer?)
    }

    fn spare(&mut self) -> Result<&Core, EngineFault> {
        if self.spare.is_none() {
            let core = self.builtin_core().map_err(|why| {
                EngineFault::new(FaultKind::Unavailable, "compressor", Slot::Create, why)
            })?;
            self.spare = Some(core);
        }
        self.spare.as_ref().ok_or_else(|| {
            let why = "could not be made";
            EngineFault::new(FaultKind::Unavailable, "compressor", Slot::Create, why)
        })
    }

    /// One idle call, between turns. Cancel `control` when a turn begins.
    pub fn idle(&mut self, control: &PassControl) -> IdleOutcome {
        if !self.has(Slot::Idle) {
            return IdleOutcome::Done;
        }
        match self.ask_steered(Slot::Idle, SlotArgs::None, None, control) {
            Ok(answer) if answer.status == abi::MORE => IdleOutcome::More,
            Ok(_) => IdleOutcome::Done,
            Err(fault) => IdleOutcome::Stopped(fault),
        }
    }
}
