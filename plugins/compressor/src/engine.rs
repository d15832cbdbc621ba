//! The algorithm as an engine on the author's SDK.

mod host_helper;

use hermes_plugin_api::{
    Call, Compress, ContextEngine, Create, Decision, Emit, EngineError, EngineState, Level, Model,
    Pass, Passes, Session, Sessions, StartReason, Status, Trigger, Usage, Verdict,
};
use serde_json::{Map, Value, json};

use crate::Settings;
use crate::assemble::Step;
use crate::guards::Guards;
use crate::helper::{Class, Helper};
use crate::pass::{self, Author, Cause, Made, Outcome, Request, Why};
use crate::row::Row;
use crate::threshold::{self, Term, Threshold};
use host_helper::HostHelper;

/// The built-in engine: one agent's.
#[derive(Clone, Debug)]
pub struct Compressor {
    state: EngineState,
    settings: Settings,
    guards: Guards,
    threshold: Threshold,
    output_reserve: u64,
    helper_window: u64,
    /// The window, or the model behind it, as the guards know it.
    model: String,
    /// The figures before the pass that waits for its outcome.
    pending: Option<Pending>,
    /// What was asked about last, before a response told the real size.
    asked: Option<u64>,
    /// Real size by estimate, in thousandths; never above 1000.
    real_share: u64,
    /// What the last pass came to, for the status.
    last_pass: Map<String, Value>,
}

#[derive(Clone, Debug)]
struct Pending {
    pass_id: String,
    before: EngineState,
    guards: Guards,
    tokens: u64,
}

impl Compressor {
    /// An engine with these settings, before it knows its model.
    #[must_use]
    pub fn new(settings: Settings, context_length: u64) -> Self {
        Self::with_guards(settings, context_length, Guards::default())
    }

    /// The same with guards of one's own, which hold the clock.
    #[must_use]
    pub fn with_guards(settings: Settings, context_length: u64, guards: Guards) -> Self {
        let mut state = EngineState::new(context_length).with_threshold_percent(settings.threshold);
        state.protect_first_n = settings.protect_first_n;
        state.protect_last_n = settings.protect_last_n;
        let mut engine = Self {
            threshold: threshold::resolve(
                context_length,
                0,
                settings.threshold,
                settings.threshold_tokens,
            ),
            state,
            settings,
            guards,
            output_reserve: 0,
            helper_window: 0,
            model: String::new(),
            pending: None,
            asked: None,
            real_share: 1_000,
            last_pass: Map::new(),
        };
        engine.resolve_threshold();
        engine
    }

    fn resolve_threshold(&mut self) {
        self.threshold = threshold::resolve(
            self.state.context_length,
            self.output_reserve,
            self.state.threshold_percent,
            self.settings.threshold_tokens,
        );
        self.state.threshold_tokens = self.threshold.tokens;
    }

    /// The size to judge by. An estimate that the provider's own count has shown to be too high is scaled down by as much;
    /// a figure that is the provider's own is taken as it is.
    fn judged(&self, prompt_tokens: u64) -> u64 {
        if i64::try_from(prompt_tokens).is_ok_and(|n| n == self.state.last_prompt_tokens) {
            return prompt_tokens;
        }
        prompt_tokens.saturating_mul(self.real_share) / 1_000
    }

    fn fail(&mut self, why: &Why, tokens: u64) {
        match why {
            Why::HelperFailed(failure) if failure.class == Class::TooLong => {
                self.guards.no_op(tokens)
            }
            Why::HelperFailed(failure) => self.guards.helper_failed(failure),
            Why::NothingToDo | Why::NoGain => self.guards.no_op(tokens),
        }
    }

    fn done(&mut self, made: &Made, input: &Compress<'_>) {
        self.pending = Some(Pending {
            pass_id: input.pass_id().to_owned(),
            before: self.state,
            guards: self.guards.clone(),
            tokens: input.current_tokens().unwrap_or(made.before),
        });
        self.state.compression_count += 1;
        // Until a response tells the real size of the new list, no old figure may stand for it.
        self.state.last_prompt_tokens = -1;
        self.state.last_completion_tokens = 0;
        self.asked = None;
        self.real_share = 1_000;
        let beside = input
            .current_tokens()
            .map_or(0, |n| n.saturating_sub(made.before));
        let fallback =
            matches!(&made.author, Author::Fallback(failure) if failure.class != Class::Missing);
        self.guards.pass_done(
            made.before + beside,
            made.after + beside,
            fallback,
            made.fixed,
        );
        let author = match &made.author {
            Author::Model => "helper model".to_owned(),
            Author::Extractive => "extractive".to_owned(),
            Author::Fallback(failure) => format!("extractive ({})", failure.message),
            Author::None => "none".to_owned(),
        };
        self.last_pass = Map::from_iter([
            ("tokens_before".to_owned(), made.before.into()),
            ("tokens_after".to_owned(), made.after.into()),
            ("summary_by".to_owned(), author.into()),
        ]);
    }
}

