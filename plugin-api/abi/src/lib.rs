//! The frozen C border between the host and compiled context engines, as Rust sees it.
//!
//! `plugin-api/include/hermes_engine.h` is the specification: who may call what, on which thread, who
//! owns which byte, and what `NULL` means. This crate mirrors it, name for name and byte for byte, and
//! holds nothing else: types, constants, and what follows from them at compile time. One golden file
//! is compared with both sides, so that neither can drift from the other.
//!
//! It is *not* for authors of Rust engines, who never see a raw pointer (`hermes-plugin-api` is), and it
//! does not load, check or call anything.
//!
//! - [`Bytes`], [`Message`], [`Messages`]: what travels.
//! - [`Call`]: one call of a slot, and everything that an engine may ask or answer during it.
//! - [`Host`], [`CompleteArgs`]: the services of the host.
//! - [`CreateArgs`] … [`CommandArgs`]: the arguments of the slots; [`State`] is the one that engines fill.
//! - [`EngineVtable`], [`Module`], [`Registrar`]: what a library exports, and how it registers.
//!
//! Every function pointer is an `Option`, required slots too: a table that somebody else has filled may
//! hold `NULL` anywhere. A field exists only if it lies inside the `struct_size` that the filling side
//! has written; see [`EngineVtable`].
//!
//! The crate stays at 1.x for as long as the border stays at major 1, because the optional layout check
//! (feature `layout`) compares the crate's major version as well.

mod args;
mod basic;
mod call;
mod engine;
mod host;
#[cfg(feature = "layout")]
pub mod layout;
mod sizes;
mod status;

pub use args::*;
pub use basic::*;
pub use call::*;
pub use engine::*;
pub use host::*;
pub use status::*;

/// The major version of the border. A new one has new entry symbols.
pub const ABI_MAJOR: u16 = 1;
/// The minor version of the border: how far the structs have grown.
pub const ABI_MINOR: u16 = 0;
/// "No index": the value of an index field that points at nothing.
pub const NONE: u32 = u32::MAX;

/// The entry of a directory engine, an [`EntryFn`].
pub const ENTRY_SYMBOL: &str = "hermes_context_engine_v1";
/// The entry of a general plugin, a [`RegisterFn`].
pub const REGISTER_SYMBOL: &str = "hermes_plugin_register_v1";
/// The engine's name as NUL-terminated read-only data, which a host can read without running the library.
pub const NAME_SYMBOL: &str = "hermes_engine_name";
/// The optional export of the layout (feature `layout`), for Rust libraries only.
pub const LAYOUT_SYMBOL: &str = "hermes_context_engine_rust_layout_v1";
