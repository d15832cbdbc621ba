//! What is asked every turn: decisions, the selection of a request, the end of a turn.

use super::EngineHandle;
use crate::engine::args::{SelectRequest, SlotArgs};
use crate::engine::emission::{Collector, Order};
use crate::engine::{Decision, Emission, EngineFault, FaultKind, MessageList, Slot, TurnInfo};
use hermes_engine_abi as abi;

impl EngineHandle {
    /// Whether to compress now. Any fault counts as no.
    pub fn should_compress(&mut self, prompt_tokens: Option<i64>) -> Decision {
        let args = SlotArgs::Decide {
            prompt_tokens,
            messages: None,
        };
        self.decide(Slot::ShouldCompress, args)
    }

    /// Whether the engine asks for one pass before the turn's first model call. An absent slot is no.
    pub fn preflight(&mut self, prompt_tokens: Option<i64>, messages: &MessageList) -> bool {
        if !self.has(Slot::Preflight) {
            return false;
        }
        let args = SlotArgs::Decide {
            prompt_tokens,
            messages: Some(messages.clone()),
        };
        self.decide(Slot::Preflight, args).yes
    }

    fn decide(&mut self, slot: Slot, args: SlotArgs) -> Decision {
        match self.ask(slot, args, None) {
            Ok(mut answer) => Decision {
                yes: answer.yes,
                // A reason that cannot be read is no reason to distrust the answer.
                reason: answer.returned.sink.text().unwrap_or_default(),
            },
            Err(_) => Decision::default(),
        }
    }

    /// Lets the engine choose the messages of one request. Without the slot: unchanged, with nothing
    /// called, copied or allocated (HOOK-1).
    ///
    /// # Errors
    /// Says why there is no selection; the request then goes out as it was. The user is warned once per
    /// session and kind.
    pub fn select_context(
        &mut self,
        request: &MessageList,
        conversation: &MessageList,
        incoming: Option<usize>,
        budget_tokens: u64,
        fixed_tokens: u64,
        attempt: u32,
    ) -> Result<Emission, EngineFault> {
        const SLOT: Slot = Slot::SelectContext;
        if !self.has(SLOT) {
            return Ok(Emission::Unchanged {
                reason: String::new(),
            });
        }
        let lists = vec![request.clone(), conversation.clone()];
        let args = SlotArgs::Select(SelectRequest {
            request: request.clone(),
            conversation: conversation.clone(),
            incoming,
            budget_tokens,
            fixed_tokens,
            attempt,
        });
        let answer = self.ask(SLOT, args, Some(Collector::new(Order::Any, lists)))?;
        let emission = self.emission(SLOT, answer)?;
        // HOOK-4: an empty list is a mistake here, not a wish.
        if matches!(&emission, Emission::Messages(items) if items.is_empty()) {
            let why = "answered OK, but chose no message at all";
            let fault = self.core.fault(FaultKind::InvalidOutput, SLOT, why);
            self.keep_books(SLOT, Some(&fault));
            return Err(fault);
        }
        Ok(emission)
    }

    /// Tells the engine of a finished turn, once. Whatever it answers changes nothing for the turn.
    pub fn turn_complete(&mut self, turn: TurnInfo) {
        if self.has(Slot::TurnComplete) {
            // Its fault, if any, is in the books and in the log.
            let _ = self.ask(Slot::TurnComplete, SlotArgs::Turn(turn), None);
        }
    }

    /// What a successful slot has emitted, whole or not at all.
    pub(super) fn emission(
        &mut self,
        slot: Slot,
        mut answer: crate::engine::outcome::Success,
    ) -> Result<Emission, EngineFault> {
        let sink = &mut answer.returned.sink;
        if answer.status == abi::UNCHANGED {
            let written = sink.text().unwrap_or_default();
            let reason = match sink.error() {
                "" => written,
                error => error.to_owned(),
            };
            return Ok(Emission::Unchanged { reason });
        }
        let emitted = sink
            .emitted()
            .map_or_else(|| Ok(Vec::new()), Collector::finish);
        emitted.map(Emission::Messages).map_err(|why| {
            let fault = self.core.fault(FaultKind::InvalidOutput, slot, why);
            self.keep_books(slot, Some(&fault));
            fault
        })
    }
}