impl ContextEngine for Compressor {
    const NAME: &'static str = "compressor";

    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        let (settings, warnings) = Settings::read(cx.config());
        for warning in warnings {
            cx.host().log(Level::Warn, &warning);
        }
        Ok(Self::new(settings, cx.context_length()))
    }

    fn state(&self) -> EngineState {
        self.state
    }

    fn state_mut(&mut self) -> &mut EngineState {
        &mut self.state
    }

    fn update_model(&mut self, cx: &Call<'_>, model: &Model<'_>) -> Result<(), EngineError> {
        self.state.apply_model(model);
        self.output_reserve = model.max_output_tokens();
        self.helper_window = model.helper_context_length();
        let name = format!(
            "{} {} {}",
            model.provider(),
            model.model(),
            model.context_length()
        );
        if self.model != name {
            self.model = name;
            self.guards.clear();
            self.asked = None;
            self.real_share = 1_000;
        }
        self.resolve_threshold();
        let own_ratio = self.settings.threshold_is_set || model.threshold_percent().is_some();
        if self.threshold.term == Term::Cap && own_ratio && !self.settings.threshold_tokens_is_set {
            let line = format!(
                "compression triggers at {}; set compression.threshold_tokens to null to lift the default limit",
                self.threshold.explain()
            );
            cx.host().log(Level::Warn, &line);
        }
        Ok(())
    }

    fn update_from_response(&mut self, _: &Call<'_>, usage: &Usage<'_>) -> Result<(), EngineError> {
        self.state.apply_usage(usage);
        let real = usage.prompt_tokens.unwrap_or(0);
        if let Some(asked) = self.asked.take().filter(|asked| *asked > 0 && real > 0) {
            self.real_share = (real.saturating_mul(1_000) / asked).clamp(300, 1_000);
        }
        self.guards.usage(real, self.state.threshold_tokens);
        Ok(())
    }

    fn session_reset(&mut self, _: &Call<'_>) -> Result<(), EngineError> {
        self.state.reset();
        self.guards.clear();
        self.pending = None;
        self.asked = None;
        self.real_share = 1_000;
        self.last_pass.clear();
        Ok(())
    }

    fn should_compress(
        &mut self,
        _: &Call<'_>,
        prompt_tokens: Option<u64>,
    ) -> Result<Decision, EngineError> {
        let last = u64::try_from(self.state.last_prompt_tokens)
            .ok()
            .filter(|n| *n > 0);
        let Some(tokens) = prompt_tokens.or(last) else {
            return Ok(Decision::No);
        };
        let judged = self.judged(tokens);
        if Some(tokens) != last {
            self.asked = Some(tokens);
        }
        if self.state.threshold_tokens == 0 || judged < self.state.threshold_tokens {
            return Ok(Decision::No);
        }
        Ok(match self.guards.blocked(judged) {
            Some(reason) => Decision::Blocked(reason),
            None => Decision::Yes,
        })
    }

    fn compress(
        &mut self,
        cx: &Call<'_>,
        input: &Compress<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        let cause = match input.trigger() {
            Trigger::Prune => Cause::Prune,
            Trigger::Manual => Cause::Manual,
            Trigger::Overflow => Cause::Overflow,
            _ if input.force() => Cause::Manual,
            _ => Cause::Automatic,
        };
        let messages = input.messages();
        let size = input.current_tokens().unwrap_or_else(|| messages.tokens());
        match cause {
            // A person who insists starts afresh; an overflow must be tried whatever stands against it.
            Cause::Manual => self.guards.clear(),
            Cause::Overflow | Cause::Prune => {}
            Cause::Automatic => {
                if let Some(reason) = self.guards.blocked(size) {
                    return Ok(Verdict::unchanged(reason));
                }
            }
        }
        let rows: Vec<Row<'_>> = messages
            .iter()
            .map(|view| Row {
                json: view.json(),
                role: view.role(),
                tokens: view.tokens(),
                caller: view.caller(),
                multimodal: view.is_multimodal(),
                calls: view.has_tool_calls(),
                summary: view.is_summary(),
                synthetic: view.is_synthetic(),
            })
            .collect();
        let request = Request {
            cause,
            current_tokens: input.current_tokens(),
            target_tokens: input.target_tokens(),
            window: self.state.context_length,
            output_reserve: self.output_reserve,
            threshold: self.state.threshold_tokens,
            focus: input.focus(),
            memory: input.memory_context(),
            session_id: cx.session_id(),
            compressed_before: self.state.compression_count > 0,
            has_strike: self.guards.has_strike(),
        };
        // A helper whose window nobody has told is the main model itself.
        let window = if self.helper_window > 0 {
            self.helper_window
        } else {
            self.state.context_length
        };
        let mut helper = HostHelper::new(cx, window);
        let helper = if cx.host().can_complete() {
            Some(&mut helper as &mut dyn Helper)
        } else {
            None
        };
        let made = match pass::compress(&rows, &self.settings, helper, &request) {
            Outcome::Made(made) => made,
            Outcome::Unchanged(Why::HelperFailed(failure), _)
                if failure.class == Class::Cancelled =>
            {
                return Err(EngineError::Cancelled);
            }
            Outcome::Unchanged(why, sentence) => {
                self.fail(&why, size);
                return Ok(Verdict::unchanged(sentence));
            }
        };
        cx.check()?;
        for step in &made.steps {
            match step {
                Step::Keep(range) => out.keep(range.clone())?,
                Step::Edit { index, json } => out.edit(&messages.get(*index), json)?,
                Step::Push { json } => out.push(json)?,
            }
        }
        if let Author::Fallback(failure) = &made.author {
            let line = format!(
                "the summary was made without the helper model: {}",
                failure.message
            );
            cx.host().log(Level::Warn, &line);
        }
        self.done(&made, input);
        Ok(Verdict::Done)
    }
}

