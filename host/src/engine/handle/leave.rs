//! The end of the process.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::engine::lane::{Shutdown, shutdown};
use crate::plugin::marker;

/// What all lanes together may take at the end.
const LIMIT: Duration = Duration::from_secs(2);

/// Lets engines finish what is queued, and says what they missed. If one is still inside a call that was given up, the
/// process ends here with `status`, without static destructors: they would run under a live thread of the engine.
pub fn leave(status: u8) -> Shutdown {
    let left = shutdown(LIMIT);
    // Whoever is still inside is slow, and has not crashed.
    marker::ended_well();
    if !left.still_inside.is_empty() {
        let _ = std::io::stdout().flush();
        let _ = std::io::stderr().flush();
        end(i32::from(status));
    }
    left
}

/// What is left to say when an engine ends the process; gives the status to end with.
static LAST_WORDS: OnceLock<fn() -> u8> = OnceLock::new();

/// The process may end now.
static EXPECTED: AtomicBool = AtomicBool::new(false);

/// Asks to be told if an engine calls `exit`. `last_words` then runs, and the process ends with the status it gives.
/// `_exit`, an abort and a signal cannot be caught.
pub fn watch_exit(last_words: fn() -> u8) {
    #[cfg(unix)]
    if LAST_WORDS.set(last_words).is_ok() {
        unsafe extern "C" {
            fn atexit(callback: extern "C" fn()) -> i32;
        }
        // SAFETY: the callback is a function of this program, which is never unloaded, and takes nothing.
        unsafe { atexit(ended) };
    }
    #[cfg(not(unix))]
    let _ = last_words;
}

/// From here on the end of the process is the host's own doing.
pub fn exit_is_expected() {
    EXPECTED.store(true, Ordering::Release);
}

#[cfg(unix)]
extern "C" fn ended() {
    if EXPECTED.load(Ordering::Acquire) {
        return;
    }
    if let Some(last_words) = LAST_WORDS.get() {
        end(i32::from(last_words()));
    }
}

#[cfg(unix)]
fn end(status: i32) -> ! {
    unsafe extern "C" {
        fn _exit(status: i32) -> !;
    }
    // SAFETY: takes a number and never returns; what had to be written is written.
    unsafe { _exit(status) }
}

#[cfg(not(unix))]
fn end(status: i32) -> ! {
    std::process::exit(status)
}
