//! Secrets: out of everything a helper model reads, and out of everything a summary says.
//!
//! A long text is cut first and looked through then, so that time grows with what is shown. Cuts fall between lines or
//! words: no half of a secret is left standing that the whole would have given away.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text without secrets. Ordinary hashes and ids stay.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    hermes_message::redact::redact(text)
}

/// A text without secrets that keeps its buffer where it has none.
#[must_use]
pub fn redacted(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => redact(text),
        Cow::Owned(text) => match redact(&text) {
            Cow::Owned(clean) => Cow::Owned(clean),
            Cow::Borrowed(_) => Cow::Owned(text),
        },
    }
}

/// A text of at most about `most` bytes: of a longer one beginning and end, with what lies between named.
#[must_use]
pub fn cut(text: Cow<'_, str>, most: usize) -> Cow<'_, str> {
    if text.len() <= most.saturating_add(NOTE) {
        return text;
    }
    let mut out = String::new();
    cut_into(&mut out, &text, most);
    Cow::Owned(out)
}

const NOTE: usize = 60;
/// How far a line or word border may be from where a cut was meant to be.
const REACH: usize = 1_000;

/// Appends a text as [`cut`] gives it.
pub fn cut_into(out: &mut String, text: &str, most: usize) {
    if text.len() <= most.saturating_add(NOTE) {
        out.push_str(text);
        return;
    }
    let head = last_break(text, most * 2 / 3);
    let tail = next_break(text, text.len() - most / 3).max(head);
    out.push_str(&text[..head]);
    let _ = write!(out, " [… {} bytes left out …] ", tail - head);
    out.push_str(&text[tail..]);
}

/// The last line or word border at or before `at`; in a text without any near it, a character border.
fn last_break(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    let start = text.floor_char_boundary(at.saturating_sub(REACH.min(at / 2)));
    text[start..at]
        .rfind(char::is_whitespace)
        .map_or(at, |found| start + found)
}

/// The first one at or after `at`.
fn next_break(text: &str, at: usize) -> usize {
    let at = text.ceil_char_boundary(at);
    let reach = REACH.min((text.len() - at) / 2);
    let end = text.floor_char_boundary(at + reach);
    text[at..end]
        .find(char::is_whitespace)
        .map_or(at, |found| at + found)
}
