//! One call of a slot.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use hermes_engine_abi as abi;

use crate::error::EngineError;
use crate::export::host::Host;
use crate::export::read;

/// Reads one field of a call's record. It is absent where the record is NULL or the host's minor does not have it.
/// Reading on demand keeps a call that looks at nothing as cheap as a call can be.
macro_rules! field {
    ($raw:expr, $field:ident) => {{
        const END: usize =
            std::mem::offset_of!(abi::Call, $field) + size_of_val(&abi::Call::EMPTY.$field);
        let raw: *const abi::Call = $raw;
        // SAFETY: the record begins with its size; a field inside that size is filled, and the record lasts as long as
        // the value that holds `raw`.
        if raw.is_null() || (unsafe { raw.cast::<u32>().read() } as usize) < END {
            abi::Call::EMPTY.$field
        } else {
            // SAFETY: as above.
            unsafe { (&raw const (*raw).$field).read() }
        }
    }};
}

/// The call that is running: how long it may take, whether anybody still waits for it, and the host's services.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    raw: *const abi::Call,
    host: &'a Host,
    borrowed: PhantomData<&'a abi::Call>,
}

// SAFETY: `cancelled` and `progress`, which are all that a shared `Call` reaches, are `[any]` while the call runs, and
// a `Call` cannot outlive it. The `[call]` functions are reached through `Sinks`, which only one thread holds.
unsafe impl Send for Call<'_> {}
// SAFETY: as above.
unsafe impl Sync for Call<'_> {}

impl<'a> Call<'a> {
    /// # Safety
    /// `raw` is NULL or points to the record of a call that lasts for `'a`.
    pub(crate) unsafe fn from_raw(raw: *const abi::Call, host: &'a Host) -> Self {
        Self {
            raw,
            host,
            borrowed: PhantomData,
        }
    }

    /// The host's services; may be kept.
    pub fn host(&self) -> &'a Host {
        self.host
    }

    /// Number of the call, as it stands in the host's log.
    pub fn id(&self) -> u64 {
        field!(self.raw, call_id)
    }

    /// The session that the call belongs to; empty before one has started.
    pub fn session_id(&self) -> &'a str {
        let id = field!(self.raw, session_id);
        // SAFETY: the host's bytes live as long as the call.
        unsafe { read::text(id) }
    }

    /// The time that was left when the call began; `None` = no limit.
    pub fn budget(&self) -> Option<Duration> {
        (field!(self.raw, budget_ms) > 0)
            .then(|| Duration::from_millis(field!(self.raw, budget_ms)))
    }

    /// Nobody waits for this call any more: return soon. Cheap enough for every turn of a loop.
    pub fn cancelled(&self) -> bool {
        // SAFETY: `[any]` while the call runs, with the record that the host passed.
        field!(self.raw, cancelled).is_some_and(|cancelled| unsafe { cancelled(self.raw) } != 0)
    }

    /// The same for use with `?`.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`] when nobody waits any more.
    pub fn check(&self) -> Result<(), EngineError> {
        if self.cancelled() {
            Err(EngineError::Cancelled)
        } else {
            Ok(())
        }
    }

    /// Says that work goes on, which extends the deadline. `total` 0 = unknown.
    pub fn progress(&self, done: u64, total: u64) {
        if let Some(progress) = field!(self.raw, progress) {
            // SAFETY: as in `cancelled`.
            unsafe { progress(self.raw, done, total) };
        }
    }

    /// The record that the host passed, for services that take it.
    pub(crate) fn as_raw(&self) -> *const abi::Call {
        self.raw
    }

    /// The functions through which results go.
    ///
    /// # Safety
    /// Nobody else holds one for this call: `[call]` functions are entered by one thread at a time.
    pub(crate) unsafe fn sinks(&self) -> Sinks<'a> {
        Sinks {
            raw: self.raw,
            borrowed: PhantomData,
        }
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.id())
            .field("session_id", &self.session_id())
            .finish_non_exhaustive()
    }
}

/// The `[call]` functions of one call. Not `Sync`; whoever holds it is the one thread that may use them.
pub(crate) struct Sinks<'a> {
    raw: *const abi::Call,
    borrowed: PhantomData<&'a abi::Call>,
}

impl<'a> Sinks<'a> {
    /// A second set for the same call on the same thread. A `Sinks` is neither `Send` nor `Sync`, so the two can never be
    /// used at once.
    pub(crate) fn twin(&self) -> Sinks<'a> {
        Sinks {
            raw: self.raw,
            borrowed: PhantomData,
        }
    }

    /// Text about a failure.
    pub(crate) fn error(&self, text: &str) {
        if let Some(error) = field!(self.raw, error) {
            // SAFETY: `[call]`, by the promise of `Call::sinks`; the text is copied before it returns.
            unsafe { error(self.raw, read::bytes(text)) };
        }
    }

    /// A part of the text result.
    pub(crate) fn write(&self, text: &str) -> Result<(), EngineError> {
        let Some(write) = field!(self.raw, write) else {
            return Err(EngineError::Unsupported(
                "this call has no text result".to_owned(),
            ));
        };
        // SAFETY: as in `error`.
        EngineError::from_status(
            unsafe { write(self.raw, read::bytes(text)) },
            "the text result",
        )
    }

    /// A range of a list.
    pub(crate) fn keep(&self, list: u32, first: usize, count: usize) -> Result<(), EngineError> {
        let Some(keep) = field!(self.raw, keep) else {
            return Err(EngineError::Unsupported(
                "this call takes no messages".to_owned(),
            ));
        };
        // SAFETY: as in `error`.
        let status = unsafe { keep(self.raw, list, first, count) };
        if status == abi::OK {
            return Ok(());
        }
        EngineError::from_status(
            status,
            &format!("keep of {count} from message {first} of list {list}"),
        )
    }

    /// A new message.
    pub(crate) fn push(&self, json: &str) -> Result<(), EngineError> {
        let Some(push) = field!(self.raw, push) else {
            return Err(EngineError::Unsupported(
                "this call takes no messages".to_owned(),
            ));
        };
        // SAFETY: as in `error`.
        EngineError::from_status(
            unsafe { push(self.raw, read::bytes(json)) },
            "a pushed message",
        )
    }
}
