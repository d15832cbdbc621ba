//! Tests of `hermes-message` through its public face.

mod border;
mod files;
mod identity;
mod inputs;
mod repair;
mod sequence;
mod texts;
