//! The `compression` block.

use super::json::key_text;
use super::problem::{ProblemKind, Severity};
use super::read::Reader;
use super::value::{show, untag};
use serde_json::{Map, Value as Json};
use serde_yaml::Value;
use std::time::Duration;

/// The size of the kept end of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TailMode {
    /// A small share of the window.
    #[default]
    Lean,
    /// `target_ratio` of the threshold.
    Legacy,
}

impl TailMode {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lean => "lean",
            Self::Legacy => "legacy",
        }
    }
}

/// All keys of the block that mean something here, each one valid: a value that was not is named in
/// [`Config::problems`](super::Config::problems) and its default stands in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Compression {
    /// Is automatic compression on? Default true.
    pub enabled: bool,
    /// Share of the window at which a pass begins, above 0 up to 1. Default 0.5.
    pub threshold: f64,
    /// An absolute cap on the trigger in tokens. Default none, so that no hidden number beats the ratio.
    pub threshold_tokens: Option<u64>,
    /// Thresholds by part of a model name; only the valid entries.
    pub model_thresholds: Map<String, Json>,
    /// Share of the threshold kept as tail in legacy mode, 0.1 to 0.8. Default 0.2.
    pub target_ratio: f64,
    /// How the tail is measured. Default lean.
    pub tail_mode: TailMode,
    /// Messages at the start that stay, system prompt aside. Default 3.
    pub protect_first_n: u64,
    /// Messages at the end that stay. Default 20.
    pub protect_last_n: u64,
    /// User messages that the tail holds at least. Default 1.
    pub min_tail_user_messages: u64,
    /// Cut for long assistant texts in the tail; 0 is off. Default 0.
    pub tail_assistant_max_chars: u64,
    /// Passes that may follow each other before a request is given up, 1 to 10. Default 3.
    pub max_attempts: u64,
    /// Leave the transcript as it is when the summary fails, instead of a summary made without a model. Default false.
    pub abort_on_summary_failure: bool,
    /// Keep the session id over a pass. Default true.
    pub in_place: bool,
    /// Idle time after which a pass runs by itself; 0 is off. Default 0.
    pub idle_compact_after_seconds: f64,
    /// Time without progress after which a pass is given up; 0 or less runs passes without a time limit. Default 120.
    pub context_timeout_seconds: f64,
    /// The longest a pass may take while it reports progress. Default 600, never below the timeout.
    pub context_total_ceiling_seconds: f64,
    /// Prune old tool results from this many tokens on; 0 is off. Default 0.
    pub proactive_prune_tokens: u64,
    /// Only results of at least this many characters. Default 8000, at least 200.
    pub proactive_prune_min_result_chars: u64,
    /// Only if at least this many tokens are won. Default 4096.
    pub proactive_prune_min_reclaim_tokens: u64,
}

/// Keys of the block that we know, so that a mistyped one can be told from one of the original's.
pub(crate) const KNOWN: &[&str] = &[
    "enabled",
    "threshold",
    "threshold_tokens",
    "model_thresholds",
    "target_ratio",
    "tail_mode",
    "protect_first_n",
    "protect_last_n",
    "min_tail_user_messages",
    "tail_assistant_max_chars",
    "max_attempts",
    "abort_on_summary_failure",
    "in_place",
    "checkpoint_required",
    "idle_compact_after_seconds",
    "proactive_prune_tokens",
    "proactive_prune_min_result_chars",
    "proactive_prune_min_reclaim_tokens",
    "micro_compact",
    "micro_compact_every_n_turns",
    "micro_compact_defrag_threshold_tokens",
    "context_timeout_seconds",
    "context_total_ceiling_seconds",
    "hygiene_timeout_seconds",
    "hygiene_hard_message_limit",
    "codex_gpt55_autoraise",
    "codex_gpt55_autoraise_notice",
    "codex_app_server_auto",
    "codex_responses_native",
    "codex_responses_compact_threshold",
    "summary_model",
    "summary_provider",
    "summary_base_url",
];

/// A week: longer times are a mistake in the unit.
pub(crate) const MAX_SECONDS: f64 = 604_800.0;

