//! Tool arguments made shorter, and still JSON.

use std::borrow::Cow;

use memchr::memchr2;

use super::{Keep, shorten};
use crate::calls::is_json;
use crate::json;

/// The JSON text with every string value of more than `leaf_limit` characters shortened to that many.
/// Keys, short values, numbers, order and blanks stay as they are written, and the result is JSON.
///
/// A text that is no JSON is returned byte for byte: it is the model's own slip, and mending it would
/// only hide that.
#[must_use]
pub fn shorten_arguments(text: &str, leaf_limit: usize) -> Cow<'_, str> {
    if text.len() <= leaf_limit || !is_json(text) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut from, mut at) = (0, 0);
    while let Some(open) = memchr::memchr(b'"', &bytes[at..]).map(|n| at + n) {
        let end = string_end(bytes, open);
        at = end;
        let is_key = bytes[end..].iter().find(|b| !b.is_ascii_whitespace()) == Some(&b':');
        if is_key || end - open - 2 <= leaf_limit {
            continue;
        }
        let Some(leaf) = json::string(&text[open..end]) else {
            continue;
        };
        let short = shorten(&leaf, leaf_limit, Keep::Head);
        if *short != *leaf {
            out.push_str(&text[from..open]);
            json::push_quoted(&mut out, &short);
            from = end;
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

/// Where the string that opens at `open` has ended. The text is known to be JSON.
pub(crate) fn string_end(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while let Some(step) = memchr2(b'"', b'\\', &bytes[at..]) {
        at += step;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}
