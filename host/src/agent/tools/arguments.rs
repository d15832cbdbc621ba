//! The arguments of a call: what a model wrote, which is often not quite what the schema says.

use serde_json::{Map, Value};

use super::error::{ToolError, shown};

/// The arguments of one call, with what the tool expects for the error's text.
pub(super) struct Arguments {
    values: Map<String, Value>,
    expected: &'static str,
}

impl Arguments {
    /// Reads the text of a call. No text counts as no arguments.
    pub(super) fn parse(text: &str, expected: &'static str) -> Result<Self, ToolError> {
        let refused = |problem| Err(ToolError::Arguments { problem, expected });
        let text = if text.trim().is_empty() { "{}" } else { text };
        match serde_json::from_str(text) {
            Ok(Value::Object(values)) => Ok(Self { values, expected }),
            Ok(other) => refused(format!(
                "the arguments are {}, not an object",
                kind_of(&other)
            )),
            Err(error) if error.is_eof() => refused(format!(
                "the arguments were cut off after {} bytes; send them whole",
                text.len()
            )),
            Err(error) => refused(format!("the arguments are no JSON: {error}")),
        }
    }

    /// A text that must be there.
    pub(super) fn text(&self, name: &str) -> Result<String, ToolError> {
        match self.optional_text(name)? {
            Some(text) if !text.is_empty() => Ok(text),
            Some(_) => Err(self.refuse(format!("`{name}` is empty"))),
            None => Err(self.refuse(format!("`{name}` is missing"))),
        }
    }

    /// A text that may be missing.
    pub(super) fn optional_text(&self, name: &str) -> Result<Option<String>, ToolError> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.refuse(format!("`{name}` is {}, not a text", kind_of(other)))),
        }
    }

    /// A whole number from 1 that may be missing. A number written as a text (`"20"`) or with a point (`20.0`) is
    /// taken for what it means.
    pub(super) fn optional_count(&self, name: &str) -> Result<Option<u64>, ToolError> {
        let value = match self.values.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(value) => value,
        };
        let count = match value {
            Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match count {
            Some(count) if count >= 1 => Ok(Some(count)),
            _ => Err(self.refuse(format!(
                "`{name}` is {}, not a whole number from 1",
                shown(&value.to_string())
            ))),
        }
    }

    /// One of a few words; the first one is meant where none is given.
    pub(super) fn choice(
        &self,
        name: &str,
        words: &[&'static str],
    ) -> Result<&'static str, ToolError> {
        let wanted = self.optional_text(name)?;
        let Some(wanted) = wanted else {
            return Ok(words[0]);
        };
        words
            .iter()
            .find(|word| **word == wanted)
            .copied()
            .ok_or_else(|| {
                self.refuse(format!(
                    "`{name}` is '{}', not one of {}",
                    shown(&wanted),
                    words.join(", ")
                ))
            })
    }

    fn refuse(&self, problem: String) -> ToolError {
        ToolError::Arguments {
            problem,
            expected: self.expected,
        }
    }
}

/// A float that is a whole number, and small enough to be exact.
fn whole(number: f64) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && (0.0..EXACT).contains(&number) {
        format!("{number:.0}").parse().ok()
    } else {
        None
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
