//! Tests of `hermes-message` through its public face.

mod border;
mod cut;
mod estimate;
mod files;
mod identity;
mod inputs;
mod redact;
mod repair;
mod sequence;
mod texts;
