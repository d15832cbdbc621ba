//! Two messages of one role become one.

use std::borrow::Cow;

use crate::build;
use crate::content::{Content, PartKind};
use crate::json;
use crate::message::{Message, Role, flags};

/// Joins two neighbours of one role: texts by a blank line, lists of parts end to end, calls one after
/// the other. The first text gives the fold its uid and the second is recorded (`UID-5`, `UID-16`);
/// calls that share a provider id keep a uid each (`UID-13`).
///
/// An assistant's text beside its images or audio is left out and not recorded (`UID-17`).
#[must_use]
pub fn fold(first: &Message, second: &Message) -> Message {
    if first.role() == Role::Assistant && second.role() == Role::Assistant {
        return fold_assistants(first, second);
    }
    join(first, second, &joined_content(first, second))
}

pub(super) fn fold_assistants(first: &Message, second: &Message) -> Message {
    if first.says_nothing() {
        return second.clone();
    }
    if !keeps_text_apart(first, second) {
        return join(first, second, &joined_content(first, second));
    }
    let media = if has_media(first) { first } else { second };
    let mut identity = media.identity().clone();
    identity.tool_call_uids = first.identity().tool_call_uids.clone();
    identity.fold_calls(first.tool_calls(), second.identity(), second.tool_calls());
    let mut text = media.stored().to_string();
    if let Some(calls) = joined_calls(first, second) {
        text = json::set_member(&text, "tool_calls", &calls);
    }
    build::edited(media, &text).replaced_identity(identity)
}

/// Whether one side is media and the other a text, which cannot become one list for an assistant.
pub(super) fn keeps_text_apart(first: &Message, second: &Message) -> bool {
    has_media(first) != has_media(second) && !first.is_blank() && !second.is_blank()
}

fn has_media(message: &Message) -> bool {
    message.has(flags::MULTIMODAL)
        && matches!(message.content(), Content::Parts(parts)
            if parts.iter().any(|p| !matches!(p.kind, PartKind::Text | PartKind::Refusal)))
}

fn join(first: &Message, second: &Message, content: &str) -> Message {
    let mut text = json::set_member(first.stored(), "content", content);
    if let Some(calls) = joined_calls(first, second) {
        text = json::set_member(&text, "tool_calls", &calls);
    }
    for key in ["refusal", "audio", "function_call"] {
        let missing = first.value(key).is_none_or(|raw| raw == "null");
        if let (true, Some(raw)) = (missing, second.value(key)) {
            text = json::set_member(&text, key, raw);
        }
    }
    // A person's words in the fold are a person's words.
    if first.has(flags::SYNTHETIC) && !second.has(flags::SYNTHETIC) {
        text = json::remove_member(&text, "_synthetic");
    }
    let mut identity = first.identity().clone();
    identity.absorb(second.identity());
    identity.fold_calls(first.tool_calls(), second.identity(), second.tool_calls());
    build::edited(first, &text).replaced_identity(identity)
}

/// The content of both, as JSON text.
fn joined_content(first: &Message, second: &Message) -> String {
    let raw = |message: &Message| message.raw_content().unwrap_or("null").to_owned();
    match (first.is_blank(), second.is_blank()) {
        (_, true) => return raw(first),
        (true, false) => return raw(second),
        (false, false) => {}
    }
    let is_list = |message: &Message| message.has(flags::MULTIMODAL);
    if !is_list(first) && !is_list(second) {
        return json::quote(&format!("{}\n\n{}", words(first), words(second)));
    }
    let list = |message: &Message| {
        if is_list(message) {
            raw(message)
        } else {
            ["[", &text_part(&words(message)), "]"].concat()
        }
    };
    join_lists(&list(first), &list(second))
}

/// The text; content of a shape that has none is its own text.
fn words(message: &Message) -> Cow<'_, str> {
    match message.content() {
        Content::Other(raw) => Cow::Borrowed(raw),
        content => content.text(),
    }
}

/// Both lists of calls in one; `None` when there is nothing to change in the first.
fn joined_calls(first: &Message, second: &Message) -> Option<String> {
    match (
        first.tool_calls().is_empty(),
        second.tool_calls().is_empty(),
    ) {
        (true, true) => None,
        (true, false) => second.value("tool_calls").map(str::to_owned),
        (false, true) => first.value("tool_calls").map(str::to_owned),
        (false, false) => Some(join_lists(
            first.value("tool_calls")?,
            second.value("tool_calls")?,
        )),
    }
}

/// Two JSON lists end to end.
pub(super) fn join_lists(first: &str, second: &str) -> String {
    let (first, second) = (inside(first), inside(second));
    let comma = if first.is_empty() || second.is_empty() {
        ""
    } else {
        ","
    };
    ["[", first, comma, second, "]"].concat()
}

fn inside(list: &str) -> &str {
    let list = list.trim();
    list.strip_prefix('[')
        .and_then(|list| list.strip_suffix(']'))
        .unwrap_or("")
        .trim()
}

/// A text as a part of a list.
pub(super) fn text_part(text: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", json::quote(text))
}
