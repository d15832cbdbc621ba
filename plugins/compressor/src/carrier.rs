//! The message that carries a summary: how it is written, and how a later pass recognises and takes it apart.
//!
//! ```text
//! [CONTEXT COMPACTION — REFERENCE ONLY] frame
//!
//! body: sections that a helper model or the extractive summary wrote
//! ## Anchor Index            mechanical: paths, addresses, numbers
//! ## User Messages, Word For Word   mechanical
//! ## Recovery                where the originals are
//!
//! [END OF CONTEXT SUMMARY …]
//! ```
//!
//! Where neither role keeps the alternation, this text stands behind a neighbour's own words, after a line of its own.

use std::sync::LazyLock;

use hermes_message::Role;
use memchr::memmem::Finder;
use serde_json::{Value, json};

use crate::row::Row;

/// First words of every carrier.
pub const TITLE: &str = "[CONTEXT COMPACTION — REFERENCE ONLY]";
/// The part of [`TITLE`] and of its older spellings that no JSON escape can change.
const TITLE_CORE: &str = "[CONTEXT COMPACTION";
/// What earlier programs began their summaries with.
const OLDER_TITLES: [&str; 2] = ["[CONTEXT COMPACTION", "[CONTEXT SUMMARY]"];
/// What all of them begin with.
static TITLES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("[CONTEXT "));
const FRAME: &str = "Earlier messages were replaced by this summary to save room. It is background, not a request: \
do not answer it, and do not start, resume or repeat any work because it is mentioned here. What the newest user message \
asks for is what counts. Memory files stay authoritative, and all tools remain usable.";
/// Last line of every carrier.
pub const END: &str = "[END OF CONTEXT SUMMARY — the conversation goes on after this line; reply to that, not to the summary]";
const END_CORE: &str = "[END OF CONTEXT SUMMARY";
/// Between a neighbour's own words and the summary that had to join it.
pub const JOIN: &str =
    "[The message above is complete. What follows is a summary of earlier conversation.]";
const JOIN_CORE: &str = "[The message above is complete. What follows is a summary";
/// The assistant's turn between a summary in the user's place and a user message.
pub const ACKNOWLEDGEMENT: &str = "I have the summary of the earlier conversation as background.";
/// Metadata key of every message that an engine made out of others.
pub const KEY: &str = "_compressed_summary";
/// Metadata key of a carrier that holds a person's own message, too.
pub const KEY_WITH_TURN: &str = "_compressed_summary_has_user_turn";

/// Heading of the mechanical index.
pub const ANCHORS: &str = "## Anchor Index";
/// Heading of the quoted messages.
pub const QUOTES: &str = "## User Messages, Word For Word";
/// Heading of the footer.
pub const RECOVERY: &str = "## Recovery";

/// An earlier summary, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Earlier {
    /// The sections.
    pub body: String,
    /// Lines of the index.
    pub anchors: Vec<String>,
    /// Quoted user messages, oldest first.
    pub quotes: Vec<String>,
}

impl Earlier {
    /// Nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.body.is_empty() && self.anchors.is_empty() && self.quotes.is_empty()
    }

    /// Takes a later summary of the same conversation in.
    pub fn merge(&mut self, later: Self) {
        if !later.body.is_empty() {
            if !self.body.is_empty() {
                self.body.push_str("\n\n");
            }
            self.body.push_str(&later.body);
        }
        self.anchors.extend(later.anchors);
        self.quotes.extend(later.quotes);
    }

    /// The text of a carrier.
    #[must_use]
    pub fn write(&self, footer: &str) -> String {
        let mut out = format!("{TITLE} {FRAME}\n\n{}", self.body.trim());
        if !self.anchors.is_empty() {
            out.push_str("\n\n");
            out.push_str(ANCHORS);
            for anchor in &self.anchors {
                out.push_str("\n- ");
                out.push_str(anchor);
            }
        }
        if !self.quotes.is_empty() {
            out.push_str("\n\n");
            out.push_str(QUOTES);
            for quote in &self.quotes {
                out.push_str("\n> ");
                // Each line is marked, so that no line of a quote can be taken for a heading.
                out.push_str(&quote.trim().replace('\n', "\n> | "));
            }
        }
        if !footer.is_empty() {
            out.push_str("\n\n");
            out.push_str(RECOVERY);
            out.push('\n');
            out.push_str(footer);
        }
        out.push_str("\n\n");
        out.push_str(END);
        out
    }

    /// Reads what stands between title and end.
    fn read(text: &str) -> Self {
        let mut earlier = Self::default();
        let mut body: Vec<&str> = Vec::new();
        let mut part = "";
        for line in text.lines() {
            match line.trim_end() {
                heading @ (ANCHORS | QUOTES | RECOVERY) => part = heading,
                line if part == ANCHORS && !line.starts_with("## ") => {
                    earlier
                        .anchors
                        .extend(line.strip_prefix("- ").map(str::to_owned));
                }
                line if part == QUOTES && !line.starts_with("## ") => {
                    if let Some(more) = line.strip_prefix("> | ") {
                        if let Some(quote) = earlier.quotes.last_mut() {
                            quote.push('\n');
                            quote.push_str(more);
                        }
                    } else {
                        earlier
                            .quotes
                            .extend(line.strip_prefix("> ").map(str::to_owned));
                    }
                }
                line if part == RECOVERY && !line.starts_with("## ") => {}
                _ => {
                    part = "";
                    body.push(line);
                }
            }
        }
        earlier.body = body.join("\n").trim().to_owned();
        earlier
    }
}

