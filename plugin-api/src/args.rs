//! What the host passes to an engine, as safe values that live as long as the call.

use std::path::Path;

use hermes_engine_abi as abi;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::EngineError;
pub use crate::export::call::Call;
pub use crate::export::host::Host;
pub use crate::export::view::{MessageView, Messages};

/// What an engine is created for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The registered instance: it serves no conversation and is only cloned.
    Template,
    /// One agent's engine.
    Agent,
    /// A trial in a process of its own; the data folder is a scratch one and there is no helper model.
    Probe,
}

/// The arguments of [`ContextEngine::create`](crate::ContextEngine::create).
#[derive(Debug)]
pub struct Create<'a> {
    pub(crate) config: Value,
    pub(crate) data_dir: &'a str,
    pub(crate) plugin_dir: &'a str,
    pub(crate) context_length: u64,
    pub(crate) purpose: Purpose,
    pub(crate) host: &'a Host,
}

impl<'a> Create<'a> {
    /// The engine's own section of `config.yaml`; an empty object where there is none.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// The same as a type of the engine's.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] with the key and what was expected.
    pub fn config_as<T: DeserializeOwned>(&self) -> Result<T, EngineError> {
        T::deserialize(&self.config)
            .map_err(|error| EngineError::Invalid(format!("settings of the engine: {error}")))
    }

    /// A folder for the engine's own files. It exists, is private to the user and shared by all instances of the engine.
    pub fn data_dir(&self) -> &'a Path {
        Path::new(self.data_dir)
    }

    /// Where `plugin.yaml` lies. The loaded library may be a copy elsewhere. Empty for an engine that is linked in.
    pub fn plugin_dir(&self) -> &'a Path {
        Path::new(self.plugin_dir)
    }

    /// The model's window in tokens; 0 = not known yet.
    pub fn context_length(&self) -> u64 {
        self.context_length
    }

    /// What the engine is created for.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// The host's services; may be kept.
    pub fn host(&self) -> &'a Host {
        self.host
    }
}

/// What one response cost. `None` = the provider did not say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage<'a> {
    /// Everything that was sent.
    pub prompt_tokens: Option<u64>,
    /// Everything that came back.
    pub completion_tokens: Option<u64>,
    /// Both together.
    pub total_tokens: Option<u64>,
    /// Sent and not read from the provider's cache.
    pub input_tokens: Option<u64>,
    /// Came back, reasoning included.
    pub output_tokens: Option<u64>,
    /// Sent and read from the provider's cache.
    pub cache_read_tokens: Option<u64>,
    /// Sent and written to the provider's cache.
    pub cache_write_tokens: Option<u64>,
    /// Spent on reasoning.
    pub reasoning_tokens: Option<u64>,
    pub(crate) json: &'a str,
}

impl<'a> Usage<'a> {
    /// The object as the provider sent it; empty where there was none.
    pub fn json(&self) -> &'a str {
        self.json
    }
}

/// The model that the conversation uses. Never holds a key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Model<'a> {
    pub(crate) model: &'a str,
    pub(crate) provider: &'a str,
    pub(crate) base_url: &'a str,
    pub(crate) api_mode: &'a str,
    pub(crate) context_length: u64,
    pub(crate) max_output_tokens: u64,
    pub(crate) helper_context_length: u64,
    pub(crate) threshold_percent: f64,
    pub(crate) model_thresholds: &'a str,
}

impl<'a> Model<'a> {
    /// The model's name as the provider knows it.
    pub fn model(&self) -> &'a str {
        self.model
    }

    /// The provider's name.
    pub fn provider(&self) -> &'a str {
        self.provider
    }

    /// Where requests go.
    pub fn base_url(&self) -> &'a str {
        self.base_url
    }

    /// The dialect of the provider's interface.
    pub fn api_mode(&self) -> &'a str {
        self.api_mode
    }

    /// The full window in tokens; 0 = unknown.
    pub fn context_length(&self) -> u64 {
        self.context_length
    }

    /// What is reserved for the answer, in tokens; 0 = not set.
    pub fn max_output_tokens(&self) -> u64 {
        self.max_output_tokens
    }

    /// The window of the helper model behind [`Host::complete`]; 0 = there is none.
    pub fn helper_context_length(&self) -> u64 {
        self.helper_context_length
    }

    /// The user's threshold for this model from `compression.model_thresholds`; `None` = the engine's own counts.
    pub fn threshold_percent(&self) -> Option<f64> {
        (self.threshold_percent > 0.0).then_some(self.threshold_percent)
    }

    /// The whole map, for engines that resolve it themselves with
    /// [`resolve_model_threshold`](crate::resolve_model_threshold).
    pub fn model_thresholds(&self) -> Map<String, Value> {
        serde_json::from_str(self.model_thresholds).unwrap_or_default()
    }
}

/// What set a pass off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// At the start of a turn.
    Preflight,
    /// After tool results.
    Tools,
    /// The provider refused the request as too long.
    Overflow,
    /// The conversation has been idle.
    Idle,
    /// A person asked for it.
    Manual,
    /// Only old tool results are to be shortened.
    Prune,
}

