//! Shorter versions of single messages. Each says in the message itself that something was cut, and where the whole is.
//!
//! All take and give the message's JSON. A cut never splits a character, and call arguments that were JSON still are;
//! arguments that were not are only touched when the request could not be sent otherwise.

mod body;

use std::borrow::Cow;

use hermes_message::{Message, build};
use serde_json::{Value, json};

use crate::extract::words;
use crate::row::Body;
pub use body::cut_body;

/// Arguments longer than this are shortened.
pub const LONG_ARGUMENTS: usize = 500;
/// Text leaves of shortened arguments keep so many characters.
const LEAF: usize = 200;

/// What a cut leaves behind.
fn note(left_out: usize, total: usize) -> String {
    format!(
        "\n[… {left_out} of {total} characters were cut here to save room. Where the host keeps sessions, the whole message is in the session store; or get it again …]\n"
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

/// The assistant message with long arguments shortened. `None` when there are none.
#[must_use]
pub fn cut_arguments(json: &str) -> Option<String> {
    if json.len() <= LONG_ARGUMENTS {
        return None;
    }
    Some(
        body::cut_calls(&Message::parse(json).ok()?, LEAF)?
            .stored()
            .to_string(),
    )
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
