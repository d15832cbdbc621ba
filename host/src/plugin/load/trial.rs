//! Runs an engine once, for a moment, without a conversation: create, state, destroy. Only ever in a child process.

use std::sync::{Mutex, PoisonError};

use hermes_engine_abi as abi;

use super::raw::ModuleCopy;
use super::registered::RegisteredInstance;
use super::services::{PROCESS_HOST, lossy};
use super::{CreateTexts, OpenError};

/// Longest error text that is kept.
const MAX_ERROR: usize = 4096;

/// A call without a session, with the engine's error text behind it.
#[repr(C)]
struct TrialCall {
    call: abi::Call,
    error: Mutex<String>,
}

impl TrialCall {
    fn new() -> Self {
        Self {
            call: abi::Call {
                call_id: 1,
                budget_ms: 5_000,
                cancelled: Some(cancelled),
                progress: Some(progress),
                error: Some(error),
                write: Some(write),
                keep: Some(keep),
                push: Some(write),
                ..abi::Call::EMPTY
            },
            error: Mutex::default(),
        }
    }

    fn text(&self) -> String {
        let text = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        text.trim().to_owned()
    }
}

unsafe extern "C" fn cancelled(_: *const abi::Call) -> u32 {
    0
}

unsafe extern "C" fn progress(_: *const abi::Call, _: u64, _: u64) {}

unsafe extern "C" fn error(call: *const abi::Call, text: abi::Bytes) -> abi::Status {
    if call.is_null() {
        return abi::ERR_INVALID;
    }
    // SAFETY: an engine passes on the call that it was given, which is the first field of a `TrialCall`.
    let call = unsafe { &*call.cast::<TrialCall>() };
    // SAFETY: the header's rule for what an engine passes to a host function.
    let text = unsafe { lossy(text) };
    let mut kept = call.error.lock().unwrap_or_else(PoisonError::into_inner);
    let room = MAX_ERROR.saturating_sub(kept.len());
    kept.extend(text.chars().take(room));
    abi::OK
}

/// Neither `create` nor `state` has a result to write.
unsafe extern "C" fn write(_: *const abi::Call, _: abi::Bytes) -> abi::Status {
    abi::ERR_UNSUPPORTED
}

unsafe extern "C" fn keep(_: *const abi::Call, _: u32, _: usize, _: usize) -> abi::Status {
    abi::ERR_UNSUPPORTED
}

/// Creates an instance (unless the plugin has registered one), asks its state, destroys it.
pub(crate) fn run(
    module: &ModuleCopy,
    registered: Option<RegisteredInstance>,
    texts: &CreateTexts,
    purpose: u32,
    stage: &dyn Fn(&str),
) -> Result<(), OpenError> {
    let vtable = &module.vtable;
    let (Some(create), Some(state), Some(destroy)) = (vtable.create, vtable.state, vtable.destroy)
    else {
        // The module's check has seen all three.
        return Err(OpenError::NoInstance);
    };
    let call = TrialCall::new();
    let raw_call = (&raw const call).cast::<abi::Call>();

    let instance = if let Some(registered) = registered {
        registered.instance()
    } else {
        stage("while it created an instance");
        let args = texts.args(purpose);
        let mut instance = std::ptr::null_mut();
        // SAFETY: the arguments are whole and live until the slot returns; the host table lives as long as the process.
        let status = unsafe {
            create(
                &raw const PROCESS_HOST,
                raw_call,
                &raw const args,
                &raw mut instance,
            )
        };
        match status {
            abi::OK if instance.is_null() => return Err(OpenError::NoInstance),
            abi::OK => instance,
            abi::ERR_UNAVAILABLE => return Err(OpenError::Unavailable { text: call.text() }),
            status => {
                return Err(OpenError::Slot {
                    slot: "create",
                    status,
                    text: call.text(),
                });
            }
        }
    };

    stage("while it was asked for its state");
    let mut shown = abi::State::INITIAL;
    // SAFETY: the instance came from `create` or `register(ctx)` and nothing else uses it; `out` says its size.
    let status = unsafe { state(instance, &raw mut shown) };
    stage("while its instance was destroyed");
    // SAFETY: as above; this is the last use.
    unsafe { destroy(instance) };
    if status == abi::OK {
        Ok(())
    } else {
        Err(OpenError::Slot {
            slot: "state",
            status,
            text: call.text(),
        })
    }
}
