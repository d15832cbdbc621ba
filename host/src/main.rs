//! The `hermes` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    hermes::cli::main()
}
