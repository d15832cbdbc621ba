//! One call of a slot as the engine sees it: the record behind `hermes_call`, and its callbacks.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_engine_abi as abi;

use crate::engine::Slot;
use crate::engine::control::CallControl;
use crate::engine::emission::Collector;
use crate::engine::messages::bytes;

/// So much of an engine's error text is kept.
const MAX_ERROR: usize = 4096;
/// A text result may be so long.
const MAX_TEXT: usize = 8 << 20;

/// What one call is made of. The engine sees its first field; everything else hangs behind it.
///
/// It lives on the thread that calls the engine, until the slot has returned, however late that is.
#[repr(C)]
pub(crate) struct CallRecord {
    raw: abi::Call,
    control: Arc<CallControl>,
    sink: Mutex<Sink>,
    /// Keeps the text alive that `raw.session_id` points to.
    _session: Arc<str>,
}

/// What a call has given back through its callbacks.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    error: String,
    /// The text result, for the slots that have one.
    text: Option<String>,
    /// What was wrong with a part of the text result.
    text_fault: Option<String>,
    emitted: Option<Collector>,
}

impl CallRecord {
    /// Starts the call's clock. `emitted` is there for the slots that emit messages.
    pub(crate) fn new(
        slot: Slot,
        control: Arc<CallControl>,
        session: Arc<str>,
        emitted: Option<Collector>,
    ) -> Self {
        control.start();
        let millis = |budget: Duration| u64::try_from(budget.as_millis()).unwrap_or(u64::MAX);
        Self {
            raw: abi::Call {
                call_id: control.id(),
                budget_ms: control.budget().map_or(0, |budget| millis(budget).max(1)),
                session_id: bytes(&session),
                cancelled: Some(cancelled),
                progress: Some(progress),
                error: Some(error),
                write: Some(write),
                keep: Some(keep),
                push: Some(push),
                ..abi::Call::EMPTY
            },
            control,
            sink: Mutex::new(Sink {
                text: slot.writes().then(String::new),
                emitted,
                ..Sink::default()
            }),
            _session: session,
        }
    }

    /// The call as it crosses the border.
    pub(crate) fn as_raw(&self) -> *const abi::Call {
        // From the whole record, not from its first field: the callbacks come back for the rest.
        std::ptr::from_ref(self).cast()
    }

    pub(crate) fn control(&self) -> &Arc<CallControl> {
        &self.control
    }

    pub(crate) fn into_sink(self) -> Sink {
        self.sink
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn sink(&self) -> MutexGuard<'_, Sink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a callback that takes something: not after the call's end, and never letting a panic out.
    fn take(&self, body: impl FnOnce(&mut Sink) -> abi::Status) -> abi::Status {
        if self.control.is_cancelled() {
            return abi::ERR_CANCELLED;
        }
        catch_unwind(AssertUnwindSafe(|| body(&mut self.sink()))).unwrap_or(abi::ERR_FAILED)
    }
}

impl Sink {
    /// The engine's own words about a failure, or about why there was nothing to do.
    pub(crate) fn error(&self) -> &str {
        self.error.trim()
    }

    /// The text result; an error says what is wrong with it.
    pub(crate) fn text(&mut self) -> Result<String, String> {
        match self.text_fault.take() {
            Some(fault) => Err(fault),
            None => Ok(self.text.take().unwrap_or_default()),
        }
    }

    /// What the host has refused of the call's result, if something: an engine that looks at the answer of `keep` and
    /// gives up has no other reason than this.
    pub(crate) fn refused(&self) -> Option<&str> {
        let emitted = self.emitted.as_ref().and_then(Collector::fault);
        emitted.or(self.text_fault.as_deref())
    }

    pub(crate) fn emitted(&mut self) -> Option<Collector> {
        self.emitted.take()
    }

    fn append_error(&mut self, bytes: &[u8]) -> abi::Status {
        // Whatever is readable is worth keeping: it may be all that there is to learn.
        let text = String::from_utf8_lossy(bytes);
        let mut room = MAX_ERROR.saturating_sub(self.error.len()).min(text.len());
        while !text.is_char_boundary(room) {
            room -= 1;
        }
        self.error.push_str(&text[..room]);
        if matches!(text, Cow::Owned(_)) {
            abi::ERR_INVALID
        } else if room < text.len() {
            abi::ERR_LIMIT
        } else {
            abi::OK
        }
    }

