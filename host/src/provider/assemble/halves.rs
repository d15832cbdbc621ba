//! Characters that a server has cut in two.
//!
//! Servers that count in UTF-16 may end one piece with the first half of a surrogate pair and begin the next with the
//! second. Neither is a character, so no `String` can hold it: while an event is taken apart each half stands as a
//! character of private use ([`read`]), and [`Text`] makes a character of two that meet and U+FFFD of every other.

use std::borrow::Cow;

use serde_json::Value;

/// The half `0xd800 + n` stands as this character plus `n`.
const FIRST: u32 = 0x0010_f800;
/// How many halves there are.
const COUNT: u32 = 0x800;
/// The members whose texts are put together by [`Text`].
const PIECES: &[&str] = &[
    "content",
    "text",
    "thinking",
    "reasoning",
    "reasoning_content",
    "refusal",
    "arguments",
];

/// Reads the JSON of an event, and tells whether halves stand in it. They do only in members that are pieces of a text;
/// anywhere else they are U+FFFD.
pub(super) fn read(text: &str) -> Option<(Value, bool)> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some((value, false));
    }
    if let Some(marked) = marked(text)
        && let Ok(mut value) = serde_json::from_str(&marked)
    {
        around(&mut value);
        return Some((value, true));
    }
    super::json(text).map(|value| (value, false))
}

/// A text that grows by pieces.
#[derive(Debug, Default)]
pub(super) struct Text {
    whole: String,
    /// The first half of a character whose second half has not come yet.
    held: Option<u32>,
}

impl Text {
    /// Adds a piece, and gives back what of it can be shown. `halves`: the piece is of an event with halves.
    pub(super) fn push<'p>(&mut self, piece: &'p str, halves: bool) -> Cow<'p, str> {
        if !halves && self.held.is_none() {
            self.whole.push_str(piece);
            return Cow::Borrowed(piece);
        }
        let mut joined = String::with_capacity(piece.len());
        for c in piece.chars() {
            let half = half_of(c).filter(|_| halves);
            let held = self.held.take();
            match (held, half) {
                (Some(high), Some(low)) if low >= 0xdc00 => {
                    let pair = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                    joined.push(char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER));
                    continue;
                }
                (Some(_), _) => joined.push(char::REPLACEMENT_CHARACTER),
                (None, _) => {}
            }
            match half {
                Some(high) if high < 0xdc00 => self.held = Some(high),
                Some(_) => joined.push(char::REPLACEMENT_CHARACTER),
                None => joined.push(c),
            }
        }
        self.whole.push_str(&joined);
        Cow::Owned(joined)
    }

    /// What has come so far, without a half that still waits.
    pub(super) fn so_far(&self) -> &str {
        &self.whole
    }

    /// The whole text.
    pub(super) fn end(mut self) -> String {
        if self.held.is_some() {
            self.whole.push(char::REPLACEMENT_CHARACTER);
        }
        self.whole
    }
}

/// Makes U+FFFD of every half in a value that is no text of pieces after all.
pub(super) fn clean(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(|c| half_of(c).is_some()) => {
            *text = text.replace(
                |c| half_of(c).is_some(),
                char::REPLACEMENT_CHARACTER.encode_utf8(&mut [0; 4]),
            );
        }
        Value::Array(list) => list.iter_mut().for_each(clean),
        Value::Object(members) => members.values_mut().for_each(clean),
        _ => {}
    }
}

/// [`clean`] for everything but the pieces of texts.
fn around(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                if !(value.is_string() && PIECES.contains(&key.as_str())) {
                    around(value);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(around),
        other => clean(other),
    }
}

fn half_of(c: char) -> Option<u32> {
    let at = u32::from(c).checked_sub(FIRST)?;
    (at < COUNT).then_some(0xd800 + at)
}

/// The JSON text with a character of private use for each half; `None` if there is none, or if one of those characters
/// is in it already.
fn marked(text: &str) -> Option<String> {
    if text.contains(|c| half_of(c).is_some()) {
        return None;
    }
    let mut marked = String::with_capacity(text.len());
    let mut found = false;
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        marked.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(unit) = escape(rest).filter(|unit| (0xd800..0xe000).contains(unit)) else {
            // The backslash and what it escapes, which may be another one.
            let end = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
            marked.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        };
        let low = escape(&rest[6..]).is_some_and(|unit| (0xdc00..0xe000).contains(&unit));
        if unit < 0xdc00 && low {
            if unit >= 0xdbfe {
                return None;
            }
            marked.push_str(&rest[..12]);
            rest = &rest[12..];
        } else {
            marked.push(char::from_u32(FIRST + unit - 0xd800)?);
            found = true;
            rest = &rest[6..];
        }
    }
    marked.push_str(rest);
    found.then_some(marked)
}

/// The unit of a `\uXXXX` at the beginning.
fn escape(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn joined(pieces: &[&str]) -> (String, String) {
        let mut text = Text::default();
        let mut shown = String::new();
        for piece in pieces {
            let (value, halves) = read(&format!("{{\"text\":\"{piece}\"}}")).expect("JSON");
            shown += &text.push(value["text"].as_str().expect("a text"), halves);
        }
        (shown, text.end())
    }

    #[test]
    fn halves_that_meet_are_a_character_and_others_are_none() {
        let same = |pieces: &[&str], want: &str| {
            let (shown, whole) = joined(pieces);
            assert_eq!((&*shown, &*whole), (want, want), "{pieces:?}");
        };
        same(&["a\\ud83d", "\\ude00b"], "a\u{1f600}b");
        same(&["\\uD83D", "", "\\uDE00"], "\u{1f600}");
        same(&["\\ud83d\\ude00\\ud83d", "\\ude01"], "\u{1f600}\u{1f601}");
        same(&["\\ud83d", "x"], "\u{fffd}x");
        same(&["\\ude00", "\\ud83dx"], "\u{fffd}\u{fffd}x");
        same(&["\\ud83d", "\\ud83d", "\\ude00"], "\u{fffd}\u{1f600}");
        // A backslash and five letters.
        same(&["\\\\ud83d", "\\\\ude00"], "\\ud83d\\ude00");
        // The characters that halves stand as may themselves come.
        same(&["\u{10f801}", "\\udbfe\\udc01"], "\u{10f801}\u{10f801}");
        same(
            &["\u{10fc00}\\ud83d", "\\ude00"],
            "\u{10fc00}\u{fffd}\u{fffd}",
        );
        assert_eq!(joined(&["a", "\\ud83d"]).1, "a\u{fffd}");
    }

    #[test]
    fn elsewhere_they_are_replaced_at_once() {
        let (value, halves) =
            read(r#"{"id":"\ud83d","list":["\ude00"],"text":"x"}"#).expect("JSON");
        assert!(halves);
        assert_eq!(
            value,
            json!({"id": "\u{fffd}", "list": ["\u{fffd}"], "text": "x"})
        );
        assert!(read("{\"text\":\"\\ud83d").is_none());
        assert!(read("\\").is_none());
    }
}
