//! The conversation at work: every call into the engine that belongs to a request, a pass or a turn.

use hermes_message::{Message, Role};

use super::backoff::Hold;
use super::checks;
use super::pass::{Action, Answer, Event, Order, Outcome};
use super::port::{Choice, Engine, PassStore, Stored};
use super::selection;
use super::transcript::tokens;
use super::{Conversation, Request, Told, Transcript};
use crate::engine::{
    BUILT_IN, CompressRequest, Emission, MessageList, PassOutcome, SessionInfo, StartReason,
    Trigger, TurnInfo, Usage,
};

/// A request that a pass could not make fit is worked on again once it has grown to this share of what it was.
const GROWN_PERCENT: u64 = 105;

/// Real usage below this share of what a useless pass was asked for at has dropped.
const DROPPED_PERCENT: u64 = 80;

impl Conversation {
    /// Tells the engine that the session starts.
    pub fn start(&self, engine: &mut dyn Engine, reason: StartReason) {
        engine.session_start(&self.session(reason, ""));
    }

    /// Tells the engine that this session takes the place of another one, or of an earlier state of itself.
    pub fn start_after(&self, engine: &mut dyn Engine, reason: StartReason, old_session: &str) {
        engine.session_start(&self.session(reason, old_session));
    }

    /// Tells the engine that the session is over, with the final messages (LIFE-4).
    pub fn end(&self, engine: &mut dyn Engine) {
        engine.session_end(&self.session(StartReason::New, ""));
    }

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

    /// The next request; `attempt` counts the retries of the same one.
    pub fn request(&mut self, engine: &mut dyn Engine, attempt: u32) -> Request {
        let mut selected = if engine.selects() {
            self.select(engine, attempt)
        } else {
            None
        };
        let mut unusable = None;
        if let Some(chosen) = &selected {
            self.chosen.assemble(chosen);
            // A choice of which nothing is left to answer once it is mended is no choice (HOOK-2).
            if !asks(self.chosen.messages()) && asks(self.transcript.messages()) {
                unusable = selected.take();
                self.tell_once(Told::NothingToAnswer, || {
                    format!(
                        "context engine '{}': select_context left no user message in the request, which goes out as it was",
                        engine.name()
                    )
                });
            }
        }
        let assembly = match &selected {
            Some(_) => &self.chosen,
            None => {
                self.whole.assemble(self.transcript.wire().messages());
                &self.whole
            }
        };
        let messages = assembly.messages().to_vec();
        let message_tokens = tokens(&messages);
        Request {
            body: self.frame.body(&messages),
            tokens: self.account.request(message_tokens),
            message_tokens,
            repairs: assembly.repairs().to_vec(),
            messages,
            selected,
            unusable,
        }
    }

    /// The provider has answered this request, and says what it used.
    pub fn answered(&mut self, engine: &mut dyn Engine, request: &Request, usage: Usage) {
        let real = usage
            .prompt_tokens
            .and_then(|real| u64::try_from(real).ok());
        // The transcript's estimate is the anchor, not the mended request's: the next figure is made of the former.
        match request.selected {
            Some(_) => self.account.learn(request.message_tokens, real, false),
            None => self
                .account
                .learn(self.transcript.request_tokens(), real, true),
        }
        engine.update_from_response(&usage);
        if self.settings.context_length == 0
            || real.is_some_and(|real| real <= self.settings.context_length)
        {
            self.overflowed = None;
        }
        let trigger = engine.state().threshold_tokens;
        // Where the pass was asked for below the trigger, a request that stays there proves nothing.
        let dropped = |real: u64| {
            let below = real.saturating_mul(100) < self.asked_at.saturating_mul(DROPPED_PERCENT);
            real > 0 && real < trigger && (self.asked_at >= trigger || below)
        };
        if self.backoff.hold().is_some() && real.is_some_and(dropped) {
            self.backoff.clear();
        }
    }

    /// The turn has ended, one way or another. Called once for each.
    pub fn turn_complete(&mut self, engine: &mut dyn Engine, mut turn: TurnInfo) {
        if !engine.observes() {
            return;
        }
        turn.messages = self.transcript.stored().clone();
        engine.turn_complete(turn);
    }

    fn overflow_order(&mut self, tokens: u64, target: u64) -> Order {
        let mut order = Order::new(self.next_pass_id(), Trigger::Overflow);
        order.force = true;
        order.current_tokens = Some(tokens);
        order.target_tokens = Some(target);
        order
    }

