//! One agent's engine.

mod call;
mod hooks;
mod host;
mod instance;
mod leave;
mod lifecycle;
mod pass;
mod raw_args;
mod recover;
mod tools;

pub(crate) use call::{CallRecord, Sink};
pub use leave::{exit_is_expected, leave, watch_exit};

pub(crate) use instance::{CreateInfo, Instance, Living, NotMade};

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::args::SlotArgs;
use super::control::{CallControl, PassControl};
use super::core::{Core, Request};
use super::emission::Collector;
use super::outcome::Success;
use super::{EngineFault, EngineState, FaultKind, ModelInfo, SessionInfo, Slot, Template};
use crate::plugin::EngineModule;

/// One agent's own engine. Every method returns within the budget of its call and the grace; none lets a
/// fault of the engine out as anything but a value.
pub struct EngineHandle {
    /// The engine that was chosen; it may have been taken out since.
    template: Template,
    core: Core,
    serving: Serving,
    session: Option<SessionInfo>,
    session_id: Arc<str>,
    model: Option<ModelInfo>,
    /// Failures in a row, by slot.
    failures: HashMap<Slot, u32>,
    /// The row of failures that the last success has ended; its output may yet prove to be no good.
    excused: Option<(Slot, u32)>,
    /// Instances that have panicked in this session.
    panics: u32,
    /// The pass of which the engine thinks that it succeeded, and has not heard more.
    open_pass: Option<String>,
    warned: HashSet<(Slot, FaultKind)>,
    notices: Vec<Notice>,
    /// The built-in's instance for single passes that this engine could not do.
    spare: Option<Core>,
    /// Calls the next call off, see [`EngineHandle::stoppable`].
    off_switch: Option<PassControl>,
}

/// Who serves the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serving {
    /// The engine that was chosen.
    Itself,
    /// The built-in, because the chosen engine could not, or could no longer.
    FallenBack {
        /// The engine that was chosen.
        wanted: String,
        /// Why it does not serve.
        reason: String,
    },
}

/// Something that the user is to be told, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The first fault of its kind in this session.
    Warning(String),
    /// The engine was taken out; why, and how to go back to it.
    TakenOut(String),
}

impl Notice {
    /// What to tell.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Warning(text) | Self::TakenOut(text) => text,
        }
    }
}

/// What became of a call that an engine must not miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The engine has it.
    Done,
    /// The engine has no such slot.
    Absent,
    /// An abandoned call is still inside; this one is delivered, in order, when that returns.
    Waiting,
    /// The engine failed at it.
    Failed(EngineFault),
}

/// What an idle call has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdleOutcome {
    /// Nothing more to do until the next turn has ended.
    Done,
    /// It wants to be called again.
    More,
    /// It was cancelled, failed, or could not be entered.
    Stopped(EngineFault),
}

impl EngineHandle {
    pub(crate) fn new(template: Template, core: Core) -> Self {
        Self {
            template,
            core,
            serving: Serving::Itself,
            session: None,
            session_id: Arc::from(""),
            model: None,
            failures: HashMap::new(),
            excused: None,
            panics: 0,
            open_pass: None,
            warned: HashSet::new(),
            notices: Vec::new(),
            spare: None,
            off_switch: None,
        }
    }

    /// Says from the start that another engine was wanted.
    pub(crate) fn fallen_back(mut self, wanted: &str, reason: String) -> Self {
        self.serving = Serving::FallenBack {
            wanted: wanted.to_owned(),
            reason,
        };
        self
    }

    pub(crate) fn notify(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    /// The name of the engine that serves now.
    #[must_use]
    pub fn name(&self) -> &str {
        self.core.name()
    }

    /// The module of the engine that serves now.
    #[must_use]
    pub fn module(&self) -> &EngineModule {
        &self.core.module
    }

    /// Whether the engine that serves now has this slot.
    #[must_use]
    pub fn has(&self, slot: Slot) -> bool {
        self.core.has(slot)
    }

    /// The state after the last call. Never enters the engine and never waits for it.
    #[must_use]
    pub fn state(&self) -> EngineState {
        self.core.state()
    }

    /// Who serves.
    #[must_use]
    pub fn serving(&self) -> &Serving {
        &self.serving
    }

    /// Whether a call that was given up is still inside.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.core.lane.is_busy()
    }

    /// Why nothing can enter the engine now, although nobody waits for it: a call that was given up is still inside.
    #[must_use]
    pub fn held_up(&self) -> Option<String> {
        self.is_busy().then(|| match self.core.lane.inside() {
            Some(slot) => format!("a call of {slot} was given up and has not come back"),
            None => "calls wait for one that was given up".to_owned(),
        })
    }

    /// What the user is to be told, each once; empty when it was taken already.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Makes one call that `control` can call off from any thread: the caller then goes on after the grace, as it does
    /// at the end of the call's own budget, which stays what it is.
    pub fn stoppable<T>(&mut self, control: &PassControl, call: impl FnOnce(&mut Self) -> T) -> T {
        self.off_switch = Some(control.clone());
        let result = call(self);
        self.off_switch = None;
        result
    }

    /// Makes a call with the slot's own budget and keeps the books about it.
    fn ask(
        &mut self,
        slot: Slot,
        args: SlotArgs,
        emitted: Option<Collector>,
    ) -> Result<Success, EngineFault> {
        let control = self.core.control(slot);
        let here = control.budget().is_none();
        let control = match self.off_switch.take() {
            Some(outside) => Arc::new(CallControl::stoppable(control.budget(), &outside)),
            None => control,
        };
        self.ask_with(slot, args, emitted, control, here)
    }

    fn ask_steered(
        &mut self,
        slot: Slot,
        args: SlotArgs,
        emitted: Option<Collector>,
        control: &PassControl,
    ) -> Result<Success, EngineFault> {
        // Idle work has no time of its own, but must not hold up the thread that waits to cancel it.
        let here = slot != Slot::Idle && control.timeout().is_none();
        let control = Arc::new(CallControl::steered(control));
        self.ask_with(slot, args, emitted, control, here)
    }

    fn ask_with(
        &mut self,
        slot: Slot,
        args: SlotArgs,
        emitted: Option<Collector>,
        control: Arc<CallControl>,
        here: bool,
    ) -> Result<Success, EngineFault> {
        self.leave_if_out();
        let request = Request {
            slot,
            args,
            session: Arc::clone(&self.session_id),
            control,
            emitted,
        };
        let result = self.core.ask(request, here);
        self.keep_books(slot, result.as_ref().err());
        result
    }
}

impl std::fmt::Debug for EngineHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineHandle")
            .field("name", &self.name())
            .field("serving", &self.serving)
            .field("session_id", &self.session_id)
            .finish_non_exhaustive()
    }
}
