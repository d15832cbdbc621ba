//! What the slash commands do. Their results go to stdout: in a pipe they are what was asked for.

use std::path::Path;

use serde_json::Value;

use super::super::files::NewFile;
use super::super::{CliError, output, sessions};
use super::command::{self, Command};
use super::printer::{self, Printer};
use super::status::{self, thousands};
use crate::agent::{Agent, AgentError, Host};
use crate::context::{Outcome, checks};
use crate::store::{Store, StoreError};

/// Sessions that `/resume` lists.
const LISTED: usize = 10;

/// What comes after a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next line.
    On,
    /// The next line, with this to begin with.
    Edit(String),
    /// The end.
    Quit,
}

/// Carries a command out.
pub(super) fn act(agent: &mut Agent, host: &Host, command: Command) -> Result<Flow, CliError> {
    match command {
        Command::Quit => return Ok(Flow::Quit),
        Command::Help => output::text(command::help(agent.engine()))?,
        Command::Status => output::text(status::table(&agent.status()))?,
        Command::Tools => tools(agent)?,
        Command::Engine(words) => engine(agent, &words)?,
        Command::Compress(focus) => compress(agent, focus.as_deref())?,
        Command::New => {
            agent.new_session();
            output::text(format!("A new session: {}", agent.session_id()))?;
        }
        Command::Resume(None) => list(host)?,
        Command::Resume(Some(id)) => {
            agent.resume(&id)?;
            output::text(format!(
                "Going on with session {}: {} messages",
                agent.session_id(),
                thousands(agent.status().messages as u64)
            ))?;
        }
        Command::Branch => {
            let from = agent.session_id().to_owned();
            agent.branch().map_err(nothing_yet)?;
            output::text(format!(
                "Going on in session {}, a copy of {from}",
                agent.session_id()
            ))?;
        }
        Command::Rewind(turns) => return rewind(agent, turns),
        Command::Model(None) => output::text(status::model(&agent.status()))?,
        Command::Model(Some(name)) => {
            agent.switch_model(&name);
            let window = agent.status().context_length;
            output::text(format!(
                "Talking to {name} from now on, a window of {} tokens",
                thousands(window)
            ))?;
        }
        Command::Export(file) => export(agent, host, file.as_deref())?,
    }
    Ok(Flow::On)
}

fn tools(agent: &Agent) -> Result<(), CliError> {
    let names = agent.tool_names();
    if names.is_empty() {
        return output::text("The model has no tools.");
    }
    output::text(names.join("\n"))
}

fn engine(agent: &mut Agent, words: &[String]) -> Result<(), CliError> {
    if !words.is_empty() {
        let answer = agent
            .engine_command(words)
            .map_err(|why| CliError::new("engine", why))?;
        return output::text(printer::harmless(answer.trim_end()));
    }
    let status = agent.status();
    let mut lines = vec![format!("engine: {}", status.engine)];
    if let Some((wanted, reason)) = &status.fallback {
        lines.push(format!("instead of '{wanted}': {reason}"));
    }
    if let Value::Object(figures) = agent.engine_status() {
        for (name, value) in figures {
            lines.push(output::one_line(&match value {
                Value::String(text) => format!("{name}: {text}"),
                value => format!("{name}: {value}"),
            }));
        }
    }
    output::text(lines.join("\n"))
}

fn compress(agent: &mut Agent, focus: Option<&str>) -> Result<(), CliError> {
    let before = agent.status().messages as u64;
    let mut printer = Printer::new(agent.interrupt(), true);
    let outcome = agent.compress(focus, &mut |event| printer.show(event));
    let after = agent.status().messages as u64;
    for warning in agent.take_warnings() {
        output::warning(warning);
    }
    match outcome {
        Outcome::Committed {
            tokens_before,
            tokens_after,
        } => output::text(format!(
            "Compressed: {} messages (~{} tokens) → {} messages (~{} tokens)",
            thousands(before),
            thousands(tokens_before),
            thousands(after),
            thousands(tokens_after)
        )),
        Outcome::Unchanged { reason } if reason.is_empty() => {
            output::text("Not compressed: there is nothing to leave out.")
        }
        Outcome::Unchanged { reason } => {
            output::text(format!("Not compressed: {}", output::one_line(&reason)))
        }
        Outcome::Refused { violations } => Err(failed(format!(
            "the engine's result was refused, and nothing has changed: {}",
            checks::summary(&violations)
        ))),
        Outcome::Failed { reason } => Err(failed(format!(
            "compression failed, and nothing has changed: {reason}"
        ))),
        Outcome::Busy => Err(failed("a compression is under way already")),
        Outcome::Skipped { reason } => Err(failed(format!("not compressed: {reason}"))),
    }
}

fn failed(message: impl Into<String>) -> CliError {
    CliError::new("failed", message)
}

fn rewind(agent: &mut Agent, turns: usize) -> Result<Flow, CliError> {
    let rewound = agent.rewind(turns).map_err(nothing_yet)?;
    let text = rewound.target.text().into_owned();
    let mut line = format!(
        "Taken back: {} messages, from \"{}\" on",
        rewound.removed,
        beginning(&text)
    );
    if rewound.passes_undone > 0 {
        line.push_str(&format!("; compressions undone: {}", rewound.passes_undone));
    }
    output::text(line)?;
    Ok(Flow::Edit(text))
}

/// The first words of a message, on one line.
fn beginning(text: &str) -> String {
    const SHOWN: usize = 60;
    let line = output::one_line(text);
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn store<'a>(host: &'a Host, doing: &'static str) -> Result<&'a Store, CliError> {
    match host.store() {
        Some(store) => Ok(store),
        None => Err(AgentError::NoStore(doing).into()),
    }
}

fn list(host: &Host) -> Result<(), CliError> {
    let listed = store(host, "resume")?.sessions(LISTED)?;
    if listed.is_empty() {
        return output::text("No sessions yet.");
    }
    output::text(sessions::table(&listed))
}

fn export(agent: &Agent, host: &Host, file: Option<&str>) -> Result<(), CliError> {
    let id = agent.session_id();
    let text = store(host, "export")?
        .export(id)
        .map_err(|error| nothing_yet(error.into()))?;
    let name = match file {
        Some(name) => name.to_owned(),
        None => format!("hermes-{}.jsonl", in_a_name(id)),
    };
    let path = Path::new(&name);
    if path.symlink_metadata().is_ok() {
        return Err(
            CliError::new("io", format!("{name} exists already, and is not replaced"))
                .hint("name another file: /export FILE"),
        );
    }
    let mut new = NewFile::create(path)?;
    new.write(text.as_bytes())?;
    new.write(b"\n")?;
    new.finish()?;
    output::text(format!("Written to {name}"))
}

/// As much of an id as a file name may hold: imported sessions have any.
fn in_a_name(id: &str) -> String {
    let plain = |c: &char| c.is_alphanumeric() || "-_".contains(*c);
    id.chars().filter(plain).take(60).collect()
}

/// A session that nothing was said in is not in the store.
fn nothing_yet(error: AgentError) -> CliError {
    match error {
        AgentError::Store(StoreError::NoSession { .. }) => {
            CliError::new("input", "nothing has been said in this session yet")
        }
        error => error.into(),
    }
}
