//! The figures that the host shows and logs, with the defaults of the contract.

use hermes_engine_abi as abi;

use crate::args::{Model, Usage};

/// The figures of one engine that the host reads after each call and shows.
///
/// Token counters: `0` means that no response has been seen yet, `-1` that a pass has just run and real usage is
/// awaited. An engine holds one of these and hands it out from [`ContextEngine::state`](crate::ContextEngine::state).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineState {
    /// Prompt tokens of the last response.
    pub last_prompt_tokens: i64,
    /// Completion tokens of the last response.
    pub last_completion_tokens: i64,
    /// Total tokens of the last response.
    pub last_total_tokens: i64,
    /// Compression triggers here.
    pub threshold_tokens: u64,
    /// The model's full window; 0 while it is unknown.
    pub context_length: u64,
    /// How many times `compress` has compacted.
    pub compression_count: u64,
    /// Share of the window at which compression triggers, 0 to 1.
    pub threshold_percent: f64,
    /// Messages at the start that stay, the system prompt not counted.
    pub protect_first_n: u32,
    /// Messages at the end that stay.
    pub protect_last_n: u32,
    /// No routine status lines for automatic passes.
    pub quiet: bool,
    /// The engine's own threshold, kept once so that switching models back and forth returns to it.
    configured_percent: Option<f64>,
}

impl Default for EngineState {
    fn default() -> Self {
        Self {
            last_prompt_tokens: 0,
            last_completion_tokens: 0,
            last_total_tokens: 0,
            threshold_tokens: 0,
            context_length: 0,
            compression_count: 0,
            threshold_percent: 0.75,
            protect_first_n: 3,
            protect_last_n: 6,
            quiet: false,
            configured_percent: None,
        }
    }
}

impl EngineState {
    /// The state of an engine created for a window of `context_length` tokens; 0 = not known yet.
    pub fn new(context_length: u64) -> Self {
        let mut state = Self {
            context_length,
            ..Self::default()
        };
        state.threshold_tokens = state.share_of_window();
        state
    }

    /// The same with the engine's own threshold, a share of the window between 0 and 1.
    pub fn with_threshold_percent(mut self, percent: f64) -> Self {
        self.threshold_percent = percent;
        self.configured_percent = None;
        self.threshold_tokens = self.share_of_window();
        self
    }

    /// The default of `update_model`: takes the window over and recomputes the threshold, from the user's threshold
    /// for this model where there is one, else from the engine's own.
    pub fn apply_model(&mut self, model: &Model<'_>) {
        let own = *self
            .configured_percent
            .get_or_insert(self.threshold_percent);
        self.threshold_percent = model.threshold_percent().unwrap_or(own);
        self.context_length = model.context_length();
        self.threshold_tokens = self.share_of_window();
    }

    /// The default of `update_from_response`: the three counters of the last response. What the provider did not
    /// say becomes 0, except a total, which is then the sum of the other two.
    pub fn apply_usage(&mut self, usage: &Usage<'_>) {
        let number = |value: Option<u64>| value.map_or(0, |n| i64::try_from(n).unwrap_or(i64::MAX));
        self.last_prompt_tokens = number(usage.prompt_tokens);
        self.last_completion_tokens = number(usage.completion_tokens);
        self.last_total_tokens = match usage.total_tokens {
            Some(_) => number(usage.total_tokens),
            None => self
                .last_prompt_tokens
                .saturating_add(self.last_completion_tokens),
        };
    }

    /// The default of `session_reset`: the counters and `compression_count` go to 0, the model's budget stays.
    pub fn reset(&mut self) {
        self.last_prompt_tokens = 0;
        self.last_completion_tokens = 0;
        self.last_total_tokens = 0;
        self.compression_count = 0;
    }

    /// `context_length · threshold_percent`, rounded down; 0 while the window is unknown.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a window is far below 2^53 tokens, and a float-to-int cast saturates"
    )]
    fn share_of_window(&self) -> u64 {
        (self.context_length as f64 * self.threshold_percent) as u64
    }

    /// The struct of the border. Its `struct_size` is this build's.
    pub(crate) fn to_abi(self) -> abi::State {
        abi::State {
            struct_size: size_of::<abi::State>() as u32,
            flags: if self.quiet { abi::STATE_QUIET } else { 0 },
            last_prompt_tokens: self.last_prompt_tokens,
            last_completion_tokens: self.last_completion_tokens,
            last_total_tokens: self.last_total_tokens,
            threshold_tokens: self.threshold_tokens,
            context_length: self.context_length,
            compression_count: self.compression_count,
            threshold_percent: self.threshold_percent,
            protect_first_n: self.protect_first_n,
            protect_last_n: self.protect_last_n,
        }
    }
}
