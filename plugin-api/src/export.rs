//! The only place of this crate with `unsafe`: between raw structs of the border and safe values.
//!
//! [`read`] turns what the host passes into borrowed Rust values, [`view`] shows messages, [`call`] and [`host`] wrap
//! the callbacks, [`instance`] holds the author's value and catches panics, [`slots`] are the functions in the vtable,
//! [`probe`] decides at compile time which of them exist, and [`kit`] plays the host for tests.

pub(crate) mod call;
pub(crate) mod host;
pub(crate) mod instance;
pub(crate) mod kit;
mod panics;
pub(crate) mod probe;
mod read;
pub(crate) mod slots;
pub(crate) mod view;

pub(crate) use panics::with_host;
