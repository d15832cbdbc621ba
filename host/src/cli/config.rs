//! `hermes config get|set|path|check`: looking at `config.yaml` and changing one value of it.

use super::{CliError, Exit, Globals, output};
use crate::config::edit::{self, EditError, Outcome};
use crate::config::{Config, HermesHome, KeyPath, Problem, Serves, Severity, check};
use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::path::Path;

/// Arguments of `hermes config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print the value that holds for a key
    Get {
        /// A dotted key, such as context.engine
        key: String,
    },
    /// Change one value and nothing else of the file
    Set {
        /// A dotted key, such as context.engine
        key: String,
        /// The value: a number, true, false, null, or a text
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Write the value as a text, whatever it looks like
        #[arg(long)]
        text: bool,
    },
    /// Print where the file is
    Path,
    /// Name everything in the file that does not hold (exit 1 if there is something, 2 if nothing of it can be used)
    Check,
}

/// Runs the command. `serves` tells whether an engine would serve; without it, `check` does not ask.
pub fn run(
    args: ConfigArgs,
    globals: &Globals,
    serves: Option<Serves<'_>>,
) -> Result<Exit, CliError> {
    let home = HermesHome::from_env();
    let path = home.config_path();
    match args.command {
        ConfigCommand::Get { key } => get(&path, &key, globals),
        ConfigCommand::Set { key, value, text } => set(&path, &key, &value, text, globals),
        ConfigCommand::Path => show_path(&path, globals),
        ConfigCommand::Check => run_check(&home, globals, serves),
    }
}

fn get(path: &Path, key: &str, globals: &Globals) -> Result<Exit, CliError> {
    let names = KeyPath::parse(key).map_err(|error| CliError::usage(error.to_string()))?;
    let config = Config::from_file(path);
    refuse_broken(&config)?;
    let plain = names.names().join(".");
    for problem in config.problems() {
        let concerns = problem.key.as_deref().is_none_or(|at| {
            at == plain
                || plain.starts_with(&format!("{at}."))
                || at.starts_with(&format!("{plain}."))
        });
        if concerns {
            tell(problem);
        }
    }
    let in_file = config.get(key);
    let Some(value) = config.effective(&names) else {
        return Err(
            CliError::new("not_set", format!("{key} is not set in {}", path.display()))
                .hint(format!("`hermes config set {key} VALUE` sets it")),
        );
    };
    if globals.json {
        output::json(&json!({
            "key": key,
            "value": value,
            "source": if in_file.as_ref() == Some(&value) { "file" } else { "default" },
            "in_file": in_file,
            "path": path.display().to_string(),
            "line": config.place(key).map(|(line, _)| line),
        }))?;
    } else {
        output::text(as_text(&value))?;
    }
    Ok(Exit::Done)
}

fn set(
    path: &Path,
    key: &str,
    value: &str,
    text: bool,
    globals: &Globals,
) -> Result<Exit, CliError> {
    let set = if text {
        edit::set_text
    } else {
        edit::set_value
    };
    let outcome = set(path, key, value).map_err(|error| edit_error(&error))?;
    report_outcome(path, key, &outcome, globals)
}

/// Tells what an edit has done; `plugins use` ends with this too.
pub fn report_outcome(
    path: &Path,
    key: &str,
    outcome: &Outcome,
    globals: &Globals,
) -> Result<Exit, CliError> {
    let config = Config::from_file(path);
    // Nobody wants a key of a provider in the scroll-back or in a log.
    let hidden = KeyPath::parse(key).is_ok_and(|key| Config::is_secret(&key));
    let value = if hidden {
        Json::from("(hidden)")
    } else {
        config.get(key).unwrap_or(Json::Null)
    };
    let line = match outcome {
        Outcome::Changed { line } => Some(*line),
        Outcome::Unchanged => config.place(key).map(|(line, _)| line),
    };
    if globals.json {
        output::json(&json!({
            "key": key,
            "value": value,
            "changed": *outcome != Outcome::Unchanged,
            "path": path.display().to_string(),
            "line": line,
        }))?;
        return Ok(Exit::Done);
    }
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    let shown = as_text(&value);
    match outcome {
        Outcome::Changed { .. } => {
            output::text(format!("{key} is now {shown} ({}{line})", path.display()))?;
        }
        Outcome::Unchanged => output::text(format!(
            "{key} is {shown} already ({}{line}); the file was not touched",
            path.display()
        ))?,
    }
    Ok(Exit::Done)
}

