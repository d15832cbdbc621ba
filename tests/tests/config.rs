//! `config.yaml`: what is read, what is changed, and the `config` command.

#[path = "config/command.rs"]
mod command;
#[path = "config/editing.rs"]
mod editing;
#[path = "config/page.rs"]
mod page;
#[path = "config/property.rs"]
mod property;
#[path = "config/reading.rs"]
mod reading;
#[cfg(unix)]
#[path = "config/safety.rs"]
mod safety;
#[path = "config/support.rs"]
mod support;
