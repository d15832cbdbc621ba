//! An unchanged copy.

#[path = "../../src/args.rs"]
mod args;
#[path = "../../src/basic.rs"]
mod basic;
#[path = "../../src/call.rs"]
mod call;
#[path = "../../src/engine.rs"]
mod engine;
#[path = "../../src/host.rs"]
mod host;
#[path = "../../src/layout.rs"]
pub mod layout;
#[path = "../../src/sizes.rs"]
mod sizes;
#[path = "../../src/status.rs"]
mod status;

pub use args::*;
pub use basic::*;
pub use call::*;
pub use engine::*;
pub use host::*;
pub use status::*;

pub const ABI_MAJOR: u16 = 1;
pub const ABI_MINOR: u16 = 0;
pub const NONE: u32 = u32::MAX;
