//! A provider without a model and without a network, for dry runs and tests.
//!
//! Without a script it answers every message itself, and says that this is a dry run. A script has one step a line:
//!
//! - `{"content":"…"}`, or any other assistant message (`tool_calls`, `reasoning_content`, …). Beside it may stand
//!   `usage`, an object as a provider sends it, and `finish_reason`. A tool call may be short,
//!   `{"name":"…","arguments":{…}}`, and gets an id if it has none.
//! - `{"error":{"status":429,"message":"…","retry_after":2}}` fails like an HTTP answer of that status. `retry_after` is
//!   in seconds; with `"partial":"…"` that much text arrives before.
//! - `{"delay_ms":50}` makes the next step wait, and so does the same member in any other step.
//! - `{"repeat":true}` as the last line: begin again with the first step. Without it the steps are used once, and
//!   then it answers as without a script.
//!
//! What a request costs here does not depend on its length: nothing but its end is looked at, and its tokens are counted
//! as a quarter of its bytes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hermes_message::{Message, build, estimate};
use memchr::memmem;
use serde_json::{Map, Value};

use super::assemble::Assembly;
use super::classify::{self, Peer, Refusal};
use super::{Cancel, Delta, Failure, FailureKind, Finish, Provider, Reply, retry, usage};

/// How much of a message the dry run repeats.
const REPEATED: usize = 200;
/// How much of a request is looked at.
const LOOKED_AT: usize = 256 << 10;

/// A provider that follows a script.
pub struct Scripted {
    steps: Vec<Step>,
    repeat: bool,
    next: AtomicUsize,
    peer: Peer,
}

#[derive(Debug)]
struct Step {
    delay: Duration,
    act: Act,
}

#[derive(Debug)]
enum Act {
    /// A response body as a server would send it.
    Answer(Value),
    /// An error of a status, what arrives before it, and when to come back.
    Error(Option<u16>, Value, String, Option<Duration>),
}

/// A script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A line is no step.
    #[error("{path}, line {line}: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl Scripted {
    /// A dry run without a script.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Vec::new(), false)
    }

    fn with(steps: Vec<Step>, repeat: bool) -> Self {
        Self {
            steps,
            repeat,
            next: AtomicUsize::new(0),
            peer: Peer {
                host: "scripted".into(),
                url: "scripted".into(),
                key_variable: None,
                has_key: false,
                key: None,
                section: "model".into(),
            },
        }
    }

    /// Reads a script.
    ///
    /// # Errors
    /// The file cannot be read, or one of its lines is no step.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let failed = |source| ScriptError::Read {
            path: path.to_owned(),
            source,
        };
        // A pipe would wait for its writer.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(failed(std::io::Error::other("it is no regular file")));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        Self::parse(&text).map_err(|(line, reason)| ScriptError::Line {
            path: path.to_owned(),
            line,
            reason,
        })
    }

    /// Takes the text of a script.
    ///
    /// # Errors
    /// The number of the line that is no step, from 1, and the reason.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut steps = Vec::new();
        let mut repeat = false;
        let mut delay = Duration::ZERO;
        for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let wrong = |reason: &str| (at + 1, reason.to_owned());
            let step: Map<String, Value> = serde_json::from_str(line)
                .map_err(|error| (at + 1, format!("no JSON object: {error}")))?;
            if let Some(value) = step.get("delay_ms") {
                let ms = value
                    .as_u64()
                    .ok_or_else(|| wrong("`delay_ms` is no whole number"))?;
                delay = delay.saturating_add(Duration::from_millis(ms));
            }
            if step.get("repeat").and_then(Value::as_bool) == Some(true) {
                repeat = true;
                continue;
            }
            if step.len() == 1 && step.contains_key("delay_ms") {
                continue;
            }
            let act = act(step).map_err(|reason| wrong(&reason))?;
            let delay = std::mem::take(&mut delay);
            steps.push(Step { delay, act });
        }
        Ok(Self::with(steps, repeat))
    }

    fn step(&self) -> Option<&Step> {
        if self.steps.is_empty() {
            return None;
        }
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        if self.repeat {
            self.steps.get(at % self.steps.len())
        } else {
            self.steps.get(at)
        }
    }

    fn fail(
        &self,
        (status, body, partial, retry_after): (Option<u16>, &Value, &str, Option<Duration>),
        on: &mut dyn FnMut(Delta<'_>),
    ) -> Box<Failure> {
        let mut failure = classify::failure(
            &Refusal {
                status,
                retry_after,
                location: None,
                body: &body.to_string(),
            },
            &self.peer,
        );
        if !partial.is_empty() {
            on(Delta::Text(partial));
            failure.partial = Some(build::assistant(partial));
        }
        failure
    }
}