/// What a person reads when a file was left as it is: exit 1, or 2 if the request itself was wrong.
pub fn edit_error(error: &EditError) -> CliError {
    let made = if error.is_usage() {
        CliError::usage(error.to_string())
    } else {
        CliError::new("refused", error.to_string())
    };
    made.hint(error.hint())
}

fn show_path(path: &Path, globals: &Globals) -> Result<Exit, CliError> {
    if globals.json {
        output::json(&json!({"path": path.display().to_string(), "exists": path.exists()}))?;
    } else {
        output::text(path.display())?;
    }
    Ok(Exit::Done)
}

fn run_check(
    home: &HermesHome,
    globals: &Globals,
    serves: Option<Serves<'_>>,
) -> Result<Exit, CliError> {
    let path = &home.config_path();
    let config = Config::from_file(path);
    let mut problems = check(&config, serves);
    problems.extend(crate::provider::check(&config, home));
    problems.sort_by_key(|problem| problem.line.unwrap_or(0));
    for problem in &problems {
        tell(problem);
    }
    // A file is as good on a machine that lacks a key as on the one that has it.
    let (notes, problems): (Vec<_>, Vec<_>) = problems
        .into_iter()
        .partition(|problem| problem.severity == Severity::Note);
    if globals.json {
        let list: Vec<Json> = problems.iter().map(as_json).collect();
        let notes: Vec<Json> = notes.iter().map(as_json).collect();
        output::json(&json!({
            "path": path.display().to_string(),
            "exists": config.exists(),
            "ok": problems.is_empty(),
            "engine": config.engine_name(),
            "problems": list,
            "notes": notes,
        }))?;
    } else {
        let shown = path.display();
        match (problems.len(), config.exists()) {
            (0, true) => output::text(format!("{shown}: no problem"))?,
            (0, false) => output::text(format!("{shown}: not there, defaults are used"))?,
            (1, _) => output::text(format!("{shown}: 1 problem"))?,
            (count, _) => output::text(format!("{shown}: {count} problems"))?,
        }
    }
    // Whatever its shape, a file of which nothing is read is wrong configuration.
    let unusable = problems
        .iter()
        .any(|problem| problem.severity == Severity::Error);
    Ok(if unusable || config.is_broken() {
        Exit::Usage
    } else if problems.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    })
}

fn refuse_broken(config: &Config) -> Result<(), CliError> {
    let fatal = config
        .problems()
        .iter()
        .find(|problem| problem.severity == Severity::Error);
    match fatal {
        Some(problem) if config.is_broken() => {
            let place = match (problem.line, problem.column) {
                (Some(line), Some(column)) => format!(":{line}:{column}"),
                _ => String::new(),
            };
            let message = format!("{}{place}: {}", problem.path.display(), problem.message);
            Err(CliError::config(message).hint(problem.hint.clone()))
        }
        _ => Ok(()),
    }
}

/// One line of stderr for one problem.
fn tell(problem: &Problem) {
    let line = output::one_line(&problem.to_string());
    // A closed stderr leaves nobody to tell.
    let _ = writeln!(
        std::io::stderr().lock(),
        "{}: {line}",
        problem.severity.as_str()
    );
}

fn as_json(problem: &Problem) -> Json {
    json!({
        "severity": problem.severity.as_str(),
        "kind": problem.kind.as_str(),
        "line": problem.line,
        "column": problem.column,
        "key": problem.key,
        "message": problem.message,
        "hint": problem.hint,
    })
}

/// A single value as itself, a section as YAML.
fn as_text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(_) | Json::Object(_) => serde_yaml::to_string(value)
            .unwrap_or_default()
            .trim_end()
            .to_owned(),
        other => other.to_string(),
    }
}
