//! The shortest useful engine: the system prompt and about ten of the newest messages.
use hermes_plugin_api::*;

#[derive(Clone)]
struct Newest(EngineState);

impl ContextEngine for Newest {
    const NAME: &'static str = "newest";
    fn create(cx: &Create<'_>) -> Result<Self, EngineError> {
        Ok(Self(EngineState::new(cx.context_length())))
    }
    fn state(&self) -> EngineState {
        self.0
    }
    fn state_mut(&mut self) -> &mut EngineState {
        &mut self.0
    }
    fn should_compress(
        &mut self,
        _: &Call<'_>,
        prompt_tokens: Option<u64>,
    ) -> Result<Decision, EngineError> {
        Ok(if prompt_tokens > Some(self.0.threshold_tokens) {
            Decision::Yes
        } else {
            Decision::No
        })
    }
    fn compress(
        &mut self,
        _: &Call<'_>,
        input: &Compress<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError> {
        let (all, newest) = (input.messages(), input.messages().len().saturating_sub(10));
        // Begin at a user's message, so that no tool result loses its call.
        let Some(from) = (1..all.len())
            .filter(|&i| all.get(i).role() == message::Role::User)
            .find(|&i| i >= newest)
        else {
            return Ok(Verdict::unchanged(
                "no turn begins among the ten newest messages",
            ));
        };
        if from == 1 {
            return Ok(Verdict::unchanged("already short"));
        }
        if all.get(0).role() == message::Role::System {
            out.keep_one(0)?
        }
        out.keep(from..all.len())?;
        self.0.compression_count += 1;
        Ok(Verdict::Done)
    }
}

export_engine!(Newest);
