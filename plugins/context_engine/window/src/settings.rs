//! The section `window` of `config.yaml`.

use hermes_plugin_api::EngineError;
use serde_json::Value;

/// What a user can set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Share of the window at which a pass is due.
    pub(crate) threshold: f64,
    /// Share of the window that a pass leaves.
    budget: f64,
    /// The same in tokens; the smaller one counts.
    budget_tokens: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            threshold: 0.75,
            budget: 0.5,
            budget_tokens: None,
        }
    }
}

impl Settings {
    /// Reads the section; unknown keys are told to `unknown` and ignored.
    ///
    /// # Errors
    /// Names the key, its value and what is possible.
    pub(crate) fn read(
        section: &Value,
        mut unknown: impl FnMut(&str),
    ) -> Result<Self, EngineError> {
        let mut settings = Self::default();
        let map = match section {
            Value::Null => return Ok(settings),
            Value::Object(map) => map,
            other => {
                return Err(EngineError::Invalid(format!(
                    "the section `window` is {other}, and should be a mapping"
                )));
            }
        };
        for (key, value) in map {
            match key.as_str() {
                "threshold" => settings.threshold = share(key, value)?,
                "budget" => settings.budget = share(key, value)?,
                "budget_tokens" if value.is_null() => settings.budget_tokens = None,
                "budget_tokens" => {
                    let tokens = value.as_u64().filter(|&tokens| tokens > 0);
                    settings.budget_tokens =
                        Some(tokens.ok_or_else(|| wrong(key, value, "a whole number above 0"))?);
                }
                other => unknown(other),
            }
        }
        Ok(settings)
    }

    /// What a pass leaves of a window of `context_length` tokens. An unknown window (0) bounds nothing by itself.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a window is far below 2^53 tokens, and a float-to-int cast saturates"
    )]
    pub(crate) fn budget(&self, context_length: u64) -> u64 {
        let share = if context_length == 0 {
            u64::MAX
        } else {
            (context_length as f64 * self.budget) as u64
        };
        self.budget_tokens.map_or(share, |tokens| tokens.min(share))
    }
}

fn share(key: &str, value: &Value) -> Result<f64, EngineError> {
    value
        .as_f64()
        .filter(|&share| share > 0.0 && share <= 1.0)
        .ok_or_else(|| wrong(key, value, "a number above 0 and up to 1"))
}

fn wrong(key: &str, value: &Value, expected: &str) -> EngineError {
    EngineError::Invalid(format!("window.{key} is {value}, and should be {expected}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // contract: CFG-4
    #[test]
    fn reads_its_own_section_and_names_what_is_wrong() {
        let mut unknown = Vec::new();
        let section =
            json!({ "threshold": 0.5, "budget": 0.25, "budget_tokens": 1000, "color": "red" });
        let settings = Settings::read(&section, |key| unknown.push(key.to_owned())).expect("valid");
        assert_eq!(
            settings,
            Settings {
                threshold: 0.5,
                budget: 0.25,
                budget_tokens: Some(1000)
            }
        );
        assert_eq!(unknown, ["color"]);
        assert_eq!(settings.budget(8_000), 1000);
        assert_eq!(settings.budget(2_000), 500);
        for (section, key) in [
            (json!({ "threshold": 0 }), "window.threshold is 0"),
            (json!({ "threshold": 50 }), "window.threshold is 50"),
            (json!({ "budget": "half" }), "window.budget is \"half\""),
            (json!({ "budget_tokens": -1 }), "window.budget_tokens is -1"),
            (json!([1]), "the section `window` is [1]"),
        ] {
            let error = Settings::read(&section, |_| {})
                .expect_err("invalid")
                .to_string();
            assert!(error.starts_with(key), "{error}");
        }
    }
}
