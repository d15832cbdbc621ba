//! Panics of an engine: caught at the border, their text in the host's log instead of on the terminal.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once};

use crate::export::host::Host;
use crate::services::Level;

thread_local! {
    /// The host of the guarded call that this thread is inside of; NULL outside any.
    static INSIDE: Cell<*const Host> = const { Cell::new(ptr::null()) };
    /// What the hook has seen since a panic was last caught here.
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
        crate::log_bridge::install();
    }
    HOOK.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if !INSIDE.get().is_null() {
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
pub(crate) fn guarded<R>(host: &Host, work: impl FnOnce() -> R) -> Result<R, String> {
    let result = INSIDE.with(|inside| {
        let previous = inside.replace(host);
        // A value that panicked is never entered again, so nobody sees what the panic left half-done.
        let result = catch_unwind(AssertUnwindSafe(work));
        inside.set(previous);
        result
    });
    result.map_err(caught)
}

/// The host whose call this thread is inside of, or for a thread of the engine's own the one that was seen last.
pub(crate) fn with_host<R>(work: impl FnOnce(&Host) -> R) -> Option<R> {
    let inside = INSIDE.get();
    if !inside.is_null() {
        // SAFETY: set by `guarded`, which borrows the host and has not returned: it runs further up on this thread.
        return Some(work(unsafe { &*inside }));
    }
    let latest = LATEST.try_lock().ok()?.clone();
    latest.map(|host| work(&host))
}

#[cold]
fn caught(payload: Box<dyn Any + Send>) -> String {
    let own = text_of(&*payload);
    // What the hook saw has the place as well. It is another panic's if this one came without a hook.
    let text = SEEN
        .take()
        .filter(|seen| seen.starts_with(&own))
        .unwrap_or(own);
    // The payload's own destructor is author's code as well.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    text
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
