//! The passes that the settings can ask for.

use hermes_plugin_api::message::Role;
use hermes_plugin_api::{Emit, EngineError, Messages, Verdict};
use serde_json::Value;

pub(crate) fn compress(
    settings: &Value,
    messages: Messages<'_>,
    out: &mut Emit<'_>,
) -> Result<Verdict, EngineError> {
    let count = messages.len();
    let number = |key: &str, default: usize| {
        let value = settings[key].as_u64();
        value.map_or(default, |value| {
            usize::try_from(value).unwrap_or(usize::MAX)
        })
    };
    match settings["compress"].as_str().unwrap_or("summary") {
        "unchanged" => return Ok(Verdict::Unchanged("the tail is all there is".to_owned())),
        "same" => out.keep(0..count)?,
        "equal" => {
            for message in messages.iter() {
                let value: Value = serde_json::from_str(message.json())?;
                out.push(&serde_json::to_string_pretty(&value)?)?;
            }
        }
        "longer" => {
            // The last answer, and much more of it.
            let answer = (0..count)
                .rev()
                .find(|at| messages.get(*at).role() == Role::Assistant);
            let Some(answer) = answer else {
                return Ok(Verdict::Unchanged("no answer yet".to_owned()));
            };
            out.keep(0..answer)?;
            let long = "and on and on ".repeat(400);
            out.push(&format!(r#"{{"role":"assistant","content":"{long}"}}"#))?;
            out.keep(answer + 1..count)?;
        }
        "a_little" => {
            // One character less.
            let mut first: Value = serde_json::from_str(messages.get(0).json())?;
            let mut text = first["content"].as_str().unwrap_or_default().to_owned();
            text.pop();
            first["content"] = text.into();
            out.edit(&messages.get(0), &first.to_string())?;
            out.keep(1..count)?;
        }
        "empty" => {}
        "junk" => {
            out.keep(0..count.min(1))?;
            out.push("7")?;
        }
        "roleless" => {
            out.push(r#"{"content":"no role"}"#)?;
            out.keep(count.saturating_sub(1)..count)?;
        }
        "twice" => {
            let part = r#""message_uid":"0123456789abcdef0123456789abcdef"}"#;
            out.push(&format!(r#"{{"role":"user","content":"once",{part}"#))?;
            out.push(&format!(r#"{{"role":"assistant","content":"twice",{part}"#))?;
            out.keep(count.saturating_sub(1)..count)?;
        }
        "loses_user" => out.keep(0..count.saturating_sub(2).max(2).min(count))?,
        "edit" => {
            if count > 0 {
                out.edit(&messages.get(0), r#"{"role":"user","content":"x"}"#)?;
            }
            out.keep(count.min(1)..count)?;
        }
        how => {
            let head = number("head", 0).min(count);
            let tail = number("tail", 1);
            let mut rest = count.saturating_sub(tail).max(head);
            // Results stay with their calls, and the newest question stays.
            let has_question =
                |from: usize| (from..count).any(|at| messages.get(at).role() == Role::User);
            while rest > head
                && rest < count
                && (messages.get(rest).role() == Role::Tool || !has_question(rest))
            {
                rest -= 1;
            }
            if rest - head < 2 || rest == count {
                return Ok(Verdict::Unchanged("too little".to_owned()));
            }
            out.keep(0..head)?;
            let next = messages.get(rest).role();
            let after_user = head > 0 && messages.get(head - 1).role() == Role::User;
            let role = if next == Role::User {
                "assistant"
            } else {
                "user"
            };
            if role == "assistant" && !after_user {
                out.push(r#"{"role":"user","content":"(earlier conversation)"}"#)?;
            }
            let uid = if how == "own_uid" {
                r#","message_uid":"witness-summary""#
            } else {
                ""
            };
            out.push(&format!(
                r#"{{"role":"{role}","content":"summary of {} messages"{uid}}}"#,
                rest - head
            ))?;
            out.keep(rest..count)?;
        }
    }
    Ok(Verdict::Done)
}
