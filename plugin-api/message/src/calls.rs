//! The tool calls of an assistant message.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::json;

/// One entry of `tool_calls`.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The provider's id. Ids repeat: equal ids of different calls are normal.
    pub id: Box<str>,
    /// The function's name, `""` when the entry has none.
    pub name: Box<str>,
    text: Arc<str>,
    entry: Range<usize>,
    arguments: Range<usize>,
}

impl ToolCall {
    /// The arguments as the tool gets them: the text of the JSON string, or the value itself where a
    /// provider sent an object instead of a string. `""` when there are none.
    #[must_use]
    pub fn arguments(&self) -> Cow<'_, str> {
        let raw = self.raw_arguments();
        json::string(raw).unwrap_or(Cow::Borrowed(raw))
    }

    /// The arguments as they are written in the message.
    #[must_use]
    pub fn raw_arguments(&self) -> &str {
        &self.text[self.arguments.clone()]
    }

    /// Where [`Self::raw_arguments`] stands in [`crate::Message::stored`].
    #[must_use]
    pub fn arguments_range(&self) -> Range<usize> {
        self.arguments.clone()
    }

    /// The entry as it is written in the message.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.text[self.entry.clone()]
    }

    pub(crate) fn entry_range(&self) -> Range<usize> {
        self.entry.clone()
    }

    /// What identity maps are keyed by: the id, without what some providers add behind a `|`.
    #[must_use]
    pub fn key(&self) -> &str {
        call_key(&self.id)
    }

    /// Whether the arguments are JSON text.
    #[must_use]
    pub fn arguments_are_json(&self) -> bool {
        is_json(&self.arguments())
    }
}

/// The part of a provider's call id that names the call: what stands before `|`.
#[must_use]
pub fn call_key(id: &str) -> &str {
    id.split('|').next().unwrap_or(id)
}

/// Whether a text is one JSON value.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Reads the value of `tool_calls`, which stands at `range` of `text`. The second answer says whether
/// every entry names an id. Entries that are no objects are no calls.
pub(crate) fn read(text: &Arc<str>, range: &Range<usize>) -> (Box<[ToolCall]>, bool) {
    let mut all_named = true;
    let mut calls = Vec::new();
    for entry in json::elements(&text[range.clone()]).unwrap_or_default() {
        let Ok(members) = json::members(entry) else {
            continue;
        };
        let start = json::offset_in(text, entry);
        let mut call = ToolCall {
            id: Box::default(),
            name: Box::default(),
            text: Arc::clone(text),
            entry: start..start + entry.len(),
            arguments: start..start,
        };
        for member in &members {
            let value = member.value(entry);
            match &*member.key {
                "id" => call.id = json::string(value).unwrap_or_default().into(),
                "function" | "custom" => read_function(&mut call, start + member.start, value),
                _ => {}
            }
        }
        all_named &= !call.id.is_empty();
        calls.push(call);
    }
    (calls.into(), all_named)
}

fn read_function(call: &mut ToolCall, start: usize, function: &str) {
    for member in json::members(function).unwrap_or_default() {
        match &*member.key {
            "name" => {
                call.name = json::string(member.value(function))
                    .unwrap_or_default()
                    .into()
            }
            "arguments" | "input" => call.arguments = start + member.start..start + member.end,
            _ => {}
        }
    }
}
