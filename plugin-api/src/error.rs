//! What an engine can answer instead of a result.

use std::fmt::Display;

use hermes_engine_abi as abi;

/// Why a call into an engine did not give a result.
///
/// The text is shown to a person and written to the host's log, so it should say what was tried, what went wrong
/// and what to do about it. The variant decides what the host makes of it; each matches one status of the border.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The call was valid, but the work failed.
    #[error("{0}")]
    Failed(String),
    /// The engine saw that the call was cancelled and stopped. Not counted as a fault of the engine.
    #[error("the call was cancelled")]
    Cancelled,
    /// The arguments, or the engine's own section of `config.yaml`, make no sense.
    #[error("{0}")]
    Invalid(String),
    /// The engine does not do what was asked.
    #[error("{0}")]
    Unsupported(String),
    /// A bound was hit: too large, too many.
    #[error("{0}")]
    Limit(String),
    /// `create` only: the engine is in order but cannot work here (no key, no database). Shown as the reason.
    #[error("{0}")]
    Unavailable(String),
}

impl EngineError {
    /// A [`Failed`](Self::Failed) from anything that can be shown.
    pub fn failed(cause: impl Display) -> Self {
        Self::Failed(cause.to_string())
    }

    /// An [`Invalid`](Self::Invalid) from anything that can be shown.
    pub fn invalid(cause: impl Display) -> Self {
        Self::Invalid(cause.to_string())
    }

    /// The status of the border that stands for this error.
    pub fn status(&self) -> abi::Status {
        match self {
            Self::Failed(_) => abi::ERR_FAILED,
            Self::Cancelled => abi::ERR_CANCELLED,
            Self::Invalid(_) => abi::ERR_INVALID,
            Self::Unsupported(_) => abi::ERR_UNSUPPORTED,
            Self::Limit(_) => abi::ERR_LIMIT,
            Self::Unavailable(_) => abi::ERR_UNAVAILABLE,
        }
    }

    /// The error that stands for a status which a host function answered, or `Ok` for [`abi::OK`].
    pub(crate) fn from_status(status: abi::Status, what: &str) -> Result<(), Self> {
        match status {
            abi::OK => Ok(()),
            abi::ERR_CANCELLED => Err(Self::Cancelled),
            abi::ERR_INVALID => Err(Self::Invalid(format!("the host refused {what} as invalid"))),
            abi::ERR_LIMIT => Err(Self::Limit(format!("the host refused {what} as too large"))),
            abi::ERR_UNSUPPORTED => Err(Self::Unsupported(format!(
                "{what} is not offered by this host"
            ))),
            other => Err(Self::Failed(format!(
                "the host refused {what} with status {other}"
            ))),
        }
    }
}

impl From<serde_json::Error> for EngineError {
    fn from(error: serde_json::Error) -> Self {
        Self::Failed(format!("JSON: {error}"))
    }
}

impl From<std::io::Error> for EngineError {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<hermes_message::MessageError> for EngineError {
    fn from(error: hermes_message::MessageError) -> Self {
        Self::Invalid(error.to_string())
    }
}
