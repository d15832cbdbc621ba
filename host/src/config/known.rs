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
    Section {
        others: &["contextLength"],
        ..shared("providers.*.models.*", &["context_length"])
    },
    Section {
        others: &["contextLength"],
        ..shared("custom_providers.*.models.*", &["context_length"])
    },
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::read::ASKED;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Something below every `*`, and nothing else, so that whatever may be read is looked for.
    const EMPTY: &[u8] = b"providers: {any: {models: {any: {}}}}
custom_providers: [{models: {any: {}}}]
fallback_providers: [{}]
fallback_model: {}
auxiliary: {compression: {fallback_chain: [{}]}}
plugins: {entries: {any: {}}}
";

    /// Keys of the original that are known so that nobody is told to remove them.
    const WITHOUT_EFFECT: &[&str] = &[
        "checkpoint_required",
        "micro_compact",
        "micro_compact_every_n_turns",
        "micro_compact_defrag_threshold_tokens",
        "hygiene_timeout_seconds",
        "hygiene_hard_message_limit",
        "codex_gpt55_autoraise",
        "codex_gpt55_autoraise_notice",
        "codex_app_server_auto",
        "codex_responses_native",
        "codex_responses_compact_threshold",
        "summary_model",
        "summary_provider",
        "summary_base_url",
    ];

    /// The keys that the reader looked for, and no others, are the known ones.
    #[test]
    fn the_known_keys_are_those_that_the_reader_asks_for() {
        ASKED.with_borrow_mut(BTreeSet::clear);
        Config::from_text(EMPTY, Path::new("config.yaml"));
        let patterns = |key: &String| {
            let any = |name: &str| name == "any" || name.bytes().all(|b| b.is_ascii_digit());
            let names = key
                .split('.')
                .map(|name| if any(name) { "*" } else { name });
            names.collect::<Vec<_>>().join(".")
        };
        let asked: BTreeSet<String> = ASKED
            .with_borrow(|asked| asked.iter().map(patterns).collect::<BTreeSet<_>>())
            .into_iter()
            .filter(|key| !key.ends_with('*'))
            .collect();
        assert!(asked.len() > 100, "{asked:?}");
        let known: BTreeSet<String> = known_keys().into_iter().collect();
        let idle = |key: &String| {
            // An engine's own section is not read, but handed over.
            key == "context.engines"
                || key
                    .strip_prefix("compression.")
                    .is_some_and(|key| WITHOUT_EFFECT.contains(&key))
        };
        let unread: Vec<_> = known.difference(&asked).filter(|key| !idle(key)).collect();
        assert!(unread.is_empty(), "known, and read by nothing: {unread:?}");
        let untrue: Vec<_> = asked.iter().filter(|key| idle(key)).collect();
        assert!(untrue.is_empty(), "read all the same: {untrue:?}");
        let other_spelling = |key: &String| {
            SECTIONS.iter().any(|section| {
                key.strip_prefix(section.path)
                    .and_then(|rest| rest.strip_prefix('.'))
                    .is_some_and(|name| section.others.contains(&name))
            })
        };
        let unknown: Vec<_> = asked
            .difference(&known)
            .filter(|key| !other_spelling(key))
            .collect();
        assert!(unknown.is_empty(), "read, and not known: {unknown:?}");
    }
}
