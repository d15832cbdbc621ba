//! One call of a slot.

use super::{Bytes, Status};

/// One call of a slot: what the engine may ask and how it answers. It is valid until the slot returns,
/// however late that is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct Call {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// A number for logs.
    pub call_id: u64,
    /// Milliseconds that were left when the call began; 0 means no limit.
    pub budget_ms: u64,
    /// The session that this call is about; empty before the first `session_start`.
    pub session_id: Bytes,
    /// `[any]` Whether the host has given the call up. Cheap.
    pub cancelled: Option<unsafe extern "C" fn(call: *const Call) -> u32>,
    /// `[any]` Tells how far the call has come, and extends its deadline.
    pub progress: Option<unsafe extern "C" fn(call: *const Call, done: u64, total: u64)>,
    /// `[call]` Appends to the text that is shown when the slot fails; 4 KiB are kept.
    pub error: Option<unsafe extern "C" fn(call: *const Call, text: Bytes) -> Status>,
    /// `[call]` Appends to the text result of the slot.
    pub write: Option<unsafe extern "C" fn(call: *const Call, part: Bytes) -> Status>,
    /// `[call]` Emits `count` of the host's own messages from `first` on, of the list with that number.
    pub keep: Option<
        unsafe extern "C" fn(call: *const Call, list: u32, first: usize, count: usize) -> Status,
    >,
    /// `[call]` Emits one message as JSON; it may carry identity keys.
    pub push: Option<unsafe extern "C" fn(call: *const Call, json: Bytes) -> Status>,
}

impl Call {
    /// A call without any callback, to be filled by struct update.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        reserved: 0,
        call_id: 0,
        budget_ms: 0,
        session_id: Bytes::EMPTY,
        cancelled: None,
        progress: None,
        error: None,
        write: None,
        keep: None,
        push: None,
    };
}

/// `Call::keep`: the list of `compress` (`CompressArgs::messages`).
pub const LIST_MESSAGES: u32 = 0;
/// `Call::keep`: the request of `select_context`.
pub const LIST_REQUEST: u32 = 0;
/// `Call::keep`: the conversation of `select_context`.
pub const LIST_CONVERSATION: u32 = 1;
