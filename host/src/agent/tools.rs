//! What the host itself offers to a model: read-only tools, bounded in size and confined to a directory.
//!
//! Whatever the model writes, a call answers with a JSON object, reads nothing outside the [`Place`]'s directory, and
//! ends within a bounded time. The answers are written for the model: an error says what was expected instead.

mod arguments;
mod confine;
mod error;
mod host_tool;
mod read_file;
mod search_files;

use std::path::{Path, PathBuf};

use crate::provider::Cancel;

pub use host_tool::HostTool;
pub use read_file::ReadFile;
pub use search_files::SearchFiles;

/// Where a call happens.
#[derive(Clone, Debug)]
pub struct Place {
    /// The working directory that tools are confined to, canonical.
    pub directory: PathBuf,
    /// A folder that is not read although it may lie inside, canonical: the host's own, with keys and conversations
    /// in it.
    pub kept_back: Option<PathBuf>,
    /// Becomes true when the user interrupts the turn.
    pub cancel: Cancel,
}

impl Place {
    /// Whether a path relative to the working directory, without links in it, is kept back.
    fn keeps_back(&self, path: &Path) -> bool {
        let kept = self.kept_back.as_ref();
        kept.is_some_and(|kept| self.directory.join(path).starts_with(kept))
    }
}

/// A tool of the host's.
pub trait Tool: Send + Sync {
    /// `{"name":…,"description":…,"parameters":{…}}`, a JSON Schema in `parameters`. The same bytes each time.
    fn schema(&self) -> &str;

    /// Carries a call out. `arguments` is what the model wrote: it may be no JSON at all. The result is a JSON
    /// object, `{"error":…}` where the call failed.
    fn call(&self, arguments: &str, place: &Place) -> String;
}

/// The tools that every agent has, in the order in which a request lists them.
#[must_use]
pub fn built_in() -> Vec<Box<dyn Tool>> {
    vec![Box::new(ReadFile), Box::new(SearchFiles)]
}

/// The result of a call as the model reads it.
fn answer(outcome: Result<serde_json::Value, error::ToolError>) -> String {
    match outcome {
        Ok(value) => value.to_string(),
        Err(error) => error.to_json().to_string(),
    }
}
