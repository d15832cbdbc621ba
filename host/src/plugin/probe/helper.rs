//! Which program tries a library.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{ROLE, child};
use crate::plugin::discover::bundled::program_folder;

/// This program calls [`helper_main`] first thing, so it can be its own helper.
static SELF_IS_HELPER: AtomicBool = AtomicBool::new(false);

/// For programs that embed the host: call this first thing in `main`, and return what it returns, if anything.
///
/// A plugin is tried in a child process before it is loaded. With this call your program is that child's program, too;
/// without it, `HERMES_HELPER` must name the `hermes` program, or `hermes` must lie beside yours.
///
/// ```no_run
/// # use std::process::ExitCode;
/// fn main() -> ExitCode {
///     if let Some(exit) = hermes::helper_main() {
///         return exit;
///     }
///     // your program
///     ExitCode::SUCCESS
/// }
/// ```
#[must_use = "in the role of a helper, the program ends with this status"]
pub fn helper_main() -> Option<ExitCode> {
    let mut args = env::args_os().skip(1);
    if args.next().is_none_or(|role| role != ROLE) {
        SELF_IS_HELPER.store(true, Ordering::Relaxed);
        return None;
    }
    match (args.next(), args.next()) {
        (Some(task), Some(scratch)) if task == "probe" => Some(child::main(Path::new(&scratch))),
        _ => Some(ExitCode::from(2)),
    }
}

/// The program to use: the given one, `HERMES_HELPER`, `hermes` beside this program, or this program.
pub(crate) fn find(given: Option<&Path>) -> Option<PathBuf> {
    if let Some(given) = given {
        return Some(given.to_owned());
    }
    if let Some(named) = env::var_os("HERMES_HELPER").filter(|value| !value.is_empty()) {
        return Some(PathBuf::from(named));
    }
    let program = env::current_exe().ok()?;
    if SELF_IS_HELPER.load(Ordering::Relaxed) {
        return Some(program);
    }
    let name = format!("hermes{}", env::consts::EXE_SUFFIX);
    let beside = program_folder(&program)?.join(name);
    beside.is_file().then_some(beside)
}
