//! What an agent shows of itself. Reading it never enters the engine and never waits.

use super::Agent;
use crate::context::Engine;
use crate::engine::{BUILT_IN, EngineState};

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
    /// Who keeps the context within the window.
    pub manager: Manager,
    /// The model that is asked.
    pub model: String,
    /// The conversation's own model, if that one is asked in its stead.
    pub in_place_of: Option<String>,
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

/// Who makes an agent's passes now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Manager {
    /// The engine.
    pub engine: String,
    /// Why it is not the engine that was chosen; `None` if it is.
    pub why: Option<String>,
}

impl Agent {
    /// The agent as it is now.
    #[must_use]
    pub fn status(&self) -> AgentStatus {
        AgentStatus {
            session_id: self.record.session().to_owned(),
            engine: self.engine.name().to_owned(),
            fallback: self.engine.fallen_back(),
            manager: self.manager(),
            model: self.asked_model().to_owned(),
            in_place_of: self.instead.is_some().then(|| self.model.clone()),
            context_length: self.asked_window(),
            tokens: self.conversation.next_tokens(),
            state: self.engine.state(),
            messages: self.conversation.transcript().len(),
            turns: self.turns,
            compressions: self.compressions,
        }
    }

    fn manager(&self) -> Manager {
        let name = self.engine.name();
        if let (Some(why), false) = (self.engine.held_up(), name == BUILT_IN) {
            return Manager {
                engine: BUILT_IN.to_owned(),
                why: Some(format!("'{name}' cannot be asked: {why}")),
            };
        }
        Manager {
            engine: name.to_owned(),
            why: self
                .engine
                .fallen_back()
                .map(|(wanted, reason)| format!("'{wanted}' does not serve: {reason}")),
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
