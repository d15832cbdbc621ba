//! One message as the columns of a row, and back.
//!
//! The columns that Hermes reads are filled the way it fills them. Plain messages can be rebuilt from
//! them byte for byte; only where that is not so, or not cheap, does the row keep the exact text as well.

mod raw;

use std::borrow::Cow;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::pyjson::dumps;

pub(crate) use raw::{RawColumns, SELECT};

/// What Hermes puts before content that is not plain text.
pub(crate) const STRUCTURED: &str = "\0json:";
/// What marks [`Columns::stored_json`] as older than the other columns (see `schema::triggers`).
const OVERTAKEN: char = '~';

/// The columns of one message, apart from its identity.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Columns<'a> {
    pub(crate) role: Cow<'a, str>,
    pub(crate) content: Option<Cow<'a, str>>,
    pub(crate) tool_call_id: Option<Cow<'a, str>>,
    pub(crate) tool_calls: Option<Cow<'a, str>>,
    pub(crate) tool_name: Option<Cow<'a, str>>,
    pub(crate) effect_disposition: Option<Cow<'a, str>>,
    pub(crate) finish_reason: Option<Cow<'a, str>>,
    pub(crate) reasoning: Option<Cow<'a, str>>,
    pub(crate) reasoning_content: Option<Cow<'a, str>>,
    pub(crate) reasoning_details: Option<Cow<'a, str>>,
    pub(crate) codex_reasoning_items: Option<Cow<'a, str>>,
    pub(crate) codex_message_items: Option<Cow<'a, str>>,
    pub(crate) platform_message_id: Option<Cow<'a, str>>,
    pub(crate) api_content: Option<Cow<'a, str>>,
    pub(crate) display_kind: Option<Cow<'a, str>>,
    pub(crate) display_metadata: Option<Cow<'a, str>>,
    pub(crate) stored_json: Option<Cow<'a, str>>,
    pub(crate) timestamp: Option<f64>,
    pub(crate) token_count: Option<i64>,
    pub(crate) observed: bool,
    pub(crate) summary: bool,
    /// How many tool calls the message makes; not a column of the row, but counted on the session's.
    pub(crate) call_count: i64,
}

/// The members of a JSON object as written; a repeated key counts as its last value.
pub(crate) fn members(text: &str) -> Vec<(Cow<'_, str>, &str)> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(Cow<'de, str>, &'de str)>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a JSON object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::with_capacity(4);
            while let Some((key, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
                all.push((string(key.get()).unwrap_or_default(), value.get()));
            }
            Ok(all)
        }
    }
    serde_json::Deserializer::from_str(text)
        .deserialize_map(Members)
        .unwrap_or_default()
}

/// The text of a JSON string; `None` for another kind of value.
pub(crate) fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.bytes().any(|b| b == b'\\') {
        return serde_json::from_str(raw).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

/// A value in Hermes's spelling; text that cannot be read as a value (a number beyond all floats) as it is.
pub(crate) fn python(raw: &str) -> Cow<'_, str> {
    serde_json::from_str::<Value>(raw).map_or(Cow::Borrowed(raw), |value| Cow::Owned(dumps(&value)))
}

/// Whether Python takes the value for false.
fn falsy(raw: &str) -> bool {
    let empty = |open: char, close: char| {
        raw.strip_prefix(open)
            .and_then(|rest| rest.strip_suffix(close))
            .is_some_and(|inside| inside.trim_ascii().is_empty())
    };
    matches!(raw, "null" | "false" | "0" | "0.0" | "-0.0" | "\"\"")
        || empty('[', ']')
        || empty('{', '}')
}

/// A text column: text as it is, anything else in JSON.
fn text(raw: &str) -> Option<Cow<'_, str>> {
    if raw == "null" {
        None
    } else {
        string(raw).or_else(|| Some(python(raw)))
    }
}

