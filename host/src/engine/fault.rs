//! What can go wrong with an engine, told so that a person can act on it.

use super::Slot;

/// The kind of a fault, which decides what the host does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// The engine answered with a failure.
    Error,
    /// The engine caught a panic or an exception in itself; that instance is dead.
    Panic,
    /// The call outlived its budget and was given up, or ended only after it.
    Timeout,
    /// A call that was given up earlier is still inside, or no permit for a pass was free.
    Busy,
    /// What the engine gave back breaks the rules of the border; all of it was refused.
    InvalidOutput,
    /// The call was cancelled from outside.
    Cancelled,
    /// The engine is sound, but cannot work here (no key, no database).
    Unavailable,
    /// The engine does not have this slot, or answered that it does not do this.
    Unsupported,
    /// The engine was taken out: too many of its calls had to be given up.
    TakenOut,
}

impl FaultKind {
    /// Whether a repetition of it counts towards taking the engine out (SAFE-4).
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(
            self,
            Self::Error | Self::Panic | Self::Timeout | Self::InvalidOutput | Self::Unavailable
        )
    }
}

/// One fault of one call: what happened, where, why, and what happens next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("context engine '{engine}': {slot} {why}; {next}")]
pub struct EngineFault {
    /// What kind of fault it is.
    pub kind: FaultKind,
    /// The engine's name.
    pub engine: String,
    /// The slot in which it happened.
    pub slot: Slot,
    /// What happened and why, with the engine's own words where it had some.
    pub why: String,
    /// What the host does now, or what the user can do.
    pub next: String,
}

impl EngineFault {
    pub(crate) fn new(
        kind: FaultKind,
        engine: impl Into<String>,
        slot: Slot,
        why: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            engine: engine.into(),
            slot,
            why: why.into(),
            next: what_next(kind, slot).to_owned(),
        }
    }
}

/// The right-hand side of the failure table: what a fault of this kind in this slot leads to.
const fn what_next(kind: FaultKind, slot: Slot) -> &'static str {
    match (slot, kind) {
        (_, FaultKind::TakenOut) => "the built-in engine serves until the program is restarted",
        (_, FaultKind::Cancelled) => "its result was discarded",
        (Slot::Create, FaultKind::Unavailable) => {
            "the built-in engine serves until what the engine asks for is there"
        }
        (Slot::Create, _) => {
            "the built-in engine serves; check the engine's section of config.yaml, or its log"
        }
        (Slot::Clone, _) => "the built-in engine serves this agent",
        (Slot::Compress, _) => "the transcript stays as it was",
        (Slot::SelectContext, _) => "the request goes out as it was",
        (Slot::State, _) => "the last values are shown",
        (Slot::ShouldCompress | Slot::Preflight, _) => "it counts as 'no'",
        (Slot::ToolCall, _) => "the model is told so",
        (Slot::ToolSchemas, _) => "the conversation goes on without its tools",
        (Slot::Command | Slot::Status, _) => "try again, or see the engine's log",
        _ => "the conversation goes on",
    }
}
