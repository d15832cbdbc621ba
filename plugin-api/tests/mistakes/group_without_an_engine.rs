//! A group belongs to an engine.
use hermes_plugin_api::*;

struct Watcher;

impl TurnComplete for Watcher {
    fn turn_complete(&mut self, _: &Call<'_>, _: &Turn<'_>) -> Result<(), EngineError> {
        Ok(())
    }
}

fn main() {}
