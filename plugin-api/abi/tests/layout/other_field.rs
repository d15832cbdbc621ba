//! A copy with a field of the same size and another sign.

#[path = "../../src/args.rs"]
mod args;
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

mod basic {
    #[repr(C)]
    #[derive(Clone, Copy, Debug, abi_stable::StableAbi)]
    pub struct Bytes {
        pub ptr: *const u8,
        pub len: usize,
    }
    impl Bytes {
        pub const EMPTY: Self = Self {
            ptr: std::ptr::null(),
            len: 0,
        };
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug, abi_stable::StableAbi)]
    pub struct Message {
        pub json: Bytes,
        pub identity: Bytes,
        pub uid: Bytes,
        pub version: u64,
        pub role: u32,
        pub flags: u32,
        pub tokens: i32,
        pub caller: u32,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Debug, abi_stable::StableAbi)]
    pub struct Messages {
        pub items: *const Message,
        pub count: usize,
        pub stride: usize,
    }
}
