//! The messages to be summed up, ready to be read: long texts cut, repeats named. Secrets are still in them; whoever shows
//! them takes those out.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::Range;

use hermes_message::Role;

use crate::extract::Ready;
use crate::row::{Body, Call, Media, Row};
use crate::secrets;

/// A tool result of at least so many bytes is looked up among later ones.
const REPEAT_FROM: usize = 200;
/// Of a tool result, so many bytes are shown: it is long, and mostly not about anything.
const TOOL_TEXT: usize = 6_000;
/// More tokens than that many bytes have in any script.
const TOOL_TOKENS: u64 = 3_000;
/// Call arguments are shown up to so many bytes.
const ARGUMENTS: usize = 600;

/// One message, ready to be read.
#[derive(Clone, Debug)]
pub struct Turn<'a> {
    /// Who speaks.
    pub role: Role,
    /// Its words.
    pub text: Cow<'a, str>,
    /// The calls it makes: tool and arguments.
    pub calls: Vec<(Cow<'a, str>, String)>,
    /// Of a result, the tool.
    pub tool: Option<Cow<'a, str>>,
    /// What else it holds.
    pub media: Media,
    /// The day it was written, where known.
    pub date: Option<String>,
    /// Estimate of what is shown of it.
    pub tokens: u64,
}

/// Reads the messages of a range. `skip` names those that are no turns (earlier summaries); empty ones are left out. No
/// text is longer than `share` tokens.
#[must_use]
pub fn read<'a>(
    rows: &[Row<'a>],
    range: Range<usize>,
    share: u64,
    skip: impl Fn(usize) -> Option<Skip>,
) -> Vec<Turn<'a>> {
    let mut bodies: Vec<(usize, Body<'a>)> = Vec::with_capacity(range.len());
    for index in range {
        let mut body = match skip(index) {
            Some(Skip::Whole) => continue,
            Some(Skip::Own(own)) => Body {
                text: Cow::Owned(own),
                ..Body::default()
            },
            None => Body::read_within(rows[index].json, bytes(&rows[index], share)),
        };
        if body.is_blank() && rows[index].role != Role::Tool {
            continue;
        }
        body.text = trimmed(body.text);
        bodies.push((index, body));
    }
    let repeats = repeats(rows, &bodies);

    let mut turns = Vec::with_capacity(bodies.len());
    // Names of the calls of the message that the results at hand answer.
    let mut open: Vec<(Cow<'a, str>, Cow<'a, str>)> = Vec::new();
    for ((index, body), repeated) in bodies.into_iter().zip(repeats) {
        let row = &rows[index];
        let tool = (row.role == Role::Tool).then(|| tool_of(row.json, &open));
        if row.role != Role::Tool {
            open = body
                .calls
                .iter()
                .map(|call| (call.id.clone(), call.name.clone()))
                .collect();
        }
        let most = bytes(row, share);
        let text = if repeated {
            Cow::Borrowed("[the same output as that of a later call, shown there]")
        } else {
            secrets::cut(body.text, most)
        };
        turns.push(Turn {
            role: row.role,
            text,
            calls: body
                .calls
                .into_iter()
                .map(|call| arguments(call, most))
                .collect(),
            tool,
            media: body.media,
            date: body.date,
            tokens: row.cost().min(share).min(if row.role == Role::Tool {
                TOOL_TOKENS
            } else {
                u64::MAX
            }),
        });
    }
    turns
}

/// A message that is no turn, or only in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skip {
    /// Nothing of it is a turn.
    Whole,
    /// These words are.
    Own(String),
}

fn trimmed(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) if text.trim().len() == text.len() => Cow::Owned(text),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    }
}

/// Which bodies are tool results that a later one repeats word for word. They are compared as they are written.
fn repeats(rows: &[Row<'_>], bodies: &[(usize, Body<'_>)]) -> Vec<bool> {
    let mut seen: HashMap<u64, Vec<&str>, BuildHasherDefault<Ready>> = HashMap::default();
    let mut found = vec![false; bodies.len()];
    for (place, (index, body)) in bodies.iter().enumerate().rev() {
        let text = body.raw;
        if rows[*index].role != Role::Tool || text.len() < REPEAT_FROM {
            continue;
        }
        let same = seen.entry(ends(text)).or_default();
        if same.contains(&text) {
            found[place] = true;
        } else {
            same.push(text);
        }
    }
    found
}

/// Length, beginning and end of a text in one number: what most different texts differ in.
fn ends(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let edge = bytes.len().min(32);
    let ends = bytes[..edge].iter().chain(&bytes[bytes.len() - edge..]);
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    ends.fold(length, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn tool_of<'a>(json: &str, open: &[(Cow<'a, str>, Cow<'a, str>)]) -> Cow<'a, str> {
    if let [(_, only)] = open {
        return only.clone();
    }
    let id = crate::row::call_id(json).unwrap_or_default();
    open.iter()
        .find(|(open, _)| *open == id)
        .map(|(_, name)| name.clone())
        .unwrap_or_default()
}

/// So many bytes of a message's text as its share is of its tokens.
fn bytes(row: &Row<'_>, share: u64) -> usize {
    let most = if row.role == Role::Tool {
        TOOL_TEXT
    } else {
        usize::MAX / 4
    };
    if row.cost() <= share {
        return most;
    }
    let len = u64::try_from(row.json.len()).unwrap_or(u64::MAX);
    usize::try_from(len.saturating_mul(share) / row.cost().max(1))
        .unwrap_or(usize::MAX)
        .min(most)
}

fn arguments(call: Call<'_>, most: usize) -> (Cow<'_, str>, String) {
    let mut shown = String::new();
    secrets::cut_into(&mut shown, &call.arguments, ARGUMENTS.min(most.max(160)));
    (call.name, shown)
}

/// The turns without secrets.
pub fn clean(turns: &mut [Turn<'_>]) {
    for turn in turns {
        turn.text = secrets::redacted(std::mem::take(&mut turn.text));
        for (_, arguments) in &mut turn.calls {
            if let Cow::Owned(clean) = secrets::redact(arguments) {
                *arguments = clean;
            }
        }
    }
}
