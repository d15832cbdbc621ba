//! The services of the host.

use core::ffi::{c_char, c_void};
use core::ptr;

use super::{ABI_MAJOR, ABI_MINOR, Bytes, Call, Status};

/// The arguments of [`Host::complete`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct CompleteArgs {
    /// Size of this struct as the engine knows it.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// `{"messages":[…],"max_tokens"?,"purpose"}`.
    pub request: Bytes,
    /// How long to wait at most; 0 leaves it to the host.
    pub timeout_ms: u64,
    /// The slot call it belongs to: it is cancelled with it and counts as its progress. `NULL` from a
    /// thread of the engine's own.
    pub call: *const Call,
    /// Given back to both callbacks.
    pub user: *mut c_void,
    /// A part of the text as it arrives, on the calling thread. May be `NULL`.
    pub on_text: Option<unsafe extern "C" fn(user: *mut c_void, part: Bytes)>,
    /// The result, exactly once, on the calling thread:
    /// `{"text","finish_reason","model","usage"}` or `{"error":{"class","message","retry_after_ms"?}}`.
    pub on_result: Option<unsafe extern "C" fn(user: *mut c_void, json: Bytes)>,
}

impl CompleteArgs {
    /// No request, no callbacks.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        reserved: 0,
        request: Bytes::EMPTY,
        timeout_ms: 0,
        call: ptr::null(),
        user: ptr::null_mut(),
        on_text: None,
        on_result: None,
    };
}

/// What the host offers to one instance. It lives until that instance's `destroy` has returned.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "layout", derive(abi_stable::StableAbi))]
pub struct Host {
    /// Size of this struct as the host knows it.
    pub struct_size: u32,
    /// [`ABI_MAJOR`] of the host.
    pub abi_major: u16,
    /// [`ABI_MINOR`] of the host.
    pub abi_minor: u16,
    /// The host's name.
    pub name: Bytes,
    /// The host's version.
    pub version: Bytes,
    /// 1 error … 5 trace: an engine need not format what lies above it.
    pub log_level: u32,
    /// Zero.
    pub reserved: u32,
    /// `[any]` Writes one line to the host's log.
    pub log: Option<unsafe extern "C" fn(host: *const Host, level: u32, message: Bytes)>,
    /// `[any]` Counts the tokens of a text.
    pub count_tokens: Option<unsafe extern "C" fn(host: *const Host, text: Bytes) -> u64>,
    /// `[any]` Asks the model and blocks until it has answered. `NULL` unless the user has granted it.
    pub complete:
        Option<unsafe extern "C" fn(host: *const Host, args: *const CompleteArgs) -> Status>,
    /// `[any]` A table of a later minor, by its id, or `NULL`.
    pub extension:
        Option<unsafe extern "C" fn(host: *const Host, id: *const c_char) -> *const c_void>,
}

impl Host {
    /// A host of this version that offers nothing, to be filled by struct update.
    pub const EMPTY: Self = Self {
        struct_size: Self::SIZE,
        abi_major: ABI_MAJOR,
        abi_minor: ABI_MINOR,
        name: Bytes::EMPTY,
        version: Bytes::EMPTY,
        log_level: 0,
        reserved: 0,
        log: None,
        count_tokens: None,
        complete: None,
        extension: None,
    };
}
