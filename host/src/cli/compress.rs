//! `hermes compress FILE`: one pass over a recorded conversation.

use std::path::PathBuf;

use hermes_message::{Message, format};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::engines::{Engines, Served, Surroundings};
use super::files::{self, NewFile};
use super::{CliError, Exit, Globals, output, replay};
use crate::config::BUILT_IN_ENGINE;
use crate::context::request::Frame;
use crate::context::transcript::tokens;
use crate::context::{Conversation, Engine, Outcome, Settings, checks};
use crate::engine::StartReason;
use crate::replay::report::Fallback;

/// Arguments of `hermes compress`.
#[derive(Debug, clap::Args)]
pub struct CompressArgs {
    /// A recorded conversation: a JSON array of messages, an object with "messages", or JSONL of either
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the result to this file instead of stdout; nothing is written unless the pass succeeds
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// The engine [default: the configured one]
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    #[command(flatten)]
    around: Surroundings,
    /// How many tokens the whole request has [default: the estimate]
    #[arg(long, value_name = "N")]
    current_tokens: Option<u64>,
    /// What the summary is to favour
    #[arg(long, value_name = "TEXT")]
    focus: Option<String>,
    /// Messages after the system prompt that stay as they are (built-in engine)
    #[arg(long, value_name = "N")]
    protect_first: Option<u32>,
    /// Messages at the end that stay as they are (built-in engine)
    #[arg(long, value_name = "N")]
    protect_last: Option<u32>,
    /// Which conversation of a file with several, from 0
    #[arg(long, value_name = "N")]
    conversation: Option<usize>,
}

/// Compresses, and prints or writes the result.
pub fn run(args: CompressArgs, globals: &Globals) -> Result<Exit, CliError> {
    let file = files::read_conversations(&args.file)?;
    let index = which(&args, &file)?;
    let engines = Engines::open(&args.around, None, overrides(&args))?;
    let served = match &args.engine {
        Some(name) => engines.named(name)?,
        None => engines.configured()?,
    };
    if !overrides(&args).is_empty() && served.name != BUILT_IN_ENGINE {
        output::warning(format!(
            "--protect-first and --protect-last are settings of '{BUILT_IN_ENGINE}'; '{}' has its own",
            served.name
        ));
    }
    // Begun before the work, so that a folder that cannot be written to is found out first.
    let out = args.output.as_deref().map(NewFile::create).transpose()?;
    let pass = pass(&args, &engines, &served, &file.conversations[index])?;
    for warning in &pass.warnings {
        output::warning(warning);
    }
    let text = pass
        .succeeded()
        .then(|| format::write_conversation(&file, index, &pass.after));
    if let (Some(mut out), Some(text)) = (out, &text) {
        out.write(text.as_bytes())?;
        out.finish()?;
    }
    print(&args, globals, &pass, text.as_deref())
}

/// A pass that is over.
struct Pass {
    /// The engine that served.
    engine: String,
    /// Set when another one was wanted.
    fallback: Option<Fallback>,
    outcome: Outcome,
    before: Vec<Message>,
    after: Vec<Message>,
    warnings: Vec<String>,
}

impl Pass {
    fn succeeded(&self) -> bool {
        matches!(
            self.outcome,
            Outcome::Committed { .. } | Outcome::Unchanged { .. }
        )
    }

    /// The word for programs, and why.
    fn told(&self) -> (&'static str, String) {
        match &self.outcome {
            Outcome::Committed { .. } => ("compressed", String::new()),
            Outcome::Unchanged { reason } => ("unchanged", reason.clone()),
            Outcome::Refused { violations } => ("refused", checks::summary(violations)),
            Outcome::Failed { reason } => ("failed", reason.clone()),
            Outcome::Busy => ("failed", "another pass is running".to_owned()),
            Outcome::Skipped { reason } => ("failed", reason.clone()),
        }
    }
}

fn which(args: &CompressArgs, file: &format::File) -> Result<usize, CliError> {
    let count = file.conversations.len();
    let shown = args.file.display();
    match args.conversation {
        Some(index) if index < count => Ok(index),
        Some(index) => Err(
            CliError::usage(format!("{shown} has no conversation {index}"))
                .hint(format!("it has {count}, counted from 0")),
        ),
        None if count == 1 => Ok(0),
        None => Err(
            CliError::usage(format!("{shown} has {count} conversations"))
                .hint("choose one with --conversation N, counted from 0"),
        ),
    }
}

