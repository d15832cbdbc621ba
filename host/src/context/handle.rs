//! An [`EngineHandle`] as the engine of a conversation.

use std::time::Duration;

use super::port::{Choice, Engine};
use crate::engine::{
    CompressRequest, Decision, Emission, EngineFault, EngineHandle, EngineState, MessageList,
    ModelInfo, PassControl, PassOutcome, Serving, SessionInfo, Slot, ToolRequest, TurnInfo, Usage,
};

/// An agent's engine with the time its passes may take.
pub struct AgentEngine {
    /// The engine.
    pub handle: EngineHandle,
    /// `compression.context_timeout_seconds`: how long a pass may be silent; `None` = for ever, on the caller's thread.
    pub timeout: Option<Duration>,
    /// `compression.context_total_ceiling_seconds`.
    pub ceiling: Option<Duration>,
    /// Told of each pass and each call of a turn, so that it can be stopped.
    watcher: Option<Watcher>,
}

/// Hears of the pass or call that begins, and of its end (`None`).
pub type Watcher = Box<dyn Fn(Option<&PassControl>) + Send>;

impl AgentEngine {
    /// A new agent's engine. It learns its model before anything else happens to it (LIFE-1, CFG-1).
    #[must_use]
    pub fn new(
        mut handle: EngineHandle,
        model: &ModelInfo,
        timeout: Option<Duration>,
        ceiling: Option<Duration>,
    ) -> Self {
        handle.update_model(model);
        AgentEngine {
            handle,
            timeout,
            ceiling,
            watcher: None,
        }
    }

    /// Lets `watcher` stop the passes of this engine, and what else a turn waits for.
    pub fn watch(&mut self, watcher: Watcher) {
        self.watcher = Some(watcher);
    }

    /// Runs one of the engine's tools; the watcher can stop it as it can stop a pass.
    pub fn tool_call(&mut self, tool: ToolRequest) -> String {
        let control = self.handle.tool_control();
        self.steered(control, |handle, control| {
            handle.steered_tool_call(tool, control)
        })
    }

    /// Runs a call of a turn that the watcher can call off, within its own budget.
    fn hook<T>(&mut self, call: impl FnOnce(&mut EngineHandle) -> T) -> T {
        self.steered(PassControl::new(None, None), |handle, control| {
            handle.stoppable(control, call)
        })
    }

    fn pass_control(&self) -> PassControl {
        PassControl::new(self.timeout, self.ceiling)
    }

    /// Runs a call that the watcher can stop.
    fn steered<T>(
        &mut self,
        control: PassControl,
        run: impl FnOnce(&mut EngineHandle, &PassControl) -> T,
    ) -> T {
        if let Some(watcher) = &self.watcher {
            watcher(Some(&control));
        }
        let result = run(&mut self.handle, &control);
        if let Some(watcher) = &self.watcher {
            watcher(None);
        }
        result
    }
}

impl std::fmt::Debug for AgentEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentEngine")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}

fn signed(tokens: u64) -> Option<i64> {
    i64::try_from(tokens).ok()
}

impl Engine for AgentEngine {
    fn name(&self) -> &str {
        self.handle.name()
    }

    fn fallen_back(&self) -> Option<(String, String)> {
        match self.handle.serving() {
            Serving::Itself => None,
            Serving::FallenBack { wanted, reason } => Some((wanted.clone(), reason.clone())),
        }
    }

    fn held_up(&self) -> Option<String> {
        self.handle.held_up()
    }

    fn state(&self) -> EngineState {
        self.handle.state()
    }

    fn selects(&self) -> bool {
        self.handle.has(Slot::SelectContext)
    }

    fn observes(&self) -> bool {
        self.handle.has(Slot::TurnComplete)
    }

    fn select_context(&mut self, choice: &Choice) -> Result<Emission, EngineFault> {
        self.hook(|handle| {
            handle.select_context(
                &choice.request,
                &choice.conversation,
                choice.incoming,
                choice.budget_tokens,
                choice.fixed_tokens,
                choice.attempt,
            )
        })
    }

    fn should_compress(&mut self, prompt_tokens: u64) -> Decision {
        self.hook(|handle| handle.should_compress(signed(prompt_tokens)))
    }

    fn preflight(&mut self, prompt_tokens: u64, messages: &MessageList) -> bool {
        if !self.handle.has(Slot::Preflight) {
            return false;
        }
        self.hook(|handle| handle.preflight(signed(prompt_tokens), messages))
    }

    fn compress(&mut self, request: CompressRequest) -> Result<Emission, EngineFault> {
        self.steered(self.pass_control(), |handle, control| {
            handle.compress(request, control)
        })
    }

    fn compress_with_builtin(&mut self, request: CompressRequest) -> Result<Emission, EngineFault> {
        self.steered(self.pass_control(), |handle, control| {
            handle.compress_with_builtin(request, control)
        })
    }

    fn pass_result(&mut self, pass_id: &str, outcome: PassOutcome) {
        self.handle.pass_result(pass_id, outcome);
    }

    fn update_from_response(&mut self, usage: &Usage) {
        self.handle.update_from_response(usage);
    }

    fn session_start(&mut self, session: &SessionInfo) {
        self.handle.session_start(session);
    }

    fn session_end(&mut self, session: &SessionInfo) {
        self.handle.session_end(session);
    }

    fn turn_complete(&mut self, turn: TurnInfo) {
        self.hook(|handle| handle.turn_complete(turn));
    }

    fn take_notices(&mut self) -> Vec<String> {
        self.handle
            .take_notices()
            .iter()
            .map(|notice| notice.text().to_owned())
            .collect()
    }
}
