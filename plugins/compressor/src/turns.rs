//! The messages to be summed up, ready to be read: words without secrets, long texts cut, repeats named.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use hermes_message::Role;

use crate::row::{Body, Call, Media, Row};
use crate::secrets;

/// A tool result of at least so many bytes is looked up among later ones.
const REPEAT_FROM: usize = 200;
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
    pub tool: Option<String>,
    /// What else it holds.
    pub media: Media,
    /// The day it was written, where known.
    pub date: Option<String>,
    /// The host's estimate of the whole message.
    pub tokens: u64,
}

/// Reads the messages of a range. `skip` names those that are no turns (earlier summaries); empty ones are left out.
#[must_use]
pub fn read<'a>(
    rows: &[Row<'a>],
    range: Range<usize>,
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
            None => Body::read(rows[index].json),
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
    let mut open: Vec<(String, String)> = Vec::new();
    for ((index, body), repeated) in bodies.into_iter().zip(repeats) {
        let row = &rows[index];
        let tool = (row.role == Role::Tool).then(|| tool_of(row.json, &open));
        if row.role != Role::Tool {
            open = body
                .calls
                .iter()
                .map(|call| (call.id.to_string(), call.name.to_string()))
                .collect();
        }
        let text = if repeated {
            Cow::Borrowed("[the same output as that of a later call, shown there]")
        } else {
            secrets::readable(body.text)
        };
        turns.push(Turn {
            role: row.role,
            text,
            calls: body.calls.into_iter().map(arguments).collect(),
            tool,
            media: body.media,
            date: body.date,
            tokens: row.cost(),
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

/// Length, beginning and end of a text: what most different texts differ in.
type Ends<'a> = (usize, &'a [u8], &'a [u8]);

/// Which bodies are tool results that a later one repeats word for word.
fn repeats(rows: &[Row<'_>], bodies: &[(usize, Body<'_>)]) -> Vec<bool> {
    let mut seen: HashMap<Ends<'_>, Vec<&str>> = HashMap::new();
    let mut found = vec![false; bodies.len()];
    for (place, (index, body)) in bodies.iter().enumerate().rev() {
        let text = &*body.text;
        if rows[*index].role != Role::Tool || text.len() < REPEAT_FROM {
            continue;
        }
        let bytes = text.as_bytes();
        let same = seen
            .entry((text.len(), &bytes[..32], &bytes[bytes.len() - 32..]))
            .or_default();
        if same.contains(&text) {
            found[place] = true;
        } else {
            same.push(text);
        }
    }
    found
}

fn tool_of(json: &str, open: &[(String, String)]) -> String {
    if let [(_, only)] = open {
        return only.clone();
    }
    let id = crate::row::call_id(json).unwrap_or_default();
    open.iter()
        .find(|(open, _)| *open == *id)
        .map(|(_, name)| name.clone())
        .unwrap_or_default()
}

fn arguments(call: Call<'_>) -> (Cow<'_, str>, String) {
    let clean = secrets::readable(call.arguments);
    let shown = if clean.len() > ARGUMENTS {
        let cut = clean.floor_char_boundary(ARGUMENTS);
        format!("{}… [{} bytes in all]", &clean[..cut], clean.len())
    } else {
        clean.into_owned()
    };
    (call.name, shown)
}
