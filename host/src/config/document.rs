//! The file as a tree that still knows where everything stands.
//!
//! The events come from `libyaml-safer`, a line-by-line port of the parser inside `serde_yaml`, so both read the
//! same language; `serde_yaml` itself tells no positions of values, fails on a key that stands twice, and mixes up
//! anchors when a name is used again and another one follows.

use libyaml_safer::{Encoding, Event, EventData, MappingStyle, Parser, ScalarStyle, SequenceStyle};
use std::collections::HashMap;
use std::ops::Range;

/// How deep collections may nest. Real files reach five levels; a file of brackets must not cost minutes.
pub(crate) const MAX_DEPTH: usize = 100;

/// An index into [`Document::nodes`].
pub(crate) type NodeId = usize;

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Without quotes.
    Plain,
    /// `'…'`
    Single,
    /// `"…"`
    Double,
    /// `|` or `>`.
    Block,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One value, as text without quotes and escapes.
    Scalar(String, Style),
    /// A list; `true` when written as `[…]`.
    Seq(Vec<NodeId>, bool),
    /// A mapping in file order, doubled keys included; `true` when written as `{…}`.
    Map(Vec<(NodeId, NodeId)>, bool),
    /// `*name`: the node that bore this anchor when the alias was read.
    Alias(NodeId),
}

/// One node and its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// Bytes in the text given to [`Document::parse`], anchor and tag included. For block collections the end is
    /// where the parser noticed it, which may be lines later.
    pub(crate) span: Range<usize>,
    /// Line and column, from 1.
    pub(crate) place: (usize, usize),
    pub(crate) anchor: Option<String>,
    pub(crate) tag: Option<String>,
}

/// A syntax error with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) place: Option<(usize, usize)>,
    pub(crate) message: String,
}

/// One document of the stream.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// The top node; none for a document without content.
    pub(crate) root: NodeId,
    /// Where the content ends: the start of `...`, of the next `---`, or the end of the text.
    pub(crate) end: usize,
    /// Line of the start.
    pub(crate) line: usize,
}

/// All nodes of a text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Document {
    nodes: Vec<Node>,
    parts: Vec<Part>,
}

