//! The arguments of the slots, and the state that an engine shows.

use core::ptr;

use super::{Bytes, Messages, NONE};

/// `CreateArgs::purpose`: the registered instance, which serves no conversation itself.
pub const FOR_TEMPLATE: u32 = 0;
/// `CreateArgs::purpose`: the instance of one agent.
pub const FOR_AGENT: u32 = 1;
/// `CreateArgs::purpose`: a trial; `data_dir` is a scratch folder and `complete` is `NULL`.
pub const FOR_PROBE: u32 = 2;

/// The arguments of `create`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct CreateArgs {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// One of `FOR_*`.
    pub purpose: u32,
    /// The engine's own section of `config.yaml` as JSON, or `{}`.
    pub config: Bytes,
    /// A private folder that exists, shared by all instances of this engine.
    pub data_dir: Bytes,
    /// The folder of `plugin.yaml`; the loaded file may be a copy elsewhere.
    pub plugin_dir: Bytes,
    /// The model's window; 0 means not known yet.
    pub context_length: u64,
}

impl CreateArgs {
    /// A template without settings.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        purpose: FOR_TEMPLATE,
        config: Bytes::EMPTY,
        data_dir: Bytes::EMPTY,
        plugin_dir: Bytes::EMPTY,
        context_length: 0,
    };
}

/// What one model call has used. -1 means that the provider did not say.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct Usage {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The whole prompt, cached parts included.
    pub prompt_tokens: i64,
    /// The whole answer, reasoning included.
    pub completion_tokens: i64,
    /// Prompt and answer.
    pub total_tokens: i64,
    /// The part of the prompt that was neither read from a cache nor written to one.
    pub input_tokens: i64,
    /// The answer without reasoning, where the provider tells them apart.
    pub output_tokens: i64,
    /// The part of the prompt that was read from a cache.
    pub cache_read_tokens: i64,
    /// The part of the prompt that was written to a cache.
    pub cache_write_tokens: i64,
    /// The part of the answer that was reasoning.
    pub reasoning_tokens: i64,
    /// The usage object as the provider sent it.
    pub json: Bytes,
}

impl Usage {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        struct_size: Self::SIZE,
        reserved: 0,
        prompt_tokens: -1,
        completion_tokens: -1,
        total_tokens: -1,
        input_tokens: -1,
        output_tokens: -1,
        cache_read_tokens: -1,
        cache_write_tokens: -1,
        reasoning_tokens: -1,
        json: Bytes::EMPTY,
    };
}

/// The arguments of `update_model`. They never hold a key or a password.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct ModelArgs {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The model's name.
    pub model: Bytes,
    /// The provider's name, or empty.
    pub provider: Bytes,
    /// The provider's address, or empty.
    pub base_url: Bytes,
    /// The provider's protocol, or empty.
    pub api_mode: Bytes,
    /// The model's full window; 0 means not known.
    pub context_length: u64,
    /// The longest answer that will be asked for; 0 means not known.
    pub max_output_tokens: u64,
    /// The window of the model behind `Host::complete`; 0 means none.
    pub helper_context_length: u64,
    /// `compression.model_thresholds` resolved for this model; 0 means no match: the engine's own.
    pub threshold_percent: f64,
    /// The whole `compression.model_thresholds`, a JSON object.
    pub model_thresholds: Bytes,
}

impl ModelArgs {
    /// A model of which nothing is known.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        reserved: 0,
        model: Bytes::EMPTY,
        provider: Bytes::EMPTY,
        base_url: Bytes::EMPTY,
        api_mode: Bytes::EMPTY,
        context_length: 0,
        max_output_tokens: 0,
        helper_context_length: 0,
        threshold_percent: 0.0,
        model_thresholds: Bytes::EMPTY,
    };
}

/// `State::flags`: no routine status lines for automatic passes.
pub const STATE_QUIET: u32 = 1;

/// What an engine shows. The host sets `struct_size`; the engine writes no field beyond it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct State {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// A set of `STATE_*`.
    pub flags: u32,
    /// Of the last model call; 0 means none yet, -1 that real usage is awaited after a pass.
    pub last_prompt_tokens: i64,
    /// As `last_prompt_tokens`.
    pub last_completion_tokens: i64,
    /// As `last_prompt_tokens`.
    pub last_total_tokens: i64,
    /// Where compression triggers.
    pub threshold_tokens: u64,
    /// The model's full window; 0 means not known.
    pub context_length: u64,
    /// How many times `compress` has compacted.
    pub compression_count: u64,
    /// The share of the window at which compression triggers.
    pub threshold_percent: f64,
    /// How many messages at the start are never compacted.
    pub protect_first_n: u32,
    /// How many messages at the end are never compacted.
    pub protect_last_n: u32,
}

