//! `hermes replay FILE…`: recorded conversations through one or several engines, side by side.

mod table;

use std::path::PathBuf;
use std::sync::Arc;

use hermes_message::{format, repair};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::value::RawValue;

use super::engines::{Engines, Served, Surroundings};
use super::files::{self, NewFile};
use super::{CliError, Exit, Globals, output};
use crate::context::Settings;
use crate::replay::report::{ConversationReport, EngineReport, RepairLine};
use crate::replay::{Player, SentRequest, Tokens};

/// Arguments of `hermes replay`.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// Recorded conversations: a JSON array of messages, an object with "messages", or JSONL of either
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// An engine to replay with; several are shown side by side [default: the configured one]
    #[arg(long = "engine", value_name = "NAME")]
    engines: Vec<String>,
    #[command(flatten)]
    around: Surroundings,
    /// The model's name, for requests and thresholds [default: model.default]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// How tokens are counted
    #[arg(long, value_enum, default_value = "estimate")]
    tokens: Tokens,
    /// Write every final request body to this file, one a line
    #[arg(long, value_name = "OUT.jsonl")]
    requests: Option<PathBuf>,
}

/// One conversation to be played.
struct Recording {
    file: String,
    conversation: usize,
    content: format::Conversation,
    tools: Vec<Arc<str>>,
}

/// Replays, and prints the report.
pub fn run(args: ReplayArgs, globals: &Globals) -> Result<Exit, CliError> {
    let recordings = read(&args.files)?;
    let engines = Engines::open(&args.around, args.model, Vec::new())?;
    let explicit = !args.engines.is_empty();
    let served: Vec<Served> = if explicit {
        args.engines
            .iter()
            .map(|name| engines.named(name))
            .collect::<Result<_, _>>()?
    } else {
        vec![engines.configured()?]
    };
    let mut out = args.requests.as_deref().map(NewFile::create).transpose()?;
    let progress = progress(&recordings, served.len());
    let mut reports = Vec::new();
    for recording in &recordings {
        let mut report = begin(recording, &engines, args.tokens);
        for served in &served {
            let agent = engines.agent(served, explicit)?;
            let player = Play {
                recording,
                engines: &engines,
                tokens: args.tokens,
            };
            report
                .engines
                .push(player.play(agent, out.as_mut(), &progress)?);
        }
        reports.push(report);
    }
    progress.finish_and_clear();
    if let Some(out) = out {
        out.finish()?;
    }
    print(&reports, globals)?;
    let broken = reports
        .iter()
        .flat_map(|report| &report.engines)
        .any(|engine| !engine.violations.is_empty());
    Ok(if broken { Exit::Failed } else { Exit::Done })
}

fn read(paths: &[PathBuf]) -> Result<Vec<Recording>, CliError> {
    let mut recordings = Vec::new();
    for path in paths {
        let file = files::read_conversations(path)?;
        for (conversation, content) in file.conversations.into_iter().enumerate() {
            let tools = tools(content.tools.as_deref()).map_err(|reason| {
                CliError::input(format!(
                    "{}: conversation {conversation}: {reason}",
                    path.display()
                ))
            })?;
            recordings.push(Recording {
                file: path.display().to_string(),
                conversation,
                content,
                tools,
            });
        }
    }
    Ok(recordings)
}

/// The tools that a conversation brings along, each as it is written.
pub(super) fn tools(list: Option<&str>) -> Result<Vec<Arc<str>>, String> {
    let Some(list) = list.filter(|list| *list != "null") else {
        return Ok(Vec::new());
    };
    let tools: Vec<&RawValue> = serde_json::from_str(list)
        .map_err(|_| "\"tools\" is no list of tool schemas".to_owned())?;
    Ok(tools
        .into_iter()
        .map(|tool| Arc::from(tool.get()))
        .collect())
}

fn begin(recording: &Recording, engines: &Engines, tokens: Tokens) -> ConversationReport {
    let messages = &recording.content.messages;
    let notes = repair::repair(messages).notes;
    ConversationReport {
        file: recording.file.clone(),
        conversation: recording.conversation,
        messages: messages.len(),
        context_length: engines.context_length(),
        tokens: tokens.name(),
        repairs: notes
            .iter()
            .map(|note| RepairLine {
                message: note.message,
                rule: note.rule.name().to_owned(),
            })
            .collect(),
        engines: Vec::new(),
    }
}

/// One conversation with one engine.
struct Play<'a> {
    recording: &'a Recording,
    engines: &'a Engines,
    tokens: Tokens,
}

impl Play<'_> {
    fn play(
        &self,
        agent: crate::context::AgentEngine,
        mut out: Option<&mut NewFile>,
        progress: &ProgressBar,
    ) -> Result<EngineReport, CliError> {
        let compression = self.engines.config().compression();
        let settings = Settings {
            session_id: format!("replay-{}", self.recording.conversation),
            pass_prefix: format!("replay-{}-pass-", self.recording.conversation),
            context_length: self.engines.context_length(),
            automatic: compression.enabled,
            max_attempts: u32::try_from(compression.max_attempts).unwrap_or(u32::MAX),
            platform: "replay".to_owned(),
            ..Settings::default()
        };
        let report = EngineReport {
            engine: agent.handle.name().to_owned(),
            loaded_from: agent.handle.module().loaded_from(),
            ..EngineReport::default()
        };
        let (file, conversation) = (
            serde_json::Value::from(self.recording.file.as_str()),
            self.recording.conversation,
        );
        let mut failed = None;
        let mut sent = |request: SentRequest<'_>| {
            let Some(out) = out.as_deref_mut() else {
                return Ok(());
            };
            let engine = serde_json::Value::from(request.engine);
            // Messages keep the blanks that they came with. Between tokens, the only place where JSON has line breaks,
            // one blank is as good as another, and a request stays on its line.
            let body = request.body.replace(['\n', '\r'], " ");
            let line = format!(
                "{{\"file\":{file},\"conversation\":{conversation},\"engine\":{engine},\"request\":{},\"body\":{body}}}\n",
                request.request
            );
            out.write(line.as_bytes()).map_err(|error| {
                failed = Some(error);
                std::io::Error::other("the requests cannot be written")
            })
        };
        let (model, tools) = (self.engines.model(), &self.recording.tools);
        let player = Player::new(
            agent,
            settings,
            model,
            tools,
            self.tokens,
            report,
            &mut sent,
        );
        let played = player.play(&self.recording.content.messages, &mut || progress.inc(1));
        match (played, failed) {
            (Ok(report), _) => Ok(report),
            (Err(_), Some(error)) => Err(error),
            (Err(error), None) => Err(error.into()),
        }
    }
}

fn progress(recordings: &[Recording], engines: usize) -> ProgressBar {
    if !output::shows_progress() {
        return ProgressBar::hidden();
    }
    let requests: usize = recordings
        .iter()
        .map(|recording| recording.content.messages.len() / 2)
        .sum();
    let bar = ProgressBar::new(u64::try_from(requests * engines).unwrap_or(u64::MAX));
    let style = ProgressStyle::with_template("replay {bar:40} {pos} requests, {elapsed}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn print(reports: &[ConversationReport], globals: &Globals) -> Result<(), CliError> {
    for engine in reports.iter().flat_map(|report| &report.engines) {
        for warning in &engine.warnings {
            output::warning(warning);
        }
    }
    if globals.json {
        output::json(&reports)
    } else {
        output::text(table::render(reports))
    }
}
