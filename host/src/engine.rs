//! Engines as safe values.
//!
//! The host knows an engine only as a table of slots and an instance. Whatever lies behind them, the
//! program's own compressor or a stranger's library, goes through this one path:
//!
//! 1. [`select()`](select::select) takes the name from `context.engine` and makes the [`Template`], the registered instance
//!    that serves nobody; if that fails, the built-in's, with a warning.
//! 2. Each agent gets its own [`EngineHandle`] from it ([`Selected::for_agent`]).
//! 3. Each call hands a job to the instance's lane and waits for the call's budget. A call that outlives it
//!    is abandoned: the conversation goes on, and the lane keeps what the call borrowed until it returns.
//! 4. What an engine gives back is checked where it crosses the border; one wrong piece and all of it is
//!    refused. An [`Emission`] still has to pass the checks of a request or a pass.
//! 5. An engine that keeps failing is taken out, and the built-in serves the rest of the session.
//!
//! Only the files under `handle` touch raw pointers.

mod args;
mod control;
mod core;
mod emission;
mod equal;
mod fault;
mod handle;
mod lane;
mod ledger;
mod messages;
mod outcome;
mod select;
mod services;
mod slot;
mod state;
mod supervise;
mod template;
mod timeouts;

pub use args::{
    CompressRequest, Decision, ModelInfo, PassOutcome, SessionInfo, StartReason, ToolRequest,
    Trigger, TurnInfo, TurnOutcome, Usage,
};
pub use control::PassControl;
pub use emission::{Emission, Emitted, repeated_uids};
pub use fault::{EngineFault, FaultKind};
pub use handle::{
    Delivery, EngineHandle, IdleOutcome, Notice, Serving, exit_is_expected, leave, watch_exit,
};
pub use lane::{Shutdown, shutdown};
pub use ledger::Ledger;
pub use messages::MessageList;
pub use select::{BUILT_IN, EngineSource, Fallback, Selected, select};
pub use services::{Completer, EngineLog, Services, TokenCounter};
pub use slot::Slot;
pub use state::EngineState;
pub use template::{CloneFault, EngineSettings, Template};
pub use timeouts::{OwnTimeouts, Timeouts};
