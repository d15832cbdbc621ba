//! Who is asked: the conversation's own model, or one that answers in its stead.
//!
//! Whenever that changes, the engine learns the window that holds from then on (ENG-9, LIFE-3) before it is asked
//! anything else, and requests are made for the model that they are sent to.

use std::sync::Arc;

use super::event::{Event, Sink};
use super::exchange::{NoAnswer, Tries};
use super::{Agent, Host};
use crate::engine::ModelInfo;
use crate::provider::chain::{Chain, StandIn};
use crate::provider::{Failure, Provider};

/// Somebody is asked in the main model's stead.
pub(super) struct Instead {
    stand_in: Arc<StandIn>,
    /// What became of the main model.
    why: String,
    /// The window that the engine was told.
    window: u64,
}

impl Instead {
    fn new(stand_in: Arc<StandIn>, why: String) -> Self {
        let window = stand_in.window();
        Self {
            stand_in,
            why,
            window,
        }
    }

    /// Who is asked for a request of this size, if not the main model.
    pub(super) fn now(chain: &Chain, tokens: u64, current: Option<&Self>) -> Option<Self> {
        let current = current.map(|current| &*current.stand_in);
        let (stand_in, why) = chain.now(tokens, current)?;
        Some(Self::new(stand_in, why))
    }

    fn is(&self, other: &Self) -> bool {
        self.stand_in.number() == other.stand_in.number() && self.window == other.window
    }
}

/// What an engine is told of the model that is asked.
pub(super) fn info(host: &Host, model: &str, window: u64, instead: Option<&Instead>) -> ModelInfo {
    let registry = &host.inner.registry;
    match instead {
        None => registry.model_info(model, window),
        Some(instead) => registry.model_info_of(ModelInfo {
            context_length: instead.window,
            ..instead.stand_in.info()
        }),
    }
}

impl Agent {
    pub(super) fn asked_model(&self) -> &str {
        let instead = self.instead.as_ref();
        instead.map_or(&self.model, |instead| instead.stand_in.model())
    }

    /// The window of the model that is asked.
    pub(super) fn asked_window(&self) -> u64 {
        let instead = self.instead.as_ref();
        instead.map_or(self.window, |instead| instead.window)
    }

    pub(super) fn asked_provider(&self) -> &dyn Provider {
        match &self.instead {
            None => &*self.host.inner.provider,
            Some(instead) => instead.stand_in.provider(),
        }
    }

    /// Before a request is prepared: whose turn it is. The main model may have rested long enough, or somebody else's
    /// conversation may have found out that it does not answer.
    pub(super) fn follow_model(&mut self) {
        let tokens = self.conversation.next_tokens();
        let now = Instead::now(&self.host.inner.chain, tokens, self.instead.as_ref());
        let is_same = match (&now, &self.instead) {
            (None, None) => true,
            (Some(now), Some(before)) => now.is(before),
            _ => false,
        };
        if !is_same {
            self.instead = now;
            self.tell_model();
        }
    }

    /// The engine and the conversation learn which model is asked from now on. Nothing that was learnt of another one's
    /// counts holds.
    pub(super) fn tell_model(&mut self) {
        self.tell_window();
        let warnings = self.toolbox.refresh(&mut self.engine);
        self.tell_later(warnings);
        let frame = self.frame();
        self.conversation.switch_model(frame, self.asked_window());
        let unknown = self.instead.as_ref().map(|now| now.stand_in.warning());
        self.tell_later(unknown.flatten());
        self.gather_warnings();
    }

    fn tell_window(&mut self) {
        let info = info(&self.host, &self.model, self.window, self.instead.as_ref());
        self.engine.handle.update_model(&info);
    }

    /// The model that is asked takes less than was thought. What is learnt of one says nothing of another.
    pub(super) fn narrow(&mut self, limit: u64) {
        let (model, before) = (self.asked_model(), self.asked_window());
        let told = format!("{model} takes {limit} tokens, not {before}");
        let told = match &mut self.instead {
            None => {
                self.window = limit;
                format!(
                    "{told}; `model.context_length: {limit}` says so from the start, for the model in model.default"
                )
            }
            Some(instead) => {
                instead.stand_in.narrow(limit);
                instead.window = limit;
                let key = instead.stand_in.key();
                format!("{told}; `{key}.context_length: {limit}` says so from the start")
            }
        };
        self.tell_later([told]);
        self.conversation.set_window(limit);
        self.tell_window();
    }

    /// Nothing more comes of the model that is asked: another one is, if the configuration names one for such a
    /// failure. `tokens` is the size of the request.
    pub(super) fn ask_another(
        &mut self,
        tries: &mut Tries,
        failure: Failure,
        tokens: u64,
        on: &mut Sink<'_>,
    ) -> Result<(), NoAnswer> {
        let failed = self.instead.as_ref();
        let failed = failed.map_or(0, |instead| instead.stand_in.number());
        tries.gave_way.push(failed);
        let chain = &self.host.inner.chain;
        let next = chain.give_way(failed, &failure, &tries.gave_way, tokens);
        self.tell_later(next.unset);
        let Some(stand_in) = next.stand_in else {
            return Err(std::mem::take(tries).failed(self.blamed(&failure)));
        };
        self.ask(stand_in, tries, &failure, on);
        Ok(())
    }

    /// A request is too long for a stand-in: a later one is asked, if there is one that takes it. That loses nothing,
    /// while a pass for the sake of one that stands in for a minute would outlast it.
    pub(super) fn ask_larger(
        &mut self,
        tries: &mut Tries,
        failure: &Failure,
        tokens: u64,
        on: &mut Sink<'_>,
    ) -> bool {
        let Some(instead) = &self.instead else {
            return false;
        };
        let chain = &self.host.inner.chain;
        let Some(larger) = chain.larger(&instead.stand_in, &tries.gave_way, tokens) else {
            return false;
        };
        self.ask(larger, tries, failure, on);
        true
    }

    fn ask(
        &mut self,
        stand_in: Arc<StandIn>,
        tries: &mut Tries,
        failure: &Failure,
        on: &mut Sink<'_>,
    ) {
        let (model, reason) = (self.asked_model(), &failure.message);
        let (other, at) = (stand_in.model(), stand_in.provider().name());
        tracing::warn!(model, %reason, other, at, "another model is asked");
        on(Event::Instead {
            model,
            is_main: self.instead.is_none(),
            reason,
            other,
            at,
        });
        let why = match self.instead.take() {
            Some(before) => before.why,
            None => failure.message.clone(),
        };
        self.instead = Some(Instead::new(stand_in, why));
        self.tell_model();
        (tries.transient, tries.shrinks) = (0, 0);
    }

    /// Whose answer it is, if not the main model's.
    pub(super) fn answers_instead(&self) -> Option<String> {
        let Instead { stand_in, why, .. } = self.instead.as_ref()?;
        let (model, at) = (stand_in.model(), stand_in.provider().name());
        Some(format!("{why}; this answer is by {model} at {at}"))
    }

    /// A failure for the user, who is told what became of the main model first.
    pub(super) fn blamed(&self, failure: &Failure) -> String {
        match &self.instead {
            None => failure.message.clone(),
            Some(instead) => format!("{}; and then {}", instead.why, failure.message),
        }
    }
}
