//! What travels over the border: bytes and messages.

use core::ptr;

/// Borrowed UTF-8. `ptr` may be `NULL` only when `len` is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct Bytes {
    /// The first byte.
    pub ptr: *const u8,
    /// How many bytes there are.
    pub len: usize,
}

impl Bytes {
    /// No bytes.
    pub const EMPTY: Self = Self {
        ptr: ptr::null(),
        len: 0,
    };

    /// The bytes of a text that lives for ever, for statics.
    #[must_use]
    pub const fn of_static(text: &'static str) -> Self {
        Self {
            ptr: text.as_ptr(),
            len: text.len(),
        }
    }
}

// SAFETY: this is an address and a length; moving it to another thread reads nothing. Whoever reads
// through it needs `unsafe` there and answers for the lifetime.
unsafe impl Send for Bytes {}
// SAFETY: as above, and nothing in it can change through a shared reference.
unsafe impl Sync for Bytes {}

/// Neither of the roles below.
pub const ROLE_OTHER: u32 = 0;
/// A system prompt.
pub const ROLE_SYSTEM: u32 = 1;
/// A user's message.
pub const ROLE_USER: u32 = 2;
/// The model's message.
pub const ROLE_ASSISTANT: u32 = 3;
/// The result of a tool call.
pub const ROLE_TOOL: u32 = 4;

/// An assistant message that calls tools.
pub const MSG_TOOL_CALLS: u32 = 1;
/// The content is a list of parts.
pub const MSG_MULTIMODAL: u32 = 2;
/// An engine made it.
pub const MSG_SUMMARY: u32 = 4;
/// Its identity names messages that were folded into it.
pub const MSG_ABSORBED: u32 = 8;
/// The host made it; these are no person's words.
pub const MSG_SYNTHETIC: u32 = 16;

/// One message, as the host shows it. It may grow at its end: walk a list by its `stride`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct Message {
    /// The message as strict JSON, without the four identity keys.
    pub json: Bytes,
    /// A JSON object of the identity keys that it has, or empty.
    pub identity: Bytes,
    /// Its `message_uid`, or empty: no identity yet.
    pub uid: Bytes,
    /// XXH3-64 (seed 0) of `json`: the same text has the same version on every host of major 1.
    pub version: u64,
    /// One of `ROLE_*`.
    pub role: u32,
    /// A set of `MSG_*`; unknown bits are to be ignored.
    pub flags: u32,
    /// The host's estimate of its tokens, identity not counted.
    pub tokens: u32,
    /// A tool result: the index of the assistant message that it answers; else [`NONE`](crate::NONE).
    pub caller: u32,
}

/// A list of messages. Element `i` lies `i * stride` bytes after `items`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct Messages {
    /// The first message; may be `NULL` only when `count` is 0.
    pub items: *const Message,
    /// How many messages there are.
    pub count: usize,
    /// The distance between two messages in bytes: the size of [`Message`] as the host knows it.
    pub stride: usize,
}

impl Messages {
    /// No messages.
    pub const EMPTY: Self = Self {
        items: ptr::null(),
        count: 0,
        stride: size_of::<Message>(),
    };
}
