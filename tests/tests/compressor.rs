//! The built-in engine through its real vtable, and the algorithm behind it.

#[path = "compressor/interface.rs"]
mod interface;
#[path = "compressor/support.rs"]
mod support;
