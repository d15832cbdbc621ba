//! The last step: an engine's tables become an [`EngineModule`](super::EngineModule).
//!
//! This file and those below it are where the loader touches foreign memory; the other steps are plain safe code.

pub(crate) mod raw;
pub(crate) mod registered;

use super::error::ModuleError;

/// Why a plugin does not serve: where it lies, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {cause}")]
pub struct LoadError {
    /// The plugin's directory or library, for people.
    pub place: String,
    /// What is wrong.
    #[source]
    pub cause: Refusal,
}

impl LoadError {
    pub(super) fn new(place: impl Into<String>, cause: impl Into<Refusal>) -> Self {
        Self {
            place: place.into(),
            cause: cause.into(),
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match &self.cause {
            Refusal::Module(error) => error.fix(),
        }
    }
}

/// Why a plugin is refused, by the step that refused it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The module that it hands over is not one that this host can use.
    #[error(transparent)]
    Module(#[from] ModuleError),
}
