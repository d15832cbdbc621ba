//! Shorter versions of single messages. Each says in the message itself that something was cut, and where the whole is.
//!
//! All take and give the message's JSON. A cut never splits a character, and call arguments that were JSON still are;
//! arguments that were not are never touched.

use std::borrow::Cow;

use hermes_message::{Content, Message, build};
use serde_json::{Value, json};

use crate::extract::words;
use crate::row::{Body, string};

/// Arguments longer than this are shortened.
pub const LONG_ARGUMENTS: usize = 500;
/// Text leaves of shortened arguments keep so many bytes.
const LEAF: usize = 200;

/// A message that may have fewer tokens than this has no room for an attachment.
const ATTACHMENT: u64 = 2_000;
const REMOVED: &str =
    "[an attachment was removed here to save room; it is kept in the session store]";

/// What a cut leaves behind.
fn note(left_out: usize, total: usize) -> String {
    format!(
        "\n[… {left_out} of {total} characters were cut here to save room. The whole message is kept in the session store: search the session for it, or get it again …]\n"
    )
}

/// Beginning and end of a text, about `keep` bytes, with a note between. The text itself when there is nothing to win.
#[must_use]
pub fn cut_text(text: &str, keep: usize) -> Cow<'_, str> {
    let room = keep.saturating_sub(200).max(40);
    if text.len() <= keep.max(240) || room >= text.len() {
        return Cow::Borrowed(text);
    }
    let head = text.floor_char_boundary(room * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - room / 3).max(head);
    let characters = text.chars().count();
    let left_out = text[head..tail].chars().count();
    Cow::Owned([&text[..head], &*note(left_out, characters), &text[tail..]].concat())
}

/// A tool result in one line.
#[must_use]
pub fn digest(text: &str) -> String {
    let lines = text.lines().count();
    let telling = text.lines().map(str::trim).filter(|line| line.len() > 1);
    let fault = telling.clone().take(200).find(|line| {
        let line = line.to_ascii_lowercase();
        ["error", "failed", "exception", "panicked"]
            .iter()
            .any(|word| line.contains(word))
    });
    let line = fault.or_else(|| telling.clone().next()).unwrap_or("");
    let mut shown = String::new();
    for word in line.split_whitespace() {
        if shown.len() + word.len() > 140 {
            shown.push('…');
            break;
        }
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(word);
    }
    let files: Vec<&str> = words::words(text)
        .filter(|word| {
            words::is_path(word.text) && word.text.len() < 80 && !shown.contains(word.text)
        })
        .map(|word| word.text)
        .take(2)
        .collect();
    let named = if files.is_empty() {
        String::new()
    } else {
        format!("; names {}", files.join(", "))
    };
    format!(
        "[old tool output, {lines} lines, {} characters: {shown}{named}. Whole text: search the session, or run the tool again]",
        text.chars().count()
    )
}

/// The tool result as one line. `None` when that is not shorter.
#[must_use]
pub fn one_line(json: &str) -> Option<String> {
    let body = Body::read(json);
    let mut line = digest(&body.text);
    if let Some(media) = body.media.note() {
        line.push(' ');
        line.push_str(&media);
    }
    (line.len() < body.text.len() || body.media != crate::row::Media::default())
        .then(|| with_content(json, &line))?
}

/// The tool result as a hint to a later one with the same text.
#[must_use]
pub fn back_reference(json: &str) -> Option<String> {
    with_content(
        json,
        "[the same output as that of a later call of this conversation; see there]",
    )
}

fn with_content(json: &str, text: &str) -> Option<String> {
    let message = Message::parse(json).ok()?;
    Some(build::with_content(&message, text).stored().to_string())
}

