//! The members that every engine has.

use crate::args::{Call, Compress, Create, Model, Usage};
use crate::emit::Emit;
use crate::error::EngineError;
use crate::state::EngineState;

/// Whether the conversation should be compressed now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run a pass.
    Yes,
    /// Not now.
    No,
    /// It would be time, but something stands against it: the text is shown to the user.
    Blocked(String),
}

/// What `compress` or `select_context` made of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// What was emitted is the new list.
    Done,
    /// The list stays as it is; anything emitted is dropped. The text says why, and may be empty.
    Unchanged(String),
}

impl Verdict {
    /// [`Unchanged`](Self::Unchanged) with a reason.
    pub fn unchanged(reason: impl Into<String>) -> Self {
        Self::Unchanged(reason.into())
    }
}

/// A context engine: decides what the model sees of a conversation that has outgrown the model's window.
///
/// One value serves one agent. The host calls it from any thread, but never from two at once and never while another
/// call is inside it, so `&mut self` is enough and no lock is needed; nothing may rely on thread-local state. Whatever
/// several values share (statics, one database) is used from several threads at once.
///
/// # Life of an engine
/// 1. [`create`](Self::create): once for the template that serves no conversation, then a clone of it (or another
///    `create`) for each agent.
/// 2. [`update_model`](Self::update_model): the window and the user's thresholds.
/// 3. [`session_start`](crate::Sessions::session_start).
/// 4. For every request to the model: [`select_context`](crate::SelectContext::select_context), then
///    [`update_from_response`](Self::update_from_response); every turn:
///    [`should_compress`](Self::should_compress), [`compress`](Self::compress) when it says so, and
///    [`turn_complete`](crate::TurnComplete::turn_complete).
/// 5. [`session_end`](crate::Sessions::session_end), and the value is dropped.
///
/// What is optional is a trait of its own (see [`groups`](crate::groups)): implement it, and the slot exists; do not,
/// and it costs nothing.
pub trait ContextEngine: Send + Sized + 'static {
    /// Short identifier, equal to the value of `context.engine` that selects it.
    const NAME: &'static str;

    /// Makes an engine from the settings in `config.yaml`.
    ///
    /// With [`Purpose::Probe`](crate::Purpose::Probe) the host only looks whether this works; the folder is a scratch one.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] when the engine is in order but cannot work here; any other for a fault. The
    /// built-in engine serves instead and the user is shown the text.
    fn create(cx: &Create<'_>) -> Result<Self, EngineError>;

    /// The figures that the host shows. Cheap, and must not block.
    fn state(&self) -> EngineState;

    /// The same figures for writing; the three defaults below use it.
    fn state_mut(&mut self) -> &mut EngineState;

    /// The model, its window or its thresholds have changed.
    ///
    /// # Errors
    /// Any error is logged; the host goes on with the figures it had.
    fn update_model(&mut self, cx: &Call<'_>, model: &Model<'_>) -> Result<(), EngineError> {
        let _ = cx;
        self.state_mut().apply_model(model);
        Ok(())
    }

    /// A response of the model has arrived; `usage` is what the provider billed.
    ///
    /// # Errors
    /// Any error is logged.
    fn update_from_response(
        &mut self,
        cx: &Call<'_>,
        usage: &Usage<'_>,
    ) -> Result<(), EngineError> {
        let _ = cx;
        self.state_mut().apply_usage(usage);
        Ok(())
    }

    /// The user asked for a fresh conversation: state of the old one goes, the model's budget stays.
    ///
    /// # Errors
    /// Any error is logged.
    fn session_reset(&mut self, cx: &Call<'_>) -> Result<(), EngineError> {
        let _ = cx;
        self.state_mut().reset();
        Ok(())
    }

    /// Whether to compress now; `prompt_tokens` is the size of the whole request where it is known.
    ///
    /// # Errors
    /// Any error counts as "no".
    fn should_compress(
        &mut self,
        cx: &Call<'_>,
        prompt_tokens: Option<u64>,
    ) -> Result<Decision, EngineError>;

    /// Makes a shorter list out of the transcript: emit what stays with [`Emit::keep`], what is new with
    /// [`Emit::push`], what was reworded with [`Emit::edit`].
    ///
    /// The host checks the result (valid sequence, system prompt and newest user message still there, not larger) and
    /// commits or refuses it. Nothing durable may be written before [`Passes::pass_result`](crate::Passes::pass_result)
    /// has said that it was committed.
    ///
    /// # Errors
    /// The transcript stays as it was.
    fn compress(
        &mut self,
        cx: &Call<'_>,
        input: &Compress<'_>,
        out: &mut Emit<'_>,
    ) -> Result<Verdict, EngineError>;
}
