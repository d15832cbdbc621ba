//! The services of the host.

use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, RwLock};

use hermes_engine_abi as abi;

use crate::export::call::Call;
use crate::export::read;
use crate::services::{
    CompleteError, CompleteRequest, Completion, ErrorClass, Level, parse_result,
};

/// The host's services. May be kept and used from any thread, the engine's own too.
///
/// It is valid until the engine is dropped; a copy that outlives it answers like a host that offers nothing.
#[derive(Clone)]
pub struct Host {
    shared: Arc<Shared>,
}

struct Shared {
    raw: *const abi::Host,
    table: abi::Host,
    name: String,
    version: String,
    /// False once `destroy` has begun. Held for reading during each service, so that none outlives the table.
    open: RwLock<bool>,
}

// SAFETY: every function of the table is `[any]`, and `open` keeps calls away from a table that is gone.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Host {
    /// # Safety
    /// `raw` is NULL or points to a host table that stays valid until [`close`](Self::close) has returned.
    pub(crate) unsafe fn from_raw(raw: *const abi::Host) -> Self {
        // SAFETY: the caller's promise, here and for both texts.
        let (table, name, version) = unsafe {
            let table = read::prefix(raw);
            (
                table,
                read::text(table.name).to_owned(),
                read::text(table.version).to_owned(),
            )
        };
        Self {
            shared: Arc::new(Shared {
                raw,
                table,
                name,
                version,
                open: RwLock::new(!raw.is_null()),
            }),
        }
    }

    /// From now on every service answers like an absent one. Waits for services that are running.
    pub(crate) fn close(&self) {
        *self
            .shared
            .open
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) = false;
    }

    /// Runs `service` with the table, unless the engine has been dropped.
    fn with<R>(&self, service: impl FnOnce(&abi::Host) -> Option<R>) -> Option<R> {
        let open = self
            .shared
            .open
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if *open {
            service(&self.shared.table)
        } else {
            None
        }
    }

    /// The host's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The host's version.
    pub fn version(&self) -> &str {
        &self.shared.version
    }

    /// Whether lines of this level are kept: skip the formatting where not.
    pub fn logs(&self, level: Level) -> bool {
        level as u32 <= self.shared.table.log_level
    }

    /// Writes a line to the host's log.
    pub fn log(&self, level: Level, message: &str) {
        if !self.logs(level) {
            return;
        }
        self.with(|table| {
            let log = table.log?;
            // SAFETY: `[any]` while the table lives; the text is copied before it returns.
            unsafe { log(self.shared.raw, level as u32, read::bytes(message)) };
            Some(())
        });
    }

    /// Counts the tokens of a text as the host does; 0 once the engine has been dropped.
    pub fn count_tokens(&self, text: &str) -> u64 {
        self.with(|table| {
            let count = table.count_tokens?;
            // SAFETY: as in `log`.
            Some(unsafe { count(self.shared.raw, read::bytes(text)) })
        })
        .unwrap_or(0)
    }

    /// Whether there is a helper model that this engine may use.
    pub fn can_complete(&self) -> bool {
        self.with(|table| table.complete).is_some()
    }

    /// Asks the helper model and waits for the answer. With a call it is cancelled together with the call and counts as
    /// its progress. `on_text` receives the parts as they arrive, on this thread.
    ///
    /// # Errors
    /// The class says whether another try makes sense.
    pub fn complete(
        &self,
        call: Option<&Call<'_>>,
        request: &CompleteRequest,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Completion, CompleteError> {
        let mut answer = Answer {
            on_text,
            result: None,
        };
        let json = request.to_json();
        let status = self.with(|table| {
            let complete = table.complete?;
            let args = abi::CompleteArgs {
                request: read::bytes(&json),
                timeout_ms: request
                    .timeout
                    .map_or(0, |t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
                call: call.map_or(std::ptr::null(), Call::as_raw),
                user: (&raw mut answer).cast::<c_void>(),
                on_text: Some(on_text_part),
                on_result: Some(on_result),
                ..abi::CompleteArgs::EMPTY
            };
            // SAFETY: `[any]` while the table lives; it blocks, so that `json` and `answer` outlive its callbacks.
            Some(unsafe { complete(self.shared.raw, &args) })
        });
        match (status, answer.result) {
            (None, _) => Err(CompleteError::new(
                ErrorClass::NotGranted,
                "no helper model is available to this engine; the user grants one with the capability `llm`",
            )),
            (Some(_), Some(json)) => parse_result(&json),
            (Some(abi::ERR_CANCELLED), None) => {
                Err(CompleteError::new(ErrorClass::Cancelled, "cancelled"))
            }
            (Some(status), None) => Err(CompleteError::new(
                ErrorClass::Other,
                format!("the host gave no answer (status {status})"),
            )),
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("name", &self.shared.name)
            .field("version", &self.shared.version)
            .finish_non_exhaustive()
    }
}

/// Where the callbacks of one `complete` go.
struct Answer<'a> {
    on_text: &'a mut dyn FnMut(&str),
    result: Option<String>,
}

/// `[call]` of `complete`: on the thread that called it, while it has not returned.
unsafe extern "C" fn on_text_part(user: *mut c_void, part: abi::Bytes) {
    // SAFETY: `user` is the `Answer` on the stack of `Host::complete`, which has not returned, and nobody else uses it.
    let answer = unsafe { &mut *user.cast::<Answer<'_>>() };
    // SAFETY: readable while this function runs.
    let text = unsafe { read::text(part) };
    // A panic of the author's closure must not cross the host; what was being collected is simply incomplete.
    let _ = catch_unwind(AssertUnwindSafe(|| (answer.on_text)(text)));
}

/// As for [`on_text_part`].
unsafe extern "C" fn on_result(user: *mut c_void, json: abi::Bytes) {
    // SAFETY: as in `on_text_part`.
    let answer = unsafe { &mut *user.cast::<Answer<'_>>() };
    // SAFETY: readable while this function runs.
    answer.result = Some(unsafe { read::text(json) }.to_owned());
}
