//! Messages go through `out`, so that kept ones stay the host's own objects.
use hermes_plugin_api::*;

struct Mine {
    state: EngineState,
}

impl ContextEngine for Mine {
    const NAME: &'static str = "mine";
    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        Ok(Self { state: EngineState::new(cx.context_length()) })
    }
    fn state(&self) -> EngineState {
        self.state
    }
    fn state_mut(&mut self) -> &mut EngineState {
        &mut self.state
    }
    fn should_compress(&mut self, _: &Call<'_>, _: Option<u64>) -> Result<Decision, EngineError> {
        Ok(Decision::No)
    }
    fn compress(&mut self, _: &Call<'_>, input: &Compress<'_>, _: &mut Emit<'_>) -> Result<Vec<message::Message>, EngineError> {
        Ok(input.messages().parse()?)
    }
}

export_engine!(Mine);

fn main() {}