/// The arguments of [`ContextEngine::compress`](crate::ContextEngine::compress).
#[derive(Clone, Copy, Debug)]
pub struct Compress<'a> {
    pub(crate) messages: Messages<'a>,
    pub(crate) trigger: Trigger,
    pub(crate) force: bool,
    pub(crate) incoming: Option<usize>,
    pub(crate) current_tokens: Option<u64>,
    pub(crate) target_tokens: u64,
    pub(crate) focus: &'a str,
    pub(crate) memory_context: &'a str,
    pub(crate) pass_id: &'a str,
}

impl<'a> Compress<'a> {
    /// The transcript: a snapshot, list 0 of [`Emit`](crate::Emit).
    pub fn messages(&self) -> Messages<'a> {
        self.messages
    }

    /// What set the pass off.
    pub fn trigger(&self) -> Trigger {
        self.trigger
    }

    /// A person insists: cool-downs and breakers do not count.
    pub fn force(&self) -> bool {
        self.force
    }

    /// Index of the newest user message.
    pub fn incoming(&self) -> Option<usize> {
        self.incoming
    }

    /// Size of the whole request, where it is known.
    pub fn current_tokens(&self) -> Option<u64> {
        self.current_tokens
    }

    /// The result should be below this; `None` = the engine's choice.
    pub fn target_tokens(&self) -> Option<u64> {
        (self.target_tokens > 0).then_some(self.target_tokens)
    }

    /// The topic that a person asked to favour.
    pub fn focus(&self) -> Option<&'a str> {
        (!self.focus.is_empty()).then_some(self.focus)
    }

    /// What a memory provider adds for the summary.
    pub fn memory_context(&self) -> Option<&'a str> {
        (!self.memory_context.is_empty()).then_some(self.memory_context)
    }

    /// The id under which the outcome is told; see [`Passes`](crate::Passes).
    pub fn pass_id(&self) -> &'a str {
        self.pass_id
    }
}

/// The arguments of [`SelectContext::select_context`](crate::SelectContext::select_context).
#[derive(Clone, Copy, Debug)]
pub struct Select<'a> {
    pub(crate) request: Messages<'a>,
    pub(crate) conversation: Option<Messages<'a>>,
    pub(crate) incoming: Option<usize>,
    pub(crate) budget_tokens: u64,
    pub(crate) fixed_tokens: u64,
    pub(crate) attempt: u32,
}

impl<'a> Select<'a> {
    /// What this request is about to send: list 0 of [`Emit`](crate::Emit).
    pub fn request(&self) -> Messages<'a> {
        self.request
    }

    /// The transcript: list 1 of [`Emit`](crate::Emit).
    pub fn conversation(&self) -> Option<Messages<'a>> {
        self.conversation
    }

    /// Index in the request of the turn's user message.
    pub fn incoming(&self) -> Option<usize> {
        self.incoming
    }

    /// The window in tokens; `None` = unknown.
    pub fn budget_tokens(&self) -> Option<u64> {
        (self.budget_tokens > 0).then_some(self.budget_tokens)
    }

    /// Tool schemas and other overhead inside the budget.
    pub fn fixed_tokens(&self) -> u64 {
        self.fixed_tokens
    }

    /// 0 for a request's first try, then 1, 2 … on retries.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TurnOutcome {
    /// With an answer.
    Completed,
    /// By the user.
    Interrupted,
    /// By an error.
    Failed,
    /// By a content policy.
    Blocked,
}

/// The arguments of [`TurnComplete::turn_complete`](crate::TurnComplete::turn_complete).
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    pub(crate) messages: Messages<'a>,
    pub(crate) usage: Option<Usage<'a>>,
    pub(crate) turn_id: &'a str,
    pub(crate) outcome: TurnOutcome,
    pub(crate) api_calls: u32,
}

impl<'a> Turn<'a> {
    /// The final transcript.
    pub fn messages(&self) -> Messages<'a> {
        self.messages
    }

    /// What the turn cost; `None` when no response was reached.
    pub fn usage(&self) -> Option<&Usage<'a>> {
        self.usage.as_ref()
    }

    /// The host's id of the turn.
    pub fn turn_id(&self) -> &'a str {
        self.turn_id
    }

    /// How it ended.
    pub fn outcome(&self) -> TurnOutcome {
        self.outcome
    }

    /// How many requests it took.
    pub fn api_calls(&self) -> u32 {
        self.api_calls
    }
}

/// Why a session starts for this engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartReason {
    /// A new conversation.
    New,
    /// An old one goes on.
    Resume,
    /// A copy of another one goes its own way.
    Branch,
    /// Turns were taken back.
    Rewind,
    /// A pass was committed.
    Compression,
    /// An agent was started by another one.
    Delegate,
    /// A fresh instance takes over after a panic.
    Recover,
}

