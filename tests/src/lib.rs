//! End-to-end, conformance and misfit tests of the whole product.
//!
//! What tests share: programs and libraries of this workspace ([`built`]), engines in C and C++ ([`compile_c`]), home
//! folders ([`Home`]), recorded conversations ([`inputs`]), and a provider that misbehaves on command
//! ([`FakeProvider`]).

mod built;
mod compile;
mod fake_provider;
mod home;
mod inputs;

pub use built::{Built, built};
pub use compile::{Compile, compile_c, has_compiler};
pub use fake_provider::{Behaviour, FakeProvider, OverflowError, Request};
pub use home::{Home, Plugin};
pub use inputs::{input, inputs};

use std::path::{Path, PathBuf};

/// The root of the workspace.
#[must_use]
pub fn workspace() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_owned()
}