/// `timestamp`: a number, or the ISO form that some recordings have.
pub(crate) fn seconds(raw: &str) -> Option<f64> {
    match string(raw) {
        Some(text) => text.parse().ok().or_else(|| super::clock::parse_iso(&text)),
        None => raw.parse().ok(),
    }
    .filter(|value: &f64| value.is_finite())
}

/// Reads the columns out of a message's stored text.
pub(crate) fn fill(stored: &str) -> Columns<'_> {
    let mut columns = Columns {
        role: Cow::Borrowed("unknown"),
        ..Columns::default()
    };
    let mut name = None;
    let all = members(stored);
    for (key, raw) in &all {
        let raw: &str = raw;
        match &**key {
            "role" => columns.role = string(raw).unwrap_or(Cow::Borrowed("unknown")),
            "content" => {
                columns.content = match raw.as_bytes().first() {
                    Some(b'"') => string(raw),
                    Some(b'[' | b'{') => Some(Cow::Owned([STRUCTURED, &python(raw)].concat())),
                    Some(b't') => Some(Cow::Borrowed("1")),
                    Some(b'f') => Some(Cow::Borrowed("0")),
                    Some(b'n') | None => None,
                    Some(_) => Some(Cow::Borrowed(raw)),
                }
            }
            "tool_call_id" => columns.tool_call_id = text(raw),
            "tool_calls" if !falsy(raw) => {
                columns.call_count = serde_json::from_str::<Vec<&RawValue>>(raw)
                    .map_or(1, |calls| i64::try_from(calls.len()).unwrap_or(i64::MAX));
                columns.tool_calls = Some(python(raw));
            }
            "tool_calls" => (columns.call_count, columns.tool_calls) = (0, None),
            "tool_name" => columns.tool_name = text(raw),
            "name" => name = string(raw),
            "effect_disposition" => columns.effect_disposition = text(raw),
            "finish_reason" => columns.finish_reason = text(raw),
            "reasoning" => columns.reasoning = text(raw),
            "reasoning_content" => columns.reasoning_content = text(raw),
            "reasoning_details" => columns.reasoning_details = (!falsy(raw)).then(|| python(raw)),
            "codex_reasoning_items" => {
                columns.codex_reasoning_items = (!falsy(raw)).then(|| python(raw))
            }
            "codex_message_items" => {
                columns.codex_message_items = (!falsy(raw)).then(|| python(raw))
            }
            "platform_message_id" => columns.platform_message_id = text(raw),
            "message_id" if columns.platform_message_id.is_none() => {
                columns.platform_message_id = text(raw)
            }
            "api_content" => columns.api_content = string(raw),
            "display_kind" => columns.display_kind = text(raw),
            "display_metadata" => columns.display_metadata = text(raw),
            "timestamp" => columns.timestamp = seconds(raw),
            "token_count" => columns.token_count = raw.parse().ok(),
            "observed" => columns.observed = !falsy(raw),
            "_compressed_summary" => columns.summary = !falsy(raw),
            _ => {}
        }
    }
    if columns.role != "assistant" {
        columns.reasoning = None;
        columns.reasoning_content = None;
        columns.reasoning_details = None;
        columns.codex_reasoning_items = None;
        columns.codex_message_items = None;
    }
    if columns.role == "tool" && columns.tool_name.is_none() {
        columns.tool_name = name;
    }
    // What is JSON inside of a column would have to be parsed and written again at every resume; its exact
    // text is worth its room.
    let structured = columns.tool_calls.is_some()
        || columns.reasoning_details.is_some()
        || columns
            .content
            .as_deref()
            .is_some_and(|text| text.starts_with(STRUCTURED));
    if structured || (!plain_text_is(stored, &columns) && rebuild(&columns) != stored) {
        columns.stored_json = Some(Cow::Borrowed(stored));
    }
    columns
}