    fn append_text(&mut self, part: Option<&[u8]>) -> abi::Status {
        let Some(text) = &mut self.text else {
            return abi::ERR_UNSUPPORTED;
        };
        let fault = match part.map(std::str::from_utf8) {
            None => "wrote NULL with a length".to_owned(),
            Some(Err(error)) => format!("wrote bytes that are not UTF-8: {error}"),
            Some(Ok(part)) if text.len().saturating_add(part.len()) <= MAX_TEXT => {
                text.push_str(part);
                return abi::OK;
            }
            Some(Ok(_)) => format!("wrote more than {} MiB of text", MAX_TEXT >> 20),
        };
        self.text_fault.get_or_insert(fault);
        abi::ERR_INVALID
    }
}

/// The record behind a `hermes_call`; `None` for NULL.
///
/// # Safety
/// `call` is NULL or what [`CallRecord::as_raw`] gave to a slot that has not returned yet.
pub(super) unsafe fn record<'a>(call: *const abi::Call) -> Option<&'a CallRecord> {
    // SAFETY: by the caller's promise the record is alive, and everything in it is either immutable or
    // behind a lock or an atomic.
    unsafe { call.cast::<CallRecord>().as_ref() }
}

/// The bytes an engine hands over; `None` when they cannot be read.
///
/// # Safety
/// A pointer that is not NULL is readable for `len` bytes until the host function returns.
pub(super) unsafe fn borrowed<'a>(bytes: abi::Bytes) -> Option<&'a [u8]> {
    if bytes.len == 0 {
        return Some(&[]);
    }
    if bytes.ptr.is_null() || isize::try_from(bytes.len).is_err() {
        return None;
    }
    // SAFETY: not NULL, not longer than an object can be, and readable by the caller's promise.
    Some(unsafe { std::slice::from_raw_parts(bytes.ptr, bytes.len) })
}

unsafe extern "C" fn cancelled(call: *const abi::Call) -> u32 {
    // SAFETY: the header allows this only while the call runs, with the pointer that the slot was given.
    unsafe { record(call) }.map_or(1, |record| u32::from(record.control.is_cancelled()))
}

unsafe extern "C" fn progress(call: *const abi::Call, done: u64, total: u64) {
    // SAFETY: as in `cancelled`.
    if let Some(record) = unsafe { record(call) } {
        record.control.progress(done, total);
    }
}

unsafe extern "C" fn error(call: *const abi::Call, text: abi::Bytes) -> abi::Status {
    // SAFETY: as in `cancelled`; the text is readable until this function returns.
    let (Some(record), Some(text)) = (unsafe { (record(call), borrowed(text)) }) else {
        return abi::ERR_INVALID;
    };
    record.take(|sink| sink.append_error(text))
}

unsafe extern "C" fn write(call: *const abi::Call, part: abi::Bytes) -> abi::Status {
    // SAFETY: as in `error`.
    let (Some(record), part) = (unsafe { (record(call), borrowed(part)) }) else {
        return abi::ERR_INVALID;
    };
    record.take(|sink| sink.append_text(part))
}

unsafe extern "C" fn keep(
    call: *const abi::Call,
    list: u32,
    first: usize,
    count: usize,
) -> abi::Status {
    // SAFETY: as in `cancelled`.
    let Some(record) = (unsafe { record(call) }) else {
        return abi::ERR_INVALID;
    };
    record.take(|sink| match &mut sink.emitted {
        Some(collector) => collector.keep(list, first, count),
        None => abi::ERR_UNSUPPORTED,
    })
}

unsafe extern "C" fn push(call: *const abi::Call, json: abi::Bytes) -> abi::Status {
    // SAFETY: as in `error`.
    let (Some(record), json) = (unsafe { (record(call), borrowed(json)) }) else {
        return abi::ERR_INVALID;
    };
    record.take(|sink| match &mut sink.emitted {
        Some(collector) => collector.push(json),
        None => abi::ERR_UNSUPPORTED,
    })
}
