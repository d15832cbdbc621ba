//! Panics of an engine: caught at the border, their text in the host's log instead of on the terminal.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once};

use crate::export::host::Host;
use crate::services::Level;

thread_local! {
    /// How many guarded calls this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// What the hook has seen since the last guarded call began.
    static SEEN: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// This copy of the standard library belongs to a plugin alone, so that every panic in it is the engine's.
static OWN_STD: AtomicBool = AtomicBool::new(false);
/// The host that was seen last: where panics of the engine's own threads are logged.
static LATEST: Mutex<Option<Host>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// Called by the entry function of a library.
pub(crate) fn is_a_library() {
    OWN_STD.store(true, Ordering::Relaxed);
}

/// Whether this is a library of its own rather than linked into the host.
pub(crate) fn in_a_library() -> bool {
    OWN_STD.load(Ordering::Relaxed)
}

/// Remembers a host for panics outside any call, and installs the hook once.
pub(crate) fn install(host: &Host) {
    if in_a_library() {
        *LATEST
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(host.clone());
    }
    HOOK.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if DEPTH.get() > 0 {
                SEEN.set(Some(describe(info)));
            } else if in_a_library() {
                let latest = LATEST.try_lock().ok().and_then(|latest| latest.clone());
                if let Some(host) = latest {
                    let thread = std::thread::current();
                    let name = thread.name().unwrap_or("without a name").to_owned();
                    host.log(
                        Level::Error,
                        &format!(
                            "a thread of the engine ({name}) panicked: {}",
                            describe(info)
                        ),
                    );
                }
            } else {
                previous(info);
            }
        }));
    });
}

/// Runs author's code. A panic comes back as its text.
pub(crate) fn guarded<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    DEPTH.set(DEPTH.get() + 1);
    SEEN.set(None);
    // A value that panicked is never entered again, so nobody sees what the panic left half-done.
    let result = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    result.map_err(|payload| {
        let text = SEEN.take().unwrap_or_else(|| text_of(&*payload));
        // The payload's own destructor is author's code as well.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(second);
        }
        text
    })
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let text = text_of(info.payload());
    match info.location() {
        Some(place) => format!("{text} ({}:{})", place.file(), place.line()),
        None => text,
    }
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic whose payload is not text".to_owned()
    }
}
