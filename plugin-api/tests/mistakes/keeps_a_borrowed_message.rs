//! What the host shows is borrowed for the call; an engine copies what it wants to keep.
use hermes_plugin_api::*;

struct Mine {
    state: EngineState,
    last: Option<&'static str>,
}

impl ContextEngine for Mine {
    const NAME: &'static str = "mine";
    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        Ok(Self { state: EngineState::new(cx.context_length()), last: None })
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
    fn compress(&mut self, _: &Call<'_>, input: &Compress<'_>, _: &mut Emit<'_>) -> Result<Verdict, EngineError> {
        self.last = Some(input.messages().get(0).json());
        Ok(Verdict::unchanged(""))
    }
}

export_engine!(Mine);

fn main() {}
