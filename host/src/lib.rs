//! A host for compiled context engines.

pub mod cli;
pub mod logging;
pub mod plugin;
