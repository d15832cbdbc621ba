//! Taking secrets out of texts that go to helper models or stay in summaries.
//!
//! What is looked for, each by the shape a secret has or by the name it is given ([`PATTERNS`] is the
//! list in full):
//! - private keys in PEM form, also cut ones;
//! - tokens with a telling beginning: `AKIA…`, `sk-…`, `ghp_…`, `github_pat_…`, `xox…`, `AIza…`, JWTs, …;
//! - `Bearer …`, `Authorization: …`;
//! - passwords in URLs, and query parameters such as `token=`;
//! - assignments to names such as `API_KEY`, `password` or `client_secret`, in shell, YAML, JSON and code.
//!
//! Hashes, UUIDs, message uids and base64 text have none of these and stay. Only the secret itself is
//! replaced, so that a summary can still say what it was for. Redacting twice changes nothing.

mod patterns;
mod pem;

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use crate::cut::string_end;
use crate::json;
pub use patterns::{PATTERNS, Pattern};

/// What stands in the place of a secret.
pub const REDACTED: &str = "[REDACTED]";

/// One look for words without which no pattern can match.
static HINTS: LazyLock<Regex> = LazyLock::new(|| compile(patterns::HINTS));
static SET: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(PATTERNS.iter().map(|p| p.regex))
        .unwrap_or_else(|e| unreachable!("the patterns are constant: {e}"))
});
static REGEXES: LazyLock<Vec<Regex>> =
    LazyLock::new(|| PATTERNS.iter().map(|p| compile(p.regex)).collect());

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|e| unreachable!("the pattern is constant: {e}"))
}

/// The text with every secret replaced by [`REDACTED`]; the text itself when there is none.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    if !HINTS.is_match(text) {
        return Cow::Borrowed(text);
    }
    let mut out = pem::redact(text);
    for index in SET.matches(&out) {
        let places = secrets(&REGEXES[index], &PATTERNS[index], &out);
        if !places.is_empty() {
            out = Cow::Owned(replace(&out, &places));
        }
    }
    out
}

fn secrets(regex: &Regex, pattern: &Pattern, text: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    for captures in regex.captures_iter(text) {
        if let Some(secret) = captures.name("v")
            && !is_mark(secret.as_str())
            && (pattern.is_secret)(secret.as_str())
        {
            found.push(secret.range());
        }
    }
    found
}

/// The mark itself, also where a pattern takes its last bracket for the end of a clause.
fn is_mark(secret: &str) -> bool {
    secret == REDACTED || secret == REDACTED.trim_end_matches(']')
}

fn replace(text: &str, places: &[std::ops::Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for place in places {
        out.push_str(&text[from..place.start]);
        out.push_str(REDACTED);
        from = place.end;
    }
    out.push_str(&text[from..]);
    out
}

/// JSON text with the secrets inside its strings replaced; it stays JSON. A string under a key that
/// names a secret (`"password": "…"`) is replaced whole. A text that is no JSON is treated as text.
#[must_use]
pub fn redact_json_strings(text: &str) -> Cow<'_, str> {
    if !HINTS.is_match(text) && !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    if !crate::calls::is_json(text) {
        return redact(text);
    }
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut from, mut at) = (0, 0);
    let mut key: Option<&str> = None;
    while let Some(open) = memchr::memchr(b'"', &bytes[at..]).map(|n| at + n) {
        // A key speaks for the value directly behind it only.
        let named = key.take().filter(|_| {
            bytes[at..open]
                .iter()
                .all(|b| b.is_ascii_whitespace() || *b == b':')
        });
        let end = string_end(bytes, open);
        at = end;
        if bytes[end..].iter().find(|b| !b.is_ascii_whitespace()) == Some(&b':') {
            key = Some(&text[open..end]);
        }
        let Some(value) = json::string(&text[open..end]) else {
            continue;
        };
        let is_named = named
            .and_then(json::string)
            .is_some_and(|key| patterns::names_a_secret(&key));
        let clean = if is_named && !value.is_empty() && key.is_none() {
            Cow::Borrowed(REDACTED)
        } else {
            redact(&value)
        };
        if *clean != *value {
            out.push_str(&text[from..open]);
            json::push_quoted(&mut out, &clean);
            from = end;
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}
