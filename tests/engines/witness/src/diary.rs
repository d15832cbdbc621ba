//! What the engine has seen, a line a call.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use hermes_plugin_api::{Call, EngineError, Messages};
use serde_json::{Map, Value, json};

/// One instance's view of the file.
pub(crate) struct Diary {
    file: Option<PathBuf>,
    instance: u64,
    /// `fail`, `panic` and `sleep` of the settings.
    orders: Value,
}

impl Diary {
    pub(crate) fn new(settings: &Value, instance: u64) -> Self {
        let orders = json!({
            "fail": settings["fail"], "panic": settings["panic"], "sleep": settings["sleep"],
        });
        Self {
            file: settings["log"].as_str().map(PathBuf::from),
            instance,
            orders,
        }
    }

    /// The same file for another instance.
    pub(crate) fn of(&self, instance: u64) -> Self {
        Self {
            file: self.file.clone(),
            instance,
            orders: self.orders.clone(),
        }
    }

    pub(crate) fn instance(&self) -> u64 {
        self.instance
    }

    /// A call has arrived. Then what the settings say of this slot.
    pub(crate) fn enter(&self, cx: &Call<'_>, slot: &str, more: Value) -> Result<(), EngineError> {
        self.write(slot, cx.session_id(), more);
        if let Some(time) = self.orders["sleep"][slot].as_u64() {
            std::thread::sleep(Duration::from_millis(time));
            let over = json!({"cancelled": cx.cancelled()});
            self.write(&format!("{slot} over"), cx.session_id(), over);
        }
        if self.orders["panic"][slot].as_bool() == Some(true) {
            panic!("boom in {slot}");
        }
        match self.orders["fail"][slot].as_bool() {
            Some(true) => Err(EngineError::failed(format_args!(
                "{slot} failed as it was told"
            ))),
            _ => Ok(()),
        }
    }

    /// One line, written at once, so that the lines of several instances do not mix.
    pub(crate) fn write(&self, slot: &str, session: &str, more: Value) {
        let Some(path) = &self.file else { return };
        let mut line = Map::new();
        line.insert("slot".to_owned(), slot.into());
        line.insert("instance".to_owned(), self.instance.into());
        line.insert("session".to_owned(), session.into());
        // Rust's own ids are counted anew in each library.
        let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
        line.insert("thread".to_owned(), thread.display().to_string().into());
        line.insert("process".to_owned(), std::process::id().into());
        if let Value::Object(more) = more {
            line.extend(more);
        }
        let text = format!("{}\n", Value::Object(line));
        if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
            // A line that cannot be written is missed by the test.
            let _ = file.write_all(text.as_bytes());
        }
    }
}

/// What a list shows: roles, uids, identities and texts.
pub(crate) fn list(messages: Messages<'_>) -> Value {
    let all: Vec<Value> = messages
        .iter()
        .map(|message| {
            let text: Value = serde_json::from_str(message.json()).unwrap_or_default();
            json!({
                "role": text["role"], "uid": message.uid(), "json": message.json(),
                "identity": message.identity_json(), "summary": message.is_summary(),
            })
        })
        .collect();
    Value::Array(all)
}
