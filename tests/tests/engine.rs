//! Engines as safe values, with real libraries: every way to misbehave inside a slot, and what the host makes of it.

#[path = "engine/support.rs"]
mod support;

#[path = "engine/agents.rs"]
mod agents;
#[path = "engine/calls.rs"]
mod calls;
#[path = "engine/misfits.rs"]
mod misfits;
#[path = "engine/selection.rs"]
mod selection;
#[path = "engine/services.rs"]
mod services;
#[path = "engine/sinks.rs"]
mod sinks;
