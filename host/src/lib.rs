//! A host for compiled context engines.

pub mod agent;
pub mod cli;
pub mod config;
pub mod context;
pub mod engine;
pub mod logging;
pub mod plugin;
pub mod provider;
pub mod replay;
pub mod store;

pub use plugin::helper_main;
