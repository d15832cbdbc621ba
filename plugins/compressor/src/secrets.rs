//! Secrets: out of everything a helper model reads, and out of everything a summary says.

use std::borrow::Cow;

/// The text without secrets. Ordinary hashes and ids stay.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    // The library of patterns belongs to the message crate; until it is there, nothing is taken out.
    Cow::Borrowed(text)
}

/// Longest text that is looked through whole; of a longer one, so much of its beginning and of its end.
const HEAD: usize = 24_000;
const TAIL: usize = 12_000;

/// The text, or of a very long one beginning and end, without secrets. Cuts are made between lines or words, so that no
/// half of a secret is left standing that the whole would have given away.
#[must_use]
pub fn readable(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() <= HEAD + TAIL + 1_000 {
        return redacted(text);
    }
    let head = &text[..last_break(&text, HEAD)];
    let tail = &text[next_break(&text, text.len() - TAIL)..];
    // The end of a key whose beginning was cut off.
    let tail = match (tail.find("-----END "), tail.find("-----BEGIN ")) {
        (Some(end), begin) if begin.is_none_or(|begin| begin > end) => &tail[end..],
        _ => tail,
    };
    let left_out = text.len() - head.len() - tail.len();
    Cow::Owned(format!(
        "{}\n[… {left_out} bytes left out …]\n{}",
        redact(head),
        redact(tail)
    ))
}

fn redacted(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => redact(text),
        Cow::Owned(text) => match redact(&text) {
            Cow::Owned(clean) => Cow::Owned(clean),
            Cow::Borrowed(_) => Cow::Owned(text),
        },
    }
}

/// The last line or word border at or before `at`; in a text without any, a character border.
fn last_break(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    let window = &text[text.floor_char_boundary(at.saturating_sub(2_000))..at];
    let start = at - window.len();
    window
        .rfind('\n')
        .or_else(|| window.rfind(char::is_whitespace))
        .map_or(at, |found| start + found)
}

fn next_break(text: &str, at: usize) -> usize {
    let at = text.ceil_char_boundary(at);
    let window = &text[at..text.floor_char_boundary((at + 2_000).min(text.len()))];
    window
        .find('\n')
        .or_else(|| window.find(char::is_whitespace))
        .map_or(at, |found| at + found)
}