fn overrides(args: &CompressArgs) -> Vec<(&'static str, u64)> {
    let first = args
        .protect_first
        .map(|count| ("protect_first_n", u64::from(count)));
    let last = args
        .protect_last
        .map(|count| ("protect_last_n", u64::from(count)));
    first.into_iter().chain(last).collect()
}

fn pass(
    args: &CompressArgs,
    engines: &Engines,
    served: &Served,
    recorded: &format::Conversation,
) -> Result<Pass, CliError> {
    let mut engine = engines.agent(served, args.engine.is_some())?;
    let tools = replay::tools(recorded.tools.as_deref())
        .map_err(|reason| CliError::input(format!("{}: {reason}", args.file.display())))?;
    let settings = Settings {
        session_id: "compress".to_owned(),
        pass_prefix: "compress-pass-".to_owned(),
        context_length: engines.context_length(),
        platform: "compress".to_owned(),
        ..Settings::default()
    };
    let mut conversation = Conversation::new(settings, Frame::new(engines.model(), &tools));
    for message in &recorded.messages {
        conversation.push(message.clone());
    }
    conversation.start(&mut engine, StartReason::Resume);
    // Nothing is stored, so nothing gets a uid that it did not have.
    let mut keep = |_: &str, messages: Vec<Message>| Ok(messages);
    let outcome = conversation.force(
        &mut engine,
        args.focus.clone(),
        args.current_tokens,
        &mut keep,
    );
    conversation.end(&mut engine);
    let mut warnings = engine.take_notices();
    // A refusal is this command's result and is told as such.
    if !matches!(outcome, Outcome::Refused { .. }) {
        warnings.extend(conversation.take_warnings());
    }
    Ok(Pass {
        engine: engine.name().to_owned(),
        fallback: engine
            .fallen_back()
            .map(|(wanted, reason)| Fallback { wanted, reason }),
        outcome,
        before: recorded.messages.clone(),
        after: conversation.transcript().messages().to_vec(),
        warnings,
    })
}

fn print(
    args: &CompressArgs,
    globals: &Globals,
    pass: &Pass,
    text: Option<&str>,
) -> Result<Exit, CliError> {
    let (outcome, reason) = pass.told();
    let failure = (!pass.succeeded()).then(|| {
        CliError::new(
            outcome,
            format!(
                "the pass of '{}' {}: {reason}",
                pass.engine,
                if outcome == "refused" {
                    "was refused"
                } else {
                    "failed"
                }
            ),
        )
        .hint("nothing was written; try another engine with --engine")
    });
    if !globals.json {
        if let Some(failure) = failure {
            return Err(failure);
        }
        match (&args.output, text) {
            (None, Some(text)) => output::raw(text)?,
            (Some(out), _) => output::text(format!(
                "{outcome} by {}: {} -> {} messages, ~{} -> ~{} tokens, written to {}{}",
                pass.engine,
                pass.before.len(),
                pass.after.len(),
                tokens(&pass.before),
                tokens(&pass.after),
                out.display(),
                if reason.is_empty() {
                    String::new()
                } else {
                    format!(" ({reason})")
                },
            ))?,
            (None, None) => {}
        }
        return Ok(Exit::Done);
    }
    let mut value = json!({
        "outcome": outcome,
        "reason": reason,
        "engine": pass.engine,
        "fallback": pass.fallback,
        "messages_before": pass.before.len(),
        "messages_after": pass.after.len(),
        "tokens_before": tokens(&pass.before),
        "tokens_after": tokens(&pass.after),
    });
    if let Some(failure) = &failure {
        value["error"] = failure.to_json();
    }
    output::raw(&with_messages(
        &value,
        args.output.is_none() && failure.is_none(),
        &pass.after,
    )?)?;
    match failure {
        None => Ok(Exit::Done),
        Some(failure) => {
            output::error(&failure);
            Ok(failure.exit)
        }
    }
}

/// The object with its messages, each as it is written: a detour over parsed values would respell their numbers.
fn with_messages(value: &Value, wanted: bool, messages: &[Message]) -> Result<String, CliError> {
    let mut text = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
    if wanted {
        let list: Result<Vec<Box<RawValue>>, _> = messages
            .iter()
            .map(|message| RawValue::from_string(message.to_json_with_identity()))
            .collect();
        let list = serde_json::to_string_pretty(&list.map_err(std::io::Error::from)?)
            .map_err(std::io::Error::from)?;
        let end = text.trim_end_matches('}').trim_end().len();
        text.truncate(end);
        text.push_str(&format!(
            ",\n  \"messages\": {}\n}}",
            list.replace('\n', "\n  ")
        ));
    }
    text.push('\n');
    Ok(text)
}
