//! From bytes to conversations.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;

use super::{Container, Conversation, File, FormatError};
use crate::message::Message;
use crate::{border, json};

const A_FILE: &str =
    "messages: a JSON list of them, an object with \"messages\", or one of either on each line";
const A_MESSAGE: &str = "a message: a JSON object with \"role\"";
const A_LIST: &str = "\"messages\" to be a list of messages";
const A_DIALOGUE: &str = "an object with \"messages\" on every line, as on the first";
const JSON: &str = "valid JSON";

/// Reads a file of any [`Container`]. A byte order mark, CRLF and blank lines are fine.
///
/// # Errors
/// When any part of the file is no message; the error knows line, column and byte.
pub fn read(bytes: &[u8]) -> Result<File, FormatError> {
    let masked = mask(bytes);
    let reader = Reader {
        source: bytes,
        text: &masked,
    };
    let start = if masked.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    let body = start + (masked.len() - start - masked[start..].trim_ascii_start().len());
    let (container, conversations) = match bytes.get(body) {
        Some(b'[') => (Container::Array, vec![reader.list(body..reader.end())?]),
        Some(b'{') => reader.objects(body)?,
        Some(_) => return Err(reader.fault(body, json::kind(&masked[body..]), A_FILE)),
        None => return Err(reader.fault(body, "the file is empty", A_FILE)),
    };
    Ok(File {
        container,
        conversations,
        source: bytes.to_vec(),
    })
}

/// Whether the object is a session of a store: one of this host's exports, or one of the original's.
fn is_session(text: &str, members: &[json::Member]) -> bool {
    let has = |key: &str| members.iter().any(|member| member.key == key);
    let format = members.iter().rev().find(|member| member.key == "format");
    format.is_some_and(|member| member.value(text) == "\"hermes-session\"")
        || (has("id") && has("started_at"))
}

/// The bytes as text of the same length: each byte that is no UTF-8 stands there as `?`. Only places
/// are read from it; messages are read from the bytes themselves.
fn mask(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| '?'));
    }
    Cow::Owned(out)
}

struct Reader<'a> {
    source: &'a [u8],
    text: &'a str,
}

