//! From conversations back to text.

use std::borrow::Cow;

use super::{Container, Conversation, File};
use crate::message::Message;

/// The file with `messages` in the place of conversation `index`, everything else byte for byte.
/// Messages of the file that are unchanged keep their bytes, too; new and changed ones are written in
/// one line, their identity keys last. (Bytes that are no UTF-8 are written as U+FFFD.)
///
/// An index that the file does not have changes nothing.
#[must_use]
pub fn write_conversation(file: &File, index: usize, messages: &[Message]) -> String {
    let Some(conversation) = file.conversations.get(index) else {
        return text(&file.source).into_owned();
    };
    let places = &conversation.places;
    let start = places
        .first()
        .map_or(conversation.empty_at, |place| place.start);
    let end = places
        .last()
        .map_or(conversation.empty_at, |place| place.end);
    let default = default_separator(file, conversation);

    let mut out = String::with_capacity(file.source.len());
    out.push_str(&text(&file.source[..start]));
    let mut before: Option<Option<usize>> = None;
    let mut from = 0;
    for message in messages {
        // Kept messages are usually in order, so the search goes on from the last one found.
        let place = find(&conversation.messages, message, from);
        match (before, place) {
            (None, _) => {}
            (Some(Some(left)), Some(right)) if left + 1 == right => {
                out.push_str(&text(&file.source[places[left].end..places[right].start]));
            }
            _ => out.push_str(&default),
        }
        match place {
            Some(at) => {
                out.push_str(&text(&file.source[places[at].clone()]));
                from = at + 1;
            }
            None => out.push_str(&message.to_json_with_identity()),
        }
        before = Some(place);
    }
    out.push_str(&text(&file.source[end..]));
    out
}

fn find(messages: &[Message], wanted: &Message, from: usize) -> Option<usize> {
    let is_it = |message: &Message| {
        message.same(wanted)
            || (std::sync::Arc::ptr_eq(message.stored(), wanted.stored())
                && message.identity() == wanted.identity())
    };
    let behind = messages
        .iter()
        .skip(from)
        .position(is_it)
        .map(|at| at + from);
    behind.or_else(|| messages.iter().take(from).position(is_it))
}

/// What stands between two messages that were not neighbours before.
fn default_separator(file: &File, conversation: &Conversation) -> String {
    let line_end = if memchr::memmem::find(&file.source, b"\r\n").is_some() {
        "\r\n"
    } else {
        "\n"
    };
    if file.container == Container::Lines {
        return line_end.to_owned();
    }
    // Between two live rows of a session there may be others; those are no separator.
    let between = conversation
        .places
        .windows(2)
        .map(|two| text(&file.source[two[0].end..two[1].start]))
        .find(|between| !between.contains('{'));
    between.map_or_else(|| ", ".to_owned(), Cow::into_owned)
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
