//! What an engine may also do. Each group is a trait of its own without default bodies: a slot of the border exists
//! exactly where the type implements the trait, and an absent slot is never called.

use crate::args::{Call, Messages, Pass, Select, Session, ToolCall, Turn};
use crate::emit::Emit;
use crate::engine::{ContextEngine, Verdict};
use crate::error::EngineError;

/// Chooses which messages enter one request.
///
/// Only for engines that *replace* what the model sees. The transcript is never touched. A selection that changes
/// makes the provider read the prompt anew from the first different message on, so return an equal selection for as
/// long as the routing decision is the same. To observe turns only, write a memory provider, not an engine.
pub trait SelectContext: ContextEngine {
    /// Emits the messages of this request, or leaves it with [`Verdict::Unchanged`].
    ///
    /// # Errors
    /// The request goes out unchanged.
    fn select_context(
        &mut self,
        cx: &Call<'_>,
        input: &Select<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError>;
}

/// Observes finished turns; the other half of [`SelectContext`].
pub trait TurnComplete: ContextEngine {
    /// The turn has ended; called once for it, with the final transcript.
    ///
    /// # Errors
    /// Any error is logged.
    fn turn_complete(&mut self, cx: &Call<'_>, turn: &Turn<'_>) -> Result<(), EngineError>;
}

/// Offers tools to the model.
pub trait Tools: ContextEngine {
    /// A JSON array of `{"name", "description", "parameters"}`.
    ///
    /// # Errors
    /// The agent starts without the engine's tools.
    fn tool_schemas(&mut self, cx: &Call<'_>) -> Result<String, EngineError>;

    /// Runs one call and answers with JSON text.
    ///
    /// # Errors
    /// The model receives `{"error": …}` with the text.
    fn tool_call(&mut self, cx: &Call<'_>, call: &ToolCall<'_>) -> Result<String, EngineError>;
}

/// Learns where a session begins and ends.
pub trait Sessions: ContextEngine {
    /// A session begins, goes on elsewhere, or has passed the boundary of a compression.
    ///
    /// # Errors
    /// Any error is logged.
    fn session_start(&mut self, cx: &Call<'_>, session: &Session<'_>) -> Result<(), EngineError>;

    /// The session is over; the messages are the final ones. Once per session.
    ///
    /// # Errors
    /// Any error is logged.
    fn session_end(&mut self, cx: &Call<'_>, session: &Session<'_>) -> Result<(), EngineError>;
}

/// Is told what became of each `compress` that gave a result.
pub trait Passes: ContextEngine {
    /// The pass was committed, or discarded. Durable work belongs here and nowhere earlier.
    ///
    /// # Errors
    /// Any error is logged.
    fn pass_result(&mut self, cx: &Call<'_>, pass: &Pass<'_>) -> Result<(), EngineError>;
}

/// A cheap look at the transcript before the model is called, below the threshold.
pub trait Preflight: ContextEngine {
    /// True asks for one pass now.
    ///
    /// # Errors
    /// Any error counts as "no".
    fn preflight(
        &mut self,
        cx: &Call<'_>,
        prompt_tokens: Option<u64>,
        messages: Messages<'_>,
    ) -> Result<bool, EngineError>;
}

/// Own figures for status displays.
pub trait Status: ContextEngine {
    /// A JSON object; the host adds the standard figures that are missing.
    ///
    /// # Errors
    /// The standard figures are shown alone.
    fn status(&mut self, cx: &Call<'_>) -> Result<String, EngineError>;
}

/// A command of the engine that a person can type.
pub trait Commands: ContextEngine {
    /// Text for a person.
    ///
    /// # Errors
    /// The text of the error is shown.
    fn command(&mut self, cx: &Call<'_>, argv: &[String]) -> Result<String, EngineError>;
}

/// Work between turns.
pub trait Idle: ContextEngine {
    /// Does a piece of work; true asks to be called again. Cancelled when a turn begins.
    ///
    /// # Errors
    /// Any error is logged.
    fn idle(&mut self, cx: &Call<'_>) -> Result<bool, EngineError>;
}

/// Makes an agent's own engine out of the registered one.
///
/// Needed only where `Clone` does not say what to do: a type that is `Clone` has the slot without this trait, and a type
/// with neither is created anew with the same settings.
pub trait CloneForAgent: ContextEngine {
    /// A new value equal to this one; durable back ends may be shared, budgets may not.
    ///
    /// # Errors
    /// The agent uses the built-in engine.
    fn clone_for_agent(&self, cx: &Call<'_>) -> Result<Self, EngineError>;
}
