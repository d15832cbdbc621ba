//! The `plugins` section.

use super::json::{key_text, to_json};
use super::problem::{ProblemKind, Severity};
use super::read::Reader;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Which general plugins run, and what each one was granted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plugins {
    /// General plugins that are switched on.
    pub enabled: Vec<String>,
    /// General plugins that are switched off; this beats `enabled`.
    pub disabled: Vec<String>,
    /// Settings by plugin name.
    pub entries: BTreeMap<String, PluginEntry>,
}

/// `plugins.entries.<name>`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PluginEntry {
    /// What the user allowed the plugin to do.
    pub granted_capabilities: Vec<String>,
    /// The plugin's own settings, in any shape; null when there are none.
    pub settings: Json,
    /// The only library content that may be loaded: 64 hexadecimal digits in lower case (SAFE-3).
    pub sha256: Option<String>,
}

impl Plugins {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        reader.section(&["plugins"]);
        let mut entries = BTreeMap::new();
        for (name, _) in reader.section(&["plugins", "entries"]) {
            let name = key_text(&name);
            let at = ["plugins", "entries", name.as_str()];
            reader.section(&at);
            let key = |last| [at[0], at[1], at[2], last];
            let entry = PluginEntry {
                granted_capabilities: reader.texts(&key("granted_capabilities")),
                settings: reader.value(&key("settings")).map_or(Json::Null, to_json),
                sha256: pin(reader, &key("sha256")),
            };
            entries.insert(name, entry);
        }
        Self {
            enabled: reader.texts(&["plugins", "enabled"]),
            disabled: reader.texts(&["plugins", "disabled"]),
            entries,
        }
    }

    /// Is this general plugin switched on?
    pub fn is_enabled(&self, name: &str) -> bool {
        self.enabled.iter().any(|n| n == name) && !self.disabled.iter().any(|n| n == name)
    }
}

/// A pin that cannot be one is kept as it is, so that it matches nothing: ignoring it would load what the user
/// wanted to prevent.
fn pin(reader: &mut Reader<'_>, key: &[&str]) -> Option<String> {
    let text = reader.text(key)?;
    let pin = text
        .strip_prefix("sha256:")
        .unwrap_or(&text)
        .to_ascii_lowercase();
    if pin.len() != 64 || !pin.bytes().all(|b| b.is_ascii_hexdigit()) {
        let message = format!(
            "{} is {text:?}, expected 64 hexadecimal digits; no library matches it, so none is loaded",
            key.join(".")
        );
        let hint = "write the output of sha256sum".to_owned();
        reader.report(ProblemKind::Value, Severity::Warning, key, message, hint);
    }
    Some(pin)
}
