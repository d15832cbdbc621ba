//! The selections that the settings can ask for.

use hermes_plugin_api::{Emit, EngineError, Messages, Verdict};
use serde_json::Value;

pub(crate) fn select(
    settings: &Value,
    request: Messages<'_>,
    out: &mut Emit<'_>,
) -> Result<Verdict, EngineError> {
    let count = request.len();
    match settings["select"].as_str().unwrap_or("none") {
        "all" => out.keep(0..count)?,
        "equal" => {
            for message in request.iter() {
                // The same value in other bytes.
                let value: Value = serde_json::from_str(message.json())?;
                out.push(&serde_json::to_string_pretty(&value)?)?;
            }
        }
        "tail" => {
            let keep = settings["keep"].as_u64().unwrap_or(2);
            let keep = usize::try_from(keep).unwrap_or(usize::MAX);
            let system = count.min(1);
            out.keep(0..system)?;
            out.keep(count.saturating_sub(keep).max(system)..count)?;
        }
        "drop" => {
            out.keep(0..count.min(1))?;
            out.keep(count.min(2)..count)?;
        }
        "note" => {
            out.keep(0..count)?;
            out.push(
                r#"{"role":"user","content":"a note of the engine's","message_uid":"note-1"}"#,
            )?;
        }
        "empty" => {}
        "junk" => {
            out.keep(0..count.min(1))?;
            out.push("7")?;
        }
        "unknown" => out.push(r#"{"content":"no role"}"#)?,
        "fail" => return Err(EngineError::failed("select_context failed as it was told")),
        _ => return Ok(Verdict::Unchanged(String::new())),
    }
    Ok(Verdict::Done)
}
