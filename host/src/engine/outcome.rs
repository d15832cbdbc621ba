//! From what a slot has answered to a result or a fault.

use std::sync::Arc;

use hermes_engine_abi as abi;

use super::core::{Core, Request, Returned};
use super::{EngineFault, FaultKind, Slot};

/// What a slot's answer has come to: it is success, and this is what it gave.
pub(crate) struct Success {
    pub(crate) status: abi::Status,
    pub(crate) yes: bool,
    pub(crate) returned: Returned,
}

impl Core {
    /// Makes a call and judges its answer.
    pub(crate) fn ask(&self, request: Request, here: bool) -> Result<Success, EngineFault> {
        let slot = request.slot;
        let control = Arc::clone(&request.control);
        let returned = self.call(request, here)?;
        let status = returned.status;
        if returned.late && (gives_something(slot) || status == abi::ERR_CANCELLED) {
            let (kind, why) = if control.is_called_off() {
                (FaultKind::Cancelled, "was cancelled".to_owned())
            } else {
                let budget = control.budget().unwrap_or_default();
                let why = format!("came back only after its {budget:?} were over");
                (FaultKind::Timeout, why)
            };
            return Err(self.fault(kind, slot, why));
        }
        if status == abi::OK || is_success_of(slot, status) {
            return Ok(Success {
                status,
                yes: returned.yes != 0,
                returned,
            });
        }
        Err(self.failure(slot, status, &returned))
    }

    fn failure(&self, slot: Slot, status: abi::Status, returned: &Returned) -> EngineFault {
        let (kind, what) = kind_of(status);
        let mut why = with_text(what, returned.sink.error());
        if let Some(refused) = returned.sink.refused() {
            why.push_str("; the host had refused this of it: ");
            why.push_str(refused);
        }
        self.fault(kind, slot, why)
    }
}

/// What kind of fault a status is that is no success, and how to say it.
pub(crate) fn kind_of(status: abi::Status) -> (FaultKind, String) {
    let (kind, what) = match status {
        abi::ERR_FAILED => (FaultKind::Error, "failed"),
        abi::ERR_PANIC => (FaultKind::Panic, "panicked"),
        abi::ERR_CANCELLED => (
            FaultKind::Error,
            "says that it was cancelled, but nobody had cancelled it",
        ),
        abi::ERR_INVALID => (
            FaultKind::Error,
            "found its arguments or a host call invalid",
        ),
        abi::ERR_UNSUPPORTED => (FaultKind::Unsupported, "is not supported by the engine"),
        abi::ERR_LIMIT => (FaultKind::Error, "reached a limit"),
        abi::ERR_UNAVAILABLE => (FaultKind::Unavailable, "is not available here"),
        other => {
            return (
                FaultKind::Error,
                format!("answered with status {other}, which means nothing there"),
            );
        }
    };
    (kind, what.to_owned())
}

/// Adds the engine's own words, or says that there were none.
pub(crate) fn with_text(what: String, text: &str) -> String {
    if text.is_empty() {
        format!("{what} (it gave no reason)")
    } else {
        format!("{what}: {text}")
    }
}

/// The values besides OK that are success in a slot.
const fn is_success_of(slot: Slot, status: abi::Status) -> bool {
    match slot {
        Slot::Compress | Slot::SelectContext => status == abi::UNCHANGED,
        Slot::Idle => status == abi::MORE,
        _ => false,
    }
}

/// Slots whose answer is worth nothing when the call was cancelled on the way.
const fn gives_something(slot: Slot) -> bool {
    matches!(
        slot,
        Slot::Compress
            | Slot::SelectContext
            | Slot::ShouldCompress
            | Slot::Preflight
            | Slot::ToolSchemas
            | Slot::ToolCall
            | Slot::Status
            | Slot::Command
    )
}