impl Compression {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        reader.section(&["compression"]);
        let share = |number: f64| number > 0.0 && number <= 1.0;
        let in_words = "a share of the window above 0 up to 1 (0.5 is half)";
        let context_timeout_seconds = reader.number(
            &["compression", "context_timeout_seconds"],
            120.0,
            "seconds (0 or less for no limit)",
            |seconds| seconds <= MAX_SECONDS,
        );
        let ceiling = reader.number(
            &["compression", "context_total_ceiling_seconds"],
            600.0,
            "seconds above 0",
            |seconds| seconds > 0.0 && seconds <= MAX_SECONDS,
        );
        Self {
            enabled: reader.bool(&["compression", "enabled"], true),
            threshold: reader.number(&["compression", "threshold"], 0.5, in_words, share),
            threshold_tokens: reader
                .optional_whole(&["compression", "threshold_tokens"], 1..=u64::MAX),
            model_thresholds: model_thresholds(reader),
            target_ratio: reader.clamped(&["compression", "target_ratio"], 0.2, 0.1..=0.8),
            tail_mode: tail_mode(reader),
            protect_first_n: reader.whole(&["compression", "protect_first_n"], 3, 0..=100_000),
            protect_last_n: reader.whole(&["compression", "protect_last_n"], 20, 0..=100_000),
            min_tail_user_messages: reader.whole(
                &["compression", "min_tail_user_messages"],
                1,
                0..=100_000,
            ),
            tail_assistant_max_chars: reader.whole(
                &["compression", "tail_assistant_max_chars"],
                0,
                0..=u64::MAX,
            ),
            max_attempts: reader.whole(&["compression", "max_attempts"], 3, 1..=10),
            abort_on_summary_failure: reader
                .bool(&["compression", "abort_on_summary_failure"], false),
            in_place: reader.bool(&["compression", "in_place"], true),
            idle_compact_after_seconds: reader.number(
                &["compression", "idle_compact_after_seconds"],
                0.0,
                "seconds (0 for off)",
                |seconds| (0.0..=MAX_SECONDS).contains(&seconds),
            ),
            context_timeout_seconds,
            context_total_ceiling_seconds: ceiling.max(context_timeout_seconds),
            proactive_prune_tokens: reader.whole(
                &["compression", "proactive_prune_tokens"],
                0,
                0..=u64::MAX,
            ),
            proactive_prune_min_result_chars: reader.whole(
                &["compression", "proactive_prune_min_result_chars"],
                8000,
                200..=u64::MAX,
            ),
            proactive_prune_min_reclaim_tokens: reader.whole(
                &["compression", "proactive_prune_min_reclaim_tokens"],
                4096,
                0..=u64::MAX,
            ),
        }
    }

    /// The time limit of a pass; none when the file turns it off.
    pub fn context_timeout(&self) -> Option<Duration> {
        (self.context_timeout_seconds > 0.0)
            .then(|| Duration::from_secs_f64(self.context_timeout_seconds))
    }

    /// The longest a pass may take.
    pub fn context_total_ceiling(&self) -> Duration {
        Duration::from_secs_f64(self.context_total_ceiling_seconds)
    }

    /// The idle time after which a pass runs; none when that is off.
    pub fn idle_compact_after(&self) -> Option<Duration> {
        (self.idle_compact_after_seconds > 0.0)
            .then(|| Duration::from_secs_f64(self.idle_compact_after_seconds))
    }

    /// The block as JSON: `raw` as it stands in the file with every key of ours replaced by its valid value.
    pub(crate) fn to_json(&self, raw: Option<Json>) -> Json {
        let mut block = match raw {
            Some(Json::Object(block)) => block,
            _ => Map::new(),
        };
        let own = serde_json::json!({
            "enabled": self.enabled,
            "threshold": self.threshold,
            "threshold_tokens": self.threshold_tokens,
            "model_thresholds": self.model_thresholds,
            "target_ratio": self.target_ratio,
            "tail_mode": self.tail_mode.as_str(),
            "protect_first_n": self.protect_first_n,
            "protect_last_n": self.protect_last_n,
            "min_tail_user_messages": self.min_tail_user_messages,
            "tail_assistant_max_chars": self.tail_assistant_max_chars,
            "max_attempts": self.max_attempts,
            "abort_on_summary_failure": self.abort_on_summary_failure,
            "in_place": self.in_place,
            "idle_compact_after_seconds": self.idle_compact_after_seconds,
            "context_timeout_seconds": self.context_timeout_seconds,
            "context_total_ceiling_seconds": self.context_total_ceiling_seconds,
            "proactive_prune_tokens": self.proactive_prune_tokens,
            "proactive_prune_min_result_chars": self.proactive_prune_min_result_chars,
            "proactive_prune_min_reclaim_tokens": self.proactive_prune_min_reclaim_tokens,
        });
        if let Json::Object(own) = own {
            block.extend(own);
        }
        Json::Object(block)
    }
}

fn tail_mode(reader: &mut Reader<'_>) -> TailMode {
    let key = ["compression", "tail_mode"];
    match reader.text(&key).as_deref() {
        None | Some("lean") => TailMode::Lean,
        Some("legacy") => TailMode::Legacy,
        Some(other) => {
            let message = format!(
                "compression.tail_mode is {other:?}, expected lean or legacy; lean is used"
            );
            let hint = "write lean or legacy".to_owned();
            reader.report(ProblemKind::Value, Severity::Warning, &key, message, hint);
            TailMode::Lean
        }
    }
}

/// Only entries that can mean something stay; each other one is named by its key (CFG-2).
fn model_thresholds(reader: &mut Reader<'_>) -> Map<String, Json> {
    let key = ["compression", "model_thresholds"];
    let mut valid = Map::new();
    for (name, value) in reader.section(&key) {
        let name = key_text(&name);
        let reason = match untag(&value) {
            _ if name.trim().is_empty() => "its key is empty and would match every model",
            Value::Number(number) => match number.as_f64().filter(|n| n.is_finite()) {
                Some(number) if number > 0.0 && number <= 1.0 => {
                    valid.insert(name, Json::from(number));
                    continue;
                }
                _ => "expected a number above 0 up to 1",
            },
            _ => "expected a number above 0 up to 1",
        };
        let message = format!(
            "compression.model_thresholds.{name:?} is {}: {reason}; the entry is left out",
            show(&value)
        );
        let hint = "correct the entry or remove it".to_owned();
        reader.report(
            ProblemKind::Value,
            Severity::Warning,
            &["compression", "model_thresholds", &name],
            message,
            hint,
        );
    }
    valid
}
