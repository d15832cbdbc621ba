//! `hermes chat`, by the program itself: once, in a pipe, on a terminal, and stopped by signals.
#![cfg(unix)]

#[path = "chat/commands.rs"]
mod commands;
#[path = "chat/copies.rs"]
mod copies;
#[path = "chat/held.rs"]
mod held;
#[path = "chat/once.rs"]
mod once;
#[path = "chat/pipe.rs"]
mod pipe;
#[path = "chat/signals.rs"]
mod signals;
#[path = "chat/support.rs"]
mod support;
#[path = "chat/terminal.rs"]
mod terminal;
