//! JSON read as text: where a value stands, not what it means.
//!
//! Values stay slices of the text they came in, so that what nobody edits keeps its bytes: number
//! spelling, key order, escapes and blanks.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use smallvec::SmallVec;

/// One `"key": value` of an object, by its place in the object's text.
#[derive(Debug, Clone)]
pub(crate) struct Member<'a> {
    /// The key, unescaped.
    pub(crate) key: Cow<'a, str>,
    /// Where the key's opening quote stands.
    pub(crate) key_start: usize,
    /// Where the value begins.
    pub(crate) start: usize,
    /// Where the value has ended.
    pub(crate) end: usize,
}

impl Member<'_> {
    pub(crate) fn value<'t>(&self, text: &'t str) -> &'t str {
        &text[self.start..self.end]
    }
}

/// The members of an object. Few messages have more than eight, so that reading one allocates nothing for them.
pub(crate) type Members<'a> = SmallVec<[Member<'a>; 8]>;

/// The members of an object, in order, duplicates included. Validates the whole text.
pub(crate) fn members(text: &str) -> Result<Members<'_>, serde_json::Error> {
    let mut de = serde_json::Deserializer::from_str(text);
    let found = de.deserialize_map(MembersOf { text })?;
    de.end()?;
    Ok(found)
}

/// The elements of an array, as texts; `None` when `text` is no array.
pub(crate) fn elements(text: &str) -> Option<Vec<&str>> {
    // Asking costs less than the parser's complaint about another kind of value.
    if !text.trim_start().starts_with('[') {
        return None;
    }
    let raw: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(raw.into_iter().map(RawValue::get).collect())
}

/// Byte offset of `part` in `text`, of which it is a slice.
pub(crate) fn offset_in(text: &str, part: &str) -> usize {
    part.as_ptr().addr() - text.as_ptr().addr()
}

/// The text of a JSON string; `None` when `raw` is another kind of value.
pub(crate) fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    match serde_json::from_str(raw) {
        Ok(text) => Some(Cow::Owned(text)),
        Err(_) => serde_json::from_str(&crate::border::replace_lone_surrogates(raw))
            .ok()
            .map(Cow::Owned),
    }
}

/// `text` as a JSON string.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_quoted(&mut out, text);
    out
}

/// Appends `text` as a JSON string.
pub(crate) fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest
        .bytes()
        .position(|b| b < 0x20 || b == b'"' || b == b'\\')
    {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            other => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.push_str("\\u00");
                out.push(char::from(HEX[usize::from(other >> 4)]));
                out.push(char::from(HEX[usize::from(other & 15)]));
            }
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// The object without the members that `keep` refuses, everything else byte for byte, and where the
/// kept members stand in the new text.
pub(crate) fn keep_members<'a>(
    text: &str,
    members: &[Member<'a>],
    mut keep: impl FnMut(usize, &Member<'a>) -> bool,
) -> (String, Members<'a>) {
    let mut out = String::with_capacity(text.len());
    let mut kept = Members::new();
    let Some(first) = members.first() else {
        return (text.to_owned(), kept);
    };
    out.push_str(&text[..first.key_start]);
    for (i, member) in members.iter().enumerate() {
        if !keep(i, member) {
            continue;
        }
        if !kept.is_empty() {
            // Not first among the kept ones means not first in the text either.
            out.push_str(&text[members[i - 1].end..member.key_start]);
        }
        let shift = |at: usize| at - member.key_start + out.len();
        kept.push(Member {
            key: member.key.clone(),
            key_start: out.len(),
            start: shift(member.start),
            end: shift(member.end),
        });
        out.push_str(&text[member.key_start..member.end]);
    }
    out.push_str(&text[members[members.len() - 1].end..]);
    (out, kept)
}

/// The object with `key` set to the JSON text `raw`: in place of the last value under that key, or
/// appended.
pub(crate) fn set_member(text: &str, key: &str, raw: &str) -> String {
    let found = members(text).unwrap_or_default();
    if let Some(member) = found.iter().rev().find(|m| m.key == key) {
        return [&text[..member.start], raw, &text[member.end..]].concat();
    }
    let mut part = quote(key);
    part.push(':');
    part.push_str(raw);
    append(text, &part)
}

/// The object without any value under `key`.
pub(crate) fn remove_member(text: &str, key: &str) -> String {
    let found = members(text).unwrap_or_default();
    keep_members(text, &found, |_, m| m.key != key).0
}

/// The object with ready-made members (`"a":1,"b":2`) after its own.
pub(crate) fn append(text: &str, inner: &str) -> String {
    let Some(body) = text.strip_suffix('}') else {
        return text.to_owned();
    };
    let empty = body.trim_end().ends_with('{') && body.trim().len() == 1;
    let comma = if empty || inner.is_empty() { "" } else { "," };
    [body, comma, inner, "}"].concat()
}

/// What kind of value begins with this byte.
pub(crate) fn kind(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        Some(b'-' | b'0'..=b'9') => "a number",
        Some(_) => "no JSON value",
        None => "nothing",
    }
}

/// Byte offset and plain reason of a parser error.
pub(crate) fn fault(text: &str, error: &serde_json::Error) -> (usize, String) {
    let full = error.to_string();
    let reason = full
        .split(" at line ")
        .next()
        .unwrap_or("malformed")
        .to_owned();
    if error.is_eof() {
        return (text.len(), reason);
    }
    let mut start = 0;
    for _ in 1..error.line() {
        match memchr(b'\n', &text.as_bytes()[start..]) {
            Some(at) => start += at + 1,
            None => break,
        }
    }
    let position = (start + error.column().saturating_sub(1)).min(text.len());
    (position, reason)
}

struct MembersOf<'a> {
    text: &'a str,
}

impl<'de> Visitor<'de> for MembersOf<'de> {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Members::new();
        let mut from = 0;
        while let Some(Key(key)) = map.next_key()? {
            let raw: &'de RawValue = map.next_value()?;
            let start = offset_in(self.text, raw.get());
            let end = start + raw.get().len();
            // Between two values only blanks, a comma and the key's quote can come.
            let quote = memchr(b'"', &self.text.as_bytes()[from..]).unwrap_or(0);
            found.push(Member {
                key,
                key_start: from + quote,
                start,
                end,
            });
            from = end;
        }
        Ok(found)
    }
}

struct Key<'a>(Cow<'a, str>);

impl<'de> de::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(v.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}
