//! One answer, put together from the pieces of a stream or from one JSON body.

mod calls;
mod halves;

use hermes_message::Message;
use serde_json::{Map, Value};

use super::{Delta, Finish, usage};
use crate::engine::Usage;
use calls::Calls;
use halves::Text;

/// The keys under which providers show a model's thoughts; the first one that an answer uses is kept.
const REASONING: &[&str] = &["reasoning_content", "reasoning"];
/// Members of a message that are kept as they come.
const KEPT: &[&str] = &["audio", "annotations"];

/// What has arrived so far.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    text: Text,
    /// Parts of the content that are no text: they are kept behind it.
    parts: Vec<Value>,
    refusal: Text,
    reasoning: Option<(&'static str, Text)>,
    details: Vec<Value>,
    kept: Map<String, Value>,
    calls: Calls,
    finish: Option<String>,
    usage: Option<Map<String, Value>>,
    cached: Option<u64>,
    done: bool,
    choices: u64,
    junk: u64,
    error: Option<Value>,
    /// The event at hand has characters that are cut in two.
    halves: bool,
}

/// What could be made of it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) message: Option<Message>,
    pub(super) finish: Finish,
    pub(super) usage: Option<Usage>,
    pub(super) notes: Vec<String>,
    /// It has only thoughts.
    pub(super) only_thought: bool,
}

