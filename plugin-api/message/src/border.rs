//! What is mended once, where a text comes in, and never again behind it.
//!
//! Half of a surrogate pair becomes U+FFFD, both in the text and inside tool arguments (which are
//! JSON within JSON); a raw control character inside a string becomes its escape; a tool call
//! without an id gets one. The same text always becomes the same bytes.

use std::borrow::Cow;

use memchr::{memchr, memmem};
use xxhash_rust::xxh3::xxh3_64;

use crate::json;

/// The text with every lone `\ud8xx` or `\udcxx` escape replaced by `\ufffd`, which is as long.
#[must_use]
pub fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    if memmem::find(text.as_bytes(), b"\\u").is_none() {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut halves = Vec::new();
    let mut at = 0;
    while let Some(step) = memchr(b'\\', &bytes[at..]) {
        at += step;
        match surrogate(&bytes[at..]) {
            Some(Half::High)
                if surrogate(bytes.get(at + 6..).unwrap_or(&[])) == Some(Half::Low) =>
            {
                at += 12
            }
            Some(_) => {
                halves.push(at);
                at += 6;
            }
            // The second byte belongs to this escape, also when it is a backslash itself.
            None => at = (at + 2).min(bytes.len()),
        }
    }
    splice(text, &halves, 6, "\\ufffd")
}

/// Replaces `len` bytes at each of `places`.
fn splice<'a>(text: &'a str, places: &[usize], len: usize, with: &str) -> Cow<'a, str> {
    if places.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for &at in places {
        out.push_str(&text[from..at]);
        out.push_str(with);
        from = at + len;
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Half {
    High,
    Low,
}

/// Which half of a pair the escape at the start of `bytes` is.
fn surrogate(bytes: &[u8]) -> Option<Half> {
    let [b'\\', b'u', b'd' | b'D', second, third, fourth, ..] = bytes else {
        return None;
    };
    if !third.is_ascii_hexdigit() || !fourth.is_ascii_hexdigit() {
        return None;
    }
    match second {
        b'8' | b'9' | b'a' | b'A' | b'b' | b'B' => Some(Half::High),
        b'c' | b'C' | b'd' | b'D' | b'e' | b'E' | b'f' | b'F' => Some(Half::Low),
        _ => None,
    }
}

/// The text with raw control characters inside strings escaped; `None` when it has none.
pub(crate) fn escape_controls(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut from, mut at, mut changed) = (0, 0, false);
    while let Some(open) = memchr(b'"', &bytes[at..]) {
        at += open + 1;
        while at < bytes.len() && bytes[at] != b'"' {
            match bytes[at] {
                b'\\' => at += 1,
                control if control < 0x20 => {
                    out.push_str(&text[from..at]);
                    out.push_str(&format!("\\u{control:04x}"));
                    from = at + 1;
                    changed = true;
                }
                _ => {}
            }
            at += 1;
        }
        at = (at + 1).min(bytes.len());
    }
    out.push_str(text.get(from..)?);
    changed.then_some(out)
}

/// The value of `tool_calls` with an id in every call and no half surrogate pair inside its
/// arguments; `None` when nothing had to change.
pub(crate) fn mend_calls(raw: &str) -> Option<String> {
    let elements = json::elements(raw)?;
    let mut out = String::new();
    let mut from = 0;
    for (position, element) in elements.into_iter().enumerate() {
        if let Some(mended) = mend_call(element, position) {
            let at = json::offset_in(raw, element);
            out.push_str(&raw[from..at]);
            out.push_str(&mended);
            from = at + element.len();
        }
    }
    (from > 0).then(|| {
        out.push_str(&raw[from..]);
        out
    })
}

fn mend_call(raw: &str, position: usize) -> Option<String> {
    let members = json::members(raw).ok()?;
    let last = |key: &str| {
        members
            .iter()
            .rev()
            .find(|m| m.key == key)
            .map(|m| m.value(raw))
    };
    let function = last("function").unwrap_or("{}");
    let inside = json::members(function).unwrap_or_default();
    let text_of = |key: &str| {
        inside
            .iter()
            .rev()
            .find(|m| m.key == key)
            .map(|m| m.value(function))
    };
    let arguments = text_of("arguments").unwrap_or("");

    let mut mended: Option<String> = None;
    if let Cow::Owned(clean) = replace_nested_surrogates(arguments) {
        let at = json::offset_in(raw, arguments);
        mended = Some([&raw[..at], &clean, &raw[at + arguments.len()..]].concat());
    }
    let has_id = last("id")
        .and_then(json::string)
        .is_some_and(|id| !id.is_empty());
    if !has_id {
        let other = last("call_id")
            .and_then(json::string)
            .filter(|id| !id.is_empty());
        let id = other.map_or_else(
            || {
                let name = text_of("name").and_then(json::string).unwrap_or_default();
                let arguments = json::string(arguments).unwrap_or(Cow::Borrowed(arguments));
                made_call_id(&name, &arguments, position)
            },
            Cow::into_owned,
        );
        let text = mended.as_deref().unwrap_or(raw);
        mended = Some(json::set_member(text, "id", &json::quote(&id)));
    }
    mended
}

/// The id of a tool call that came without one (`UID-20`): `call_` and 12 hex digits that depend on
/// the function's name, its arguments and the call's position in its message, and nothing else.
#[must_use]
pub fn made_call_id(name: &str, arguments: &str, position: usize) -> String {
    let hash = xxh3_64(format!("{position}\0{name}\0{arguments}").as_bytes());
    format!("call_{:012x}", hash >> 16)
}

/// A JSON string that holds JSON: lone surrogate escapes of the *inner* text become `\ufffd`.
fn replace_nested_surrogates(raw: &str) -> Cow<'_, str> {
    if memmem::find(raw.as_bytes(), b"\\\\u").is_none() {
        return Cow::Borrowed(raw);
    }
    let bytes = raw.as_bytes();
    let mut halves = Vec::new();
    let mut at = 0;
    while let Some(step) = memchr(b'\\', &bytes[at..]) {
        at += step;
        if bytes.get(at + 1) != Some(&b'\\') {
            // `\n`, `\"`, `\uXXXX`: one character of the inner text, and no backslash of it.
            at = (at + 2).min(bytes.len());
            continue;
        }
        // One inner backslash stands at `at..at + 2`; look at what it escapes.
        match surrogate(&bytes[at + 1..]) {
            Some(Half::High)
                if bytes.get(at + 7) == Some(&b'\\')
                    && surrogate(bytes.get(at + 8..).unwrap_or(&[])) == Some(Half::Low) =>
            {
                at += 14;
            }
            Some(_) => {
                halves.push(at + 1);
                at += 7;
            }
            None => at = inner_escape_end(bytes, at + 2),
        }
    }
    splice(raw, &halves, 6, "\\ufffd")
}

/// Steps over the character that an inner backslash escapes, which may itself be written escaped.
fn inner_escape_end(bytes: &[u8], at: usize) -> usize {
    let step = if bytes.get(at) == Some(&b'\\') { 2 } else { 1 };
    (at + step).min(bytes.len())
}

/// Whether arguments in this value may hold escapes of their own: a cheap look before [`mend_calls`].
pub(crate) fn has_nested_escapes(raw: &str) -> bool {
    memmem::find(raw.as_bytes(), b"\\\\u").is_some()
}
