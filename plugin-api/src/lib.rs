//! What the author of a context engine depends on.
//!
//! A context engine decides what a language model sees of a conversation that has outgrown the model's window. Write a
//! type, implement [`ContextEngine`], add the optional [groups] that you need, and export it:
//!
//! ```
//! use hermes_plugin_api::{
//!     Call, Compress, ContextEngine, Create, Decision, Emit, EngineError, EngineState, Verdict, engine_module,
//! };
//!
//! /// Keeps the first message and the ten newest.
//! #[derive(Clone)]
//! struct Newest(EngineState);
//!
//! impl ContextEngine for Newest {
//!     const NAME: &'static str = "newest";
//!
//!     fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
//!         Ok(Self(EngineState::new(cx.context_length())))
//!     }
//!     fn state(&self) -> EngineState {
//!         self.0
//!     }
//!     fn state_mut(&mut self) -> &mut EngineState {
//!         &mut self.0
//!     }
//!     fn should_compress(&mut self, _: &Call<'_>, prompt_tokens: Option<u64>) -> Result<Decision, EngineError> {
//!         let over = prompt_tokens.is_some_and(|tokens| tokens >= self.0.threshold_tokens);
//!         Ok(if over { Decision::Yes } else { Decision::No })
//!     }
//!     fn compress(&mut self, _: &Call<'_>, input: &Compress<'_>, out: &mut Emit<'_>) -> Result<Verdict, EngineError> {
//!         let count = input.messages().len();
//!         if count <= 11 {
//!             return Ok(Verdict::unchanged("already short"));
//!         }
//!         out.keep_one(0)?;
//!         out.keep(count - 10..count)?;
//!         self.0.compression_count += 1;
//!         Ok(Verdict::Done)
//!     }
//! }
//!
//! // In a library: hermes_plugin_api::export_engine!(Newest);
//! use hermes_plugin_api::testing::Kit;
//! let engine = Kit::new(engine_module!(Newest)).context_length(200_000).create()?;
//! assert_eq!(engine.state().threshold_tokens, 150_000);
//! assert!(engine.vtable().select_context.is_none(), "not implemented, so not there");
//! # Ok::<(), hermes_plugin_api::testing::Failure>(())
//! ```
//!
//! Built as a `cdylib` and put beside a `plugin.yaml`, that is an engine. `hermes plugins why NAME` says what a host
//! makes of it.
//!
//! - [`ContextEngine`] tells the life of an engine; [`groups`] are what it may also do.
//! - [`Messages`] and [`MessageView`] show what comes in, [`Emit`] takes what goes out.
//! - [`Host`] is what an engine may ask for.
//! - [`testing`] runs an engine in a test without a host.
//! - Panics are caught, and their text goes to the host's log. `tracing` works and ends there as well.
//!
//! This crate is *not* the border itself (that is [`abi`], one to one with `hermes_engine.h`), and it knows nothing of
//! the host's files, configuration or command line.

mod args;
mod emit;
mod engine;
mod error;
mod export;
pub mod groups;
mod log_bridge;
mod macros;
mod services;
mod state;
pub mod thresholds;

pub use hermes_engine_abi as abi;
pub use hermes_message as message;

pub use args::{
    Call, Compress, Create, Host, MessageView, Messages, Model, Pass, Purpose, Select, Session,
    StartReason, ToolCall, Trigger, Turn, TurnOutcome, Usage,
};
pub use emit::{Emit, List};
pub use engine::{ContextEngine, Decision, Verdict};
pub use error::EngineError;
pub use groups::{
    CloneForAgent, Commands, Idle, Passes, Preflight, SelectContext, Sessions, Status, Tools,
    TurnComplete,
};
pub use services::{CompleteError, CompleteRequest, Completion, ErrorClass, Level};
pub use state::EngineState;
pub use thresholds::resolve_model_threshold;

/// Runs an engine in a test, through its real vtable and without a host.
pub mod testing {
    pub use crate::export::kit::{Emitted, Failure, Instance, Kit};
}

/// What the macros expand to. Not for authors, and not covered by any promise.
#[doc(hidden)]
pub mod __private {
    pub use crate::export::probe::{Absent, Probe, check_name, first, name_bytes};
    pub use crate::export::slots::{is_a_library, required};
}
