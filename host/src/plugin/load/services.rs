//! The host table that a plugin gets when it registers an engine by itself. It lives as long as the process.

use std::ffi::{c_char, c_void};

use hermes_engine_abi as abi;

/// Services without a session: a log, and a rough count of tokens.
pub(crate) static PROCESS_HOST: abi::Host = abi::Host {
    name: abi::Bytes::of_static("hermes"),
    version: abi::Bytes::of_static(env!("CARGO_PKG_VERSION")),
    log_level: 3,
    log: Some(log),
    count_tokens: Some(count_tokens),
    extension: Some(extension),
    ..abi::Host::EMPTY
};

/// Reads bytes that a plugin passes to a host function.
///
/// # Safety
/// `bytes` is readable for its length until the caller returns, as the header demands.
pub(super) unsafe fn lossy(bytes: abi::Bytes) -> String {
    if bytes.ptr.is_null() || bytes.len == 0 {
        return String::new();
    }
    // SAFETY: not NULL, and readable by the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.ptr, bytes.len) };
    String::from_utf8_lossy(bytes).into_owned()
}

unsafe extern "C" fn log(_: *const abi::Host, level: u32, message: abi::Bytes) {
    // SAFETY: the header's rule for what an engine passes to a host function.
    let message = unsafe { lossy(message) };
    match level {
        0 | 1 => tracing::error!(target: "hermes::plugin", "{message}"),
        2 => tracing::warn!(target: "hermes::plugin", "{message}"),
        3 => tracing::info!(target: "hermes::plugin", "{message}"),
        4 => tracing::debug!(target: "hermes::plugin", "{message}"),
        _ => tracing::trace!(target: "hermes::plugin", "{message}"),
    }
}

/// Four bytes a token: enough before there is a session, whose own table counts better.
unsafe extern "C" fn count_tokens(_: *const abi::Host, text: abi::Bytes) -> u64 {
    u64::try_from(text.len.div_ceil(4)).unwrap_or(u64::MAX)
}

unsafe extern "C" fn extension(_: *const abi::Host, _: *const c_char) -> *const c_void {
    std::ptr::null()
}