/// The message of `tokens` with its texts and the leaves of its arguments cut so that it has about `most`. `None` when
/// nothing gets shorter.
#[must_use]
pub fn cut_body(json: &str, tokens: u64, most: u64) -> Option<String> {
    let part = |len: usize| {
        let len = u64::try_from(len).unwrap_or(u64::MAX);
        usize::try_from(len.saturating_mul(most) / tokens.max(1)).unwrap_or(usize::MAX)
    };
    let message = Message::parse(json).ok()?;
    let mut cut = None;
    match message.content() {
        Content::Text(text) => {
            if let Some(shorter) = cut_shorter(&text, part(text.len())) {
                cut = Some(build::with_content(&message, &shorter));
            }
        }
        Content::Parts(_) => {
            let mut parts: Vec<Value> = serde_json::from_str(message.raw_content()?).ok()?;
            let mut changed = false;
            for element in &mut parts {
                if let Some(Value::String(text)) = element.get_mut("text") {
                    if let Some(shorter) = cut_shorter(text, part(text.len())) {
                        *text = shorter;
                        changed = true;
                    }
                } else if most < ATTACHMENT && !element.is_string() {
                    *element = json!({"type": "text", "text": REMOVED});
                    changed = true;
                }
            }
            if changed {
                cut = build::with_member(&message, "content", &Value::from(parts).to_string()).ok();
            }
        }
        _ => {}
    }
    let longest = part(json.len()).clamp(LEAF, usize::MAX / 2);
    let cut = cut_calls(cut.as_ref().unwrap_or(&message), longest).or(cut)?;
    Some(cut.stored().to_string())
}

fn cut_shorter(text: &str, keep: usize) -> Option<String> {
    match cut_text(text, keep) {
        Cow::Owned(cut) if cut.len() < text.len() => Some(cut),
        _ => None,
    }
}

/// The assistant message with long arguments shortened. `None` when there are none.
#[must_use]
pub fn cut_arguments(json: &str) -> Option<String> {
    if json.len() <= LONG_ARGUMENTS {
        return None;
    }
    Some(
        cut_calls(&Message::parse(json).ok()?, LEAF)?
            .stored()
            .to_string(),
    )
}

fn cut_calls(message: &Message, leaf: usize) -> Option<Message> {
    let mut cut = None;
    for (place, call) in message.tool_calls().iter().enumerate() {
        let arguments = call.arguments();
        if arguments.len() <= LONG_ARGUMENTS {
            continue;
        }
        if let Some(shorter) = shorten_leaves(&arguments, leaf) {
            cut = Some(build::with_tool_arguments(
                cut.as_ref().unwrap_or(message),
                place,
                &shorter,
            ));
        }
    }
    cut
}

/// JSON text with its long text leaves cut, everything else byte for byte. `None` when it is no JSON or has none.
#[must_use]
pub fn shorten_leaves(text: &str, most: usize) -> Option<String> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len() / 2);
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'"' {
            at += 1;
            continue;
        }
        let start = at;
        at += 1;
        while at < bytes.len() && bytes[at] != b'"' {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        at = (at + 1).min(bytes.len());
        let is_key = text[at..].trim_start().starts_with(':');
        if is_key || at - start <= most + 120 {
            continue;
        }
        let leaf = string(&text[start..at])?;
        let head = leaf.floor_char_boundary(most * 2 / 3);
        let tail = leaf.ceil_char_boundary(leaf.len() - most / 3).max(head);
        let left_out = leaf[head..tail].chars().count();
        let cut = format!(
            "{}[… {left_out} characters cut to save room …]{}",
            &leaf[..head],
            &leaf[tail..]
        );
        let quoted = serde_json::to_string(&cut).ok()?;
        if quoted.len() >= at - start {
            continue;
        }
        out.push_str(&text[from..start]);
        out.push_str(&quoted);
        from = at;
    }
    if from == 0 {
        return None;
    }
    out.push_str(&text[from..]);
    Some(out)
}

/// The message with its pictures replaced by words. `None` when it has none.
#[must_use]
pub fn without_images(json: &str) -> Option<String> {
    let message = Message::parse(json).ok()?;
    let mut parts: Vec<Value> = serde_json::from_str(message.raw_content()?).ok()?;
    let mut changed = false;
    for part in &mut parts {
        let is_image = part
            .get("type")
            .and_then(Value::as_str)
            .is_some_and(|kind| kind.contains("image"));
        if is_image {
            *part =
                json!({"type": "text", "text": "[an image was shown here; removed to save room]"});
            changed = true;
        }
    }
    if !changed {
        return None;
    }
    let cut = build::with_member(&message, "content", &Value::from(parts).to_string()).ok()?;
    Some(cut.stored().to_string())
}
