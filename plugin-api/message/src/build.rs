//! Making messages, and changing one thing of a message while all else keeps its bytes.
//!
//! An edited message keeps its identity (`UID-18`): it is a newer version of the same message.

use crate::error::MessageError;
use crate::json;
use crate::message::Message;

/// A message of any role that is one text.
#[must_use]
pub fn message(role: &str, text: &str) -> Message {
    made(&format!(
        "{{\"role\":{},\"content\":{}}}",
        json::quote(role),
        json::quote(text)
    ))
}

/// What the model is told to be.
#[must_use]
pub fn system(text: &str) -> Message {
    message("system", text)
}

/// What a person says.
#[must_use]
pub fn user(text: &str) -> Message {
    message("user", text)
}

/// What the model says.
#[must_use]
pub fn assistant(text: &str) -> Message {
    message("assistant", text)
}

/// The result of the tool call with this id.
#[must_use]
pub fn tool(call_id: &str, text: &str) -> Message {
    made(&format!(
        "{{\"role\":\"tool\",\"tool_call_id\":{},\"content\":{}}}",
        json::quote(call_id),
        json::quote(text)
    ))
}

/// What the model says while it calls tools, each as `(id, name, arguments)`. No text is `null`.
#[must_use]
pub fn calling(text: Option<&str>, calls: &[(&str, &str, &str)]) -> Message {
    let mut list = String::new();
    for (id, name, arguments) in calls {
        if !list.is_empty() {
            list.push(',');
        }
        list.push_str(&format!(
            "{{\"id\":{},\"type\":\"function\",\"function\":{{\"name\":{},\"arguments\":{}}}}}",
            json::quote(id),
            json::quote(name),
            json::quote(arguments)
        ));
    }
    let content = text.map_or_else(|| "null".to_owned(), json::quote);
    made(&format!(
        "{{\"role\":\"assistant\",\"content\":{content},\"tool_calls\":[{list}]}}"
    ))
}

/// The message saying something else: its content becomes this text.
#[must_use]
pub fn with_content(message: &Message, text: &str) -> Message {
    edited(
        message,
        &json::set_member(message.stored(), "content", &json::quote(text)),
    )
}

/// The message with other arguments of its call number `call`. A call that is not there changes
/// nothing.
#[must_use]
pub fn with_tool_arguments(message: &Message, call: usize, arguments: &str) -> Message {
    let Some(call) = message.tool_calls().get(call) else {
        return message.clone();
    };
    let text = message.stored();
    let (range, new) = if call.raw_arguments().is_empty() {
        let members = json::members(call.raw()).unwrap_or_default();
        let function = members
            .iter()
            .rev()
            .find(|m| m.key == "function")
            .map_or("{}", |m| m.value(call.raw()));
        let function = json::set_member(function, "arguments", &json::quote(arguments));
        (
            call.entry_range(),
            json::set_member(call.raw(), "function", &function),
        )
    } else {
        (call.arguments_range(), json::quote(arguments))
    };
    edited(
        message,
        &[&text[..range.start], &new, &text[range.end..]].concat(),
    )
}

/// The message with the JSON text `raw` under `key`, in place of the old value or at the end.
///
/// # Errors
/// When `raw` is no JSON value.
pub fn with_member(message: &Message, key: &str, raw: &str) -> Result<Message, MessageError> {
    message.rewritten(&json::set_member(message.stored(), key, raw))
}

/// The message without any value under `key`.
#[must_use]
pub fn without_member(message: &Message, key: &str) -> Message {
    edited(message, &json::remove_member(message.stored(), key))
}

/// The message marked as an engine's summary.
#[must_use]
pub fn as_summary(message: &Message) -> Message {
    edited(
        message,
        &json::set_member(message.stored(), "_compressed_summary", "true"),
    )
}

/// The message marked as the host's own words.
#[must_use]
pub fn as_synthetic(message: &Message) -> Message {
    edited(
        message,
        &json::set_member(message.stored(), "_synthetic", "true"),
    )
}

/// Valid JSON was put in the place of valid JSON, so this cannot fail; were it to, the message stays.
pub(crate) fn edited(message: &Message, text: &str) -> Message {
    message.rewritten(text).unwrap_or_else(|_| message.clone())
}

fn made(text: &str) -> Message {
    Message::parse(text).unwrap_or_else(|_| unreachable!("text made of quoted strings is JSON"))
}