impl Document {
    /// Parses a text without a byte order mark.
    pub(crate) fn parse(text: &str) -> Result<Self, SyntaxError> {
        // The parser is a port of one that reads zeros behind the end. It panics in places when a text ends without a
        // line break, so it always gets one, and at a tag with a comma right behind it (`[!a, b]`).
        let ends_line = text.ends_with(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']);
        let padded = if ends_line {
            String::new()
        } else {
            format!("{text}\n")
        };
        let given = if ends_line { text } else { &padded };
        let parsed = std::panic::catch_unwind(|| Self::from_events(given)).unwrap_or_else(|_| {
            Err(SyntaxError {
                place: None,
                message: "the parser gave up; it cannot read a tag with a comma right behind it"
                    .to_owned(),
            })
        });
        let mut document = parsed?;
        if !ends_line {
            document.unpad(text);
        }
        Ok(document)
    }

    fn from_events(text: &str) -> Result<Self, SyntaxError> {
        let mut input = text.as_bytes();
        let mut parser = Parser::new();
        parser.set_input_string(&mut input);
        parser.set_encoding(Encoding::Utf8);
        let mut builder = Builder::default();
        loop {
            let event = parser.parse().map_err(|error| syntax_error(&error, text))?;
            if event.data == EventData::StreamEnd {
                return Ok(builder.document);
            }
            builder.take(event)?;
        }
    }

    /// Makes the tree what it is without the line break that was added: a block text that reaches the end has none.
    fn unpad(&mut self, text: &str) {
        let length = text.len();
        let last_line = text
            .rsplit(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
            .next();
        let blank = last_line.unwrap_or_default().trim().is_empty();
        for node in &mut self.nodes {
            if node.span.end <= length {
                continue;
            }
            node.span.end = length;
            node.span.start = node.span.start.min(length);
            if let Kind::Scalar(value, Style::Block) = &mut node.kind {
                let header = text[node.span.clone()].lines().next().unwrap_or_default();
                if (!blank || header.contains('+')) && value.ends_with('\n') {
                    value.pop();
                }
            }
        }
        for part in &mut self.parts {
            part.end = part.end.min(length);
        }
    }

    /// The documents of the stream, in order; empty for a text of comments.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// A node by its index.
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    /// All nodes, in the order of their start.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node an alias stands for, or the node itself.
    pub(crate) fn target(&self, id: NodeId) -> NodeId {
        match self.node(id).kind {
            Kind::Alias(target) => target,
            _ => id,
        }
    }

    /// The text of a scalar (through an alias), if it is one.
    pub(crate) fn scalar(&self, id: NodeId) -> Option<&str> {
        match &self.node(self.target(id)).kind {
            Kind::Scalar(text, _) => Some(text),
            _ => None,
        }
    }

    /// Is this key the merge key `<<`? In quotes it is an ordinary key.
    pub(crate) fn is_merge_key(&self, id: NodeId) -> bool {
        let node = self.node(id);
        node.tag.is_none() && matches!(&node.kind, Kind::Scalar(text, Style::Plain) if text == "<<")
    }
}

/// Collections that are still open, and the anchors of the current document.
#[derive(Default)]
struct Builder {
    document: Document,
    open: Vec<Open>,
    anchors: HashMap<String, NodeId>,
    line: usize,
}

struct Open {
    id: NodeId,
    /// The key that waits for its value.
    key: Option<NodeId>,
}

impl Builder {
    fn take(&mut self, event: Event) -> Result<(), SyntaxError> {
        let place = (
            offset(event.start_mark.line) + 1,
            offset(event.start_mark.column) + 1,
        );
        let span = offset(event.start_mark.index)..offset(event.end_mark.index);
        match event.data {
            EventData::DocumentStart { .. } => {
                self.anchors.clear();
                self.line = place.0;
            }
            EventData::DocumentEnd { .. } => {
                if let Some(part) = self.document.parts.last_mut() {
                    part.end = span.start;
                }
            }
            EventData::Alias { anchor } => {
                let Some(target) = self.anchors.get(&anchor).copied() else {
                    return Err(SyntaxError {
                        place: Some(place),
                        message: format!("the alias *{anchor} has no anchor &{anchor} before it"),
                    });
                };
                self.add(Kind::Alias(target), span, place, None, None);
            }
            EventData::Scalar {
                anchor,
                tag,
                value,
                style,
                ..
            } => {
                let style = match style {
                    ScalarStyle::SingleQuoted => Style::Single,
                    ScalarStyle::DoubleQuoted => Style::Double,
                    ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                    _ => Style::Plain,
                };
                self.add(Kind::Scalar(value, style), span, place, anchor, tag);
            }
            EventData::SequenceStart {
                anchor, tag, style, ..
            } => {
                let kind = Kind::Seq(Vec::new(), style == SequenceStyle::Flow);
                self.open(kind, span, place, anchor, tag)?;
            }
            EventData::MappingStart {
                anchor, tag, style, ..
            } => {
                let kind = Kind::Map(Vec::new(), style == MappingStyle::Flow);
                self.open(kind, span, place, anchor, tag)?;
            }
            EventData::SequenceEnd | EventData::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    self.document.nodes[open.id].span.end = span.end;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn open(
        &mut self,
        kind: Kind,
        span: Range<usize>,
        place: (usize, usize),
        anchor: Option<String>,
        tag: Option<String>,
    ) -> Result<(), SyntaxError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(SyntaxError {
                place: Some(place),
                message: format!("nested deeper than {MAX_DEPTH} levels"),
            });
        }
        let id = self.add(kind, span, place, anchor, tag);
        self.open.push(Open { id, key: None });
        Ok(())
    }

    fn add(
        &mut self,
        kind: Kind,
        span: Range<usize>,
        place: (usize, usize),
        anchor: Option<String>,
        tag: Option<String>,
    ) -> NodeId {
        let id = self.document.nodes.len();
        if let Some(name) = &anchor {
            self.anchors.insert(name.clone(), id);
        }
        // The bare `!` only says "not resolved"; every reader takes it as no tag on a scalar that is text.
        self.document.nodes.push(Node {
            kind,
            span,
            place,
            anchor,
            tag,
        });
        match self.open.last_mut() {
            None => self.document.parts.push(Part {
                root: id,
                end: 0,
                line: self.line,
            }),
            Some(open) => match &mut self.document.nodes[open.id].kind {
                Kind::Seq(items, _) => items.push(id),
                Kind::Map(entries, _) => match open.key.take() {
                    None => open.key = Some(id),
                    Some(key) => entries.push((key, id)),
                },
                Kind::Scalar(..) | Kind::Alias(_) => {}
            },
        }
        id
    }
}

fn offset(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// The parser's own words, with the place where it stopped and where the broken part began.
fn syntax_error(error: &libyaml_safer::Error, text: &str) -> SyntaxError {
    let mut message = error.problem().to_owned();
    if let Some(context) = error.context() {
        message = format!("{message} {context}");
        if let Some(mark) = error.context_mark() {
            message = format!(
                "{message} that begins at line {}, column {}",
                mark.line + 1,
                mark.column + 1
            );
        }
    }
    let place = match error.problem_mark() {
        Some(mark) => Some((offset(mark.line) + 1, offset(mark.column) + 1)),
        // A control character is refused by the reader, which knows no lines: look for it.
        None => text
            .char_indices()
            .find(|(_, c)| !allowed(*c))
            .map(|(at, c)| {
                message = format!("control character U+{:04X} at byte {at}", u32::from(c));
                super::text::place_at_end(&text[..at])
            }),
    };
    SyntaxError { place, message }
}

/// The characters YAML 1.1 allows in a stream.
fn allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}
