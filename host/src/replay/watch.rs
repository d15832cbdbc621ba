//! An engine under observation: how long it takes, and what it gives back that is no result at all.

use std::time::{Duration, Instant};

use crate::context::Engine;
use crate::context::port::Choice;
use crate::engine::{
    CompressRequest, Decision, Emission, EngineFault, EngineState, FaultKind, MessageList,
    PassOutcome, SessionInfo, TurnInfo, Usage,
};

/// Where in a replay an engine gives something back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The result of a pass.
    Compress,
    /// The choice for one request.
    SelectContext,
    /// The request that goes out.
    Request,
}

impl At {
    /// The word in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            At::Compress => "compress",
            At::SelectContext => "select_context",
            At::Request => "request",
        }
    }
}

/// An engine with a stopwatch.
#[derive(Debug)]
pub struct Watched<E> {
    engine: E,
    spent: Duration,
    invalid: Vec<(At, String)>,
}

impl<E: Engine> Watched<E> {
    /// Observes an engine.
    pub fn new(engine: E) -> Self {
        Watched {
            engine,
            spent: Duration::ZERO,
            invalid: Vec::new(),
        }
    }

    /// The time spent in it since this was last asked.
    pub fn take_spent(&mut self) -> Duration {
        std::mem::take(&mut self.spent)
    }

    /// Results that broke the border's own rules since this was last asked: they never became a list of messages.
    pub fn take_invalid(&mut self) -> Vec<(At, String)> {
        std::mem::take(&mut self.invalid)
    }

    fn timed<T>(&mut self, call: impl FnOnce(&mut E) -> T) -> T {
        let begun = Instant::now();
        let result = call(&mut self.engine);
        self.spent += begun.elapsed();
        result
    }

    fn noted(
        &mut self,
        at: At,
        result: Result<Emission, EngineFault>,
    ) -> Result<Emission, EngineFault> {
        if let Err(fault) = &result
            && fault.kind == FaultKind::InvalidOutput
        {
            self.invalid.push((at, fault.why.clone()));
        }
        result
    }
}

impl<E: Engine> Engine for Watched<E> {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn fallen_back(&self) -> Option<(String, String)> {
        self.engine.fallen_back()
    }

    fn held_up(&self) -> Option<String> {
        self.engine.held_up()
    }

    fn state(&self) -> EngineState {
        self.engine.state()
    }

    fn selects(&self) -> bool {
        self.engine.selects()
    }

    fn observes(&self) -> bool {
        self.engine.observes()
    }

    fn select_context(&mut self, choice: &Choice) -> Result<Emission, EngineFault> {
        let result = self.timed(|engine| engine.select_context(choice));
        self.noted(At::SelectContext, result)
    }

    fn should_compress(&mut self, prompt_tokens: u64) -> Decision {
        self.timed(|engine| engine.should_compress(prompt_tokens))
    }

    fn preflight(&mut self, prompt_tokens: u64, messages: &MessageList) -> bool {
        self.timed(|engine| engine.preflight(prompt_tokens, messages))
    }

    fn compress(&mut self, request: CompressRequest) -> Result<Emission, EngineFault> {
        let result = self.timed(|engine| engine.compress(request));
        self.noted(At::Compress, result)
    }

    fn compress_with_builtin(&mut self, request: CompressRequest) -> Result<Emission, EngineFault> {
        self.timed(|engine| engine.compress_with_builtin(request))
    }

    fn pass_result(&mut self, pass_id: &str, outcome: PassOutcome) {
        self.timed(|engine| engine.pass_result(pass_id, outcome));
    }

    fn update_from_response(&mut self, usage: &Usage) {
        self.timed(|engine| engine.update_from_response(usage));
    }

    fn session_start(&mut self, session: &SessionInfo) {
        self.timed(|engine| engine.session_start(session));
    }

    fn session_end(&mut self, session: &SessionInfo) {
        self.timed(|engine| engine.session_end(session));
    }

    fn turn_complete(&mut self, turn: TurnInfo) {
        self.timed(|engine| engine.turn_complete(turn));
    }

    fn take_notices(&mut self) -> Vec<String> {
        self.engine.take_notices()
    }
}