/// The arguments of [`Sessions`](crate::Sessions).
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    pub(crate) reason: StartReason,
    pub(crate) carry_over: bool,
    pub(crate) old_session_id: &'a str,
    pub(crate) parent_session_id: &'a str,
    pub(crate) root_session_id: &'a str,
    pub(crate) platform: &'a str,
    pub(crate) conversation_id: &'a str,
    pub(crate) hermes_home: &'a str,
    pub(crate) last_pass_id: &'a str,
    pub(crate) messages: Option<Messages<'a>>,
}

impl<'a> Session<'a> {
    /// Why it starts; for an end, why it had started.
    pub fn reason(&self) -> StartReason {
        self.reason
    }

    /// The user wants the new session to know the old one.
    pub fn carry_over(&self) -> bool {
        self.carry_over
    }

    /// The session before this one; equal to the current one for a compression in place. May be empty.
    pub fn old_session_id(&self) -> &'a str {
        self.old_session_id
    }

    /// The session that this one was made from. May be empty.
    pub fn parent_session_id(&self) -> &'a str {
        self.parent_session_id
    }

    /// The same for a whole lineage.
    pub fn root_session_id(&self) -> &'a str {
        self.root_session_id
    }

    /// Where the user sits: `cli`, …
    pub fn platform(&self) -> &'a str {
        self.platform
    }

    /// The host's id of the conversation, stable over sessions. May be empty.
    pub fn conversation_id(&self) -> &'a str {
        self.conversation_id
    }

    /// The user's folder.
    pub fn hermes_home(&self) -> &'a Path {
        Path::new(self.hermes_home)
    }

    /// The newest pass of this session that was committed: reconcile prepared state with it. May be empty.
    pub fn last_pass_id(&self) -> &'a str {
        self.last_pass_id
    }

    /// Start: the live transcript. End: the final one.
    pub fn messages(&self) -> Option<Messages<'a>> {
        self.messages
    }
}

/// The arguments of [`Passes::pass_result`](crate::Passes::pass_result).
#[derive(Clone, Copy, Debug)]
pub struct Pass<'a> {
    pub(crate) committed: bool,
    pub(crate) pass_id: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) messages: Option<Messages<'a>>,
}

impl<'a> Pass<'a> {
    /// Committed, or else discarded.
    pub fn committed(&self) -> bool {
        self.committed
    }

    /// The id that `compress` was given.
    pub fn pass_id(&self) -> &'a str {
        self.pass_id
    }

    /// Why it was discarded.
    pub fn reason(&self) -> &'a str {
        self.reason
    }

    /// Committed: the new transcript with every uid.
    pub fn messages(&self) -> Option<Messages<'a>> {
        self.messages
    }
}

/// The arguments of [`Tools::tool_call`](crate::Tools::tool_call).
#[derive(Clone, Copy, Debug)]
pub struct ToolCall<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a str,
    pub(crate) tool_call_id: &'a str,
    pub(crate) messages: Option<Messages<'a>>,
}

impl<'a> ToolCall<'a> {
    /// The tool's name.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The arguments as the model wrote them: JSON text.
    pub fn arguments(&self) -> &'a str {
        self.arguments
    }

    /// The arguments as a type.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] with what was expected.
    pub fn arguments_as<T: DeserializeOwned>(&self) -> Result<T, EngineError> {
        serde_json::from_str(self.arguments)
            .map_err(|error| EngineError::Invalid(format!("arguments of {}: {error}", self.name)))
    }

    /// The provider's id of the call.
    pub fn tool_call_id(&self) -> &'a str {
        self.tool_call_id
    }

    /// The transcript.
    pub fn messages(&self) -> Option<Messages<'a>> {
        self.messages
    }
}

impl From<u32> for Trigger {
    fn from(code: u32) -> Self {
        match code {
            abi::TRIGGER_TOOLS => Self::Tools,
            abi::TRIGGER_OVERFLOW => Self::Overflow,
            abi::TRIGGER_IDLE => Self::Idle,
            abi::TRIGGER_MANUAL => Self::Manual,
            abi::TRIGGER_PRUNE => Self::Prune,
            // An unknown trigger of a newer host is an automatic one.
            _ => Self::Preflight,
        }
    }
}

impl From<u32> for TurnOutcome {
    fn from(code: u32) -> Self {
        match code {
            abi::TURN_OK => Self::Completed,
            abi::TURN_INTERRUPTED => Self::Interrupted,
            abi::TURN_BLOCKED => Self::Blocked,
            _ => Self::Failed,
        }
    }
}

impl From<u32> for StartReason {
    fn from(code: u32) -> Self {
        match code {
            abi::START_RESUME => Self::Resume,
            abi::START_BRANCH => Self::Branch,
            abi::START_REWIND => Self::Rewind,
            abi::START_COMPRESSION => Self::Compression,
            abi::START_DELEGATE => Self::Delegate,
            abi::START_RECOVER => Self::Recover,
            _ => Self::New,
        }
    }
}

impl From<u32> for Purpose {
    fn from(code: u32) -> Self {
        match code {
            abi::FOR_AGENT => Self::Agent,
            abi::FOR_PROBE => Self::Probe,
            _ => Self::Template,
        }
    }
}
