//! The log: `$HERMES_HOME/logs/hermes.log`, rotated by size, with secrets blotted out.
//!
//! The file is opened when the first record is written, so a command that logs nothing touches nothing. Logging
//! never fails a command: what cannot be written is dropped.

mod file;

use std::path::PathBuf;

use tracing_subscriber::EnvFilter;

use file::LogFile;

/// Starts the log for this process. `verbose` counts `-v`; `HERMES_LOG` (a level or a `tracing` filter) wins over it.
///
/// A second call, or one in a program that has set its own subscriber, changes nothing.
pub fn init(verbose: u8) {
    let level = match verbose {
        0 => "info",
        1 => "debug",
        _ => "trace",
    };
    let filter = std::env::var("HERMES_LOG")
        .ok()
        .filter(|text| !text.trim().is_empty())
        .and_then(|text| EnvFilter::try_new(text).ok())
        .unwrap_or_else(|| EnvFilter::new(level));
    let Some(path) = path() else { return };
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(LogFile::new(path))
        .try_init();
}

/// Where the log of this process goes; `None` if there is no home directory.
pub fn path() -> Option<PathBuf> {
    let home = match std::env::var_os("HERMES_HOME") {
        Some(home) if !home.is_empty() => PathBuf::from(home),
        _ => dirs::home_dir()?.join(".hermes"),
    };
    Some(home.join("logs").join("hermes.log"))
}
