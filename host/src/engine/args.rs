//! The arguments of the slots as owned values: a lane keeps them until the engine has returned.

use super::MessageList;

/// The model that a conversation runs on.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names are those of `hermes_model_args`")]
pub struct ModelInfo {
    pub model: String,
    pub provider: String,
    pub base_url: String,
    pub api_mode: String,
    /// The model's full window; 0 = not known.
    pub context_length: u64,
    /// The longest answer that will be asked for; 0 = not known.
    pub max_output_tokens: u64,
    /// The window of the model behind `complete`; 0 = none.
    pub helper_context_length: u64,
    /// `compression.model_thresholds` resolved for this model; `None` = the engine's own.
    pub threshold_percent: Option<f64>,
    /// The whole map, a JSON object; empty = none.
    pub model_thresholds: String,
}

/// What one model call has used. `None`: the provider did not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of `hermes_usage`")]
pub struct Usage {
    pub prompt_tokens: Option<i64>,
    pub completion_tokens: Option<i64>,
    pub total_tokens: Option<i64>,
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub cache_read_tokens: Option<i64>,
    pub cache_write_tokens: Option<i64>,
    pub reasoning_tokens: Option<i64>,
    /// The object as the provider sent it.
    pub json: String,
}

impl Usage {
    /// The usage of a call whose tokens the host has counted itself. `json` looks like a provider's object.
    #[must_use]
    pub fn counted(prompt: u64, completion: u64) -> Self {
        let signed = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        let (prompt, completion, total) = (
            signed(prompt),
            signed(completion),
            signed(prompt.saturating_add(completion)),
        );
        Usage {
            prompt_tokens: Some(prompt),
            completion_tokens: Some(completion),
            total_tokens: Some(total),
            json: format!(
                "{{\"prompt_tokens\":{prompt},\"completion_tokens\":{completion},\"total_tokens\":{total}}}"
            ),
            ..Usage::default()
        }
    }

    /// The figures by their names.
    #[must_use]
    pub fn buckets(&self) -> [(&'static str, Option<i64>); 8] {
        [
            ("prompt_tokens", self.prompt_tokens),
            ("completion_tokens", self.completion_tokens),
            ("total_tokens", self.total_tokens),
            ("input_tokens", self.input_tokens),
            ("output_tokens", self.output_tokens),
            ("cache_read_tokens", self.cache_read_tokens),
            ("cache_write_tokens", self.cache_write_tokens),
            ("reasoning_tokens", self.reasoning_tokens),
        ]
    }
}

/// Why a session starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartReason {
    /// A new conversation.
    #[default]
    New,
    /// A stored conversation goes on.
    Resume,
    /// A copy of a conversation goes its own way.
    Branch,
    /// The conversation was set back to an earlier message.
    Rewind,
    /// A pass was committed (LIFE-5).
    Compression,
    /// A sub-agent's conversation.
    Delegate,
    /// A fresh instance takes over after a panic.
    Recover,
}

/// What an engine is told when a session starts or ends.
#[derive(Clone, Debug, Default)]
pub struct SessionInfo {
    /// The session; it is the call's session from here on.
    pub session_id: String,
    /// Why it starts.
    pub reason: StartReason,
    /// Whether what the engine knows of the old session is to be carried over.
    pub carry_over: bool,
    /// The session that this one continues; empty = none.
    pub old_session_id: String,
    /// The session that this one was made from; empty = none.
    pub parent_session_id: String,
    /// The first session of the lineage.
    pub root_session_id: String,
    /// The surface.
    pub platform: String,
    /// The surface's own name of the conversation; empty = none.
    pub conversation_id: String,
    /// The user's folder of the host.
    pub hermes_home: String,
    /// The newest committed pass of this session; empty = none.
    pub last_pass_id: String,
    /// Start: the live transcript. End: the final one.
    pub messages: Option<MessageList>,
}

/// Why a pass is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// Before the first request of a turn.
    #[default]
    Preflight,
    /// After a round of tools.
    Tools,
    /// The provider has refused the request as too long.
    Overflow,
    /// Nobody has said anything for a while.
    Idle,
    /// The user has asked for it.
    Manual,
    /// Only shorten old tool results.
    Prune,
}

/// One pass.
#[derive(Clone, Debug, Default)]
pub struct CompressRequest {
    /// The snapshot (PASS-3).
    pub messages: MessageList,
    /// Why.
    pub trigger: Trigger,
    /// Past any back-off of the engine's own.
    pub force: bool,
    /// The index of the newest user message.
    pub incoming: Option<usize>,
    /// The size of the whole request.
    pub current_tokens: Option<i64>,
    /// Get below this; `None` leaves it to the engine.
    pub target_tokens: Option<u64>,
    /// The text of a manual request.
    pub focus: Option<String>,
    /// What memory has to say.
    pub memory_context: Option<String>,
    /// The name of this pass, the one that `pass_result` will carry.
    pub pass_id: String,
}

/// What became of a pass.
#[derive(Clone, Debug)]
pub enum PassOutcome {
    /// Its result is the transcript now: this one, with every uid.
    Committed(MessageList),
    /// Nothing of it was taken, and why.
    Discarded(String),
}

/// How a turn has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TurnOutcome {
    /// It came to its end.
    #[default]
    Completed,
    /// The user stopped it.
    Interrupted,
    /// An error ended it.
    Failed,
    /// A content policy ended it.
    Blocked,
}

/// A finished turn.
#[derive(Clone, Debug, Default)]
pub struct TurnInfo {
    /// The finalised transcript.
    pub messages: MessageList,
    /// The turn's usage; `None` = no response was reached.
    pub usage: Option<Usage>,
    /// The name of the turn.
    pub turn_id: String,
    /// How it ended.
    pub outcome: TurnOutcome,
    /// How many model calls it has made.
    pub api_calls: u32,
}

/// One call of an engine's tool.
#[derive(Clone, Debug, Default)]
pub struct ToolRequest {
    /// The tool.
    pub name: String,
    /// Its arguments as the model wrote them.
    pub arguments: String,
    /// The provider's id of the call.
    pub tool_call_id: String,
    /// The transcript.
    pub messages: Option<MessageList>,
}

/// What `should_compress` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether to compress now.
    pub yes: bool,
    /// Why not, where the engine says so.
    pub reason: String,
}

/// The request of one `select_context`.
#[derive(Clone, Debug, Default)]
pub(crate) struct SelectRequest {
    pub(crate) request: MessageList,
    pub(crate) conversation: MessageList,
    pub(crate) incoming: Option<usize>,
    pub(crate) budget_tokens: u64,
    pub(crate) fixed_tokens: u64,
    pub(crate) attempt: u32,
}

/// The arguments of any slot.
pub(crate) enum SlotArgs {
    None,
    Model(ModelInfo),
    Usage(Usage),
    Decide {
        prompt_tokens: Option<i64>,
        messages: Option<MessageList>,
    },
    Compress(CompressRequest),
    Session(SessionInfo),
    Pass {
        pass_id: String,
        outcome: PassOutcome,
    },
    Select(SelectRequest),
    Turn(TurnInfo),
    Tool(ToolRequest),
    Command(String),
}
