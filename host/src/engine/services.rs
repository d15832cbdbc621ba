//! What the host offers to an engine, and where an engine belongs.

use crate::plugin::marker::Markers;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Ledger, Timeouts};

/// The model behind `complete`, for an engine that the user has granted it.
pub trait Completer: Send + Sync {
    /// Asks the model and blocks until it has answered.
    ///
    /// `request` is the engine's JSON (`{"messages":[…],"max_tokens"?,"purpose"}`). The answer is
    /// `{"text","finish_reason","model","usage"}` or `{"error":{"class","message","retry_after_ms"?}}`.
    fn complete(
        &self,
        request: &str,
        timeout: Option<Duration>,
        cancelled: &dyn Fn() -> bool,
        on_text: &mut dyn FnMut(&str),
    ) -> String;

    /// The window of that model; 0 = not known.
    fn context_length(&self) -> u64;
}

/// Where the lines go that an engine logs: its name, the level (1 error … 5 trace), the text.
pub type EngineLog = Arc<dyn Fn(&str, u32, &str) + Send + Sync>;

/// How `count_tokens` counts.
pub type TokenCounter = Arc<dyn Fn(&str) -> u64 + Send + Sync>;

/// What the host table of an instance is made of, and the rules under which it is called.
#[derive(Clone)]
pub struct Services {
    /// The model for the engine's own use; `None` = not granted.
    pub completer: Option<Arc<dyn Completer>>,
    /// Where the engine's lines go. Default: the host's own log.
    pub log: EngineLog,
    /// 1 error … 5 trace: what lies above it need not be formatted.
    pub log_level: u32,
    /// How `count_tokens` counts. Default: the o200k vocabulary, read on first use.
    pub count_tokens: TokenCounter,
    /// The engine's folder for its data.
    pub data_dir: PathBuf,
    /// Where the engine's `plugin.yaml` lies; empty for the built-in.
    pub plugin_dir: PathBuf,
    /// The user's folder of the host.
    pub hermes_home: PathBuf,
    /// How long calls may take.
    pub timeouts: Timeouts,
    /// Counts the calls that had to be given up, and holds the permits of passes.
    pub ledger: Ledger,
    /// Remembers every entry into a third-party engine, so that a crash can be laid at its door.
    pub marker: Option<Markers>,
}

impl Default for Services {
    fn default() -> Self {
        Self {
            completer: None,
            log: Arc::new(log_to_tracing),
            log_level: 3,
            count_tokens: Arc::new(count_o200k),
            data_dir: PathBuf::new(),
            plugin_dir: PathBuf::new(),
            hermes_home: PathBuf::new(),
            timeouts: Timeouts::default(),
            ledger: Ledger::of_process(),
            marker: None,
        }
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services")
            .field("completer", &self.completer.is_some())
            .field("data_dir", &self.data_dir)
            .field("plugin_dir", &self.plugin_dir)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

fn log_to_tracing(engine: &str, level: u32, message: &str) {
    match level {
        0 | 1 => tracing::error!(target: "engine", engine, "{message}"),
        2 => tracing::warn!(target: "engine", engine, "{message}"),
        3 => tracing::info!(target: "engine", engine, "{message}"),
        4 => tracing::debug!(target: "engine", engine, "{message}"),
        _ => tracing::trace!(target: "engine", engine, "{message}"),
    }
}

fn count_o200k(text: &str) -> u64 {
    u64::try_from(bpe_openai::o200k_base().count(text)).unwrap_or(u64::MAX)
}
