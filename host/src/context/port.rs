//! What a conversation needs of an engine.
//!
//! [`EngineHandle`](crate::engine::EngineHandle) gives it all; a replay puts a stopwatch in between, tests put a
//! script in its place. The handle keeps the books about faults (one warning per session and kind, who serves when an
//! engine is taken out); what a fault means for the request at hand is decided here in `context`.

use hermes_message::Message;

use crate::engine::{
    CompressRequest, Decision, Emission, EngineFault, EngineState, MessageList, PassOutcome,
    SessionInfo, TurnInfo, Usage,
};

/// Where the passes of a conversation become durable.
///
/// A closure `FnMut(&str, Vec<Message>) -> Result<Vec<Message>, String>` is one that needs no lock.
pub trait PassStore {
    /// A pass is about to begin: takes the session for it.
    ///
    /// # Errors
    /// Says why the session cannot be had; no pass runs then.
    fn begin(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Makes the result of the pass `pass_id` durable in one transaction, and gives it back with every uid.
    ///
    /// # Errors
    /// Says why not; everything is as it was.
    fn commit(&mut self, pass_id: &str, messages: Vec<Message>) -> Result<Stored, String>;

    /// The pass that has begun is over, whatever came of it.
    fn end(&mut self) {}
}

/// A result that is durable.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// The new transcript; what others wrote meanwhile stands at its end.
    pub messages: Vec<Message>,
    /// The session in which the conversation goes on, if it is another one now.
    pub session_id: Option<String>,
}

impl<F: FnMut(&str, Vec<Message>) -> Result<Vec<Message>, String>> PassStore for F {
    fn commit(&mut self, pass_id: &str, messages: Vec<Message>) -> Result<Stored, String> {
        Ok(Stored {
            messages: self(pass_id, messages)?,
            session_id: None,
        })
    }
}

/// The arguments of one `select_context`.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// What this call is about to send.
    pub request: MessageList,
    /// The transcript.
    pub conversation: MessageList,
    /// The turn's user message, as an index into `request`.
    pub incoming: Option<usize>,
    /// The window; 0 = unknown.
    pub budget_tokens: u64,
    /// Tool schemas and other overhead inside the budget.
    pub fixed_tokens: u64,
    /// 0, and 1, 2, … on retries of the same request.
    pub attempt: u32,
}

/// An engine, as a conversation sees it.
pub trait Engine {
    /// The name of the engine that serves now.
    fn name(&self) -> &str;
    /// Set once another engine serves than the one that was chosen: which was chosen, and why it does not serve.
    fn fallen_back(&self) -> Option<(String, String)>;
    /// The state after the last call; never enters the engine.
    fn state(&self) -> EngineState;
    /// Why nothing can enter it now: a call that was given up has not come back (PASS-10).
    fn held_up(&self) -> Option<String> {
        None
    }
    /// Whether it has `select_context`. If not, nothing is prepared for it (HOOK-1).
    fn selects(&self) -> bool;
    /// Whether it has `turn_complete`.
    fn observes(&self) -> bool;
    /// Chooses the messages of one request.
    fn select_context(&mut self, choice: &Choice) -> Result<Emission, EngineFault>;
    /// Whether to compress at so many prompt tokens. A fault is no.
    fn should_compress(&mut self, prompt_tokens: u64) -> Decision;
    /// Whether it wants one pass below its trigger. A fault, and an absent slot, is no.
    fn preflight(&mut self, prompt_tokens: u64, messages: &MessageList) -> bool;
    /// Runs a pass.
    fn compress(&mut self, request: CompressRequest) -> Result<Emission, EngineFault>;
    /// Lets the built-in run a pass that this engine could not do, for a request that must fit.
    fn compress_with_builtin(&mut self, request: CompressRequest) -> Result<Emission, EngineFault>;
    /// What became of a pass.
    fn pass_result(&mut self, pass_id: &str, outcome: PassOutcome);
    /// The usage of a model call.
    fn update_from_response(&mut self, usage: &Usage);
    /// A session begins, goes on, or has crossed a boundary.
    fn session_start(&mut self, session: &SessionInfo);
    /// A session ends.
    fn session_end(&mut self, session: &SessionInfo);
    /// A turn is over.
    fn turn_complete(&mut self, turn: TurnInfo);
    /// What the user is to be told about the engine's faults, each once.
    fn take_notices(&mut self) -> Vec<String>;
}
