//! How many tokens a text will cost, guessed in one pass over its bytes.
//!
//! No vocabulary is loaded. The guess is a sum over neighbouring characters: what a letter costs
//! depends on whether a letter, a blank or a digit stands before it, because that is where a
//! tokenizer cuts. The weights (`weights.rs`) were fitted to o200k.

mod weights;

use crate::content::{Part, PartKind};
use crate::facts::goes_out;
use crate::json;
use crate::message::Message;
use crate::wire::WirePolicy;
use weights::{CLASS, PAIR, SAME, SPACE, UNIT, WIDE};

/// What a message costs beside its words: role and separators.
pub const MESSAGE_OVERHEAD: u32 = 4;
/// What a tool call costs beside its name and arguments.
const CALL_OVERHEAD: u32 = 8;
/// An image without, or with another, `detail` than `low`: four tiles and the base price.
pub const IMAGE_TOKENS: u32 = 765;
/// An image whose `detail` is `low`.
pub const LOW_DETAIL_IMAGE_TOKENS: u32 = 85;
/// A document that is named but not in the message.
const FILE_TOKENS: u32 = 1000;
/// Audio whose length is not known.
const AUDIO_TOKENS: u32 = 300;

/// The estimate for a text. Never 0 for a text that is not empty.
#[must_use]
pub fn tokens_of_text(text: &str) -> u32 {
    if text.is_empty() {
        return 0;
    }
    tokens(weigh(text)).max(1)
}

/// The estimate for JSON that is sent as it stands, such as tool schemas. Providers show schemas to
/// the model in a terser notation; about two thirds of the text's own tokens is what they bill.
#[must_use]
pub fn tokens_of_json(json: &str) -> u32 {
    let whole = tokens_of_text(json);
    whole - whole / 3
}

/// The estimate for a message as a provider sees it: its content, names and calls. Identity and
/// every key that does not go out cost nothing (`UID-9`).
#[must_use]
pub fn tokens_of_message(message: &Message) -> u32 {
    let text = message.stored();
    let members = json::members(text).unwrap_or_default();
    let mut sum = MESSAGE_OVERHEAD;
    let mut add = |tokens: u32| sum = sum.saturating_add(tokens);
    for (at, member) in members.iter().enumerate() {
        if !goes_out(text, &members, at, WirePolicy::Plain) {
            continue;
        }
        let value = member.value(text);
        match &*member.key {
            "content" => add(tokens_of_content(value)),
            "name" | "refusal" => add(tokens_of_value(value)),
            "audio" if value != "null" => add(AUDIO_TOKENS),
            "function_call" if value != "null" => add(tokens_of_value(value)),
            "tool_calls" => {
                for call in message.tool_calls() {
                    add(CALL_OVERHEAD);
                    add(tokens_of_text(&call.name));
                    add(tokens_of_text(&call.arguments()));
                }
            }
            _ => {}
        }
    }
    sum
}

fn tokens_of_content(raw: &str) -> u32 {
    if !raw.starts_with('[') {
        return tokens_of_value(raw);
    }
    let parts = json::elements(raw).unwrap_or_default();
    parts
        .into_iter()
        .map(|part| tokens_of_part(&Part::read(part)))
        .fold(0, u32::saturating_add)
}

fn tokens_of_value(raw: &str) -> u32 {
    match json::string(raw) {
        Some(text) => tokens_of_text(&text),
        None if raw == "null" => 0,
        None => tokens_of_text(raw),
    }
}

/// Images, audio and files by their kind: the length of their base64 text says nothing about what
/// they cost.
fn tokens_of_part(part: &Part<'_>) -> u32 {
    match part.kind {
        PartKind::Text | PartKind::Refusal => part.text.as_deref().map_or(0, tokens_of_text),
        PartKind::Image if detail_is_low(part.raw) => LOW_DETAIL_IMAGE_TOKENS,
        PartKind::Image => IMAGE_TOKENS,
        PartKind::Audio => AUDIO_TOKENS,
        PartKind::File => FILE_TOKENS,
        PartKind::Other => tokens_of_text(part.raw),
    }
}

fn detail_is_low(raw: &str) -> bool {
    let low = |text: &str| {
        let members = json::members(text).unwrap_or_default();
        members
            .iter()
            .any(|m| m.key == "detail" && m.value(text) == "\"low\"")
    };
    let members = json::members(raw).unwrap_or_default();
    low(raw)
        || members
            .iter()
            .any(|m| m.key == "image_url" && low(m.value(raw)))
}

fn tokens(weight: u64) -> u32 {
    u32::try_from(weight.div_ceil(u64::from(UNIT))).unwrap_or(u32::MAX)
}

/// The weight of a text in [`UNIT`]ths of a token.
fn weigh(text: &str) -> u64 {
    let mut sum = 0_u64;
    let (mut last, mut row) = (0_u8, SPACE);
    let mut rest = text;
    while !rest.is_empty() {
        let ascii = rest.bytes().position(|b| b >= 0x80).unwrap_or(rest.len());
        for &byte in &rest.as_bytes()[..ascii] {
            let class = CLASS[usize::from(byte)];
            let from = if byte == last && class >= SPACE {
                SAME
            } else {
                row
            };
            sum += u64::from(PAIR[from][class]);
            (last, row) = (byte, class);
        }
        rest = &rest[ascii..];
        for c in rest.chars() {
            if c.is_ascii() {
                break;
            }
            let script = weights::script(c);
            sum += u64::from(weights::SCRIPT[script]);
            rest = &rest[c.len_utf8()..];
            (last, row) = (
                0,
                if script <= weights::LATIN {
                    weights::LOWER
                } else {
                    WIDE
                },
            );
        }
    }
    sum
}
