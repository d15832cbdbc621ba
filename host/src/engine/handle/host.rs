//! The host table of one instance: what an engine can ask of the host, at any time and from any thread.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use hermes_engine_abi as abi;

use super::call::{borrowed, record};
use crate::engine::Services;
use crate::engine::messages::bytes;

/// One line of an engine's log is kept up to here.
const MAX_LOG: usize = 16 << 10;

/// The table and what stands behind it. Shared, because an engine keeps its address until its `destroy`
/// has returned.
#[repr(C)]
pub(crate) struct HostRecord {
    raw: abi::Host,
    engine: String,
    services: Services,
}

impl HostRecord {
    pub(crate) fn new(engine: &str, services: &Services) -> Arc<Self> {
        let complete: Option<unsafe extern "C" fn(_, _) -> _> = match services.completer {
            Some(_) => Some(complete),
            None => None,
        };
        Arc::new(Self {
            raw: abi::Host {
                name: bytes("hermes"),
                version: bytes(env!("CARGO_PKG_VERSION")),
                log_level: services.log_level,
                log: Some(log),
                count_tokens: Some(count_tokens),
                complete,
                extension: Some(extension),
                ..abi::Host::EMPTY
            },
            engine: engine.to_owned(),
            services: services.clone(),
        })
    }

    /// The table as it crosses the border; valid for as long as one of the owners lives.
    pub(super) fn as_raw(this: &Arc<Self>) -> *const abi::Host {
        Arc::as_ptr(this).cast()
    }
}

/// # Safety
/// `host` is NULL or the table of an instance whose `destroy` has not returned yet.
unsafe fn owner<'a>(host: *const abi::Host) -> Option<&'a HostRecord> {
    // SAFETY: by the caller's promise the record is alive; nothing in it changes.
    unsafe { host.cast::<HostRecord>().as_ref() }
}

unsafe extern "C" fn log(host: *const abi::Host, level: u32, message: abi::Bytes) {
    // SAFETY: the header allows this from the start of `create` until `destroy` has returned, with the
    // pointer that `create` was given, and the message is readable meanwhile.
    let (Some(owner), Some(text)) = (unsafe { (owner(host), borrowed(message)) }) else {
        return;
    };
    if level > owner.services.log_level {
        return;
    }
    // A log that panics must not reach the engine; the line is lost.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let text = String::from_utf8_lossy(&text[..text.len().min(MAX_LOG)]);
        (owner.services.log)(&owner.engine, level, &text);
    }));
}

unsafe extern "C" fn count_tokens(host: *const abi::Host, text: abi::Bytes) -> u64 {
    // SAFETY: as in `log`.
    let (Some(owner), Some(text)) = (unsafe { (owner(host), borrowed(text)) }) else {
        return 0;
    };
    let count = || (owner.services.count_tokens)(&String::from_utf8_lossy(text));
    catch_unwind(AssertUnwindSafe(count)).unwrap_or(0)
}

unsafe extern "C" fn extension(_host: *const abi::Host, _id: *const c_char) -> *const c_void {
    // This minor has no extension yet.
    ptr::null()
}

unsafe extern "C" fn complete(
    host: *const abi::Host,
    args: *const abi::CompleteArgs,
) -> abi::Status {
    // SAFETY: as in `log`; the arguments are readable for their own `struct_size`, checked next.
    let (Some(owner), Some(size)) = (unsafe { (owner(host), size_of_args(args)) }) else {
        return abi::ERR_INVALID;
    };
    if size < abi::CompleteArgs::SIZE {
        return abi::ERR_INVALID;
    }
    // SAFETY: not NULL and long enough, as just checked.
    let args = unsafe { *args };
    let Some(completer) = &owner.services.completer else {
        return abi::ERR_UNSUPPORTED;
    };
    // SAFETY: the request is readable until this function returns.
    let request = unsafe { borrowed(args.request) }.and_then(|text| std::str::from_utf8(text).ok());
    let (Some(request), Some(on_result)) = (request, args.on_result) else {
        return abi::ERR_INVALID;
    };
    // SAFETY: NULL, or the call that the engine is in: its record outlives this function.
    let control = unsafe { record(args.call) }.map(|record| Arc::clone(record.control()));
    let cancelled = || {
        control
            .as_ref()
            .is_some_and(|control| control.is_cancelled())
    };
    let mut on_text = |part: &str| {
        if let Some(control) = &control {
            control.alive();
        }
        if let Some(on_text) = args.on_text {
            // SAFETY: the engine's callback, with the engine's own pointer, on the engine's own thread;
            // the part is readable until it returns.
            unsafe { on_text(args.user, bytes(part)) };
        }
    };
    let timeout = (args.timeout_ms > 0).then(|| Duration::from_millis(args.timeout_ms));
    let result = catch_unwind(AssertUnwindSafe(|| {
        completer.complete(request, timeout, &cancelled, &mut on_text)
    }))
    .unwrap_or_else(|_| {
        r#"{"error":{"class":"other","message":"the host's model client failed"}}"#.to_owned()
    });
    // SAFETY: as for `on_text`; this is the one time that it is called.
    unsafe { on_result(args.user, bytes(&result)) };
    answer_of(&result)
}

/// OK if the model has answered with a text.
fn answer_of(result: &str) -> abi::Status {
    match serde_json::from_str::<serde_json::Value>(result) {
        Ok(result) if result.get("error").is_none() => abi::OK,
        Ok(result) if result["error"]["class"] == "cancelled" => abi::ERR_CANCELLED,
        _ => abi::ERR_FAILED,
    }
}

/// # Safety
/// `args` is NULL or readable for at least its first four bytes.
unsafe fn size_of_args(args: *const abi::CompleteArgs) -> Option<u32> {
    if args.is_null() || !args.is_aligned() {
        return None;
    }
    // SAFETY: not NULL, aligned, and every size-prefixed struct begins with its size.
    Some(unsafe { (*args).struct_size })
}
