//! A conversation at work: its session, its requests and its turns, as the engine hears of them.

use hermes_message::{Message, Role};

use super::port::{Choice, Engine};
use super::selection;
use super::transcript::tokens;
use super::{Conversation, Request, Told};
use crate::engine::{SessionInfo, StartReason, TurnInfo, Usage};

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

/// Whether there is something to answer.
fn asks(messages: &[Message]) -> bool {
    messages.iter().any(|message| message.role() == Role::User)
}
