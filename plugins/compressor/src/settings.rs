//! The `compression` block of `config.yaml`, read leniently: a value that cannot be used is named in a warning and its
//! default holds.

use serde_json::Value;

/// How much of the end of a conversation stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailMode {
    /// A small share of the window; old tool results in it become one line.
    Lean,
    /// A share (`target_ratio`) of the trigger.
    Legacy,
}

/// What a user can set. Keys that steer the host's own pass (`enabled`, `in_place`, time limits) are not read here.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `threshold`: share of the window at which compression triggers.
    pub threshold: f64,
    /// Whether `threshold` stands in the file.
    pub threshold_is_set: bool,
    /// `threshold_tokens`: the trigger is never above this; `null` = no such limit.
    pub threshold_tokens: Option<u64>,
    /// Whether `threshold_tokens` stands in the file.
    pub threshold_tokens_is_set: bool,
    /// `target_ratio`: share of the trigger that the legacy tail may take.
    pub target_ratio: f64,
    /// `tail_mode`.
    pub tail_mode: TailMode,
    /// `protect_first_n`: messages after the system prompt that the first compression leaves alone.
    pub protect_first_n: u32,
    /// `protect_last_n`: messages at the end that stay; 8 at most when the token budget of the tail binds.
    pub protect_last_n: u32,
    /// `min_tail_user_messages`: so many of the newest user messages stay word for word.
    pub min_tail_user_messages: u32,
    /// `tail_assistant_max_chars`: longer assistant texts in a lean tail are cut; 0 = never.
    pub tail_assistant_max_chars: usize,
    /// `abort_on_summary_failure`: never fall back to the extractive summary.
    pub abort_on_summary_failure: bool,
    /// `proactive_prune_min_result_chars`: shorter tool results are not pruned.
    pub prune_min_result_chars: usize,
    /// `proactive_prune_min_reclaim_tokens`: a prune pass that frees less is not worth the lost prompt cache.
    pub prune_min_reclaim_tokens: u64,
}

/// Default of `threshold_tokens`.
pub const DEFAULT_THRESHOLD_TOKENS: u64 = 256_000;

impl Default for Settings {
    fn default() -> Self {
        Self {
            threshold: 0.50,
            threshold_is_set: false,
            threshold_tokens: Some(DEFAULT_THRESHOLD_TOKENS),
            threshold_tokens_is_set: false,
            target_ratio: 0.20,
            tail_mode: TailMode::Lean,
            protect_first_n: 3,
            protect_last_n: 20,
            min_tail_user_messages: 1,
            tail_assistant_max_chars: 0,
            abort_on_summary_failure: false,
            prune_min_result_chars: 8_000,
            prune_min_reclaim_tokens: 4_096,
        }
    }
}

impl Settings {
    /// Reads the block. The second answer has one line for each value that cannot be used: key, value, what is used.
    #[must_use]
    pub fn read(block: &Value) -> (Self, Vec<String>) {
        let mut settings = Self::default();
        let mut warnings = Vec::new();
        let map = match block {
            Value::Object(map) => map,
            Value::Null => return (settings, warnings),
            other => {
                warnings.push(format!(
                    "compression: expected settings, found {}; the defaults are used",
                    shown(other)
                ));
                return (settings, warnings);
            }
        };
        let mut reader = Reader {
            map,
            warnings: &mut warnings,
        };

        if let Some(share) = reader.number(
            "threshold",
            &settings.threshold,
            "a share above 0 and up to 1",
            |n| n > 0.0 && n <= 1.0,
        ) {
            settings.threshold = share;
            settings.threshold_is_set = true;
        }
        if let Some(value) = map.get("threshold_tokens") {
            if value.is_null() {
                settings.threshold_tokens = None;
                settings.threshold_tokens_is_set = true;
            } else if let Some(limit) = reader.whole(
                "threshold_tokens",
                DEFAULT_THRESHOLD_TOKENS,
                "a number of tokens from 1 up",
                |n| n >= 1,
            ) {
                settings.threshold_tokens = Some(limit);
                settings.threshold_tokens_is_set = true;
            }
        }
        if let Some(ratio) =
            reader.number("target_ratio", &settings.target_ratio, "a number", |_| true)
        {
            settings.target_ratio = ratio.clamp(0.10, 0.80);
        }
        settings.tail_mode = match map.get("tail_mode").and_then(Value::as_str) {
            Some("legacy") => TailMode::Legacy,
            _ => TailMode::Lean,
        };
        let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        if let Some(n) = reader.count("protect_first_n", u64::from(settings.protect_first_n)) {
            settings.protect_first_n = small(n);
        }
        if let Some(n) = reader.count("protect_last_n", u64::from(settings.protect_last_n)) {
            settings.protect_last_n = small(n);
        }
        if let Some(n) = reader.count(
            "min_tail_user_messages",
            u64::from(settings.min_tail_user_messages),
        ) {
            settings.min_tail_user_messages = small(n).max(1);
        }
        if let Some(n) = reader.count("tail_assistant_max_chars", 0) {
            settings.tail_assistant_max_chars = size(n);
        }
        if let Some(n) = reader.count("proactive_prune_min_result_chars", 8_000) {
            settings.prune_min_result_chars = size(n).max(200);
        }
        if let Some(n) = reader.count(
            "proactive_prune_min_reclaim_tokens",
            settings.prune_min_reclaim_tokens,
        ) {
            settings.prune_min_reclaim_tokens = n;
        }
        if let Some(yes) = reader.flag(
            "abort_on_summary_failure",
            settings.abort_on_summary_failure,
        ) {
            settings.abort_on_summary_failure = yes;
        }
        (settings, warnings)
    }
}

struct Reader<'a> {
    map: &'a serde_json::Map<String, Value>,
    warnings: &'a mut Vec<String>,
}

impl Reader<'_> {
    /// A value that is there and not `null`.
    fn value(&self, key: &str) -> Option<&Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    fn number(
        &mut self,
        key: &str,
        default: &dyn std::fmt::Display,
        wanted: &str,
        fits: impl Fn(f64) -> bool,
    ) -> Option<f64> {
        let value = self.value(key)?;
        // A quoted number is what a person means by it.
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let usable = number.filter(|n| n.is_finite() && fits(*n));
        if usable.is_none() {
            let line = format!(
                "compression.{key}: {} is not {wanted}; {default} is used",
                shown(value)
            );
            self.warnings.push(line);
        }
        usable
    }

    fn whole(
        &mut self,
        key: &str,
        default: u64,
        wanted: &str,
        fits: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let found = self.number(key, &default, wanted, |n| {
            n.fract() == 0.0 && (0.0..=EXACT).contains(&n) && fits(crate::threshold::whole(n))
        })?;
        Some(crate::threshold::whole(found))
    }

    fn count(&mut self, key: &str, default: u64) -> Option<u64> {
        self.whole(key, default, "a whole number from 0 up", |_| true)
    }

    fn flag(&mut self, key: &str, default: bool) -> Option<bool> {
        let value = self.value(key)?;
        let flag = match value {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => Some(true),
                "false" | "no" | "off" => Some(false),
                _ => None,
            },
            _ => None,
        };
        if flag.is_none() {
            let line = format!(
                "compression.{key}: {} is not true or false; {default} is used",
                shown(value)
            );
            self.warnings.push(line);
        }
        flag
    }
}

/// A value as a person wrote it, short enough for one line.
fn shown(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((cut, _)) = text.char_indices().nth(40) {
        text.truncate(cut);
        text.push('…');
    }
    text
}
