//! A message as the algorithm sees it: facts that are known without reading its text, and the text read on demand.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use hermes_message::{Message, Role, flags};

/// One message of the transcript.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Its text, without identity keys.
    pub json: &'a str,
    /// Who speaks.
    pub role: Role,
    /// The host's estimate.
    pub tokens: u32,
    /// Of a tool result, the index of the message whose call it answers.
    pub caller: Option<usize>,
    /// Its content is a list of parts.
    pub multimodal: bool,
    /// It calls tools.
    pub calls: bool,
    /// An engine made it.
    pub summary: bool,
    /// The host made it.
    pub synthetic: bool,
}

impl<'a> Row<'a> {
    /// The rows of a list.
    #[must_use]
    pub fn all(messages: &'a [Message]) -> Vec<Self> {
        let callers = hermes_message::sequence::callers(messages);
        messages
            .iter()
            .zip(callers)
            .map(|(message, caller)| Self {
                caller,
                ..Self::of(message)
            })
            .collect()
    }

    fn of(message: &'a Message) -> Self {
        Self {
            caller: None,
            json: message.stored(),
            role: message.role(),
            tokens: message.tokens(),
            multimodal: message.has(flags::MULTIMODAL),
            calls: message.has(flags::TOOL_CALLS),
            summary: message.has(flags::SUMMARY),
            synthetic: message.has(flags::SYNTHETIC),
        }
    }

    /// Estimate as a wide number, for sums.
    #[must_use]
    pub fn cost(&self) -> u64 {
        u64::from(self.tokens)
    }
}

/// One tool call as it is written.
#[derive(Clone, Debug, Default)]
pub struct Call<'a> {
    /// The provider's id.
    pub id: Cow<'a, str>,
    /// The tool.
    pub name: Cow<'a, str>,
    /// Its arguments: normally JSON text.
    pub arguments: Cow<'a, str>,
}

/// How many things other than text a message holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Media {
    /// Pictures.
    pub images: usize,
    /// Sound.
    pub audio: usize,
    /// Everything else that is no text.
    pub files: usize,
}

impl Media {
    /// `[2 images, 1 file]`, or nothing.
    #[must_use]
    pub fn note(self) -> Option<String> {
        let count = |n: usize, one: &str| match n {
            0 => None,
            1 => Some(format!("1 {one}")),
            n => Some(format!("{n} {one}s")),
        };
        let parts: Vec<String> = [
            count(self.images, "image"),
            count(self.audio, "recording"),
            count(self.files, "file"),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!parts.is_empty()).then(|| format!("[{}]", parts.join(", ")))
    }
}

/// What a message says.
#[derive(Clone, Debug, Default)]
pub struct Body<'a> {
    /// Its words.
    pub text: Cow<'a, str>,
    /// Its content as it is written.
    pub raw: &'a str,
    /// Its calls.
    pub calls: Vec<Call<'a>>,
    /// What it holds besides words.
    pub media: Media,
    /// The day it was written, where the message says so: `2025-11-20`.
    pub date: Option<String>,
}

impl<'a> Body<'a> {
    /// Reads a message. What is malformed reads as absent: this text is shown to a helper model, never stored.
    #[must_use]
    pub fn read(json: &'a str) -> Self {
        Self::read_within(json, usize::MAX)
    }

    /// The same with beginning and end only of a text that is written in many more than `most` bytes, and what lies
    /// between named.
    #[must_use]
    pub fn read_within(json: &'a str, most: usize) -> Self {
        let mut de = serde_json::Deserializer::from_str(json);
        de.deserialize_map(BodyVisitor { most }).unwrap_or_default()
    }

    /// Nothing to read, look at or run.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.calls.is_empty() && self.media == Media::default() && self.text.trim().is_empty()
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    Content,
    ToolCalls,
    Timestamp,
    CreatedAt,
    #[serde(other)]
    Other,
}

struct BodyVisitor {
    most: usize,
}

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = Body<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut body = Body::default();
        while let Some(field) = map.next_key()? {
            match field {
                Field::Content => {
                    let raw: &'de RawValue = map.next_value()?;
                    body.raw = raw.get();
                    (body.text, body.media) = match ends(body.raw, self.most) {
                        Some(ends) => (Cow::Owned(ends), Media::default()),
                        None => content(body.raw),
                    };
                }
                Field::ToolCalls => {
                    let raw: &'de RawValue = map.next_value()?;
                    body.calls = calls(raw.get());
                }
                Field::Timestamp | Field::CreatedAt => {
                    let raw: &'de RawValue = map.next_value()?;
                    body.date = date(raw.get()).or(body.date);
                }
                Field::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(body)
    }
}