/// A quick yes for the commonest message, `{"role":…,"content":"…"}` without escapes.
fn plain_text_is(stored: &str, columns: &Columns<'_>) -> bool {
    let Some(Cow::Borrowed(content)) = &columns.content else {
        return false;
    };
    let frame = r#"{"role":"","content":""}"#.len();
    // Lengths that add up leave no room for another member.
    stored.len() == frame + columns.role.len() + content.len()
        && stored.starts_with(r#"{"role":""#)
        && stored.ends_with("\"}")
        && !content.starts_with(STRUCTURED)
        && stored[r#"{"role":""#.len()..].starts_with(&*columns.role)
        && stored[r#"{"role":""#.len() + columns.role.len()..].starts_with(r#"","content":""#)
}

/// Appends `text` as a JSON string, in the spelling `serde_json` has.
fn quote(out: &mut String, text: &str) {
    // All bytes are looked at without a way out on the first hit: that the compiler turns into wide steps.
    let escaped = text.bytes().fold(false, |found, byte| {
        found | (byte < b' ') | (byte == b'"') | (byte == b'\\')
    });
    if escaped {
        // Text cannot fail to be written.
        out.push_str(&serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned()));
        return;
    }
    out.reserve(text.len() + 2);
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// The message that the columns alone describe: what a row of another program holds.
pub(crate) fn rebuild(columns: &Columns<'_>) -> String {
    let mut out = String::with_capacity(64 + columns.content.as_ref().map_or(0, |c| c.len()));
    rebuild_into(&mut out, columns);
    out
}

fn rebuild_into(out: &mut String, columns: &Columns<'_>) {
    out.push_str("{\"role\":");
    quote(out, &columns.role);
    out.push_str(",\"content\":");
    match columns.content.as_deref() {
        None => out.push_str("null"),
        Some(content) => match content.strip_prefix(STRUCTURED).and_then(compact) {
            Some(value) => out.push_str(&value),
            None => quote(out, content),
        },
    }
    push_text(out, "api_content", &columns.api_content);
    push_text(out, "tool_call_id", &columns.tool_call_id);
    push_text(out, "tool_name", &columns.tool_name);
    push_text(out, "effect_disposition", &columns.effect_disposition);
    push_json(out, "tool_calls", &columns.tool_calls);
    push_text(out, "message_id", &columns.platform_message_id);
    if columns.observed {
        out.push_str(",\"observed\":true");
    }
    if columns.role == "assistant" {
        push_text(out, "finish_reason", &columns.finish_reason);
        push_text(out, "reasoning", &columns.reasoning);
        // Hermes tells an empty text from none here.
        if let Some(text) = columns.reasoning_content.as_deref() {
            push_key(out, "reasoning_content");
            quote(out, text);
        }
        push_json(out, "reasoning_details", &columns.reasoning_details);
        push_json(out, "codex_reasoning_items", &columns.codex_reasoning_items);
        push_json(out, "codex_message_items", &columns.codex_message_items);
    }
    if columns.summary {
        out.push_str(",\"_compressed_summary\":true");
    }
    out.push('}');
}

fn push_key(out: &mut String, name: &str) {
    out.push_str(",\"");
    out.push_str(name);
    out.push_str("\":");
}

/// A member that is text; an empty one is none.
fn push_text(out: &mut String, name: &str, value: &Option<Cow<'_, str>>) {
    if let Some(text) = value.as_deref().filter(|text| !text.is_empty()) {
        push_key(out, name);
        quote(out, text);
    }
}

/// A member that is JSON; what is none is left out.
fn push_json(out: &mut String, name: &str, value: &Option<Cow<'_, str>>) {
    if let Some(json) = value.as_deref().and_then(compact) {
        push_key(out, name);
        out.push_str(&json);
    }
}

/// JSON without blanks; `None` for text that is no JSON.
fn compact(text: &str) -> Option<String> {
    serde_json::from_str::<Value>(text)
        .ok()
        .map(|value| value.to_string())
}

/// Appends the exact text of a row's message.
pub(crate) fn restore(columns: &Columns<'_>, out: &mut String) {
    match columns.stored_json.as_deref() {
        None => rebuild_into(out, columns),
        Some(stored) => match stored.strip_prefix(OVERTAKEN) {
            None => out.push_str(stored),
            Some(older) => match overlay(older, columns) {
                Some(text) => out.push_str(&text),
                None => rebuild_into(out, columns),
            },
        },
    }
}

/// Our older text with the members that another program has rewritten since.
fn overlay(older: &str, now: &Columns<'_>) -> Option<String> {
    let then = fill(older);
    let mut message: Map<String, Value> = serde_json::from_str(older).ok()?;
    let rebuilt: Map<String, Value> = serde_json::from_str(&rebuild(now)).ok()?;
    let before: Map<String, Value> = serde_json::from_str(&rebuild(&then)).ok()?;
    for (key, value) in &rebuilt {
        if before.get(key) != Some(value) {
            message.insert(key.clone(), value.clone());
        }
    }
    for key in before.keys() {
        if !rebuilt.contains_key(key) {
            message.shift_remove(key);
        }
    }
    serde_json::to_string(&message).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restored(columns: &Columns<'_>) -> String {
        let mut text = String::new();
        restore(columns, &mut text);
        text
    }

    fn there_and_back(stored: &str) -> Columns<'_> {
        let columns = fill(stored);
        assert_eq!(restored(&columns), stored);
        columns
    }

    #[test]
    fn common_messages_need_no_second_copy() {
        for stored in [
            r#"{"role":"user","content":"hi"}"#,
            r#"{"role":"user","content":"line\nand \"quote\""}"#,
            r#"{"role":"tool","content":"ok","tool_call_id":"c","tool_name":"f"}"#,
        ] {
            assert_eq!(there_and_back(stored).stored_json, None, "{stored}");
        }
    }

    #[test]
    fn every_other_spelling_is_kept_as_it_came() {
        for stored in [
            r#"{"content":"hi","role":"user"}"#,
            r#"{"role":"user","content":"a\/b"}"#,
            r#"{"role":"user","content":"\u0000json:[1]"}"#,
            r#"{"role": "user", "content": "hi", "x": 1.0}"#,
            r#"{"role":"assistant","content":"","refusal":null}"#,
            r#"{"role":"user","content":1e999}"#,
            r#"{"role":"user"}"#,
            r#"{"content":"a","content":"b","role":"user"}"#,
            r#"{"role":"user","content":"漢","a":""}"#,
        ] {
            assert!(there_and_back(stored).stored_json.is_some(), "{stored}");
        }
    }

    #[test]
    fn columns_are_filled_as_hermes_fills_them() {
        let columns = fill(
            r#"{"role":"assistant","content":[{"type":"text","text":"é"}],"tool_calls":[{"id":"a"},{"id":"b"}],"reasoning":"r","reasoning_details":[],"finish_reason":"stop","timestamp":12.5}"#,
        );
        assert_eq!(
            columns.content.as_deref(),
            Some("\0json:[{\"type\": \"text\", \"text\": \"\\u00e9\"}]")
        );
        assert_eq!(
            columns.tool_calls.as_deref(),
            Some("[{\"id\": \"a\"}, {\"id\": \"b\"}]")
        );
        assert_eq!(columns.reasoning_details, None);
        assert_eq!((columns.call_count, columns.timestamp), (2, Some(12.5)));
    }

    #[test]
    fn a_rewrite_by_another_program_keeps_the_keys_only_we_know() {
        let stored = r#"{"x":1,"content":"old","role":"user"}"#;
        let mut columns = fill(stored);
        columns.stored_json = Some(Cow::Owned(format!("~{stored}")));
        columns.content = Some(Cow::Borrowed("new"));
        assert_eq!(
            restored(&columns),
            r#"{"x":1,"content":"new","role":"user"}"#
        );
    }
}
