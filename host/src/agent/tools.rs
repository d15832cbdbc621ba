//! What the host itself offers to a model: read-only tools, bounded in size and confined to a directory.

use std::path::PathBuf;

use crate::provider::Cancel;

/// Where a call happens.
#[derive(Clone, Debug)]
pub struct Place {
    /// The working directory that tools are confined to, canonical.
    pub directory: PathBuf,
    /// Becomes true when the user interrupts the turn.
    pub cancel: Cancel,
}

/// A tool of the host's.
pub trait Tool: Send + Sync {
    /// `{"name":…,"description":…,"parameters":{…}}`, a JSON Schema in `parameters`. The same bytes each time.
    fn schema(&self) -> &str;

    /// Carries a call out. `arguments` is what the model wrote: it may be no JSON at all. The result is a JSON
    /// object, `{"error":…}` where the call failed.
    fn call(&self, arguments: &str, place: &Place) -> String;
}

/// None yet.
pub fn built_in() -> Vec<Box<dyn Tool>> {
    Vec::new()
}