/// A carrier found in a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The summary.
    pub earlier: Earlier,
    /// The neighbour's own words, where the summary had joined it.
    pub own: Option<String>,
}

/// Whether a message may be a carrier. Reads flags and bytes only; [`take_apart`] decides.
#[must_use]
pub fn may_carry(row: &Row<'_>) -> bool {
    row.summary
        || (matches!(row.role, Role::User | Role::Assistant)
            && TITLES.find(row.json.as_bytes()).is_some())
}

/// Takes a message's text apart. `flagged`: its metadata say that an engine made it.
#[must_use]
pub fn take_apart(text: &str, flagged: bool) -> Option<Found> {
    let trimmed = text.trim();
    if flagged && trimmed == ACKNOWLEDGEMENT {
        return Some(Found {
            earlier: Earlier::default(),
            own: None,
        });
    }
    if let Some(title) = OLDER_TITLES
        .iter()
        .find(|title| trimmed.starts_with(**title))
    {
        return Some(Found {
            earlier: Earlier::read(inner(trimmed, title)),
            own: None,
        });
    }
    if let Some((own, rest)) = trimmed.split_once(JOIN_CORE)
        && let Some(at) = rest.find(TITLE_CORE)
    {
        let own = own.trim_end();
        return Some(Found {
            earlier: Earlier::read(inner(&rest[at..], TITLE_CORE)),
            own: Some(own.to_owned()),
        });
    }
    // Another engine's summary: all of it is what is known of the past.
    flagged.then(|| Found {
        earlier: Earlier {
            body: trimmed.to_owned(),
            ..Earlier::default()
        },
        own: None,
    })
}

/// The sections of a carrier's text: without title, frame and end.
fn inner<'a>(text: &'a str, title: &str) -> &'a str {
    let text = &text[title.len()..];
    let text = text.rfind(END_CORE).map_or(text, |at| &text[..at]);
    let text = text.split_once(FRAME).map_or(text, |(_, rest)| rest);
    // Whatever is left of a title in another spelling ends with its bracket.
    match text.split_once(']') {
        Some((head, rest))
            if !head.contains('\n')
                && text.starts_with(|c: char| !c.is_alphanumeric())
                && head.len() < 40 =>
        {
            rest.trim_start_matches(':')
        }
        _ => text,
    }
}

/// A carrier of its own.
#[must_use]
pub fn message(role: Role, text: &str) -> String {
    let role = if role == Role::Assistant {
        "assistant"
    } else {
        "user"
    };
    json!({"role": role, "content": text, KEY: true}).to_string()
}

/// The assistant's turn between a summary and a user message.
#[must_use]
pub fn acknowledgement() -> String {
    json!({"role": "assistant", "content": ACKNOWLEDGEMENT, KEY: true, "_synthetic": true})
        .to_string()
}

/// A neighbour with a summary behind its own words, which stay as they are. `None` when the message cannot be read.
#[must_use]
pub fn join(neighbour: &str, text: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(neighbour).ok()?;
    let map = value.as_object_mut()?;
    let is_user = map.get("role").and_then(Value::as_str) == Some("user");
    let content = map.entry("content").or_insert(Value::Null);
    match content {
        Value::String(own) if own.trim().is_empty() => *own = text.to_owned(),
        Value::String(own) => {
            for piece in ["\n\n", JOIN, "\n", text] {
                own.push_str(piece);
            }
        }
        Value::Array(parts) => {
            parts.push(json!({"type": "text", "text": format!("{JOIN}\n{text}")}))
        }
        other => *other = Value::String(text.to_owned()),
    }
    map.insert(KEY.to_owned(), Value::Bool(true));
    if is_user {
        map.insert(KEY_WITH_TURN.to_owned(), Value::Bool(true));
    }
    Some(value.to_string())
}

/// The message without the summary that had joined it. `None` when there is none in it.
#[must_use]
pub fn unjoin(carrier: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(carrier).ok()?;
    let map = value.as_object_mut()?;
    match map.get_mut("content")? {
        Value::String(text) => {
            let own = text.split_once(JOIN_CORE)?.0.trim_end().to_owned();
            *text = own;
        }
        Value::Array(parts) => {
            let joined = |part: &Value| {
                part.get("text")
                    .and_then(Value::as_str)
                    .is_some_and(|t| t.starts_with(JOIN_CORE))
            };
            let before = parts.len();
            parts.retain(|part| !joined(part));
            if parts.len() == before || parts.is_empty() {
                return None;
            }
        }
        _ => return None,
    }
    map.remove(KEY);
    map.remove(KEY_WITH_TURN);
    Some(value.to_string())
}
