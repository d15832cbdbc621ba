//! Finding what to replace, or where to insert.

use super::insert;
use super::scalar;
use super::{Meaning, Refusal};
use crate::config::document::{Document, Kind, NodeId, Style};
use crate::config::key::KeyPath;
use crate::config::value::{self, child};
use serde_yaml::Value;
use std::ops::Range;

/// One change of the text, with the value that it should make.
#[derive(Debug)]
pub(super) struct Plan {
    /// The bytes that go.
    pub(super) range: Range<usize>,
    /// What comes in their place.
    pub(super) text: String,
    /// The line of the value afterwards.
    pub(super) line: usize,
    /// The value of the key afterwards.
    pub(super) wanted: Value,
}

/// A plan, and what to tell if it does not hold.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) plan: Plan,
    /// The nearest line that is there before the change.
    pub(super) line: usize,
    /// What the user can type instead.
    pub(super) by_hand: String,
}

/// What all steps need to know.
pub(super) struct Request<'a> {
    pub(super) body: &'a str,
    pub(super) document: &'a Document,
    pub(super) key: &'a KeyPath,
    pub(super) value: &'a str,
    pub(super) meaning: Meaning,
}

impl Request<'_> {
    /// A refusal at a node, with the lines to type.
    pub(super) fn refuse(&self, line: usize, reason: String) -> Refusal {
        Refusal {
            line,
            reason,
            by_hand: self.by_hand(line),
        }
    }

    fn by_hand(&self, line: usize) -> String {
        let secret = self
            .key
            .names()
            .last()
            .is_some_and(|name| value::is_secret(name));
        let shown = if secret { "VALUE" } else { self.value };
        let (value, _) = scalar::render(shown, self.meaning, None, true);
        let names = self.key.names();
        let mut typed = value;
        for name in names.iter().skip(1).rev() {
            typed = format!("{{{}: {typed}}}", scalar::key(name, true));
        }
        if let [section, name] = names {
            let (value, _) = scalar::render(shown, self.meaning, None, false);
            return format!(
                "at line {line}, type by hand: below `{}:`, indented, `{}: {value}`",
                scalar::key(section, false),
                scalar::key(name, false)
            );
        }
        let first = names
            .first()
            .map(|name| scalar::key(name, false))
            .unwrap_or_default();
        format!("at line {line}, type by hand what makes `{first}: {typed}`")
    }
}

/// Plans the change; none when the tree says so already.
pub(super) fn plan(
    body: &str,
    document: &Document,
    roots: &[Value],
    key: &KeyPath,
    value: &str,
    meaning: Meaning,
) -> Result<Option<Planned>, Refusal> {
    let request = Request {
        body,
        document,
        key,
        value,
        meaning,
    };
    let found = locate(&request)?;
    let plan = match found {
        Found::Value { id, flow } => replace(&request, id, flow)?,
        Found::Missing(place) => insert::insert(&request, place)?,
    };
    let names = key.parts();
    let now = roots.first().and_then(|root| {
        names
            .iter()
            .try_fold(root, |value, name| child(value, name))
    });
    if now.map(value::untag) == Some(&plan.wanted) {
        return Ok(None);
    }
    let line = plan.line.min(body.lines().count().max(1));
    let by_hand = request.by_hand(line);
    Ok(Some(Planned {
        plan,
        line,
        by_hand,
    }))
}

/// Where the walk along the key ended.
enum Found {
    /// At the value itself.
    Value { id: NodeId, flow: bool },
    /// At something into which the rest of the names has to be written.
    Missing(Gap),
}

/// A place into which names have to be written.
#[derive(Debug)]
pub(super) struct Gap {
    /// The mapping, empty value or alias; none in a file without content.
    pub(super) at: Option<NodeId>,
    /// The key of that node, where it has one.
    pub(super) key: Option<NodeId>,
    /// Is it inside `{…}` or `[…]`?
    pub(super) flow: bool,
    /// How many names of the key lead to it.
    pub(super) depth: usize,
}

