//! Takes the place of the HTTP provider until that is there.
#![allow(missing_docs)]
use super::*;
use crate::config::{Config, HermesHome};
use std::sync::Arc;
pub struct Opened {
    pub provider: Arc<dyn Provider>,
    pub model: String,
    pub completer: Option<Arc<dyn crate::engine::Completer>>,
}
#[derive(Debug, thiserror::Error)]
#[error("no model")]
pub struct NoModel;
pub struct Wishes {
    pub model: Option<String>,
}
pub fn open(_: &Config, _: &HermesHome, _: &Wishes) -> Result<Opened, NoModel> {
    Err(NoModel)
}
pub struct Window {
    pub tokens: u64,
    pub warning: Option<String>,
}
pub fn window(config: &Config, _: &HermesHome, provider: &dyn Provider, model: &str) -> Window {
    Window {
        tokens: config
            .model()
            .context_length
            .or(provider.context_length(model))
            .unwrap_or(128_000),
        warning: None,
    }
}
pub mod retry {
    use super::*;
    pub fn wait(_: u32, _: &Failure) -> Option<Duration> {
        None
    }
}
