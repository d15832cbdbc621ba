//! One call of a slot.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use hermes_engine_abi as abi;

use crate::error::EngineError;
use crate::export::host::Host;
use crate::export::read;

/// The call that is running: how long it may take, whether anybody still waits for it, and the host's services.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    raw: *const abi::Call,
    table: abi::Call,
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
        // SAFETY: the caller's promise.
        let table = unsafe { read::prefix(raw) };
        Self {
            raw,
            table,
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
        self.table.call_id
    }

    /// The session that the call belongs to; empty before one has started.
    pub fn session_id(&self) -> &'a str {
        // SAFETY: the host's bytes live as long as the call.
        unsafe { read::text(self.table.session_id) }
    }

    /// The time that was left when the call began; `None` = no limit.
    pub fn budget(&self) -> Option<Duration> {
        (self.table.budget_ms > 0).then(|| Duration::from_millis(self.table.budget_ms))
    }

    /// Nobody waits for this call any more: return soon. Cheap enough for every turn of a loop.
    pub fn cancelled(&self) -> bool {
        // SAFETY: `[any]` while the call runs, with the record that the host passed.
        self.table
            .cancelled
            .is_some_and(|cancelled| unsafe { cancelled(self.raw) } != 0)
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
        if let Some(progress) = self.table.progress {
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
            table: self.table,
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
    table: abi::Call,
    borrowed: PhantomData<&'a abi::Call>,
}

impl<'a> Sinks<'a> {
    /// A second set for the same call on the same thread. A `Sinks` is neither `Send` nor `Sync`, so the two can never be
    /// used at once.
    pub(crate) fn twin(&self) -> Sinks<'a> {
        Sinks {
            raw: self.raw,
            table: self.table,
            borrowed: PhantomData,
        }
    }

    /// Text about a failure.
    pub(crate) fn error(&self, text: &str) {
        if let Some(error) = self.table.error {
            // SAFETY: `[call]`, by the promise of `Call::sinks`; the text is copied before it returns.
            unsafe { error(self.raw, read::bytes(text)) };
        }
    }

    /// A part of the text result.
    pub(crate) fn write(&self, text: &str) -> Result<(), EngineError> {
        let Some(write) = self.table.write else {
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
        let Some(keep) = self.table.keep else {
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
        let Some(push) = self.table.push else {
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