fn locate(request: &Request<'_>) -> Result<Found, Refusal> {
    let Some(part) = request.document.parts().first() else {
        return Ok(Found::Missing(Gap {
            at: None,
            key: None,
            flow: false,
            depth: 0,
        }));
    };
    let mut id = part.root;
    let mut key = None;
    let mut flow = false;
    for (depth, name) in request.key.names().iter().enumerate() {
        let node = request.document.node(id);
        let gap = Gap {
            at: Some(id),
            key,
            flow,
            depth,
        };
        match &node.kind {
            Kind::Map(entries, is_flow) => {
                let own = entries.iter().find(|(key, _)| {
                    !request.document.is_merge_key(*key)
                        && request.document.scalar(*key) == Some(name)
                });
                flow |= *is_flow;
                let Some((found_key, value)) = own else {
                    return Ok(Found::Missing(Gap { flow, ..gap }));
                };
                key = Some(*found_key);
                id = *value;
            }
            Kind::Seq(items, is_flow) => {
                let item = name.parse().ok().and_then(|index: usize| items.get(index));
                let Some(item) = item else {
                    let reason = format!(
                        "{} is a list of {} and {name:?} is not one of their numbers (from 0)",
                        shown(request, depth),
                        items.len()
                    );
                    return Err(request.refuse(node.place.0, reason));
                };
                flow |= *is_flow;
                key = None;
                id = *item;
            }
            Kind::Alias(_) => return Ok(Found::Missing(gap)),
            Kind::Scalar(text, style) => {
                let empty = crate::config::resolve::scalar(text, *style, node.tag.as_deref());
                if empty.is_null() {
                    return Ok(Found::Missing(gap));
                }
                let reason = format!("{} is a text, expected a mapping", shown(request, depth));
                return Err(request.refuse(node.place.0, reason));
            }
        }
    }
    Ok(Found::Value { id, flow })
}

/// The first `depth` names, as a message names them.
pub(super) fn shown(request: &Request<'_>, depth: usize) -> String {
    if depth == 0 {
        "the file".to_owned()
    } else {
        request.key.names()[..depth].join(".")
    }
}

fn replace(request: &Request<'_>, id: NodeId, flow: bool) -> Result<Plan, Refusal> {
    let node = request.document.node(id);
    let line = node.place.0;
    let what = match &node.kind {
        Kind::Alias(_) => {
            let (text, wanted) = scalar::render(request.value, request.meaning, None, flow);
            return Ok(Plan {
                range: node.span.clone(),
                text,
                line,
                wanted,
            });
        }
        Kind::Scalar(_, Style::Block) => "a block text (| or >), inside which nothing is changed",
        Kind::Scalar(_, style) => {
            // A tag in front of quotes says itself what the value is.
            let meaning = match style {
                Style::Single | Style::Double if node.tag.is_some() => Meaning::Text,
                _ => request.meaning,
            };
            let (text, wanted) = scalar::render(request.value, meaning, Some(*style), flow);
            let range = own_bytes(request, id)?;
            if !range.is_empty() {
                return Ok(Plan {
                    range,
                    text,
                    line,
                    wanted,
                });
            }
            return Ok(Plan {
                range,
                text: format!(" {text}"),
                line,
                wanted,
            });
        }
        Kind::Seq(..) => "a list",
        Kind::Map(..) => "a mapping",
    };
    let reason = format!("{} is {what}, not a single value", request.key);
    Err(request.refuse(line, reason))
}

/// The bytes of a scalar without its anchor and tag; an empty range just behind the colon (or dash) for no text.
pub(super) fn own_bytes(request: &Request<'_>, id: NodeId) -> Result<Range<usize>, Refusal> {
    let node = request.document.node(id);
    let mut start = node.span.start;
    let mut rest = &request.body[node.span.clone()];
    if node.anchor.is_some() || node.tag.is_some() {
        while rest.starts_with(['&', '!']) {
            let token = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let gap = rest[token..].len() - rest[token..].trim_start().len();
            start += token + gap;
            rest = &rest[token + gap..];
        }
        if rest.is_empty() {
            let reason = format!("{} is empty but has an anchor or a tag", request.key);
            return Err(request.refuse(node.place.0, reason));
        }
    }
    if rest.is_empty() {
        // In `{a: , b}` the parser puts the empty value behind the blanks.
        start = request.body[..start].trim_end_matches([' ', '\t']).len();
    }
    if rest.is_empty() && !request.body[..start].ends_with([':', '-']) {
        let reason = format!(
            "{} has no value and no colon to write one after",
            request.key
        );
        return Err(request.refuse(node.place.0, reason));
    }
    Ok(start..start + rest.len())
}
