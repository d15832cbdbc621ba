//! The services of the test host.

use std::sync::{Arc, Mutex};

use hermes_engine_abi as abi;

use crate::export::read;
use crate::services::Level;

/// From the JSON of a request to that of its result.
pub(super) type Completer = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// A table of host services whose first field is the border's struct.
#[repr(C)]
pub(super) struct TestHost {
    table: abi::Host,
    completer: Option<Completer>,
    pub(super) logs: Mutex<Vec<(u32, String)>>,
}

impl TestHost {
    pub(super) fn new(completer: Option<Completer>) -> Box<Self> {
        let table = abi::Host {
            name: abi::Bytes::of_static("hermes test kit"),
            version: abi::Bytes::of_static(env!("CARGO_PKG_VERSION")),
            log_level: Level::Trace as u32,
            log: Some(log),
            count_tokens: Some(count_tokens),
            complete: if completer.is_some() {
                Some(complete)
            } else {
                None
            },
            ..abi::Host::EMPTY
        };
        Box::new(Self {
            table,
            completer,
            logs: Mutex::default(),
        })
    }

    pub(super) fn as_raw(&self) -> *const abi::Host {
        std::ptr::from_ref(self).cast()
    }
}

/// # Safety
/// `host` came from [`TestHost::as_raw`].
unsafe fn test_host<'a>(host: *const abi::Host) -> &'a TestHost {
    // SAFETY: the table is the first field of a `TestHost`, and the pointer was made from the whole of it.
    unsafe { &*host.cast::<TestHost>() }
}

unsafe extern "C" fn log(host: *const abi::Host, level: u32, message: abi::Bytes) {
    // SAFETY: the engine passes its own host back, and text that is readable until this returns.
    let (host, text) = unsafe { (test_host(host), read::text(message)) };
    if let Ok(mut logs) = host.logs.lock() {
        logs.push((level, text.to_owned()));
    }
}

unsafe extern "C" fn count_tokens(_: *const abi::Host, text: abi::Bytes) -> u64 {
    // SAFETY: as in `log`.
    u64::from(hermes_message::estimate::tokens_of_text(unsafe {
        read::text(text)
    }))
}

unsafe extern "C" fn complete(
    host: *const abi::Host,
    args: *const abi::CompleteArgs,
) -> abi::Status {
    // SAFETY: the engine passes its own host back, and a complete struct.
    let (host, args) = unsafe { (test_host(host), &*args) };
    let Some(completer) = &host.completer else {
        return abi::ERR_UNSUPPORTED;
    };
    // SAFETY: readable until this returns.
    let answer = completer(unsafe { read::text(args.request) });
    if let Some(on_result) = args.on_result {
        // SAFETY: the engine's own callback with the engine's own `user`.
        unsafe { on_result(args.user, read::bytes(&answer)) };
    }
    abi::OK
}
