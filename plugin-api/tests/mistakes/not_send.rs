//! The host calls from any thread, and this engine cannot go there.
use hermes_plugin_api::*;

struct Mine {
    state: EngineState,
    cache: std::rc::Rc<String>,
}

impl ContextEngine for Mine {
    const NAME: &'static str = "mine";
    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        Ok(Self { state: EngineState::new(cx.context_length()), cache: Default::default() })
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
    fn compress(&mut self, _: &Call<'_>, _: &Compress<'_>, _: &mut Emit<'_>) -> Result<Verdict, EngineError> {
        Ok(Verdict::unchanged(""))
    }
}

export_engine!(Mine);

fn main() {}
