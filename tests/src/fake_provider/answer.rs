//! A chat completion, as a stream or in one piece.

use std::time::Duration;

use serde_json::{Value, json};

use super::Request;

/// An answer, and how it goes wrong.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<[String; 3]>,
    pub(super) finish: Option<String>,
    pub(super) form: Form,
    pub(super) usage: Figures,
    pub(super) portion: usize,
    pub(super) pause: Duration,
    pub(super) done: bool,
    pub(super) comments: bool,
    pub(super) half: Option<(usize, Half)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    AsAsked,
    Json,
}

#[derive(Clone, Debug)]
pub(super) enum Figures {
    AtEnd(Option<Value>),
    Always,
    Never,
}

/// How an answer ends in the middle.
#[derive(Clone, Debug)]
pub(super) enum Half {
    Reset,
    Close,
    Torn,
    Stall,
    Error(String),
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            text: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
            finish: None,
            form: Form::AsAsked,
            usage: Figures::AtEnd(None),
            portion: usize::MAX,
            pause: Duration::ZERO,
            done: true,
            comments: false,
            half: None,
        }
    }
}

impl Answer {
    fn finish(&self) -> &str {
        match &self.finish {
            Some(reason) => reason,
            None if self.calls.is_empty() => "stop",
            None => "tool_calls",
        }
    }

    /// A quarter of the bytes is good enough for a count.
    fn figures(&self, request: &Request) -> Value {
        if let Figures::AtEnd(Some(usage)) = &self.usage {
            return usage.clone();
        }
        let answer: usize = self.calls.iter().flatten().map(String::len).sum();
        let prompt = request.body.len().div_ceil(4);
        let completion = (answer + self.text.len() + self.reasoning.len()).div_ceil(4);
        json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
    }

    /// The answer in one piece.
    pub(super) fn body(&self, request: &Request) -> String {
        let mut message = json!({"role": "assistant", "content": self.text});
        if self.text.is_empty() {
            message["content"] = Value::Null;
        }
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = json!(self.reasoning);
        }
        if !self.calls.is_empty() {
            message["tool_calls"] = self.calls.iter().map(whole_call).collect();
        }
        let mut body = json!({
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": "fake",
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish()}],
        });
        if !matches!(self.usage, Figures::Never) {
            body["usage"] = self.figures(request);
        }
        body.to_string()
    }

    /// The events of the stream, the pieces of the answer first, and where those end.
    pub(super) fn events(&self, request: &Request) -> Vec<String> {
        let mut deltas: Vec<Value> = words(&self.reasoning)
            .map(|word| json!({"reasoning_content": word}))
            .collect();
        deltas.extend(words(&self.text).map(|word| json!({"content": word})));
        for (index, [id, name, arguments]) in self.calls.iter().enumerate() {
            let mut first = json!({"index": index, "type": "function", "function": {"name": name, "arguments": ""}});
            if !id.is_empty() {
                first["id"] = json!(id);
            }
            deltas.push(json!({"tool_calls": [first]}));
            deltas.extend(words(arguments).map(
                |word| json!({"tool_calls": [{"index": index, "function": {"arguments": word}}]}),
            ));
        }
        let always = matches!(self.usage, Figures::Always);
        let event = |delta: Value, finish: Value| {
            let mut event = json!({
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "model": "fake",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            });
            if always {
                event["usage"] = self.figures(request);
            }
            event.to_string()
        };
        let mut events: Vec<String> = deltas
            .into_iter()
            .map(|delta| event(delta, Value::Null))
            .collect();
        events.push(event(json!({}), json!(self.finish())));
        if matches!(self.usage, Figures::AtEnd(_)) {
            let usage = self.figures(request);
            events.push(
                json!({"object": "chat.completion.chunk", "choices": [], "usage": usage})
                    .to_string(),
            );
        }
        if self.done {
            events.push("[DONE]".to_owned());
        }
        events
    }
}

fn whole_call([id, name, arguments]: &[String; 3]) -> Value {
    let mut call = json!({"type": "function", "function": {"name": name, "arguments": arguments}});
    if !id.is_empty() {
        call["id"] = json!(id);
    }
    call
}

/// A text word by word, each with the blank behind it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}
