//! A copy with an argument of a callback of the same size and another sign.

#[path = "../../src/args.rs"]
mod args;
#[path = "../../src/basic.rs"]
mod basic;
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

mod call {
    use super::{Bytes, Status};

    #[repr(C)]
    #[derive(Clone, Copy, Debug, abi_stable::StableAbi)]
    pub struct Call {
        pub struct_size: u32,
        pub reserved: u32,
        pub call_id: u64,
        pub budget_ms: u64,
        pub session_id: Bytes,
        pub cancelled: Option<unsafe extern "C" fn(call: *const Call) -> u32>,
        pub progress: Option<unsafe extern "C" fn(call: *const Call, done: u64, total: i64)>,
        pub error: Option<unsafe extern "C" fn(call: *const Call, text: Bytes) -> Status>,
        pub write: Option<unsafe extern "C" fn(call: *const Call, part: Bytes) -> Status>,
        pub keep: Option<
            unsafe extern "C" fn(
                call: *const Call,
                list: u32,
                first: usize,
                count: usize,
            ) -> Status,
        >,
        pub push: Option<unsafe extern "C" fn(call: *const Call, json: Bytes) -> Status>,
    }
}