impl State {
    /// What an engine shows before anything has happened.
    pub const INITIAL: Self = Self {
        struct_size: Self::SIZE,
        flags: 0,
        last_prompt_tokens: 0,
        last_completion_tokens: 0,
        last_total_tokens: 0,
        threshold_tokens: 0,
        context_length: 0,
        compression_count: 0,
        threshold_percent: 0.75,
        protect_first_n: 3,
        protect_last_n: 6,
    };
}

/// The arguments of `should_compress` and `preflight`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct DecideArgs {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The size of the prompt; -1 means unknown.
    pub prompt_tokens: i64,
    /// `preflight`: the transcript. `should_compress`: `NULL`.
    pub messages: *const Messages,
}

impl DecideArgs {
    /// Nothing is known.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        reserved: 0,
        prompt_tokens: -1,
        messages: ptr::null(),
    };
}

/// `SessionArgs::reason`: a new conversation.
pub const START_NEW: u32 = 0;
/// `SessionArgs::reason`: a stored conversation goes on.
pub const START_RESUME: u32 = 1;
/// `SessionArgs::reason`: a copy of a conversation goes its own way.
pub const START_BRANCH: u32 = 2;
/// `SessionArgs::reason`: the conversation was set back to an earlier message.
pub const START_REWIND: u32 = 3;
/// `SessionArgs::reason`: a pass was committed.
pub const START_COMPRESSION: u32 = 4;
/// `SessionArgs::reason`: a sub-agent's conversation.
pub const START_DELEGATE: u32 = 5;
/// `SessionArgs::reason`: a fresh instance takes over after `ERR_PANIC`.
pub const START_RECOVER: u32 = 6;
/// `SessionArgs::flags`: what the engine knows of the old session is to be carried over.
pub const START_CARRY_OVER: u32 = 1;

/// The arguments of `session_start` and `session_end`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct SessionArgs {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// One of `START_*`; 0 in `session_end`.
    pub reason: u32,
    /// A set of `START_CARRY_OVER`.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
    /// The session that this one continues, or empty. Equal to the call's session after an in-place pass.
    pub old_session_id: Bytes,
    /// The session that this one was made from, or empty.
    pub parent_session_id: Bytes,
    /// The first session of the lineage: the same for all of it.
    pub root_session_id: Bytes,
    /// The surface: `cli`, …
    pub platform: Bytes,
    /// The surface's own name of the conversation, or empty.
    pub conversation_id: Bytes,
    /// The user's folder of the host.
    pub hermes_home: Bytes,
    /// The newest committed pass of this session, with which prepared state is reconciled; or empty.
    pub last_pass_id: Bytes,
    /// `session_start`: the live transcript. `session_end`: the final one. May be `NULL`.
    pub messages: *const Messages,
}

impl SessionArgs {
    /// A new session of which nothing more is known.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        reason: START_NEW,
        flags: 0,
        reserved: 0,
        old_session_id: Bytes::EMPTY,
        parent_session_id: Bytes::EMPTY,
        root_session_id: Bytes::EMPTY,
        platform: Bytes::EMPTY,
        conversation_id: Bytes::EMPTY,
        hermes_home: Bytes::EMPTY,
        last_pass_id: Bytes::EMPTY,
        messages: ptr::null(),
    };
}

/// `CompressArgs::trigger`: before the first request of a turn.
pub const TRIGGER_PREFLIGHT: u32 = 0;
/// `CompressArgs::trigger`: after a round of tools.
pub const TRIGGER_TOOLS: u32 = 1;
/// `CompressArgs::trigger`: the provider has refused the request as too long.
pub const TRIGGER_OVERFLOW: u32 = 2;
/// `CompressArgs::trigger`: nobody has said anything for a while.
pub const TRIGGER_IDLE: u32 = 3;
/// `CompressArgs::trigger`: the user has asked for it.
pub const TRIGGER_MANUAL: u32 = 4;
/// `CompressArgs::trigger`: only shorten old tool results.
pub const TRIGGER_PRUNE: u32 = 5;
/// `CompressArgs::flags`: past any back-off of the engine's own.
pub const COMPRESS_FORCE: u32 = 1;

