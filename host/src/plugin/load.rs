//! The last step: a library is opened, and its tables become an [`EngineModule`](super::EngineModule).
//!
//! This file and those below it are where the loader touches foreign memory; the other steps are plain safe code.

pub(crate) mod c_library;
pub(crate) mod open;
pub(crate) mod raw;
mod refusal;
pub(crate) mod register;
pub(crate) mod registered;
pub(crate) mod services;
pub(crate) mod trial;

use hermes_engine_abi as abi;

pub use refusal::{LoadError, OpenError, Refusal};

/// The texts of `create`'s arguments. They are borrowed by the arguments, so they stay while an engine may read them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CreateTexts {
    /// JSON of the engine's own section of `config.yaml`.
    pub(crate) config: String,
    /// The engine's private folder.
    pub(crate) data_dir: String,
    /// The plugin's folder.
    pub(crate) plugin_dir: String,
}

impl CreateTexts {
    fn args(&self, purpose: u32) -> abi::CreateArgs {
        let bytes = |text: &String| abi::Bytes {
            ptr: text.as_ptr(),
            len: text.len(),
        };
        abi::CreateArgs {
            purpose,
            config: bytes(&self.config),
            data_dir: bytes(&self.data_dir),
            plugin_dir: bytes(&self.plugin_dir),
            ..abi::CreateArgs::EMPTY
        }
    }
}
