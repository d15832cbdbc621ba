//! Loading, through the real program and the real loader: what is wrong with a library, and what is not.

#![cfg(target_os = "linux")]

#[path = "loader/engines.rs"]
mod engines;
#[path = "loader/in_process.rs"]
mod in_process;
#[path = "loader/misfits.rs"]
mod misfits;
#[path = "loader/names.rs"]
mod names;
#[path = "loader/register.rs"]
mod register;
#[path = "loader/replaced.rs"]
mod replaced;
