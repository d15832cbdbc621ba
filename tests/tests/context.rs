//! A conversation's context, driven with engines on the author's SDK behind the host's own handle: the real table of
//! slots and the real lane, without a library file.

#[path = "context/actor.rs"]
mod actor;
#[path = "context/assembly.rs"]
mod assembly;
#[path = "context/hooks.rs"]
mod hooks;
#[path = "context/machine.rs"]
mod machine;
#[path = "context/passes.rs"]
mod passes;

use hermes::context::request::Frame;
use hermes::context::{Conversation, Settings};
use hermes_message::Message;
use serde_json::{Value, json};

/// A message from a JSON value.
fn message(value: Value) -> Message {
    Message::parse(&value.to_string()).expect("a message")
}

fn system(text: &str) -> Message {
    message(json!({"role": "system", "content": text}))
}

fn user(text: &str) -> Message {
    message(json!({"role": "user", "content": text}))
}

fn assistant(text: &str) -> Message {
    message(json!({"role": "assistant", "content": text}))
}

/// An assistant's call of one tool.
fn call(id: &str, name: &str) -> Message {
    message(json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}]}))
}

fn result(id: &str, text: &str) -> Message {
    message(json!({"role": "tool", "tool_call_id": id, "content": text}))
}

/// A system prompt and so many turns: a question, a tool call with its result, an answer.
fn turns(count: usize) -> Vec<Message> {
    let mut messages = vec![system("You are Hermes. RULE-7: never push.")];
    for turn in 0..count {
        messages.push(user(&format!(
            "question {turn}: what is in the file of that number?"
        )));
        messages.push(call("call_1", "read"));
        messages.push(result(
            "call_1",
            &format!("the file of number {turn} holds {}", "text ".repeat(40)),
        ));
        messages.push(assistant(&format!("answer {turn}: text, many times")));
    }
    messages
}

/// A conversation with these messages, in a window of this size.
fn conversation(messages: &[Message], window: u64) -> Conversation {
    let settings = Settings {
        session_id: "s1".to_owned(),
        pass_prefix: "p".to_owned(),
        context_length: window,
        ..Settings::default()
    };
    let tool = r#"{"type":"function","function":{"name":"read","parameters":{"type":"object"}}}"#;
    let mut conversation = Conversation::new(settings, Frame::new("test-model", &[tool.into()]));
    for message in messages {
        conversation.push(message.clone());
    }
    conversation
}
