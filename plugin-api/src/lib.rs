//! What the author of a context engine depends on.

pub mod thresholds;
