//! The built-in engine through its real vtable, and the algorithm behind it.

#[path = "compressor/cuts.rs"]
mod cuts;
#[path = "compressor/identity.rs"]
mod identity;
#[path = "compressor/inputs.rs"]
mod inputs;
#[path = "compressor/interface.rs"]
mod interface;
#[path = "compressor/oversize.rs"]
mod oversize;
#[path = "compressor/pauses.rs"]
mod pauses;
#[path = "compressor/property.rs"]
mod property;
#[path = "compressor/shape.rs"]
mod shape;
#[path = "compressor/summary.rs"]
mod summary;
#[path = "compressor/support.rs"]
mod support;
#[path = "compressor/survives.rs"]
mod survives;
#[path = "compressor/triggers.rs"]
mod triggers;