impl Assembly {
    /// Takes the data of one event.
    pub(super) fn event(&mut self, data: &str, on: &mut dyn FnMut(Delta<'_>)) {
        let data = data.trim();
        if data == "[DONE]" {
            self.done = true;
        } else if self.done || data.is_empty() {
        } else if let Some((value, halves)) = halves::read(data) {
            self.halves = halves;
            self.chunk(value, on);
            self.halves = false;
        } else if data.contains('\n') {
            // Events without the blank line between them.
            data.lines().for_each(|line| self.event(line, on));
        } else {
            self.junk += 1;
        }
    }

    /// Takes a whole answer, or a piece of one.
    pub(super) fn chunk(&mut self, value: Value, on: &mut dyn FnMut(Delta<'_>)) {
        let Value::Object(mut chunk) = value else {
            self.junk += 1;
            return;
        };
        if self.error.is_none() {
            self.error = error_of(&chunk);
        }
        for holder in ["x_groq", "usage"] {
            let found = match chunk.remove(holder) {
                Some(Value::Object(mut group)) if holder == "x_groq" => group.remove("usage"),
                other => other,
            };
            // Some send an empty one with each chunk; what was said before holds.
            if let Some(Value::Object(usage)) = found
                && !usage.is_empty()
            {
                self.usage = Some(usage);
            }
        }
        let timings = chunk.get("timings").and_then(|t| t.get("cache_n"));
        self.cached = timings.and_then(Value::as_u64).or(self.cached);
        let Some(Value::Array(choices)) = chunk.remove("choices") else {
            return;
        };
        for choice in choices {
            // Nobody asks for more than one answer; if several come, the first is it.
            let first = choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
            if let Value::Object(choice) = choice
                && first
            {
                self.choice(choice, on);
            }
        }
    }

    fn choice(&mut self, mut choice: Map<String, Value>, on: &mut dyn FnMut(Delta<'_>)) {
        self.choices += 1;
        if self.error.is_none() && choice.get("error").is_some_and(|error| !error.is_null()) {
            self.error = Some(Value::Object(choice.clone()));
        }
        for key in ["delta", "message"] {
            if let Some(Value::Object(message)) = choice.remove(key) {
                self.message(message, on);
            }
        }
        if let Some(Value::String(text)) = choice.remove("text") {
            self.say(&text, on);
        }
        if let Some(Value::String(reason)) = choice.remove("finish_reason")
            && !reason.is_empty()
        {
            self.finish = Some(reason);
        }
    }

    fn message(&mut self, mut message: Map<String, Value>, on: &mut dyn FnMut(Delta<'_>)) {
        let mut thought = false;
        for key in REASONING {
            // A server that sends both sends the same text twice.
            if let Some(Value::String(text)) = message.remove(*key)
                && !text.is_empty()
                && !thought
            {
                thought = true;
                self.think(key, &text, on);
            }
        }
        if let Some(Value::Array(details)) = message.remove("reasoning_details") {
            details.into_iter().for_each(|detail| self.detail(detail));
        }
        match message.remove("content") {
            Some(Value::String(text)) => self.say(&text, on),
            Some(Value::Array(parts)) => parts.into_iter().for_each(|part| self.part(part, on)),
            Some(part @ Value::Object(_)) => self.part(part, on),
            _ => {}
        }
        if let Some(Value::String(text)) = message.remove("refusal")
            && !text.is_empty()
        {
            show(&self.refusal.push(&text, self.halves), on, Delta::Text);
        }
        if let Some(list) = message.remove("tool_calls") {
            self.calls.take(list, self.halves, on);
        }
        if let Some(function) = message.remove("function_call") {
            self.calls.take_function(function, self.halves, on);
        }
        for key in KEPT {
            if let Some(mut value) = message.remove(*key).filter(|value| !value.is_null()) {
                self.clean(&mut value);
                self.kept.insert((*key).to_owned(), value);
            }
        }
    }

    fn say(&mut self, text: &str, on: &mut dyn FnMut(Delta<'_>)) {
        show(&self.text.push(text, self.halves), on, Delta::Text);
    }

    fn think(&mut self, key: &'static str, text: &str, on: &mut dyn FnMut(Delta<'_>)) {
        let (_, thoughts) = self.reasoning.get_or_insert_with(|| (key, Text::default()));
        show(&thoughts.push(text, self.halves), on, Delta::Reasoning);
    }

    fn clean(&self, value: &mut Value) {
        if self.halves {
            halves::clean(value);
        }
    }

    fn part(&mut self, mut part: Value, on: &mut dyn FnMut(Delta<'_>)) {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
        match (kind, part.get("text").or_else(|| part.get(kind))) {
            ("text" | "output_text" | "refusal", Some(Value::String(text))) => self.say(text, on),
            ("thinking" | "reasoning", Some(Value::String(text))) => {
                self.think(REASONING[0], text, on);
            }
            ("thinking" | "reasoning", Some(Value::Array(inner))) => {
                for text in inner.iter().filter_map(|part| part["text"].as_str()) {
                    self.think(REASONING[0], text, on);
                }
            }
            _ if part.is_object() => {
                self.clean(&mut part);
                self.parts.push(part);
            }
            _ => {}
        }
    }

    /// Pieces of one reasoning block share their type and index: their texts are joined.
    fn detail(&mut self, mut detail: Value) {
        self.clean(&mut detail);
        let key = |value: &Value| (value["type"].clone(), value["index"].clone());
        if let (Some(Value::Object(last)), Value::Object(new)) = (self.details.last_mut(), &detail)
            && !new.get("index").unwrap_or(&Value::Null).is_null()
            && key(&Value::Object(last.clone())) == key(&detail)
        {
            for (name, value) in new {
                match (last.get_mut(name), value) {
                    (Some(Value::String(old)), Value::String(more))
                        if matches!(&**name, "text" | "summary" | "data") =>
                    {
                        old.push_str(more);
                    }
                    (_, Value::Null) => {}
                    _ => {
                        last.insert(name.clone(), value.clone());
                    }
                }
            }
        } else if detail.is_object() {
            self.details.push(detail);
        }
    }

    /// The provider has said that this is all.
    pub(super) fn is_complete(&self) -> bool {
        self.done || self.finish.is_some()
    }

    /// Nothing more will come.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the provider has said what the request used.
    pub(super) fn usage_said(&self) -> bool {
        self.usage.is_some()
    }

    /// The error that came instead of an answer, or in the middle of it.
    pub(super) fn take_error(&mut self) -> Option<Value> {
        self.error.take()
    }

    /// Whether anything came that was an answer or a piece of one.
    pub(super) fn has_choices(&self) -> bool {
        self.choices > 0
    }

    /// What the request used, if the provider has said so.
    pub(super) fn usage(&self) -> Option<Usage> {
        let mut said = self.usage.clone()?;
        if let Some(cached) = self.cached
            && !said.contains_key("prompt_tokens_details")
        {
            said.insert("cached_tokens".into(), cached.into());
        }
        usage::canonical(&said)
    }

    /// What can be kept of an answer that broke off: the text so far and the calls that were complete.
    pub(super) fn partial(self) -> Option<Message> {
        self.make(true).message
    }

    /// The complete answer.
    pub(super) fn answer(self) -> Answer {
        self.make(false)
    }

    fn make(self, partial: bool) -> Answer {
        let usage = self.usage();
        let mut notes = Vec::new();
        if self.junk > 0 {
            notes.push(format!(
                "{} of the stream's events were no JSON and were left out",
                self.junk
            ));
        }
        let had_calls = !self.calls.is_empty();
        let calls = self.calls.make(partial);
        if calls.nameless > 0 && !partial {
            notes.push(format!(
                "the model called {} tool(s) without a name; those calls were left out",
                calls.nameless
            ));
        }
        if calls.torn && !partial {
            notes.push("the arguments of a tool call are no complete JSON".to_owned());
        }
        let finish = match self.finish.as_deref() {
            Some(
                "length"
                | "max_tokens"
                | "max_output_tokens"
                | "model_length"
                | "model_context_window_exceeded",
            ) => Finish::Length,
            Some("content_filter" | "safety" | "SAFETY" | "recitation") => Finish::Filter,
            _ if !calls.list.is_empty() => Finish::ToolCalls,
            _ => Finish::Stop,
        };
        let mut text = self.text.end();
        let refusal = self.refusal.end();
        if text.trim().is_empty() && !refusal.is_empty() {
            text = refusal;
            notes.push("the model declines".to_owned());
        }
        let silent = text.trim().is_empty() && self.parts.is_empty() && calls.list.is_empty();
        let silent = silent && !self.kept.contains_key("audio");
        let only_thought = silent && !had_calls && self.reasoning.is_some();

        let mut message = Map::new();
        message.insert("role".into(), "assistant".into());
        let content = match (self.parts, text) {
            (parts, text) if parts.is_empty() => {
                if text.is_empty() {
                    Value::Null
                } else {
                    text.into()
                }
            }
            (mut parts, text) => {
                if !text.is_empty() {
                    parts.insert(0, serde_json::json!({"type": "text", "text": text}));
                }
                parts.into()
            }
        };
        message.insert("content".into(), content);
        if let Some((key, thoughts)) = self.reasoning {
            message.insert(key.into(), thoughts.end().into());
        }
        if !self.details.is_empty() {
            message.insert("reasoning_details".into(), self.details.into());
        }
        message.extend(self.kept);
        if !calls.list.is_empty() {
            message.insert("tool_calls".into(), calls.list.into());
        }
        // It was made of JSON values; were it not JSON, there would be nothing to keep.
        let message = (!silent)
            .then(|| Message::parse(&Value::Object(message).to_string()).ok())
            .flatten();
        Answer {
            message,
            finish,
            usage,
            notes,
            only_thought,
        }
    }
}

/// Tells of a text that has come, unless nothing of it can be shown yet.
fn show<'t>(text: &'t str, on: &mut dyn FnMut(Delta<'_>), kind: fn(&'t str) -> Delta<'t>) {
    if !text.is_empty() {
        on(kind(text));
    }
}

/// Reads JSON; half of a surrogate pair in it becomes U+FFFD.
pub(super) fn json(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    if !text.contains("\\u") {
        return None;
    }
    // The reader of messages mends exactly this.
    let mended = Message::parse(text).ok()?;
    serde_json::from_str(mended.stored()).ok()
}

/// The error in a body: under `error`, or the whole body is one.
pub(super) fn error_of(body: &Map<String, Value>) -> Option<Value> {
    let is_error = |key: &str| body.get(key).and_then(Value::as_str) == Some("error");
    let named = body.get("error").is_some_and(|error| match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    });
    let bare = !body.contains_key("choices")
        && (is_error("object") || is_error("type") || body.contains_key("detail"));
    (named || bare).then(|| Value::Object(body.clone()))
}

#[cfg(test)]
mod tests;
