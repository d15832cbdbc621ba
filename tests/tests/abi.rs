//! The border itself: that the header and its Rust mirror are the same thing, that it compiles everywhere
//! it promises to, that what was released stays, and that engines in C and C++ work through it.

#[path = "abi/engines.rs"]
mod engines;
#[path = "abi/frozen.rs"]
mod frozen;
#[path = "abi/header.rs"]
mod header;
#[path = "abi/headers.rs"]
mod headers;
#[path = "abi/layout.rs"]
mod layout;
#[path = "abi/thresholds.rs"]
mod thresholds;
#[path = "abi/toolchain.rs"]
mod toolchain;
