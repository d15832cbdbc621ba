//! Making texts shorter without breaking them.

mod arguments;

use std::borrow::Cow;

pub use arguments::shorten_arguments;
pub(crate) use arguments::string_end;

/// Which part of a text is worth keeping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keep {
    /// The beginning.
    Head,
    /// The beginning and, half as long, the end: where commands print what they did, and what came of
    /// it.
    #[default]
    Ends,
}

/// The text in at most `max_chars` characters, with a mark that says how many are missing. A text that
/// fits is returned as it is.
///
/// A cut never falls inside a character, inside what one sees as one character (an accent on its letter,
/// an emoji joined from several, a flag), or inside an escape such as `\n` or `\ud83c\udf78` when the text
/// is itself written JSON.
#[must_use]
pub fn shorten(text: &str, max_chars: usize, keep: Keep) -> Cow<'_, str> {
    // A character has at least one byte, so this spares the count for most texts.
    if text.len() <= max_chars {
        return Cow::Borrowed(text);
    }
    let chars = text.chars().count();
    if chars <= max_chars {
        return Cow::Borrowed(text);
    }
    let longest_mark = mark(chars).chars().count();
    if max_chars <= longest_mark {
        return Cow::Borrowed(&text[..cut_before(text, byte_of_char(text, max_chars))]);
    }
    let room = max_chars - longest_mark;
    let (head_chars, tail_chars) = match keep {
        Keep::Head => (room, 0),
        Keep::Ends => (room - room / 3, room / 3),
    };
    let head = &text[..cut_before(text, byte_of_char(text, head_chars))];
    let tail = &text[cut_behind(text, byte_of_char(text, chars - tail_chars))..];
    let missing = chars - head.chars().count() - tail.chars().count();
    Cow::Owned([head, &mark(missing), tail].concat())
}

fn mark(missing: usize) -> String {
    format!("[… {missing} characters left out …]")
}

fn byte_of_char(text: &str, chars: usize) -> usize {
    text.char_indices()
        .nth(chars)
        .map_or(text.len(), |(at, _)| at)
}

/// How far a cut is moved at most: a text of nothing but joiners is cut somewhere after all.
const REACH: usize = 64;

/// The last good place for a cut at or before `at`.
fn cut_before(text: &str, at: usize) -> usize {
    let mut place = at;
    for _ in 0..REACH {
        if may_cut(text, place) {
            return place;
        }
        place = text[..place]
            .char_indices()
            .next_back()
            .map_or(0, |(before, _)| before);
    }
    at
}

/// The first good place for a cut at or behind `at`.
fn cut_behind(text: &str, at: usize) -> usize {
    let mut place = at;
    for _ in 0..REACH {
        if may_cut(text, place) {
            return place;
        }
        place += text[place..].chars().next().map_or(1, char::len_utf8);
    }
    at
}

fn may_cut(text: &str, at: usize) -> bool {
    let (head, tail) = text.split_at(at);
    let (Some(before), Some(after)) = (head.chars().next_back(), tail.chars().next()) else {
        return true;
    };
    if before.is_ascii() && after.is_ascii() {
        let line_end = before == '\r' && after == '\n';
        return !(line_end || inside_escape(head, tail));
    }
    let joins = before == '\u{200d}' || extends(after);
    let flag = is_flag_half(before) && is_flag_half(after) && flag_is_open(head);
    !(joins || flag)
}

/// Whether a character changes the one before it and has no place of its own.
fn extends(c: char) -> bool {
    matches!(u32::from(c),
        0x0300..=0x036F | 0x0483..=0x0489 | 0x0591..=0x05BD | 0x064B..=0x065F | 0x0900..=0x0903 | 0x093A..=0x094F
        | 0x0E31 | 0x0E34..=0x0E3A | 0x0E47..=0x0E4E | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x200C..=0x200D
        | 0x20D0..=0x20FF | 0x302A..=0x302F | 0x3099..=0x309A | 0xFE00..=0xFE0F | 0xFE20..=0xFE2F
        | 0x1F3FB..=0x1F3FF | 0xE0020..=0xE007F | 0xE0100..=0xE01EF)
}

fn is_flag_half(c: char) -> bool {
    matches!(c, '\u{1f1e6}'..='\u{1f1ff}')
}

/// Flags are pairs: an odd number of halves before the cut means that it falls inside one.
fn flag_is_open(head: &str) -> bool {
    head.chars()
        .rev()
        .take(REACH)
        .take_while(|c| is_flag_half(*c))
        .count()
        % 2
        == 1
}

/// Whether an escape of written JSON begins in `head` and ends in `tail`, or is the first half of a
/// surrogate pair whose second half begins `tail`.
fn inside_escape(head: &str, tail: &str) -> bool {
    let bytes = head.as_bytes();
    let recent = &bytes[bytes.len().saturating_sub(6)..];
    if let Some(back) = recent.iter().rposition(|b| *b == b'\\') {
        let start = bytes.len() - recent.len() + back;
        let slashes = bytes[..=start]
            .iter()
            .rev()
            .take_while(|b| **b == b'\\')
            .count();
        if slashes % 2 == 1 {
            let escape = &bytes[start..];
            let is_unicode = escape.get(1) == Some(&b'u');
            let is_whole = if is_unicode {
                escape.len() >= 6
            } else {
                escape.len() >= 2
            };
            let is_high = is_unicode
                && escape.len() == 6
                && matches!(escape[2], b'd' | b'D')
                && matches!(escape[3], b'8' | b'9' | b'a' | b'b' | b'A' | b'B');
            return !is_whole || (is_high && tail.starts_with("\\u"));
        }
    }
    false
}
