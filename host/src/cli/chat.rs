//! `hermes chat`: a conversation on the command line.
//!
//! Three ways in: `-q` answers once; a terminal gets a line editor; anything else on the standard input is read line
//! by line, each line a message or a command. Answers go to stdout, everything else to stderr. What shows that
//! something is under way (tools, passes, the status line) is for people and shown only where stderr is a terminal.

mod act;
mod command;
mod desk;
mod editor;
mod input;
mod once;
mod printer;
mod status;
mod talk;

use std::io::{IsTerminal, Read};

use super::{CliError, Exit, Globals, output};
use crate::agent::{AgentError, AgentOptions, Begin, Host, HostError, HostOptions, registry};
use crate::config::{Config, HermesHome};
use crate::provider::NoModel;
use desk::Desk;

/// A question from the standard input may be this long.
const LONGEST: u64 = 16 << 20;

/// Arguments of `hermes chat`.
#[derive(Debug, clap::Args)]
pub struct ChatArgs {
    /// Answer this one message and exit; - takes all of the standard input as the message
    #[arg(short, long, value_name = "TEXT")]
    query: Option<String>,
    /// Go on with a stored session, named by the beginning of its id
    #[arg(long, value_name = "ID", conflicts_with = "continue_last")]
    resume: Option<String>,
    /// Go on with the session that was used last
    #[arg(long = "continue")]
    continue_last: bool,
    /// The context engine [default: the configured one]
    #[arg(long, value_name = "NAME", conflicts_with = "safe_mode")]
    engine: Option<String>,
    /// The model [default: model.default]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Use the built-in engine and load no plugin
    #[arg(long)]
    safe_mode: bool,
}

/// Talks until there is nothing more to say.
pub fn run(args: ChatArgs, globals: &Globals) -> Result<Exit, CliError> {
    let question = args.question()?;
    if globals.json && question.is_none() {
        return Err(
            CliError::usage("--json is for one answer, and there is no question").hint(
                "`hermes chat -q TEXT --json`, or `-q -` for a question from the standard input",
            ),
        );
    }
    output::keep_stdout();
    let desk = Desk::new();
    desk.listen()?;
    let host = match open(&args) {
        Ok(host) => host,
        Err(error) => {
            // What is wrong with the configuration may be why there is no model.
            for problem in registry::problems(&Config::load(&HermesHome::from_env())) {
                output::warning(problem);
            }
            return match error {
                HostError::NoModel(no_model @ NoModel::Unset) if !globals.json => {
                    Ok(say_how_to_set_a_model(&no_model))
                }
                error => Err(error.into()),
            };
        }
    };
    let mut warnings = host.take_warnings();
    if let (Some((wanted, reason)), true) = (host.fallback(), args.engine.is_some()) {
        return Err(does_not_serve(wanted, reason));
    }
    let mut agent = host.agent(AgentOptions {
        begin: args.begin(),
        ..AgentOptions::default()
    })?;
    warnings.extend(agent.take_warnings());
    for warning in &warnings {
        output::warning(warning);
    }
    desk.seat(agent);
    match question {
        Some(question) => once::answer(&desk, &question, warnings, globals.json),
        None => talk::talk(&desk, &host),
    }
}

impl ChatArgs {
    /// The text of `-q`.
    fn question(&self) -> Result<Option<String>, CliError> {
        let Some(text) = &self.query else {
            return Ok(None);
        };
        let text = if text == "-" {
            whole_input()?
        } else {
            text.clone()
        };
        if text.trim().is_empty() {
            return Err(CliError::usage("the message is empty").hint(
                "`hermes chat -q TEXT` answers TEXT; `-q -` reads it from the standard input",
            ));
        }
        Ok(Some(text))
    }

    fn begin(&self) -> Begin {
        match &self.resume {
            Some(id) => Begin::Resume(id.clone()),
            None if self.continue_last => Begin::Latest,
            None => Begin::New,
        }
    }
}

fn whole_input() -> Result<String, CliError> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(CliError::usage(
            "-q - reads the message from the standard input, which is a terminal",
        )
        .hint("`hermes chat -q TEXT`, or `hermes chat` for a conversation"));
    }
    let mut bytes = Vec::new();
    stdin
        .lock()
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CliError::input(format!("cannot read the standard input: {error}")))?;
    if bytes.len() as u64 > LONGEST {
        return Err(
            CliError::input(format!("the message has more than {} MiB", LONGEST >> 20))
                .hint("name the file in the message; the model can read it piece by piece"),
        );
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn open(args: &ChatArgs) -> Result<Host, HostError> {
    Host::open(HostOptions {
        engine: args.engine.clone(),
        model: args.model.clone(),
        safe_mode: args.safe_mode,
        ..HostOptions::default()
    })
}

/// Two lines: how to set a model, and how to do without.
fn say_how_to_set_a_model(no_model: &NoModel) -> Exit {
    let text = no_model.to_string();
    let (first, second) = text.split_once('\n').unwrap_or((&text, ""));
    output::error(&CliError::config(first));
    if !second.is_empty() {
        output::hint(second);
    }
    Exit::Usage
}

fn does_not_serve(wanted: &str, reason: &str) -> CliError {
    CliError::new(
        "engine",
        format!("context engine '{wanted}' does not serve: {reason}"),
    )
    .hint(format!("`hermes plugins why {wanted}` says more"))
    .exit(Exit::Usage)
}

impl From<HostError> for CliError {
    fn from(error: HostError) -> Self {
        let text = error.to_string();
        match error {
            HostError::NoModel(_) => {
                let (first, second) = text.split_once('\n').unwrap_or((&text, ""));
                CliError::config(first).hint(second)
            }
            _ => CliError::new("engine", text),
        }
    }
}

impl From<AgentError> for CliError {
    fn from(error: AgentError) -> Self {
        let text = error.to_string();
        match error {
            AgentError::Store(error) => error.into(),
            AgentError::NoStore(_) | AgentError::Unsaved(_) => CliError::new("store", text),
            AgentError::Open(_) => CliError::new("busy", text),
            _ => CliError::new("engine", text),
        }
    }
}
