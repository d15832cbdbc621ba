//! The body of one request: stored texts, joined.

use std::ops::Range;
use std::sync::Arc;

use hermes_message::Message;

/// What every request of a conversation has beside its messages. Its texts are the same bytes each time.
#[derive(Clone, Debug)]
pub struct Frame {
    head: String,
    tail: String,
    tool_tokens: u64,
}

impl Frame {
    /// A request to `model` with these tools; each is a whole `{"type":"function",…}` object.
    #[must_use]
    pub fn new(model: &str, tools: &[Arc<str>]) -> Self {
        let head = format!(
            "{{\"model\":{},\"messages\":",
            serde_json::Value::from(model)
        );
        let tail = if tools.is_empty() {
            // An empty list is an error to some providers.
            "}".to_owned()
        } else {
            format!(",\"tools\":[{}]}}", tools.join(","))
        };
        let tool_tokens = tools
            .iter()
            .map(|tool| u64::from(hermes_message::estimate::tokens_of_json(tool)))
            .sum();
        Frame {
            head,
            tail,
            tool_tokens,
        }
    }

    /// The same with more members behind the tools: JSON without the outer braces, or nothing.
    #[must_use]
    pub fn with_parameters(mut self, parameters: &str) -> Self {
        if !parameters.is_empty() {
            self.tail.pop();
            self.tail.push(',');
            self.tail.push_str(parameters);
            self.tail.push('}');
        }
        self
    }

    /// The estimate of the tool schemas.
    #[must_use]
    pub fn tool_tokens(&self) -> u64 {
        self.tool_tokens
    }

    /// Puts messages into the frame.
    #[must_use]
    pub fn body(&self, messages: &[Message]) -> Body {
        let texts: usize = messages
            .iter()
            .map(|message| message.wire().len() + 1)
            .sum();
        let mut text = String::with_capacity(self.head.len() + texts + 2 + self.tail.len());
        text.push_str(&self.head);
        let start = text.len();
        text.push('[');
        for (at, message) in messages.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(message.wire());
        }
        text.push(']');
        let list = start..text.len();
        text.push_str(&self.tail);
        Body { text, list }
    }
}

/// A request body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    text: String,
    list: Range<usize>,
}

impl Body {
    /// The whole body.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of its `messages`, brackets included.
    #[must_use]
    pub fn list(&self) -> &str {
        &self.text[self.list.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: UID-9
    #[test]
    fn a_body_is_the_wire_texts_joined() {
        let message =
            Message::parse(r#"{"role":"user","content":"hi","message_uid":"u1","timestamp":1.50}"#)
                .expect("a message");
        let frame = Frame::new("a\"b", &["{\"type\":\"function\"}".into()]);
        let body = frame.body(&[message.clone(), message.clone()]);
        let one = r#"{"role":"user","content":"hi"}"#;
        assert_eq!(body.list(), format!("[{one},{one}]"));
        assert_eq!(
            body.text(),
            format!(
                r#"{{"model":"a\"b","messages":[{one},{one}],"tools":[{{"type":"function"}}]}}"#
            )
        );
        assert!(frame.tool_tokens() > 0);
        assert_eq!(
            Frame::new("m", &[]).body(&[message]).text(),
            format!(r#"{{"model":"m","messages":[{one}]}}"#)
        );
    }
}
