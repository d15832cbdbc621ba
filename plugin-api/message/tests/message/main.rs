//! Tests of `hermes-message` through its public face.

mod border;
mod files;
mod identity;
mod inputs;
mod texts;
