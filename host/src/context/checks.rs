//! What a result of `compress` must be before anything of it is kept (PASS-6).
//!
//! An engine answers for what it has changed, not for faults that the transcript had before.

use std::collections::HashMap;
use std::fmt;

use hermes_message::sequence::{self, Policy, Rule};
use hermes_message::{Message, Role};

use super::transcript::{newest_user, tokens};

/// So many characters of a huge user message must stand at the start of its shortened form.
const RECOGNISED_BY: usize = 200;
/// A user message of so many tokens may be shortened; a smaller one stays whole.
const HUGE: u32 = 2000;

/// One rule that a result breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The message of the result at which it shows; `None` = the list as a whole.
    pub message: Option<usize>,
    /// Which rule.
    pub broken: Broken,
}

/// The rules of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A rule of a valid sequence (ENG-4).
    Sequence(Rule),
    /// There is no message.
    Empty,
    /// It is larger than what it replaces, by the host's estimate.
    Larger {
        /// Tokens before.
        before: u64,
        /// Tokens after.
        after: u64,
    },
    /// The system prompt is gone, or no longer first.
    SystemLost,
    /// The newest user message is gone.
    NewestUserLost,
    /// More messages than before carry this uid.
    UidTwice(String),
}

impl Broken {
    /// A short name for reports that programs read.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Broken::Sequence(rule) => rule.name(),
            Broken::Empty => "empty",
            Broken::Larger { .. } => "larger",
            Broken::SystemLost => "system-lost",
            Broken::NewestUserLost => "newest-user-lost",
            Broken::UidTwice(_) => "uid-twice",
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Sequence(rule) => f.write_str(rule.describe()),
            Broken::Empty => f.write_str("the list is empty"),
            Broken::Larger { before, after } => {
                write!(
                    f,
                    "the list has ~{after} tokens, more than the ~{before} it replaces"
                )
            }
            Broken::SystemLost => {
                f.write_str("the system prompt is not first any more, or its text is gone")
            }
            Broken::NewestUserLost => f.write_str("the newest user message is gone"),
            Broken::UidTwice(uid) => write!(f, "uid {uid:?} stands on more messages than before"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message {
            Some(message) => write!(f, "message {message}: {}", self.broken),
            None => self.broken.fmt(f),
        }
    }
}

/// The rules that `output` breaks as a replacement of `input`.
#[must_use]
pub fn check(input: &[Message], output: &[Message]) -> Vec<Violation> {
    let whole = |broken| Violation {
        message: None,
        broken,
    };
    if output.is_empty() {
        return vec![whole(Broken::Empty)];
    }
    let mut found = introduced(input, output);
    let (before, after) = (tokens(input), tokens(output));
    if after > before {
        found.push(whole(Broken::Larger { before, after }));
    }
    if loses_system(input, output) {
        found.push(whole(Broken::SystemLost));
    }
    if loses_newest_user(input, output) {
        found.push(whole(Broken::NewestUserLost));
    }
    found.extend(repeated_uids(input, output));
    found
}

/// The rules of a valid sequence that `output` breaks and `input` did not: also what is asked of a selection.
#[must_use]
pub fn introduced(input: &[Message], output: &[Message]) -> Vec<Violation> {
    sequence::introduced(input, output, Policy::Request)
        .into_iter()
        .map(|violation| Violation {
            message: (violation.rule != Rule::NoUser).then_some(violation.message),
            broken: Broken::Sequence(violation.rule),
        })
        .collect()
}

/// The violations in one sentence: the first one, and how many more there are.
#[must_use]
pub fn summary(violations: &[Violation]) -> String {
    match violations {
        [] => String::new(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}

fn loses_system(input: &[Message], output: &[Message]) -> bool {
    let Some(prompt) = input.first().filter(|first| first.role() == Role::System) else {
        return false;
    };
    // A note may have been added to it.
    !output
        .first()
        .is_some_and(|first| first.role() == Role::System && holds(first, prompt))
}

fn loses_newest_user(input: &[Message], output: &[Message]) -> bool {
    let Some(newest) = newest_user(input).map(|at| &input[at]) else {
        return false;
    };
    // From the end: that is where it usually is.
    !output.iter().rev().any(|message| {
        message.role() == Role::User && (holds(message, newest) || shortens(message, newest))
    })
}

/// Whether `candidate` is `original`, or has taken it in with its text intact (UID-5).
fn holds(candidate: &Message, original: &Message) -> bool {
    if candidate.same(original) || candidate.raw_content() == original.raw_content() {
        return true;
    }
    if let Some(parts) = list_items(original) {
        return list_items(candidate).is_some_and(|items| items.contains(parts));
    }
    candidate.text().contains(&*original.text())
}

/// Whether `candidate` is the shortened form of a message too large to be sent.
fn shortens(candidate: &Message, original: &Message) -> bool {
    if original.tokens() < HUGE {
        return false;
    }
    let start: String = original.text().chars().take(RECOGNISED_BY).collect();
    candidate.text().contains(&start)
}

/// The inside of a content that is a list of parts.
fn list_items(message: &Message) -> Option<&str> {
    let list = message.raw_content()?.trim();
    Some(list.strip_prefix('[')?.strip_suffix(']')?.trim())
}

fn repeated_uids(input: &[Message], output: &[Message]) -> Vec<Violation> {
    let before = uids(input);
    let mut found: Vec<Violation> = uids(output)
        .into_iter()
        .filter(|(uid, places)| {
            // A transcript may have two rows of one message (UID-7); an engine makes no more of them.
            let had = before.get(uid).map_or(1, Vec::len);
            places.len() > had
        })
        .map(|(uid, places)| Violation {
            message: places.last().copied(),
            broken: Broken::UidTwice(uid.to_owned()),
        })
        .collect();
    found.sort_by_key(|violation| violation.message);
    found
}

fn uids(messages: &[Message]) -> HashMap<&str, Vec<usize>> {
    let mut found: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, message) in messages.iter().enumerate() {
        if let Some(uid) = message.identity().uid.as_deref() {
            found.entry(uid).or_default().push(at);
        }
    }
    found
}
