//! The keys that something here reads: what `hermes config check` compares with, and what the documentation lists.

use super::{compression, timeouts};

/// The keys of one section.
#[derive(Debug)]
pub(crate) struct Section {
    /// The dotted path; `*` stands for any name or number.
    pub(crate) path: &'static str,
    /// The keys that are read.
    pub(crate) keys: &'static [&'static str],
    /// Keys of the original that resemble one of them, and are none of ours.
    pub(crate) others: &'static [&'static str],
    /// Nothing but our keys belongs there.
    pub(crate) is_ours: bool,
}

const fn shared(path: &'static str, keys: &'static [&'static str]) -> Section {
    Section {
        path,
        keys,
        others: &[],
        is_ours: false,
    }
}

const fn ours(path: &'static str, keys: &'static [&'static str]) -> Section {
    Section {
        is_ours: true,
        ..shared(path, keys)
    }
}

/// A place that has a name, in the spelling that is documented.
const PLACE: &[&str] = &[
    "name",
    "base_url",
    "api_mode",
    "api_key",
    "api_key_env",
    "key_env",
    "model",
    "context_length",
    "models",
];
/// The other spellings of those.
const PLACE_TOO: &[&str] = &[
    "baseUrl",
    "url",
    "api",
    "apiMode",
    "transport",
    "apiKey",
    "keyEnv",
    "apiKeyEnv",
    "default_model",
    "defaultModel",
    "contextLength",
    "api_keys",
];
const FALLBACK: &[&str] = &[
    "provider",
    "model",
    "base_url",
    "api_mode",
    "api_key",
    "api_key_env",
    "key_env",
    "context_length",
];

/// All sections of which something is read.
pub(crate) const SECTIONS: &[Section] = &[
    shared(
        "",
        &[
            "model",
            "providers",
            "custom_providers",
            "fallback_providers",
            "fallback_model",
            "auxiliary",
            "context",
            "compression",
            "plugins",
            "agent",
        ],
    ),
    Section {
        others: &["models", "aliases"],
        ..shared(
            "model",
            &[
                "default",
                "model",
                "provider",
                "base_url",
                "api_mode",
                "api_key",
                "api_key_env",
                "key_env",
                "context_length",
                "max_tokens",
            ],
        )
    },
    Section {
        others: PLACE_TOO,
        ..shared("providers.*", PLACE)
    },
    Section {
        others: PLACE_TOO,
        ..shared("custom_providers.*", PLACE)
    },
    shared("providers.*.models.*", &["context_length"]),
    shared("custom_providers.*.models.*", &["context_length"]),
    shared("fallback_providers.*", FALLBACK),
    shared("fallback_model", FALLBACK),
    shared("auxiliary", &["compression"]),
    shared(
        "auxiliary.compression",
        &[
            "provider",
            "model",
            "base_url",
            "api_key",
            "api_key_env",
            "key_env",
            "context_length",
            "timeout",
            "extra_body",
            "fallback_chain",
        ],
    ),
    shared("auxiliary.compression.fallback_chain.*", FALLBACK),
    ours("context", &["engine", "timeouts", "engines"]),
    ours("context.timeouts", timeouts::KNOWN),
    ours("compression", compression::KNOWN),
    shared("agent", &["system_prompt", "max_turns"]),
    shared("plugins", &["enabled", "disabled", "entries"]),
    shared(
        "plugins.entries.*",
        &["granted_capabilities", "settings", "sha256"],
    ),
];

/// Every key that is read, dotted; `*` stands for a name that the user chooses, or for a number.
pub fn known_keys() -> Vec<String> {
    let dotted = |section: &Section| {
        let path = section.path;
        let keys = section.keys.iter();
        keys.map(move |key| {
            if path.is_empty() {
                (*key).to_owned()
            } else {
                format!("{path}.{key}")
            }
        })
    };
    SECTIONS.iter().flat_map(dotted).collect()
}
