//! The command line: one file a command, and the conventions they share.
//!
//! A command is a `clap` argument struct and a function `run(args, &Globals) -> Result<Exit, CliError>`. It
//! prints its result through [`output`] and reports what went wrong as a [`CliError`]; this file is the only place
//! where either becomes bytes on a terminal and a process status.

pub mod chat;
pub mod completions;
pub mod compress;
pub mod config;
pub mod engines;
pub mod error;
pub mod files;
pub mod output;
pub mod plugins;
pub mod replay;
pub mod sessions;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use error::{CliError, Exit};

/// Options that every command understands.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Globals {
    /// Print exactly one JSON value instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Log more to logs/hermes.log in HERMES_HOME (-v debug, -vv trace); HERMES_LOG takes a filter instead
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

#[derive(Debug, Parser)]
#[command(
    name = "hermes",
    about = "A host for compiled context engines",
    disable_help_subcommand = true
)]
struct Root {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Talk to a model; a context engine keeps the conversation within its window
    Chat(chat::ChatArgs),
    /// Look at config.yaml and change one value of it
    Config(config::ConfigArgs),
    /// List, explain and choose context engines
    Plugins(plugins::PluginsArgs),
    /// Replay recorded conversations through one or several engines, side by side
    Replay(replay::ReplayArgs),
    /// Run one compression pass over a recorded conversation
    Compress(compress::CompressArgs),
    /// List, search, export and mend stored conversations
    Sessions(sessions::SessionsArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
}

/// What `--version` prints: the program, that it is the Rust host, and the engine ABI it speaks.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (Rust host, engine ABI 1.0)");

// The text above is a literal, so that printing it costs nothing; this keeps it true.
const _: () = assert!(hermes_engine_abi::ABI_MAJOR == 1 && hermes_engine_abi::ABI_MINOR == 0);

/// The whole command line as `clap` sees it.
pub fn command() -> clap::Command {
    Root::command().version(VERSION)
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let (json, outcome) = match parse(&args) {
        Ok(root) => (root.globals.json, dispatch(root)),
        Err(refused) => (wants_json(&args), parse_outcome(&refused)),
    };
    let exit = output::finish(json, outcome);
    crate::engine::leave(exit.code());
    exit.into()
}

fn parse(args: &[OsString]) -> Result<Root, clap::Error> {
    let matches = command().try_get_matches_from(args)?;
    Root::from_arg_matches(&matches)
}

fn dispatch(root: Root) -> Result<Exit, CliError> {
    let globals = root.globals;
    output::expect_json(globals.json);
    crate::logging::init(globals.verbose);
    match root.command {
        Command::Chat(args) => chat::run(args, &globals),
        Command::Config(args) => config::run(args, &globals, Some(&plugins::would_serve)),
        Command::Plugins(args) => plugins::run(args, &globals),
        Command::Replay(args) => replay::run(args, &globals),
        Command::Compress(args) => compress::run(args, &globals),
        Command::Sessions(args) => sessions::run(args, &globals),
        Command::Completions(args) => completions::run(args, &globals),
    }
}

/// `--help` and `--version` arrive as clap "errors" and are results; everything else is wrong use.
fn parse_outcome(error: &clap::Error) -> Result<Exit, CliError> {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::text(error.render().to_string().trim_end())?;
            Ok(Exit::Done)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(CliError::usage("a command is missing").hint("`hermes --help` lists them"))
        }
        _ => {
            let text = error.render().to_string();
            let first = text
                .lines()
                .take_while(|line| !line.is_empty())
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(" ");
            let message = first.strip_prefix("error: ").unwrap_or(&first).to_owned();
            Err(CliError::usage(message)
                .hint("`hermes --help` and `hermes COMMAND --help` show what goes where"))
        }
    }
}

/// Whether the caller asked for JSON, read from arguments that clap has refused.
fn wants_json(args: &[OsString]) -> bool {
    args.iter()
        .take_while(|arg| *arg != "--")
        .any(|arg| arg == "--json")
}
