//! From the structs of the border to borrowed Rust values.

use hermes_engine_abi as abi;

use crate::args::{Compress, Model, Pass, Select, Session, Usage};
use crate::export::view::Messages;

/// A size-prefixed struct: its first four bytes are `struct_size`, and all zero bytes are a valid value of it.
///
/// # Safety
/// The type is `repr(C)`, `Copy`, begins with `struct_size: u32`, and every field of it may be all zero bytes.
pub(crate) unsafe trait Prefixed: Copy {
    /// Every field absent.
    const ABSENT: Self;
}

macro_rules! prefixed {
    ($($name:ident),* $(,)?) => {$(
        // SAFETY: repr(C) structs of integers, floats, `Bytes`, raw pointers and optional function pointers that
        // begin with `struct_size`.
        unsafe impl Prefixed for abi::$name {
            const ABSENT: Self = abi::$name::EMPTY;
        }
    )*};
}
prefixed!(
    Call,
    Host,
    CreateArgs,
    ModelArgs,
    DecideArgs,
    SessionArgs,
    CompressArgs,
    PassArgs,
    SelectArgs,
    TurnArgs,
    ToolArgs,
    CommandArgs,
);

// SAFETY: as above; a usage that says nothing is not a usage of nothing.
unsafe impl Prefixed for abi::Usage {
    const ABSENT: Self = abi::Usage::UNKNOWN;
}

/// Copies what the other side has filled; a field beyond its `struct_size` stays absent. NULL reads as all absent.
///
/// # Safety
/// `from` is NULL or points to a struct of this kind of which `struct_size` bytes are readable.
pub(crate) unsafe fn prefix<T: Prefixed>(from: *const T) -> T {
    let mut copy = T::ABSENT;
    if from.is_null() {
        return copy;
    }
    // SAFETY: the caller promises a readable struct, and each begins with its size.
    let filled = unsafe { from.cast::<u32>().read() } as usize;
    let length = filled.min(size_of::<T>());
    // SAFETY: `length` bytes are readable there (the caller's promise) and writable here, and the two do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut copy).cast::<u8>(), length)
    };
    copy
}

/// Text of the host. What is not UTF-8, against the rules of the border, reads as empty.
///
/// # Safety
/// The bytes are readable for `'a`, or the pointer is NULL.
pub(crate) unsafe fn text<'a>(bytes: abi::Bytes) -> &'a str {
    if bytes.ptr.is_null() || bytes.len == 0 {
        return "";
    }
    // SAFETY: not NULL, and the caller promises `len` readable bytes.
    let slice = unsafe { std::slice::from_raw_parts(bytes.ptr, bytes.len) };
    std::str::from_utf8(slice).unwrap_or("")
}

/// Bytes of ours for the other side, which copies them before its function returns.
pub(crate) fn bytes(text: &str) -> abi::Bytes {
    abi::Bytes {
        ptr: text.as_ptr(),
        len: text.len(),
    }
}

/// A token count that may be unknown.
pub(crate) fn known(tokens: i64) -> Option<u64> {
    u64::try_from(tokens).ok()
}

/// An index that may be `NONE`.
pub(crate) fn index(raw: u32) -> Option<usize> {
    (raw != abi::NONE).then_some(raw as usize)
}

/// # Safety
/// `raw` is NULL or points to what the header says, readable for `'a`.
pub(crate) unsafe fn usage<'a>(raw: *const abi::Usage) -> Option<Usage<'a>> {
    if raw.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let raw = unsafe { prefix(raw) };
    Some(Usage {
        prompt_tokens: known(raw.prompt_tokens),
        completion_tokens: known(raw.completion_tokens),
        total_tokens: known(raw.total_tokens),
        input_tokens: known(raw.input_tokens),
        output_tokens: known(raw.output_tokens),
        cache_read_tokens: known(raw.cache_read_tokens),
        cache_write_tokens: known(raw.cache_write_tokens),
        reasoning_tokens: known(raw.reasoning_tokens),
        // SAFETY: the caller's promise.
        json: unsafe { text(raw.json) },
    })
}

/// # Safety
/// As for [`usage`].
pub(crate) unsafe fn model<'a>(raw: *const abi::ModelArgs) -> Model<'a> {
    // SAFETY: the caller's promise, here and for each text below.
    unsafe {
        let raw = prefix(raw);
        Model {
            model: text(raw.model),
            provider: text(raw.provider),
            base_url: text(raw.base_url),
            api_mode: text(raw.api_mode),
            context_length: raw.context_length,
            max_output_tokens: raw.max_output_tokens,
            helper_context_length: raw.helper_context_length,
            threshold_percent: raw.threshold_percent,
            model_thresholds: text(raw.model_thresholds),
        }
    }
}

/// # Safety
/// As for [`usage`].
pub(crate) unsafe fn compress<'a>(raw: *const abi::CompressArgs) -> Compress<'a> {
    // SAFETY: the caller's promise, here and for each part below.
    unsafe {
        let raw = prefix(raw);
        Compress {
            messages: Messages::from_raw(raw.messages).unwrap_or(Messages::EMPTY),
            trigger: raw.trigger.into(),
            force: raw.flags & abi::COMPRESS_FORCE != 0,
            incoming: index(raw.incoming),
            current_tokens: known(raw.current_tokens),
            target_tokens: raw.target_tokens,
            focus: text(raw.focus),
            memory_context: text(raw.memory_context),
            pass_id: text(raw.pass_id),
        }
    }
}

/// # Safety
/// As for [`usage`].
pub(crate) unsafe fn select<'a>(raw: *const abi::SelectArgs) -> Select<'a> {
    // SAFETY: the caller's promise, here and for each part below.
    unsafe {
        let raw = prefix(raw);
        Select {
            request: Messages::from_raw(raw.request).unwrap_or(Messages::EMPTY),
            conversation: Messages::from_raw(raw.conversation),
            incoming: index(raw.incoming),
            budget_tokens: raw.budget_tokens,
            fixed_tokens: raw.fixed_tokens,
            attempt: raw.attempt,
        }
    }
}

/// # Safety
/// As for [`usage`].
pub(crate) unsafe fn session<'a>(raw: *const abi::SessionArgs) -> Session<'a> {
    // SAFETY: the caller's promise, here and for each part below.
    unsafe {
        let raw = prefix(raw);
        Session {
            reason: raw.reason.into(),
            carry_over: raw.flags & abi::START_CARRY_OVER != 0,
            old_session_id: text(raw.old_session_id),
            parent_session_id: text(raw.parent_session_id),
            root_session_id: text(raw.root_session_id),
            platform: text(raw.platform),
            conversation_id: text(raw.conversation_id),
            hermes_home: text(raw.hermes_home),
            last_pass_id: text(raw.last_pass_id),
            messages: Messages::from_raw(raw.messages),
        }
    }
}

/// # Safety
/// As for [`usage`].
pub(crate) unsafe fn pass<'a>(raw: *const abi::PassArgs) -> Pass<'a> {
    // SAFETY: the caller's promise, here and for each part below.
    unsafe {
        let raw = prefix(raw);
        Pass {
            committed: raw.outcome == abi::PASS_COMMITTED,
            pass_id: text(raw.pass_id),
            reason: text(raw.reason),
            messages: Messages::from_raw(raw.messages),
        }
    }
}
