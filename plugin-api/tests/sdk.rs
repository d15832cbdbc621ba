//! Engines written with the SDK, seen through their real vtables.

/// The required members, apart from its name and `create`, of an engine that leaves every transcript as it is. Its
/// state is the named field.
macro_rules! passive {
    ($state:tt) => {
        fn state(&self) -> hermes_plugin_api::EngineState {
            self.$state
        }

        fn state_mut(&mut self) -> &mut hermes_plugin_api::EngineState {
            &mut self.$state
        }

        fn should_compress(
            &mut self,
            _: &hermes_plugin_api::Call<'_>,
            _: Option<u64>,
        ) -> Result<hermes_plugin_api::Decision, hermes_plugin_api::EngineError> {
            Ok(hermes_plugin_api::Decision::No)
        }

        fn compress(
            &mut self,
            _: &hermes_plugin_api::Call<'_>,
            _: &hermes_plugin_api::Compress<'_>,
            _: &mut hermes_plugin_api::Emit<'_>,
        ) -> Result<hermes_plugin_api::Verdict, hermes_plugin_api::EngineError> {
            Ok(hermes_plugin_api::Verdict::unchanged(""))
        }
    };
}

#[path = "sdk/engine.rs"]
mod engine;
#[path = "sdk/groups.rs"]
mod groups;
#[path = "sdk/steady.rs"]
mod steady;
