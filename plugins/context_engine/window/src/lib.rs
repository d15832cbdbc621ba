//! The context engine `window`: system prompt, first user task, and as many of the newest turns as fit its budget.
//!
//! It never calls a model and never rewords anything, so it is fast, free and predictable; what falls out of the
//! window is gone from the model's sight, though not from the store. Where the newest turn alone is larger than the
//! budget, its user message stays and as many of its newest steps as fit. A step is an assistant message together with
//! the results of the tools that it called; steps are never split.
//!
//! Between the first task and the newest turns stands one short assistant message that says that something is left
//! out. Its text never changes, so the provider's prompt cache holds from one compression to the next up to there.
//!
//! ```yaml
//! context:
//!   engine: window
//! window:
//!   threshold: 0.75      # compress when the request fills this share of the model's window
//!   budget: 0.5          # what a compression leaves, as a share of the model's window
//!   budget_tokens: 60000 # the same in tokens; the smaller one counts
//! ```

mod plan;
mod settings;

use hermes_plugin_api::{
    Call, Compress, ContextEngine, Create, Decision, Emit, EngineError, EngineState, Level,
    Verdict, export_engine,
};

use plan::Plan;
use settings::Settings;

/// What stands where earlier turns were. A constant, see the crate's documentation.
const LEFT_OUT: &str = r#"{"role":"assistant","content":"[Earlier messages of this conversation are left out here.]","_compressed_summary":true}"#;

/// One agent's window.
#[derive(Clone, Debug)]
struct Window {
    state: EngineState,
    settings: Settings,
}

impl Window {
    /// What may be left, in tokens, of which `fixed` are taken by tool schemas and the like.
    fn budget(&self, input: &Compress<'_>) -> u64 {
        let messages = input.messages().tokens();
        let fixed = input
            .current_tokens()
            .map_or(0, |all| all.saturating_sub(messages));
        let own = self.settings.budget(self.state.context_length);
        input
            .target_tokens()
            .map_or(own, |target| own.min(target))
            .saturating_sub(fixed)
    }
}

impl ContextEngine for Window {
    const NAME: &'static str = "window";

    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        let settings = Settings::read(cx.config(), |unknown| {
            cx.host().log(
                Level::Warn,
                &format!("window: there is no setting {unknown:?}; it is ignored"),
            );
        })?;
        let state =
            EngineState::new(cx.context_length()).with_threshold_percent(settings.threshold);
        Ok(Self { state, settings })
    }

    fn state(&self) -> EngineState {
        self.state
    }

    fn state_mut(&mut self) -> &mut EngineState {
        &mut self.state
    }

    fn should_compress(
        &mut self,
        _: &Call<'_>,
        prompt_tokens: Option<u64>,
    ) -> Result<Decision, EngineError> {
        let known = prompt_tokens
            .or_else(|| u64::try_from(self.state.last_prompt_tokens).ok())
            .unwrap_or(0);
        let over = self.state.threshold_tokens > 0 && known >= self.state.threshold_tokens;
        Ok(if over { Decision::Yes } else { Decision::No })
    }

    fn compress(
        &mut self,
        _: &Call<'_>,
        input: &Compress<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        let messages = input.messages();
        let plan = match Plan::make(messages, self.budget(input)) {
            Ok(plan) => plan,
            Err(reason) => return Ok(Verdict::unchanged(reason)),
        };
        out.keep(plan.head)?;
        if plan.note {
            out.push(LEFT_OUT)?;
        }
        if let Some(user) = plan.newest_user {
            out.keep_one(user)?;
        }
        out.keep(plan.tail)?;
        self.state.compression_count += 1;
        Ok(Verdict::Done)
    }
}

export_engine!(Window);
