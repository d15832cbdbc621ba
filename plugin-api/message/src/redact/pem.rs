//! Private keys in PEM form.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem;
use regex::Regex;

use super::{REDACTED, compile};

static BEGIN: LazyLock<Regex> =
    LazyLock::new(|| compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"));
/// The end of a key whose beginning is in another text: what stands before it on lines of base64.
static TAIL: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?:[A-Za-z0-9+/]{8,}={0,2}(?:\s|\\[nr])*)+-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
    )
});

/// No key is longer than this; a later end belongs to something else.
const LONGEST: usize = 32 * 1024;

/// Replaces private keys, whole or cut, with their marks.
pub(super) fn redact(text: &str) -> Cow<'_, str> {
    if memmem::find(text.as_bytes(), b"PRIVATE KEY").is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    while let Some(begin) = BEGIN.find_at(text, from) {
        out.push_str(&text[from..begin.start()]);
        out.push_str(REDACTED);
        from = begin.end() + body(&text[begin.end()..]);
    }
    out.push_str(&text[from..]);
    match TAIL.replace_all(&out, REDACTED) {
        Cow::Borrowed(_) if from == 0 => Cow::Borrowed(text),
        Cow::Borrowed(_) => Cow::Owned(out),
        Cow::Owned(clean) => Cow::Owned(clean),
    }
}

/// How much of what follows the first mark belongs to the key: up to its end mark, or, where that is
/// missing, as far as it looks like base64. A key never goes beyond the string it stands in.
fn body(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let end = memmem::find(bytes, b"-----END").map(|at| {
        let after = &rest[at + 8..];
        let name = after.len()
            - after
                .trim_start_matches(|c: char| {
                    c.is_ascii_uppercase() || c.is_ascii_digit() || c == ' '
                })
                .len();
        let dashes = after[name..]
            .bytes()
            .take_while(|b| *b == b'-')
            .take(5)
            .count();
        at + 8 + name + dashes
    });
    let quote = bytes
        .iter()
        .position(|b| *b == b'"')
        .map(|at| at - usize::from(at > 0 && bytes[at - 1] == b'\\'));
    match end {
        Some(end) if end <= LONGEST && quote.is_none_or(|quote| end <= quote) => end,
        _ => base64_lines(bytes),
    }
}

fn base64_lines(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        at += match bytes[at] {
            b'\\' if matches!(bytes.get(at + 1), Some(b'n' | b'r')) => 2,
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'=' | b'\n' | b'\r' => 1,
            _ => break,
        };
    }
    at
}
