//! One message cut to a number of tokens: its words, and the long texts in the arguments of its calls.

use hermes_message::{Content, Message, build, cut};
use serde_json::{Value, json};

use super::{LONG_ARGUMENTS, cut_text, note};

/// The estimate of a cut text is known when it is cut, so the cut is tried again until it is small enough.
const TRIES: usize = 8;
/// No text in arguments is cut below so many characters.
const SHORTEST_LEAF: usize = 80;
/// A message that may have fewer tokens than this has no room for an attachment.
const ATTACHMENT: u64 = 2_000;
const REMOVED: &str = "[an attachment was removed here to save room; where the host keeps sessions, it is in the session store]";

/// The message with its longest texts cut so that it has about `most` tokens. `None` when nothing gets shorter.
///
/// `last_resort`: the request cannot be sent otherwise. Attachments go, and where cutting texts is not enough (arguments
/// of a thousand small values, or such that are no JSON), arguments go as a whole.
#[must_use]
pub fn cut_body(json: &str, most: u64, last_resort: bool) -> Option<String> {
    let message = Message::parse(json).ok()?;
    let cost = |message: &Message| u64::from(message.tokens());
    let lengths = lengths(&message);
    let attachments = !last_resort && most >= ATTACHMENT;
    let mut room = share(lengths.iter().sum(), most, cost(&message));
    let mut best: Option<Message> = None;
    for _ in 0..TRIES {
        let longest = usize::try_from(crate::fit::cap(lengths.clone(), room)).unwrap_or(usize::MAX);
        match cut_texts(&message, longest, attachments) {
            Some(cut) => {
                let now = cost(&cut);
                if best.as_ref().is_none_or(|best| now < cost(best)) {
                    best = Some(cut);
                }
                if now <= most {
                    break;
                }
                room = share(room, most, now) / 10 * 9;
            }
            // Too little would be gained by so small a cut.
            None => room -= room / 3,
        }
        if longest <= SHORTEST_LEAF / 2 {
            break;
        }
    }
    if last_resort && best.as_ref().map_or(cost(&message), cost) > most + most / 4 {
        best = without_arguments(best.as_ref().unwrap_or(&message)).or(best);
    }
    Some(best?.stored().to_string())
}

fn share(whole: u64, part: u64, of: u64) -> u64 {
    whole.saturating_mul(part) / of.max(1)
}

fn len(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

/// Lengths of everything that [`cut_texts`] may cut.
fn lengths(message: &Message) -> Vec<u64> {
    let mut found = Vec::new();
    match message.content() {
        Content::Text(text) => found.push(len(&text)),
        Content::Parts(_) => {
            let parts: Vec<Value> = message
                .raw_content()
                .and_then(|raw| serde_json::from_str(raw).ok())
                .unwrap_or_default();
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            found.extend(texts.map(len));
        }
        _ => {}
    }
    for call in message.tool_calls() {
        let arguments = call.arguments();
        if arguments.len() > LONG_ARGUMENTS {
            match serde_json::from_str(&arguments) {
                Ok(value) => leaves(&value, &mut found),
                Err(_) => found.push(len(&arguments)),
            }
        }
    }
    found
}

fn leaves(value: &Value, found: &mut Vec<u64>) {
    match value {
        Value::String(text) => found.push(len(text)),
        Value::Array(values) => values.iter().for_each(|value| leaves(value, found)),
        Value::Object(map) => map.values().for_each(|value| leaves(value, found)),
        _ => {}
    }
}

fn cut_texts(message: &Message, longest: usize, attachments: bool) -> Option<Message> {
    let mut made = None;
    match message.content() {
        Content::Text(text) => {
            if let Some(shorter) = cut_shorter(&text, longest) {
                made = Some(build::with_content(message, &shorter));
            }
        }
        Content::Parts(_) => {
            let mut parts: Vec<Value> = serde_json::from_str(message.raw_content()?).ok()?;
            let mut changed = false;
            for element in &mut parts {
                if let Some(Value::String(text)) = element.get_mut("text") {
                    if let Some(shorter) = cut_shorter(text, longest) {
                        *text = shorter;
                        changed = true;
                    }
                } else if !attachments && !element.is_string() {
                    *element = json!({"type": "text", "text": REMOVED});
                    changed = true;
                }
            }
            if changed {
                made = build::with_member(message, "content", &Value::from(parts).to_string()).ok();
            }
        }
        _ => {}
    }
    cut_calls(made.as_ref().unwrap_or(message), longest).or(made)
}

fn cut_shorter(text: &str, keep: usize) -> Option<String> {
    match cut_text(text, keep) {
        std::borrow::Cow::Owned(cut) if cut.len() < text.len() => Some(cut),
        _ => None,
    }
}

/// The message with the long texts in its calls' arguments shortened. `None` when there are none.
pub(super) fn cut_calls(message: &Message, leaf: usize) -> Option<Message> {
    let mut made = None;
    for (place, call) in message.tool_calls().iter().enumerate() {
        let arguments = call.arguments();
        if arguments.len() <= LONG_ARGUMENTS {
            continue;
        }
        let shorter = cut::shorten_arguments(&arguments, leaf.max(SHORTEST_LEAF));
        if shorter.len() < arguments.len() {
            let message = made.as_ref().unwrap_or(message);
            made = Some(build::with_tool_arguments(message, place, &shorter));
        }
    }
    made
}

/// The message with nothing but a note in the place of each long list of arguments. Such as were no JSON become none, and
/// keep their beginning and end.
fn without_arguments(message: &Message) -> Option<Message> {
    let mut made = None;
    for (place, call) in message.tool_calls().iter().enumerate() {
        let arguments = call.arguments();
        if arguments.len() <= LONG_ARGUMENTS {
            continue;
        }
        let shorter = if call.arguments_are_json() {
            let characters = arguments.chars().count();
            json!({"left_out": note(characters, characters).trim()}).to_string()
        } else {
            cut_text(&arguments, LONG_ARGUMENTS).into_owned()
        };
        let message = made.as_ref().unwrap_or(message);
        made = Some(build::with_tool_arguments(message, place, &shorter));
    }
    made
}