/// Beginning and end of a long JSON string, without reading what lies between. `None` for a short one, for another value,
/// and where no blank is near the cuts: the one place where a string can be cut without knowing its escapes.
fn ends(raw: &str, most: usize) -> Option<String> {
    const SLACK: usize = 64;
    const REACH: usize = 1_000;
    if raw.len() <= most.saturating_add(SLACK) {
        return None;
    }
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    let bytes = inner.as_bytes();
    let (head, tail) = (most * 2 / 3, bytes.len() - most / 3);
    let start = head.saturating_sub(REACH.min(head / 2));
    let head = start + bytes[start..head].iter().rposition(|byte| *byte == b' ')?;
    let reach = REACH.min((bytes.len() - tail) / 2);
    let tail = tail
        + bytes[tail..tail + reach]
            .iter()
            .position(|byte| *byte == b' ')?;
    let read = |part: &str| -> Option<String> {
        if part.contains('\\') {
            serde_json::from_str(&format!("\"{part}\"")).ok()
        } else {
            Some(part.to_owned())
        }
    };
    let mut text = read(inner[..head].trim_start())?;
    let note = format!(" [… {} bytes left out …]", tail - head);
    text.push_str(&note);
    text.push_str(&read(inner[tail..].trim_end())?);
    Some(text)
}

/// A JSON string's text, borrowed where nothing is escaped.
pub(crate) fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(raw).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

#[derive(Deserialize)]
struct RawPart<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
}

fn content(raw: &str) -> (Cow<'_, str>, Media) {
    let mut media = Media::default();
    match raw.as_bytes().first() {
        Some(b'"') => (string(raw).unwrap_or_default(), media),
        Some(b'[') => {
            let mut text = String::new();
            for element in serde_json::from_str::<Vec<&RawValue>>(raw).unwrap_or_default() {
                if let Some(plain) = string(element.get()) {
                    push_line(&mut text, &plain);
                    continue;
                }
                let Ok(part) = serde_json::from_str::<RawPart<'_>>(element.get()) else {
                    continue;
                };
                let kind = part
                    .kind
                    .and_then(|kind| string(kind.get()))
                    .unwrap_or_default();
                match part.text.and_then(|text| string(text.get())) {
                    Some(words) => push_line(&mut text, &words),
                    None if kind.contains("image") => media.images += 1,
                    None if kind.contains("audio") => media.audio += 1,
                    None => media.files += 1,
                }
            }
            (Cow::Owned(text), media)
        }
        Some(b'n') | None => (Cow::Borrowed(""), media),
        Some(_) => {
            media.files = 1;
            (Cow::Borrowed(""), media)
        }
    }
}

fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

#[derive(Deserialize)]
struct RawCall<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<RawFunction<'a>>,
}

#[derive(Deserialize)]
struct RawFunction<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

fn calls(raw: &str) -> Vec<Call<'_>> {
    serde_json::from_str::<Vec<&RawValue>>(raw)
        .unwrap_or_default()
        .into_iter()
        .map(|element| {
            let Ok(call) = serde_json::from_str::<RawCall<'_>>(element.get()) else {
                return Call::default();
            };
            let function = call.function.as_ref();
            let arguments = function.and_then(|f| f.arguments).map(RawValue::get);
            Call {
                id: call
                    .id
                    .map(RawValue::get)
                    .and_then(string)
                    .unwrap_or_default(),
                name: function
                    .and_then(|f| f.name)
                    .map(RawValue::get)
                    .and_then(string)
                    .unwrap_or_default(),
                arguments: arguments
                    .map(|raw| string(raw).unwrap_or(Cow::Borrowed(raw)))
                    .unwrap_or_default(),
            }
        })
        .collect()
}

/// The day in a time stamp: ISO text, or seconds or milliseconds since 1970.
fn date(raw: &str) -> Option<String> {
    if let Some(text) = string(raw) {
        let day = text.get(..10)?;
        let shape = day.bytes().enumerate().all(|(i, b)| {
            if i == 4 || i == 7 {
                b == b'-'
            } else {
                b.is_ascii_digit()
            }
        });
        return shape.then(|| day.to_owned());
    }
    let number: f64 = raw.parse().ok()?;
    let seconds = if number > 100_000_000_000.0 {
        number / 1000.0
    } else {
        number
    };
    (seconds > 0.0).then(|| civil(crate::threshold::whole(seconds / 86_400.0)))
}

/// The calendar day, `days` after 1970-01-01.
fn civil(days: u64) -> String {
    // Years are counted from 1 March, so that the leap day is a year's last one; eras have 400 years.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The id of the call that a tool result answers.
#[must_use]
pub fn call_id(json: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Result<'a> {
        #[serde(borrow, default)]
        tool_call_id: Option<&'a RawValue>,
    }
    let result: Result<'_> = serde_json::from_str(json).ok()?;
    string(result.tool_call_id?.get())
}
