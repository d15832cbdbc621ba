//! `hermes completions SHELL`: a completion script on stdout.

use std::io::{self, Write};

use clap_complete::Shell;

use super::{CliError, Exit, Globals};

/// Arguments of `hermes completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell to complete for
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub fn run(args: CompletionsArgs, _globals: &Globals) -> Result<Exit, CliError> {
    // `generate` panics on a closed pipe, so it writes to memory first.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "hermes", &mut script);
    let mut out = io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::Done)
}