impl Passes for Compressor {
    fn pass_result(&mut self, _: &Call<'_>, pass: &Pass<'_>) -> Result<(), EngineError> {
        let Some(pending) = self
            .pending
            .take_if(|pending| pending.pass_id == pass.pass_id())
        else {
            return Ok(());
        };
        if pass.committed() {
            return Ok(());
        }
        // Nothing was compacted: the figures are those of before, and the attempt counts as one of no use.
        let threshold = self.state.threshold_tokens;
        self.state = pending.before;
        self.state.threshold_tokens = threshold;
        self.guards = pending.guards;
        self.guards.pass_discarded();
        self.guards.no_op(pending.tokens);
        self.last_pass.clear();
        Ok(())
    }
}

impl Sessions for Compressor {
    fn session_start(&mut self, _: &Call<'_>, session: &Session<'_>) -> Result<(), EngineError> {
        match session.reason() {
            // The same conversation goes on, in place or under a new id.
            StartReason::Compression | StartReason::Recover => {}
            // Whatever is known about size and effect is about another list.
            _ => {
                self.guards.clear();
                self.pending = None;
                self.asked = None;
                self.real_share = 1_000;
            }
        }
        Ok(())
    }

    fn session_end(&mut self, _: &Call<'_>, _: &Session<'_>) -> Result<(), EngineError> {
        self.pending = None;
        Ok(())
    }
}

impl Status for Compressor {
    fn status(&mut self, _: &Call<'_>) -> Result<String, EngineError> {
        let state = &self.state;
        let last = u64::try_from(state.last_prompt_tokens).unwrap_or(0);
        let percent = last
            .saturating_mul(1_000)
            .checked_div(state.context_length)
            .unwrap_or(0)
            .min(1_000);
        let status = json!({
            "last_prompt_tokens": last,
            "threshold_tokens": state.threshold_tokens,
            "context_length": state.context_length,
            "usage_percent": percent as f64 / 10.0,
            "compression_count": state.compression_count,
            "threshold_percent": state.threshold_percent,
            "threshold_term": self.threshold.term.name(),
            "threshold_reason": self.threshold.explain(),
            "cooldown_seconds": self.guards.cooldown_left().map_or(0, |left| left.as_secs()),
            "blocked": self.guards.blocked(last.max(state.threshold_tokens)),
            "last_pass": self.last_pass,
        });
        Ok(status.to_string())
    }
}
