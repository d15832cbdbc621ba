//! Models: the main one, the fallbacks and the one that summarises.

use super::json::to_json;
use super::read::Reader;
use serde_json::Value as Json;
use std::fmt;
use std::time::Duration;

/// A text that never shows in logs or debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one place that sends it. `${NAME}` is as it stands in the file.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The `model` section. All texts are as in the file; `${NAME}` is not replaced.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Model {
    /// The model's name (`default`, or `model`, or the whole section as one text).
    pub default: Option<String>,
    /// The provider's name.
    pub provider: Option<String>,
    /// The address of an OpenAI-compatible server.
    pub base_url: Option<String>,
    /// Which dialect the server speaks.
    pub api_mode: Option<String>,
    /// The key itself.
    pub api_key: Option<Secret>,
    /// The environment variable that holds the key (`api_key_env` or `key_env`).
    pub api_key_env: Option<String>,
    /// The window in tokens.
    pub context_length: Option<u64>,
    /// The longest answer in tokens.
    pub max_tokens: Option<u64>,
}

/// One entry of `fallback_providers`, or of a fallback chain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fallback {
    /// Where it stands in the file: `fallback_providers.0`.
    pub key: String,
    /// The provider's name.
    pub provider: Option<String>,
    /// The model's name.
    pub model: Option<String>,
    /// The address of an OpenAI-compatible server.
    pub base_url: Option<String>,
    /// Which dialect the server speaks.
    pub api_mode: Option<String>,
    /// The key itself.
    pub api_key: Option<Secret>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// The window in tokens.
    pub context_length: Option<u64>,
}

/// `auxiliary.compression`: the model that writes summaries.
#[derive(Debug, Clone, PartialEq)]
pub struct AuxiliaryCompression {
    /// The provider's name; none or `auto`: the main model's.
    pub provider: Option<String>,
    /// The model's name; none: the main model.
    pub model: Option<String>,
    /// The address of an OpenAI-compatible server.
    pub base_url: Option<String>,
    /// The key itself.
    pub api_key: Option<Secret>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// The window of that model in tokens.
    pub context_length: Option<u64>,
    /// Time limit of one call. Default 120 s.
    pub timeout: Duration,
    /// Keys added to the request's body.
    pub extra_body: Json,
    /// What is tried when the first one fails.
    pub fallback_chain: Vec<Fallback>,
}

pub(super) const TOKENS: std::ops::RangeInclusive<u64> = 1..=1_000_000_000;

impl Model {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        if let Some(serde_yaml::Value::String(name)) = reader.value(&["model"]) {
            let default = Some(name.clone()).filter(|name| !name.is_empty());
            return Self {
                default,
                ..Self::default()
            };
        }
        reader.section(&["model"]);
        let mut default = reader.text(&["model", "default"]);
        if default.is_none() {
            default = reader.text(&["model", "model"]);
        }
        Self {
            default,
            provider: reader.text(&["model", "provider"]),
            base_url: reader.text(&["model", "base_url"]),
            api_mode: reader.text(&["model", "api_mode"]),
            api_key: reader.text(&["model", "api_key"]).map(Secret),
            api_key_env: key_env(reader, &["model"]),
            context_length: reader.optional_whole(&["model", "context_length"], TOKENS),
            max_tokens: reader.optional_whole(&["model", "max_tokens"], TOKENS),
        }
    }
}

impl AuxiliaryCompression {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        let at = ["auxiliary", "compression"];
        reader.section(&at[..1]);
        reader.section(&at);
        let key = |name| [at[0], at[1], name];
        let seconds = reader.number(
            &key("timeout"),
            120.0,
            "seconds above 0",
            super::timeouts::usable,
        );
        Self {
            provider: reader.text(&key("provider")),
            model: reader.text(&key("model")),
            base_url: reader.text(&key("base_url")),
            api_key: reader.text(&key("api_key")).map(Secret),
            api_key_env: key_env(reader, &at),
            context_length: reader.optional_whole(&key("context_length"), TOKENS),
            timeout: Duration::from_secs_f64(seconds),
            extra_body: reader
                .value(&key("extra_body"))
                .map_or_else(|| Json::Object(serde_json::Map::new()), to_json),
            fallback_chain: fallbacks(reader, &key("fallback_chain")),
        }
    }
}

fn key_env(reader: &mut Reader<'_>, at: &[&str]) -> Option<String> {
    let mut key = at.to_vec();
    key.push("api_key_env");
    reader.text(&key).or_else(|| {
        *key.last_mut()? = "key_env";
        reader.text(&key)
    })
}

/// `fallback_providers`, then the older single `fallback_model`.
pub(crate) fn read_fallbacks(reader: &mut Reader<'_>) -> Vec<Fallback> {
    let mut all = fallbacks(reader, &["fallback_providers"]);
    all.extend(fallbacks(reader, &["fallback_model"]));
    all
}

fn fallbacks(reader: &mut Reader<'_>, key: &[&str]) -> Vec<Fallback> {
    reader
        .items(key)
        .iter()
        .map(|item| fallback(reader, item))
        .collect()
}

fn fallback(reader: &mut Reader<'_>, at: &[String]) -> Fallback {
    let mut text = |name: &str| {
        let mut key: Vec<&str> = at.iter().map(String::as_str).collect();
        key.push(name);
        reader.text(&key)
    };
    let mut found = Fallback {
        key: at.join("."),
        provider: text("provider"),
        model: text("model"),
        base_url: text("base_url"),
        api_mode: text("api_mode"),
        api_key: text("api_key").map(Secret),
        api_key_env: None,
        context_length: None,
    };
    let mut key: Vec<&str> = at.iter().map(String::as_str).collect();
    found.api_key_env = key_env(reader, &key);
    key.push("context_length");
    found.context_length = reader.optional_whole(&key, TOKENS);
    found
}
