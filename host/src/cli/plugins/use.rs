//! `hermes plugins use NAME`.

use serde_json::json;

use super::super::config::edit_error;
use super::super::output;
use super::super::{CliError, Exit, Globals};
use crate::config::edit::{self, Outcome};
use crate::plugin::Catalog;

#[derive(Debug, clap::Args)]
pub(super) struct UseArgs {
    /// The engine's own name
    name: String,
    /// Write it although the engine would not serve
    #[arg(long)]
    force: bool,
}

pub(super) fn run(catalog: &Catalog, args: &UseArgs, globals: &Globals) -> Result<Exit, CliError> {
    let name = args.name.as_str();
    if name.is_empty() {
        return Err(CliError::usage("an engine's name is missing")
            .hint("`hermes plugins list` shows the names"));
    }
    // Choosing an engine by hand is the other chance for one that was set aside.
    catalog.forgive(name);
    let why = catalog.why(name);
    if let Some(failed) = why.failed() {
        if !args.force {
            let message = format!("{name} would not serve: {}", failed.detail);
            return Err(CliError::new("engine", message).hint(failed.fix.clone()));
        }
        output::warning(format!("{name} does not serve: {}", failed.detail));
    }
    let path = catalog.config().path();
    let outcome = edit::write_engine(path, name).map_err(|error| edit_error(&error))?;
    let changed = outcome != Outcome::Unchanged;
    if globals.json {
        output::json(&json!({"engine": name, "changed": changed, "path": path}))?;
    } else if changed {
        let said = if why.failed().is_none() {
            "serves from the next conversation on"
        } else {
            "is set, and serves as soon as it can"
        };
        output::text(format!("{name} {said} ({})", path.display()))?;
    } else {
        output::text(format!("{name} is set already ({})", path.display()))?;
    }
    Ok(Exit::Done)
}
