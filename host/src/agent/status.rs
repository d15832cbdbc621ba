//! What an agent shows of itself. Reading it never enters the engine and never waits.

use super::Agent;
use crate::context::Engine;
use crate::engine::EngineState;

/// An agent at a moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AgentStatus {
    /// The session.
    pub session_id: String,
    /// The engine that serves now.
    pub engine: String,
    /// The engine that was chosen and does not serve, and why.
    pub fallback: Option<(String, String)>,
    /// The model.
    pub model: String,
    /// Its window in tokens.
    pub context_length: u64,
    /// The best figure for the next request, in tokens.
    pub tokens: u64,
    /// What the engine showed after its last call.
    pub state: EngineState,
    /// Messages in the live transcript.
    pub messages: usize,
    /// Turns of this agent.
    pub turns: u32,
    /// Passes that were committed by this agent.
    pub compressions: u32,
}

impl Agent {
    /// The agent as it is now.
    #[must_use]
    pub fn status(&self) -> AgentStatus {
        AgentStatus {
            session_id: self.record.session().to_owned(),
            engine: self.engine.name().to_owned(),
            fallback: self.engine.fallen_back(),
            model: self.model.clone(),
            context_length: self.window,
            tokens: self.conversation.next_tokens(),
            state: self.engine.state(),
            messages: self.conversation.transcript().len(),
            turns: self.turns,
            compressions: self.compressions,
        }
    }

    /// The session's id.
    #[must_use]
    pub fn session_id(&self) -> &str {
        self.record.session()
    }

    /// The live transcript.
    #[must_use]
    pub fn messages(&self) -> &[hermes_message::Message] {
        self.conversation.transcript().messages()
    }

    /// The names of the tools that the model can call.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        self.toolbox.names().map(str::to_owned).collect()
    }

    /// The engine's own figures (ENG-13). This enters the engine, unlike [`Agent::status`].
    pub fn engine_status(&mut self) -> serde_json::Value {
        self.engine.handle.status()
    }

    /// A command of the user's to the engine; the answer is text for a person.
    ///
    /// # Errors
    /// Says why there is no answer, for instance because the engine has no commands.
    pub fn engine_command(&mut self, words: &[String]) -> Result<String, String> {
        self.engine
            .handle
            .command(words)
            .map_err(|fault| fault.to_string())
    }
}
