//! `hermes plugins`: which engines there are, why one does not serve, and choosing one.

mod list;
mod show;
mod r#use;
mod why;

use super::output;
use super::{CliError, Exit, Globals};
use crate::config::{Config, HermesHome};
use crate::plugin::{Catalog, Entry, ScanOptions};

/// List, explain and choose context engines
#[derive(Debug, clap::Args)]
pub struct PluginsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List every plugin, the built-in engine first; runs none of them
    List,
    /// Show all that is known about one plugin
    Show(Name),
    /// Say step by step why an engine serves or does not
    Why(Name),
    /// Make an engine the one that serves
    Use(r#use::UseArgs),
}

#[derive(Debug, clap::Args)]
struct Name {
    /// The engine's own name; a plugin's or a folder's name shows the engine in it
    name: String,
}

/// Runs `hermes plugins …`.
///
/// # Errors
/// What the user asked for cannot be done, or does not serve.
pub fn run(args: PluginsArgs, globals: &Globals) -> Result<Exit, CliError> {
    let home = HermesHome::from_env();
    let config = Config::load(&home);
    for problem in config.problems() {
        output::warning(problem);
    }
    let catalog = Catalog::scan(ScanOptions::new(home, config));
    for problem in catalog.problems() {
        output::warning(problem);
    }
    match args.command {
        Command::List => list::run(&catalog, globals),
        Command::Show(name) => show::run(&catalog, &name.name, globals),
        Command::Why(name) => why::run(&catalog, &name.name, globals),
        Command::Use(args) => r#use::run(&catalog, &args, globals),
    }
}

/// The plugin of that name, or an error that says which one was probably meant.
fn find<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Entry, CliError> {
    catalog
        .find(name)
        .ok_or_else(|| match catalog.select(name) {
            Err(error) => CliError::new("engine", error.to_string()).hint(error.fix()),
            Ok(_) => CliError::new("engine", format!("no plugin is called {name:?}")),
        })
}

/// Text from files, made fit for a terminal.
fn shown(text: &str) -> String {
    output::one_line(text)
}

/// Whether the engine of this name would serve, and why not; what `hermes config check` asks.
pub(super) fn would_serve(name: &str) -> Result<(), String> {
    let home = HermesHome::from_env();
    let config = Config::load(&home);
    let why = Catalog::scan(ScanOptions::new(home, config)).why(name);
    match why.failed() {
        None => Ok(()),
        Some(step) if step.fix.is_empty() => Err(step.detail.clone()),
        Some(step) => Err(format!("{}; {}", step.detail, step.fix)),
    }
}