    fn select(&mut self, engine: &mut dyn Engine, attempt: u32) -> Option<Vec<Message>> {
        let choice = Choice {
            request: self.transcript.wire().clone(),
            conversation: self.transcript.stored().clone(),
            incoming: self.transcript.incoming_in_request(),
            budget_tokens: self.settings.context_length,
            fixed_tokens: self.account.fixed(),
            attempt,
        };
        let result = engine.select_context(&choice);
        selection::judge(&choice, result)
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

    /// Runs the machine with this engine, to its end.
    fn pass(
        &mut self,
        engine: &mut dyn Engine,
        order: Order,
        by: By,
        store: &mut dyn PassStore,
    ) -> Outcome {
        let mut begun = false;
        let mut old_session = String::new();
        let mut todo = self.machine.step(Event::Begin {
            order,
            transcript: &self.transcript,
        });
        while !todo.is_empty() {
            let mut next = Vec::new();
            for action in todo {
                match action {
                    Action::Compress {
                        generation,
                        order,
                        snapshot,
                    } => {
                        if let Err(reason) = store.begin() {
                            // Nothing has run, so nothing is to be told to the engine.
                            self.machine.step(Event::GaveUp {
                                generation,
                                reason: reason.clone(),
                            });
                            self.machine.forget(generation);
                            self.tell_once(Told::Skipped, || {
                                format!("compression skipped: {reason}")
                            });
                            return Outcome::Skipped { reason };
                        }
                        begun = true;
                        let answer = compress(engine, order, &snapshot, by);
                        // The snapshot goes before anything is appended, so that appending stays cheap.
                        drop(snapshot);
                        next = self.machine.step(Event::Returned { generation, answer });
                    }
                    Action::Store {
                        generation,
                        pass_id,
                        messages,
                    } => {
                        let event = match store.commit(&pass_id, messages) {
                            Ok(Stored {
                                messages,
                                session_id,
                            }) => {
                                old_session.clone_from(&self.settings.session_id);
                                if let Some(new) = session_id {
                                    self.move_to(&new);
                                }
                                Event::Stored {
                                    generation,
                                    messages,
                                }
                            }
                            Err(reason) => Event::NotStored { generation, reason },
                        };
                        next = self.machine.step(event);
                    }
                    Action::Adopt { taken, messages } => {
                        self.transcript.commit(taken, &messages);
                        self.account.forget_anchor();
                    }
                    Action::Tell {
                        pass_id,
                        committed,
                        reason,
                    } => {
                        let outcome = if committed {
                            PassOutcome::Committed(self.transcript.stored().clone())
                        } else {
                            PassOutcome::Discarded(reason)
                        };
                        engine.pass_result(&pass_id, outcome);
                    }
                    Action::Boundary { pass_id } => {
                        self.last_pass_id = pass_id;
                        self.start_after(engine, StartReason::Compression, &old_session);
                    }
                    Action::End(outcome) => {
                        if begun {
                            store.end();
                        }
                        self.tell_of(engine.name(), &outcome);
                        return outcome;
                    }
                }
            }
            todo = next;
        }
        // The machine ends every pass with `End`; this is for the compiler.
        Outcome::Busy
    }

    fn tell_of(&mut self, engine: &str, outcome: &Outcome) {
        if let Outcome::Refused { violations } = outcome {
            let why = checks::summary(violations);
            self.tell_once(Told::Refused, || {
                format!("context engine '{engine}': the result of compress was refused: {why}; the transcript stays as it was")
            });
        }
    }

    fn next_pass_id(&mut self) -> String {
        self.passes += 1;
        format!("{}{}", self.settings.pass_prefix, self.passes)
    }

    fn session(&self, reason: StartReason, old: &str) -> SessionInfo {
        let id = &self.settings.session_id;
        let root = &self.settings.root_session_id;
        SessionInfo {
            session_id: id.clone(),
            reason,
            old_session_id: old.to_owned(),
            parent_session_id: self.settings.parent_session_id.clone(),
            root_session_id: if root.is_empty() { id } else { root }.clone(),
            conversation_id: self.settings.conversation_id.clone(),
            platform: self.settings.platform.clone(),
            hermes_home: self.settings.hermes_home.clone(),
            last_pass_id: self.last_pass_id.clone(),
            messages: Some(self.transcript.stored().clone()),
            ..SessionInfo::default()
        }
    }
}

/// Who runs a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// The conversation's engine.
    Engine,
    /// The built-in, in its place.
    BuiltIn,
}

fn compress(
    engine: &mut dyn Engine,
    order: Order,
    snapshot: &Transcript,
    by: By,
) -> Result<Answer, String> {
    let list: MessageList = snapshot.stored().clone();
    let request = CompressRequest {
        messages: list.clone(),
        trigger: order.trigger,
        force: order.force,
        incoming: snapshot.incoming(),
        current_tokens: order
            .current_tokens
            .and_then(|tokens| i64::try_from(tokens).ok()),
        target_tokens: order.target_tokens,
        focus: order.focus,
        memory_context: order.memory_context,
        pass_id: order.pass_id,
    };
    let emission = match by {
        By::Engine => engine.compress(request),
        By::BuiltIn => engine.compress_with_builtin(request),
    };
    Ok(match emission.map_err(|fault| fault.to_string())? {
        Emission::Unchanged { reason } => Answer::Unchanged(reason),
        Emission::Messages(items) => {
            let lists = [&list];
            Answer::Messages(
                items
                    .iter()
                    .filter_map(|item| item.message(&lists))
                    .cloned()
                    .collect(),
            )
        }
    })
}

/// Whether there is something to answer.
fn asks(messages: &[Message]) -> bool {
    messages.iter().any(|message| message.role() == Role::User)
}