impl Default for Scripted {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted")
            .field("steps", &self.steps.len())
            .field("repeat", &self.repeat)
            .finish_non_exhaustive()
    }
}

impl Provider for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn parameters(&self) -> &str {
        ""
    }

    fn send(
        &self,
        body: &str,
        cancel: &Cancel,
        on: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Reply, Box<Failure>> {
        let step = self.step();
        if !slept(step.map_or(Duration::ZERO, |step| step.delay), cancel) {
            return Err(Failure::new(
                FailureKind::Cancelled,
                "the dry run was cancelled",
            ));
        }
        let mut assembly = Assembly::default();
        match step.map(|step| &step.act) {
            None => {
                let text = dry_run(body);
                on(Delta::Text(&text));
                let message = build::assistant(&text);
                let usage = Some(guess(body, &message));
                return Ok(Reply {
                    message,
                    finish: Finish::Stop,
                    usage,
                    notes: Vec::new(),
                });
            }
            Some(Act::Error(status, error, partial, retry_after)) => {
                return Err(self.fail((*status, error, partial, *retry_after), on));
            }
            Some(Act::Answer(answer)) => assembly.chunk(answer.clone(), on),
        }
        let answer = assembly.answer();
        let Some(message) = answer.message else {
            let message = "the script's answer is empty";
            return Err(Failure::new(FailureKind::BadAnswer, message));
        };
        let usage = answer.usage.or_else(|| Some(guess(body, &message)));
        Ok(Reply {
            message,
            finish: answer.finish,
            usage,
            notes: answer.notes,
        })
    }

    fn context_length(&self, _model: &str) -> Option<u64> {
        None
    }
}

fn act(mut step: Map<String, Value>) -> Result<Act, String> {
    step.remove("delay_ms");
    if let Some(error) = step.remove("error") {
        let status = error.get("status").and_then(Value::as_u64);
        let status = status.map(u16::try_from).transpose();
        let status = status.map_err(|_| "`status` is no HTTP status".to_owned())?;
        let partial = error
            .get("partial")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let retry_after = error.get("retry_after").and_then(Value::as_f64);
        let partial = partial.to_owned();
        let body = serde_json::json!({ "error": error });
        return Ok(Act::Error(
            status,
            body,
            partial,
            retry_after.and_then(retry::seconds_of),
        ));
    }
    if !["content", "tool_calls", "refusal"]
        .iter()
        .any(|key| step.contains_key(*key))
    {
        return Err(
            "a step has `content`, `tool_calls`, `error`, `delay_ms` or `repeat`".to_owned(),
        );
    }
    let usage = step.remove("usage").unwrap_or_default();
    let finish = step
        .remove("finish_reason")
        .unwrap_or_else(|| "stop".into());
    Ok(Act::Answer(serde_json::json!({
        "choices": [{"index": 0, "message": step, "finish_reason": finish}],
        "usage": usage,
    })))
}

/// Sleeps, unless cancelled.
fn slept(delay: Duration, cancel: &Cancel) -> bool {
    let end = Instant::now().checked_add(delay);
    loop {
        if cancel.is_cancelled() {
            return false;
        }
        let left = end.map_or(Duration::MAX, |end| {
            end.saturating_duration_since(Instant::now())
        });
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(Duration::from_millis(5)));
    }
}

fn guess(body: &str, answer: &Message) -> crate::engine::Usage {
    let mut said = Map::new();
    said.insert("prompt_tokens".into(), body.len().div_ceil(4).into());
    let answer = answer
        .tokens()
        .saturating_sub(estimate::MESSAGE_OVERHEAD)
        .max(1);
    said.insert("completion_tokens".into(), answer.into());
    usage::canonical(&said).unwrap_or_default()
}

/// An answer to the last message of a body, found from its end.
fn dry_run(body: &str) -> String {
    let end = &body[body.ceil_char_boundary(body.len().saturating_sub(LOOKED_AT))..];
    let user = memmem::rfind(end.as_bytes(), b"{\"role\":\"user\"");
    let behind = &end[user.unwrap_or(0)..];
    let tool = memmem::find(behind.as_bytes(), b"{\"role\":\"tool\"");
    let head = "This is a dry run: no model was asked.";
    if tool.is_some() {
        return format!("{head} The tool's result has arrived.");
    }
    let said = user.and_then(|at| {
        let mut values = serde_json::Deserializer::from_str(&end[at..]).into_iter::<Value>();
        let message = Message::parse(&values.next()?.ok()?.to_string()).ok()?;
        let text = message
            .text()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        (!text.is_empty()).then_some(text)
    });
    match said {
        Some(text) if text.len() > REPEATED => {
            format!("{head} You said: {}…", classify::cut(&text, REPEATED))
        }
        Some(text) => format!("{head} You said: {text}"),
        None => head.to_owned(),
    }
}

#[cfg(test)]
mod tests;
