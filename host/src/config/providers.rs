//! Places that the user has given a name: the map `providers`, and the older list `custom_providers`.

use super::json::key_text;
use super::model::{Secret, TOKENS};
use super::read::Reader;
use super::value::untag;
use serde_yaml::Value;
use std::collections::BTreeMap;

/// A place with models, by the user's name for it. All texts are as in the file; `${NAME}` is not replaced.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamedProvider {
    /// Where it stands in the file: `providers.lab`, `custom_providers.0`.
    pub key: String,
    /// Its names: the key of the map, and its `name`.
    pub names: Vec<String>,
    /// The address of an OpenAI-compatible server.
    pub base_url: Option<String>,
    /// Which dialect the server speaks.
    pub api_mode: Option<String>,
    /// The key itself.
    pub api_key: Option<Secret>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// The model to ask there when none is named.
    pub model: Option<String>,
    /// The window of its models in tokens, unless `models` knows better.
    pub context_length: Option<u64>,
    /// The windows of single models.
    pub models: BTreeMap<String, u64>,
}

/// What a key may also be called; newer and older files differ.
pub(crate) const SPELLINGS: &[(&str, &[&str])] = &[
    ("base_url", &["base_url", "baseUrl", "url", "api"]),
    ("api_mode", &["api_mode", "apiMode", "transport"]),
    ("api_key", &["api_key", "apiKey"]),
    (
        "api_key_env",
        &["api_key_env", "key_env", "keyEnv", "apiKeyEnv"],
    ),
    ("model", &["model", "default_model", "defaultModel"]),
    ("context_length", &["context_length", "contextLength"]),
];

impl NamedProvider {
    /// The window of one of its models, if the file says it.
    pub fn window_of(&self, model: &str) -> Option<u64> {
        self.models.get(model).copied().or(self.context_length)
    }

    fn is_called(&self, name: &str) -> bool {
        self.names.iter().any(|own| alike(own) == alike(name))
    }

    fn read(reader: &mut Reader<'_>, at: &[&str]) -> Self {
        let spelled = |reader: &Reader<'_>, key: &'static str| -> Vec<String> {
            let all = SPELLINGS.iter().find(|(name, _)| *name == key);
            let used = all.map_or(&[][..], |(_, all)| all).iter().find(|name| {
                reader.value(&join(at, name)).is_some_and(|value| {
                    // Some files say there which kind of server it is.
                    **name != "api" || value.as_str().is_some_and(|text| text.contains("://"))
                })
            });
            join(at, used.unwrap_or(&key))
                .into_iter()
                .map(str::to_owned)
                .collect()
        };
        let text = |reader: &mut Reader<'_>, key: &'static str| {
            let path = spelled(reader, key);
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            reader.text(&path).map(|text| text.trim().to_owned())
        };
        let window = spelled(reader, "context_length");
        let window: Vec<&str> = window.iter().map(String::as_str).collect();
        Self {
            key: at.join("."),
            names: reader.text(&join(at, "name")).into_iter().collect(),
            base_url: text(reader, "base_url"),
            api_mode: text(reader, "api_mode"),
            api_key: text(reader, "api_key").map(Secret::new),
            api_key_env: text(reader, "api_key_env"),
            model: text(reader, "model"),
            context_length: reader.optional_whole(&window, TOKENS),
            models: models(reader, &join(at, "models")),
        }
    }
}

/// The place of this name, with or without `custom:` before it.
pub(crate) fn named<'p>(all: &'p [NamedProvider], name: &str) -> Option<&'p NamedProvider> {
    let name = name.trim();
    let name = name.strip_prefix("custom:").unwrap_or(name);
    all.iter().find(|provider| provider.is_called(name))
}

/// The place at this address.
pub(crate) fn at_address<'p>(all: &'p [NamedProvider], url: &str) -> Option<&'p NamedProvider> {
    let plain = |url: &str| url.trim().trim_end_matches('/').to_ascii_lowercase();
    let url = plain(url);
    all.iter().find(|provider| {
        provider
            .base_url
            .as_deref()
            .is_some_and(|own| plain(own) == url)
    })
}

/// The map first, as the newer of the two.
pub(crate) fn read(reader: &mut Reader<'_>) -> Vec<NamedProvider> {
    let mut all = Vec::new();
    for (name, value) in reader.section(&["providers"]) {
        let name = key_text(&name);
        let at = ["providers", name.as_str()];
        if untag(&value).is_null() {
            continue;
        }
        reader.section(&at);
        let mut provider = NamedProvider::read(reader, &at);
        provider.names.insert(0, name.clone());
        all.push(provider);
    }
    for at in reader.items(&["custom_providers"]) {
        let at: Vec<&str> = at.iter().map(String::as_str).collect();
        all.push(NamedProvider::read(reader, &at));
    }
    all
}

/// `models` as a map from names to settings, or as a list; only windows are of interest here.
fn models(reader: &mut Reader<'_>, at: &[&str]) -> BTreeMap<String, u64> {
    let mut windows = BTreeMap::new();
    let mut entries: Vec<(String, String)> = Vec::new();
    match reader.value(at) {
        Some(Value::Mapping(mapping)) => {
            entries.extend(mapping.keys().map(key_text).map(|key| (key.clone(), key)));
        }
        Some(Value::Sequence(list)) => {
            for (index, item) in list.iter().enumerate() {
                let name = |key| untag(item).get(key).and_then(Value::as_str);
                if let Some(name) = name("id")
                    .or_else(|| name("name"))
                    .or_else(|| name("model"))
                {
                    entries.push((name.to_owned(), index.to_string()));
                }
            }
        }
        _ => {}
    }
    for (name, key) in entries {
        let entry = join(at, &key);
        if !reader.value(&entry).is_some_and(|value| value.is_mapping()) {
            continue;
        }
        for key in ["context_length", "contextLength"] {
            if let Some(window) = reader.optional_whole(&join(&entry, key), TOKENS) {
                windows.insert(name.clone(), window);
            }
        }
    }
    windows
}

fn join<'a>(at: &[&'a str], key: &'a str) -> Vec<&'a str> {
    let mut path = at.to_vec();
    path.push(key);
    path
}

/// Names are compared without case, and a blank is as good as a hyphen.
fn alike(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace([' ', '_'], "-")
}
