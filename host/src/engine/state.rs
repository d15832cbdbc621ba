//! What an engine shows: the values that the host displays and logs.

use hermes_engine_abi as abi;

/// The engine's state as it was after the last call. Reading it never enters the engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineState {
    /// Of the last model call; 0 = none yet, -1 = real usage is awaited after a pass.
    pub last_prompt_tokens: i64,
    /// As `last_prompt_tokens`.
    pub last_completion_tokens: i64,
    /// As `last_prompt_tokens`.
    pub last_total_tokens: i64,
    /// Where compression triggers.
    pub threshold_tokens: u64,
    /// The model's full window; 0 = not known.
    pub context_length: u64,
    /// How many times `compress` has compacted.
    pub compression_count: u64,
    /// The share of the window at which compression triggers.
    pub threshold_percent: f64,
    /// How many messages at the start are never compacted.
    pub protect_first_n: u32,
    /// How many messages at the end are never compacted.
    pub protect_last_n: u32,
    /// Whether automatic passes are announced to the user.
    pub emit_automatic_compaction_status: bool,
}

impl Default for EngineState {
    fn default() -> Self {
        Self::read(&abi::State::INITIAL)
    }
}

impl EngineState {
    /// Reads what an engine has filled in. A callee that knows fewer fields leaves the others as the
    /// host had set them, which is the contract's initial value.
    pub(crate) fn read(raw: &abi::State) -> Self {
        let percent = raw.threshold_percent;
        Self {
            last_prompt_tokens: raw.last_prompt_tokens,
            last_completion_tokens: raw.last_completion_tokens,
            last_total_tokens: raw.last_total_tokens,
            threshold_tokens: raw.threshold_tokens,
            context_length: raw.context_length,
            compression_count: raw.compression_count,
            // A number that no display can show is no number.
            threshold_percent: if percent.is_finite() { percent } else { 0.0 },
            protect_first_n: raw.protect_first_n,
            protect_last_n: raw.protect_last_n,
            emit_automatic_compaction_status: raw.flags & abi::STATE_QUIET == 0,
        }
    }

    /// How full the window is, 0 to 100.
    #[must_use]
    pub fn usage_percent(&self) -> f64 {
        let used = u64::try_from(self.last_prompt_tokens).unwrap_or(0);
        if self.context_length == 0 {
            return 0.0;
        }
        // Both are token counts; beyond 2^53 tokens a percentage needs no last digit.
        #[allow(clippy::cast_precision_loss)]
        let share = used as f64 / self.context_length as f64;
        (share * 100.0).min(100.0)
    }

    /// The status object of an engine that has none of its own (ENG-13).
    #[must_use]
    pub fn status(&self) -> serde_json::Value {
        serde_json::json!({
            "last_prompt_tokens": self.last_prompt_tokens.max(0),
            "threshold_tokens": self.threshold_tokens,
            "context_length": self.context_length,
            "usage_percent": self.usage_percent(),
            "compression_count": self.compression_count,
        })
    }
}