/// The arguments of `compress`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct CompressArgs {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// One of `TRIGGER_*`.
    pub trigger: u32,
    /// A set of `COMPRESS_FORCE`.
    pub flags: u32,
    /// The index of the newest user message, or [`NONE`].
    pub incoming: u32,
    /// The snapshot.
    pub messages: *const Messages,
    /// The size of the whole request; -1 means unknown.
    pub current_tokens: i64,
    /// Get below this; 0 leaves it to the engine.
    pub target_tokens: u64,
    /// The text of a manual request, or empty.
    pub focus: Bytes,
    /// What memory has to say, or empty.
    pub memory_context: Bytes,
    /// The name of this pass, the one that `pass_result` will carry.
    pub pass_id: Bytes,
}

impl CompressArgs {
    /// A pass over nothing.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        trigger: TRIGGER_PREFLIGHT,
        flags: 0,
        incoming: NONE,
        messages: ptr::null(),
        current_tokens: -1,
        target_tokens: 0,
        focus: Bytes::EMPTY,
        memory_context: Bytes::EMPTY,
        pass_id: Bytes::EMPTY,
    };
}

/// `PassArgs::outcome`: nothing of the pass was taken.
pub const PASS_DISCARDED: u32 = 0;
/// `PassArgs::outcome`: the result is the transcript now.
pub const PASS_COMMITTED: u32 = 1;

/// The arguments of `pass_result`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct PassArgs {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// One of `PASS_*`.
    pub outcome: u32,
    /// The pass, as `compress` was told.
    pub pass_id: Bytes,
    /// Why it was discarded, for people; or empty.
    pub reason: Bytes,
    /// Committed: the new transcript with every uid. Else `NULL`.
    pub messages: *const Messages,
}

impl PassArgs {
    /// A discarded pass.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        outcome: PASS_DISCARDED,
        pass_id: Bytes::EMPTY,
        reason: Bytes::EMPTY,
        messages: ptr::null(),
    };
}

/// The arguments of `select_context`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct SelectArgs {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// 0, then 1, 2, … on retries of one request.
    pub attempt: u32,
    /// What this request is about to send.
    pub request: *const Messages,
    /// The transcript; may be `NULL`.
    pub conversation: *const Messages,
    /// The index of the turn's user message in `request`, or [`NONE`].
    pub incoming: u32,
    /// Zero.
    pub reserved: u32,
    /// The window; 0 means unknown.
    pub budget_tokens: u64,
    /// Tool schemas and other overhead inside the window.
    pub fixed_tokens: u64,
}

impl SelectArgs {
    /// A request of nothing.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        attempt: 0,
        request: ptr::null(),
        conversation: ptr::null(),
        incoming: NONE,
        reserved: 0,
        budget_tokens: 0,
        fixed_tokens: 0,
    };
}

/// `TurnArgs::outcome`: the turn came to its end.
pub const TURN_OK: u32 = 0;
/// `TurnArgs::outcome`: the user stopped it.
pub const TURN_INTERRUPTED: u32 = 1;
/// `TurnArgs::outcome`: an error ended it.
pub const TURN_FAILED: u32 = 2;
/// `TurnArgs::outcome`: a content policy ended it.
pub const TURN_BLOCKED: u32 = 3;

/// The arguments of `turn_complete`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct TurnArgs {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// One of `TURN_*`.
    pub outcome: u32,
    /// How many model calls the turn has made.
    pub api_calls: u32,
    /// Zero.
    pub reserved: u32,
    /// The finalised transcript.
    pub messages: *const Messages,
    /// The turn's usage, or `NULL`: no response was reached.
    pub usage: *const Usage,
    /// The name of the turn.
    pub turn_id: Bytes,
}

impl TurnArgs {
    /// A turn without anything in it.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        outcome: TURN_OK,
        api_calls: 0,
        reserved: 0,
        messages: ptr::null(),
        usage: ptr::null(),
        turn_id: Bytes::EMPTY,
    };
}

/// The arguments of `tool_call`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct ToolArgs {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The tool's name.
    pub name: Bytes,
    /// Its arguments as the model wrote them, which may be no valid JSON.
    pub arguments: Bytes,
    /// The provider's id of the call; repeats are normal.
    pub tool_call_id: Bytes,
    /// The transcript; may be `NULL`.
    pub messages: *const Messages,
}

impl ToolArgs {
    /// A call of nothing.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        reserved: 0,
        name: Bytes::EMPTY,
        arguments: Bytes::EMPTY,
        tool_call_id: Bytes::EMPTY,
        messages: ptr::null(),
    };
}

/// The arguments of `command`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct CommandArgs {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// A JSON array of strings.
    pub argv: Bytes,
}

impl CommandArgs {
    /// No words.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        reserved: 0,
        argv: Bytes::EMPTY,
    };
}