impl Reader<'_> {
    fn end(&self) -> usize {
        self.text.trim_ascii_end().len()
    }

    fn fault(
        &self,
        offset: usize,
        found: impl Into<String>,
        expected: &'static str,
    ) -> FormatError {
        FormatError::at(self.source, offset, found, expected)
    }

    /// The file begins with `{`: one object, or one on each line.
    fn objects(&self, start: usize) -> Result<(Container, Vec<Conversation>), FormatError> {
        let lines = self.lines(start);
        let first = &self.text[lines[0].clone()];
        let first_members = match json::members(first) {
            Ok(members) => members,
            // An object over several lines, or a broken one: the whole text tells which.
            Err(_) if lines.len() > 1 => {
                return Ok((Container::Object, vec![self.object(start..self.end())?]));
            }
            Err(_) => json::Members::new(),
        };
        let is_dialogue = first_members.iter().any(|m| m.key == "messages");
        if is_dialogue && lines.len() == 1 {
            return Ok((Container::Object, vec![self.object(start..self.end())?]));
        }
        if is_dialogue {
            let conversations = lines
                .into_iter()
                .map(|line| self.object(line))
                .collect::<Result<_, _>>()?;
            return Ok((Container::Dialogues, conversations));
        }
        let mut messages = Vec::with_capacity(lines.len());
        for line in &lines {
            messages.push(self.message(line.clone(), true)?);
        }
        let empty_at = lines[0].start;
        Ok((
            Container::Lines,
            vec![Conversation {
                messages,
                tools: None,
                places: lines,
                empty_at,
            }],
        ))
    }

    /// The lines that are not blank, without the blanks around them.
    fn lines(&self, start: usize) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut at = start;
        while at < self.text.len() {
            let end = memchr(b'\n', &self.source[at..]).map_or(self.text.len(), |n| at + n);
            let line = &self.text[at..end];
            let body = line.trim_ascii();
            if !body.is_empty() {
                let from = at + json::offset_in(line, body);
                found.push(from..from + body.len());
            }
            at = end + 1;
        }
        found
    }

    /// An object with `messages` and what else it may have.
    fn object(&self, range: Range<usize>) -> Result<Conversation, FormatError> {
        let text = &self.text[range.clone()];
        if !text.starts_with('{') {
            return Err(self.fault(
                range.start,
                format!("found {}", json::kind(text)),
                A_DIALOGUE,
            ));
        }
        let members = json::members(text).map_err(|e| self.syntax(range.start, text, &e))?;
        let last = |key: &str| members.iter().rev().find(|m| m.key == key);
        let Some(list) = last("messages") else {
            return Err(self.fault(range.start, "the object has no \"messages\"", A_FILE));
        };
        let mut conversation = self.list(range.start + list.start..range.start + list.end)?;
        if is_session(text, &members) {
            self.keep_live(&mut conversation);
        }
        conversation.tools = last("tools")
            .map(|m| m.value(text))
            .filter(|raw| *raw != "null")
            .map(|raw| border::replace_lone_surrogates(raw).into_owned());
        Ok(conversation)
    }

    /// A store's export has every row of the session: also those that a compaction archived or a user took back, which
    /// are no part of the conversation any more.
    fn keep_live(&self, conversation: &mut Conversation) {
        let live: Vec<bool> = conversation
            .places
            .iter()
            .map(|place| {
                let row = &self.text[place.clone()];
                let members = json::members(row).unwrap_or_default();
                let active = members.iter().rev().find(|member| member.key == "active");
                !active.is_some_and(|member| matches!(member.value(row), "0" | "false"))
            })
            .collect();
        let mut of_places = live.iter();
        conversation
            .places
            .retain(|_| of_places.next() == Some(&true));
        let mut of_messages = live.iter();
        conversation
            .messages
            .retain(|_| of_messages.next() == Some(&true));
    }

    /// A list of messages.
    fn list(&self, range: Range<usize>) -> Result<Conversation, FormatError> {
        let text = &self.text[range.clone()];
        if !text.starts_with('[') {
            return Err(self.fault(range.start, format!("found {}", json::kind(text)), A_LIST));
        }
        let elements = match serde_json::from_str::<Vec<&serde_json::value::RawValue>>(text) {
            Ok(elements) => elements,
            Err(e) => return Err(self.syntax(range.start, text, &e)),
        };
        let mut conversation = Conversation {
            messages: Vec::new(),
            tools: None,
            places: Vec::new(),
            empty_at: range.start + 1,
        };
        for element in elements {
            let at = range.start + json::offset_in(text, element.get());
            let place = at..at + element.get().len();
            conversation
                .messages
                .push(self.message(place.clone(), false)?);
            conversation.places.push(place);
        }
        Ok(conversation)
    }

    fn message(&self, range: Range<usize>, on_a_line: bool) -> Result<Message, FormatError> {
        let message = Message::parse_bytes(&self.source[range.clone()])
            .map_err(|e| self.fault(range.start + e.position(), e.to_string(), A_MESSAGE))?;
        // In a list a message without a role is one to be mended; a whole conversation there is not a message at all.
        if !on_a_line && !message.has_role() && self.is_dialogue(range.clone()) {
            return Err(self.fault(
                range.start,
                "a conversation stands in a list",
                "a message; several conversations stand one on each line, without a list around them",
            ));
        }
        if on_a_line && !message.has_role() {
            return Err(self.fault(
                range.start,
                "the object has neither \"role\" nor \"messages\"",
                A_MESSAGE,
            ));
        }
        Ok(message)
    }

    fn is_dialogue(&self, range: Range<usize>) -> bool {
        json::members(&self.text[range])
            .is_ok_and(|members| members.iter().any(|member| member.key == "messages"))
    }

    fn syntax(&self, start: usize, text: &str, error: &serde_json::Error) -> FormatError {
        let (position, reason) = json::fault(text, error);
        self.fault(start + position, reason, JSON)
    }
}
