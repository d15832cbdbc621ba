//! What an engine asks of the helper model behind the host.

use std::time::Duration;

use serde_json::{Value, json};

/// How serious a line in the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something failed.
    Error = 1,
    /// Something is odd.
    Warn,
    /// Something happened.
    Info,
    /// For the author of the engine.
    Debug,
    /// Everything.
    Trace,
}

/// A question to the helper model.
#[derive(Clone, Debug, Default)]
pub struct CompleteRequest {
    /// Messages in OpenAI format: a JSON array.
    pub messages: Value,
    /// Bound on the answer.
    pub max_tokens: Option<u64>,
    /// What the answer is for, as a short word: `summary`, …
    pub purpose: String,
    /// How long to wait; `None` = as long as the call lasts.
    pub timeout: Option<Duration>,
}

impl CompleteRequest {
    /// The JSON that crosses the border.
    pub(crate) fn to_json(&self) -> String {
        let mut request = json!({ "messages": self.messages, "purpose": self.purpose });
        if let Some(limit) = self.max_tokens {
            request["max_tokens"] = limit.into();
        }
        request.to_string()
    }
}

/// The helper model's answer.
#[derive(Clone, Debug, Default)]
pub struct Completion {
    /// The text. May be empty: whether that is acceptable is the engine's decision.
    pub text: String,
    /// Why the model stopped: `stop`, `length`, …
    pub finish_reason: String,
    /// Which model answered.
    pub model: String,
    /// What it cost, as the provider said.
    pub usage: Value,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The key was refused.
    Auth,
    /// Nothing left to spend.
    Quota,
    /// No connection, or it broke.
    Network,
    /// The provider is busy.
    Overload,
    /// The question was too long for the helper's window.
    Context,
    /// The answer was empty.
    Empty,
    /// The answer was cut off.
    Truncated,
    /// Nobody waits for it any more.
    Cancelled,
    /// The user has not granted a helper model to this engine.
    NotGranted,
    /// Anything else.
    Other,
}

impl ErrorClass {
    fn parse(word: &str) -> Self {
        match word {
            "auth" => Self::Auth,
            "quota" => Self::Quota,
            "network" => Self::Network,
            "overload" => Self::Overload,
            "context" => Self::Context,
            "empty" => Self::Empty,
            "truncated" => Self::Truncated,
            "cancelled" => Self::Cancelled,
            _ => Self::Other,
        }
    }
}

/// The helper model gave no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CompleteError {
    /// What kind of fault.
    pub class: ErrorClass,
    /// For a person.
    pub message: String,
    /// When the provider allows another try.
    pub retry_after: Option<Duration>,
}

impl CompleteError {
    /// One without a hint when to try again.
    pub(crate) fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            retry_after: None,
        }
    }
}

/// Reads the JSON with which the host answers.
pub(crate) fn parse_result(json: &str) -> Result<Completion, CompleteError> {
    let value: Value = serde_json::from_str(json).map_err(|error| {
        CompleteError::new(
            ErrorClass::Other,
            format!("the host's answer is not JSON: {error}"),
        )
    })?;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(error) = value.get("error") {
        return Err(CompleteError {
            class: ErrorClass::parse(error["class"].as_str().unwrap_or_default()),
            message: word(&error["message"]),
            retry_after: error["retry_after_ms"].as_u64().map(Duration::from_millis),
        });
    }
    Ok(Completion {
        text: word(&value["text"]),
        finish_reason: word(&value["finish_reason"]),
        model: word(&value["model"]),
        usage: value.get("usage").cloned().unwrap_or_default(),
    })
}
