//! The one runtime behind all requests of a process.

use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

/// The runtime, made on first use and never torn down: connections are kept open between requests.
///
/// One worker is enough. It moves bytes; everything else happens on the thread that asks.
pub(super) fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    RUNTIME
        .get_or_init(|| {
            Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name("hermes-provider")
                .enable_io()
                .enable_time()
                .build()
                .map_err(|error| error.to_string())
        })
        .as_ref()
        .map_err(|error| io::Error::other(error.clone()))
}
