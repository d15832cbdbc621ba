//! Which passes run, and when: those that the engine asks for, those that a request needs to fit, and those of a person.

use super::backoff::Hold;
use super::pass::{Order, Outcome};
use super::port::{Engine, PassStore};
use super::run::By;
use super::{Conversation, Told};
use crate::engine::{BUILT_IN, Trigger};

/// A request that a pass could not make fit is worked on again once it has grown to this share of what it was.
const GROWN_PERCENT: u64 = 105;

impl Conversation {
    /// Before a request: runs the passes that the engine asks for. `trigger` says where in the turn we are.
    pub fn prepare(
        &mut self,
        engine: &mut dyn Engine,
        trigger: Trigger,
        store: &mut dyn PassStore,
    ) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        self.leave = None;
        if !self.settings.automatic {
            return outcomes;
        }
        for attempt in 0..self.settings.max_attempts {
            let tokens = self.next_tokens();
            if !self.wants_pass(engine, trigger, tokens, attempt) || !self.may_pass() {
                break;
            }
            let mut order = Order::new(self.next_pass_id(), trigger);
            order.current_tokens = Some(tokens);
            let (outcome, progress) = self.automatic(engine, order, By::Engine, store);
            outcomes.push(outcome);
            if !progress {
                break;
            }
        }
        outcomes
    }

    /// The provider refused the request as too long, or would: one pass to get below `target`.
    ///
    /// Neither the engine's cool-downs nor the host's back-off count here. But where such a pass did not make the
    /// request fit, the next one waits until there is something new to shorten: `None` says that no pass was run.
    /// Whether the request fits is for the next one to show; if it does not, [`Conversation::rescue`].
    pub fn overflow(
        &mut self,
        engine: &mut dyn Engine,
        tokens: u64,
        target: u64,
        store: &mut dyn PassStore,
    ) -> Option<Outcome> {
        let grown = self
            .overflowed
            .is_none_or(|last| tokens.saturating_mul(100) > last.saturating_mul(GROWN_PERCENT));
        if !self.settings.automatic || !(grown || self.may_pass()) {
            return None;
        }
        self.overflowed = Some(tokens);
        // An engine that cannot be entered would only say so.
        let by = match engine.held_up() {
            Some(_) if engine.name() != BUILT_IN => By::BuiltIn,
            _ => By::Engine,
        };
        self.built_in_tried = by == By::BuiltIn || engine.name() == BUILT_IN;
        let order = self.overflow_order(tokens, target);
        Some(self.for_the_window(engine, order, by, store))
    }

    /// The request does not fit and the engine's pass for it could not make it fit: the built-in takes this one pass.
    /// The engine goes on serving. `None`: it was the built-in's pass.
    pub fn rescue(
        &mut self,
        engine: &mut dyn Engine,
        tokens: u64,
        target: u64,
        store: &mut dyn PassStore,
    ) -> Option<Outcome> {
        if !self.settings.automatic || self.built_in_tried {
            return None;
        }
        // The failed pass may have been the one that took the engine out, and then the built-in serves by now.
        let by = if engine.name() == BUILT_IN {
            By::Engine
        } else {
            By::BuiltIn
        };
        let order = self.overflow_order(tokens, target);
        Some(self.for_the_window(engine, order, by, store))
    }

    /// A pass for a request that must fit. That the built-in had to make it is told once.
    fn for_the_window(
        &mut self,
        engine: &mut dyn Engine,
        order: Order,
        by: By,
        store: &mut dyn PassStore,
    ) -> Outcome {
        let outcome = self.automatic(engine, order, by, store).0;
        if by == By::BuiltIn && matches!(outcome, Outcome::Committed { .. }) {
            let name = engine.name();
            let held_up = engine.held_up();
            let is_held_up = held_up.is_some();
            let text = match held_up {
                Some(why) => format!(
                    "the built-in engine compresses in the place of context engine '{name}': {why}. It does so until that returns; `/status` shows \
                     who manages the context, and a new start of the program tries '{name}' afresh"
                ),
                None => format!(
                    "the built-in engine has compressed in the place of context engine '{name}', whose own pass did not make the request fit; \
                     '{name}' goes on serving"
                ),
            };
            self.tell_once(Told::InPlace { is_held_up }, || text);
        }
        outcome
    }

    /// The conversation goes on after a long pause: one pass while nobody waits for a provider's cache any more.
    /// `floor` is the size below which it is not worth it.
    pub fn idle(
        &mut self,
        engine: &mut dyn Engine,
        floor: u64,
        store: &mut dyn PassStore,
    ) -> Option<Outcome> {
        let tokens = self.next_tokens();
        self.leave = None;
        if !self.settings.automatic || tokens < floor || !self.may_pass() {
            return None;
        }
        let mut order = Order::new(self.next_pass_id(), Trigger::Idle);
        order.current_tokens = Some(tokens);
        Some(self.automatic(engine, order, By::Engine, store).0)
    }

    /// `/compress [focus]`: a pass that goes through every back-off. `tokens` is the size of the whole request if
    /// the caller knows better than the account.
    pub fn force(
        &mut self,
        engine: &mut dyn Engine,
        focus: Option<String>,
        tokens: Option<u64>,
        store: &mut dyn PassStore,
    ) -> Outcome {
        self.backoff.clear();
        let mut order = Order::new(self.next_pass_id(), Trigger::Manual);
        order.focus = focus;
        order.current_tokens = Some(tokens.unwrap_or_else(|| self.next_tokens()));
        self.pass(engine, order, By::Engine, store)
    }

    fn overflow_order(&mut self, tokens: u64, target: u64) -> Order {
        let mut order = Order::new(self.next_pass_id(), Trigger::Overflow);
        order.force = true;
        order.current_tokens = Some(tokens);
        order.target_tokens = Some(target);
        order
    }

    fn next_pass_id(&mut self) -> String {
        self.passes += 1;
        format!("{}{}", self.settings.pass_prefix, self.passes)
    }

    fn wants_pass(
        &mut self,
        engine: &mut dyn Engine,
        trigger: Trigger,
        tokens: u64,
        attempt: u32,
    ) -> bool {
        let decision = engine.should_compress(tokens);
        if decision.yes {
            return true;
        }
        if tokens >= engine.state().threshold_tokens && !decision.reason.is_empty() {
            self.tell_once(Told::Blocked, || {
                format!(
                    "the context has ~{tokens} tokens and compression is blocked: {}; `/compress` forces one",
                    decision.reason
                )
            });
        }
        // Below its trigger an engine may ask for one pass at the start of a turn, and for one only.
        attempt == 0
            && trigger == Trigger::Preflight
            && engine.preflight(tokens, self.transcript.stored())
    }

    /// Whether the back-off lets passes run for this request.
    fn may_pass(&mut self) -> bool {
        let leave = *self
            .leave
            .get_or_insert_with(|| self.backoff.opportunity().is_ok());
        if leave {
            return true;
        }
        // Of a pass that failed or was refused the user knows already.
        if self.backoff.hold() == Some(Hold::Useless) && self.backoff.take_notice() {
            let text = format!(
                "compression pauses: the last passes freed too little. Of ~{} tokens {} are tool schemas and the like, \
                 which no pass can shorten; `/compress` forces one",
                self.next_tokens(),
                self.account.fixed(),
            );
            self.warnings.push(text);
        }
        false
    }

    /// A pass nobody typed: its end counts for the back-off. Returns whether another one may be of use.
    fn automatic(
        &mut self,
        engine: &mut dyn Engine,
        order: Order,
        by: By,
        store: &mut dyn PassStore,
    ) -> (Outcome, bool) {
        let before = self.next_tokens();
        self.asked_at = before;
        let outcome = self.pass(engine, order, by, store);
        let progress = match &outcome {
            Outcome::Committed { .. } => self.backoff.committed(before, self.next_tokens()),
            Outcome::Unchanged { reason } => {
                self.backoff.unchanged();
                let reason = match reason.as_str() {
                    "" => "it gave no reason",
                    reason => reason,
                };
                let text = format!(
                    "context engine '{}' left the transcript as it is: {reason}",
                    engine.name()
                );
                self.tell_once(Told::Unchanged, || text);
                false
            }
            Outcome::Refused { .. } | Outcome::Failed { .. } => {
                self.backoff.failed();
                false
            }
            Outcome::Busy | Outcome::Skipped { .. } => false,
        };
        (outcome, progress)
    }
}
