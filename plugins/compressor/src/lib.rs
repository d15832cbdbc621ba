//! The built-in context engine.
//!
//! An ordinary engine on the author's SDK, linked into the host. The algorithm stands by itself and is pure:
//! [`pass::compress`] takes messages, settings and a helper model, and gives a new list.
//!
//! 1. [`boundaries`] finds what stays at both ends and never cuts a tool group.
//! 2. [`turns`] reads what lies between, without secrets; [`carrier`] takes earlier summaries apart.
//! 3. [`summarize`] asks the helper model in parts that fit its window ([`prompt`], [`accept`]), or [`extract`] takes
//!    the summary from the text itself.
//! 4. [`fit`] shortens what stays only as far as it must ([`prune`]).
//! 5. [`assemble`] puts the summary where user and assistant keep alternating.
//!
//! [`guards`] keep passes without effect from running again and again.

#![forbid(unsafe_code)]

pub mod accept;
pub mod anchors;
pub mod assemble;
pub mod boundaries;
pub mod carrier;
pub mod clock;
mod engine;
pub mod extract;
pub mod fit;
pub mod guards;
pub mod helper;
pub mod mend;
pub mod pass;
pub mod proactive;
pub mod prompt;
pub mod prune;
pub mod row;
pub mod secrets;
pub mod settings;
pub mod summarize;
pub mod threshold;
pub mod tokens;
pub mod turns;

pub use engine::Compressor;
pub use settings::Settings;

/// The engine as the host links it in: the same module that a library would export.
#[must_use]
pub fn module() -> &'static hermes_plugin_api::abi::Module {
    hermes_plugin_api::engine_module!(Compressor)
}
