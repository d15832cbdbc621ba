//! A small host for tests: it runs an engine in the same process through its real vtable.
//!
//! It plays by the rules of the border and nothing more: no timeouts, no threads, no fallback. What a host does about a
//! misbehaving engine is not tested here.

mod host;
mod instance;
mod record;
mod steady;

use std::fmt;
use std::sync::{Arc, Mutex};

use hermes_engine_abi as abi;
use serde_json::Value;

use crate::export::read;
use host::{Completer, TestHost};
pub use instance::Instance;
pub use record::Emitted;
use record::{Lists, Record};

/// A slot did not succeed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{slot} answered status {status}: {text}")]
pub struct Failure {
    /// Which slot.
    pub slot: &'static str,
    /// The raw status.
    pub status: abi::Status,
    /// What the engine said about it.
    pub text: String,
}

/// The settings of a test host.
#[derive(Clone)]
pub struct Kit {
    module: &'static abi::Module,
    config: Value,
    context_length: u64,
    data_dir: String,
    purpose: u32,
    completer: Option<Completer>,
}

impl Kit {
    /// A host for one module, with an unknown window, no settings and no helper model.
    pub fn new(module: &'static abi::Module) -> Self {
        Self {
            module,
            config: Value::Object(serde_json::Map::new()),
            context_length: 0,
            data_dir: String::new(),
            purpose: abi::FOR_AGENT,
            completer: None,
        }
    }

    /// The engine's own section of `config.yaml`.
    pub fn config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }

    /// The model's window.
    pub fn context_length(mut self, tokens: u64) -> Self {
        self.context_length = tokens;
        self
    }

    /// The folder for the engine's files; it must exist.
    pub fn data_dir(mut self, folder: impl Into<String>) -> Self {
        self.data_dir = folder.into();
        self
    }

    /// A helper model: from the request's JSON to the result's, as `hermes_complete_args` describes both.
    pub fn completer(mut self, answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.completer = Some(Arc::new(answer));
        self
    }

    /// A helper model that gives these texts in turn, and then refuses.
    pub fn scripted(self, texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let texts: Mutex<std::collections::VecDeque<String>> =
            Mutex::new(texts.into_iter().map(Into::into).collect());
        self.completer(move |_| match texts.lock().map(|mut texts| texts.pop_front()) {
            Ok(Some(text)) => serde_json::json!({ "text": text, "finish_reason": "stop", "model": "scripted" }).to_string(),
            _ => r#"{"error":{"class":"other","message":"the script has no more answers"}}"#.to_owned(),
        })
    }

    /// Makes an engine.
    ///
    /// # Errors
    /// What `create` answered; or the module lacks a required slot, which is then named.
    pub fn create(&self) -> Result<Instance, Failure> {
        // SAFETY: a module is static and its vtable is complete, as `engine_module!` makes it.
        let vtable = unsafe { *self.module.engine };
        for (slot, there) in [
            ("create", vtable.create.is_some()),
            ("destroy", vtable.destroy.is_some()),
            ("state", vtable.state.is_some()),
            ("update_model", vtable.update_model.is_some()),
            (
                "update_from_response",
                vtable.update_from_response.is_some(),
            ),
            ("session_reset", vtable.session_reset.is_some()),
            ("should_compress", vtable.should_compress.is_some()),
            ("compress", vtable.compress.is_some()),
        ] {
            if !there {
                return Err(Failure {
                    slot,
                    status: abi::ERR_UNSUPPORTED,
                    text: "required, and NULL".to_owned(),
                });
            }
        }
        let host = TestHost::new(self.completer.clone());
        let record = Record::new("", Lists::NONE);
        let config = self.config.to_string();
        let args = abi::CreateArgs {
            purpose: self.purpose,
            config: read::bytes(&config),
            data_dir: read::bytes(&self.data_dir),
            context_length: self.context_length,
            ..abi::CreateArgs::EMPTY
        };
        let mut raw = std::ptr::null_mut();
        let create = vtable.create.ok_or_else(|| absent("create"))?;
        // SAFETY: a complete set of arguments that outlive the call; `host` outlives the instance.
        let status = unsafe { create(host.as_raw(), record.as_raw(), &args, &mut raw) };
        record.expect_ok("create", status)?;
        Instance::of(self.clone(), vtable, raw, host, "create")
    }
}

impl fmt::Debug for Kit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kit")
            .field("config", &self.config)
            .field("context_length", &self.context_length)
            .finish_non_exhaustive()
    }
}

fn absent(slot: &'static str) -> Failure {
    Failure {
        slot,
        status: abi::ERR_UNSUPPORTED,
        text: "the engine does not have this slot".to_owned(),
    }
}
