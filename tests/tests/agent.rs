//! The contract of a conversation's runtime, through the library's front door: real engines from real libraries, a
//! real store, and a provider that keeps every body it was sent.

#![cfg(target_os = "linux")]

#[path = "agent/children.rs"]
mod children;
#[path = "agent/hooks.rs"]
mod hooks;
#[path = "agent/http.rs"]
mod http;
#[path = "agent/lifecycle.rs"]
mod lifecycle;
#[path = "agent/others.rs"]
mod others;
#[path = "agent/passes.rs"]
mod passes;
#[path = "agent/script.rs"]
mod script;
#[path = "agent/settings.rs"]
mod settings;
#[path = "agent/sizes.rs"]
mod sizes;
#[path = "agent/stand_ins.rs"]
mod stand_ins;
#[path = "agent/support.rs"]
mod support;
#[path = "agent/taken_out.rs"]
mod taken_out;
#[path = "agent/timeouts.rs"]
mod timeouts;
#[path = "agent/tools.rs"]
mod tools;
#[path = "agent/wire.rs"]
mod wire;
