//! The `hermes` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    // In the role of a helper, this process only tries one plugin for another one.
    if let Some(exit) = hermes::helper_main() {
        return exit;
    }
    hermes::cli::main()
}
