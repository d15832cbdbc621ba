//! Providers by name: where they are, and which variable has the key.

/// One provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Its names, the first one being its own.
    pub(super) names: &'static [&'static str],
    /// Where its chat completions are.
    pub(super) base_url: &'static str,
    /// The variables that may have its key, best first; none: it wants no key.
    pub(super) keys: &'static [&'static str],
    /// The variable that may have another address.
    pub(super) address: Option<&'static str>,
}

const fn known(
    names: &'static [&'static str],
    base_url: &'static str,
    keys: &'static [&'static str],
    address: Option<&'static str>,
) -> Known {
    Known {
        names,
        base_url,
        keys,
        address,
    }
}

/// In the order in which keys are looked for when nothing is configured.
pub(super) const PROVIDERS: &[Known] = &[
    known(
        &["openrouter"],
        "https://openrouter.ai/api/v1",
        &["OPENROUTER_API_KEY"],
        None,
    ),
    known(
        &["openai"],
        "https://api.openai.com/v1",
        &["OPENAI_API_KEY"],
        Some("OPENAI_BASE_URL"),
    ),
    known(
        &["anthropic", "claude"],
        "https://api.anthropic.com/v1",
        &["ANTHROPIC_API_KEY"],
        None,
    ),
    known(
        &["gemini", "google"],
        "https://generativelanguage.googleapis.com/v1beta/openai",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        Some("GEMINI_BASE_URL"),
    ),
    known(
        &["deepseek"],
        "https://api.deepseek.com/v1",
        &["DEEPSEEK_API_KEY"],
        Some("DEEPSEEK_BASE_URL"),
    ),
    known(
        &["xai", "grok"],
        "https://api.x.ai/v1",
        &["XAI_API_KEY"],
        Some("XAI_BASE_URL"),
    ),
    known(
        &["mistral"],
        "https://api.mistral.ai/v1",
        &["MISTRAL_API_KEY"],
        None,
    ),
    known(
        &["groq"],
        "https://api.groq.com/openai/v1",
        &["GROQ_API_KEY"],
        None,
    ),
    known(
        &["nous"],
        "https://inference-api.nousresearch.com/v1",
        &["NOUS_API_KEY"],
        None,
    ),
    known(
        &["zai", "glm", "z-ai", "zhipu"],
        "https://api.z.ai/api/paas/v4",
        &["GLM_API_KEY", "ZAI_API_KEY", "Z_AI_API_KEY"],
        Some("GLM_BASE_URL"),
    ),
    known(
        &["kimi", "moonshot", "kimi-coding"],
        "https://api.moonshot.ai/v1",
        &["KIMI_API_KEY", "MOONSHOT_API_KEY"],
        Some("KIMI_BASE_URL"),
    ),
    known(
        &["minimax"],
        "https://api.minimax.io/v1",
        &["MINIMAX_API_KEY"],
        Some("MINIMAX_BASE_URL"),
    ),
    known(
        &["alibaba", "qwen", "dashscope"],
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        &["DASHSCOPE_API_KEY"],
        Some("DASHSCOPE_BASE_URL"),
    ),
    known(
        &["huggingface", "hf"],
        "https://router.huggingface.co/v1",
        &["HF_TOKEN", "HUGGINGFACE_API_KEY"],
        Some("HF_BASE_URL"),
    ),
    known(
        &["together"],
        "https://api.together.xyz/v1",
        &["TOGETHER_API_KEY"],
        None,
    ),
    known(
        &["fireworks"],
        "https://api.fireworks.ai/inference/v1",
        &["FIREWORKS_API_KEY"],
        None,
    ),
    known(
        &["cerebras"],
        "https://api.cerebras.ai/v1",
        &["CEREBRAS_API_KEY"],
        None,
    ),
    known(
        &["nvidia", "nim"],
        "https://integrate.api.nvidia.com/v1",
        &["NVIDIA_API_KEY"],
        Some("NVIDIA_BASE_URL"),
    ),
    known(
        &["perplexity"],
        "https://api.perplexity.ai",
        &["PERPLEXITY_API_KEY"],
        None,
    ),
    known(
        &["ai-gateway", "vercel"],
        "https://ai-gateway.vercel.sh/v1",
        &["AI_GATEWAY_API_KEY"],
        None,
    ),
    known(
        &["opencode-zen", "opencode"],
        "https://opencode.ai/zen/v1",
        &["OPENCODE_ZEN_API_KEY"],
        Some("OPENCODE_ZEN_BASE_URL"),
    ),
    known(
        &["opencode-go"],
        "https://opencode.ai/zen/go/v1",
        &["OPENCODE_GO_API_KEY"],
        Some("OPENCODE_GO_BASE_URL"),
    ),
    known(
        &["ollama-cloud"],
        "https://ollama.com/v1",
        &["OLLAMA_API_KEY"],
        None,
    ),
    known(
        &["ollama"],
        "http://127.0.0.1:11434/v1",
        &[],
        Some("OLLAMA_BASE_URL"),
    ),
    known(
        &["lmstudio", "lm-studio"],
        "http://127.0.0.1:1234/v1",
        &[],
        Some("LM_BASE_URL"),
    ),
    known(
        &["llamacpp", "llama.cpp", "llama-cpp", "llama-server"],
        "http://127.0.0.1:8080/v1",
        &[],
        None,
    ),
    known(&["vllm"], "http://127.0.0.1:8000/v1", &[], None),
];

/// The provider with this name, whatever its case.
pub(super) fn named(name: &str) -> Option<&'static Known> {
    PROVIDERS
        .iter()
        .find(|known| known.names.iter().any(|own| own.eq_ignore_ascii_case(name)))
}

/// The name of a provider that a mistyped one resembles, among the known ones and `more`.
pub(super) fn similar<'n>(name: &str, more: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let name = name.to_ascii_lowercase();
    let all = PROVIDERS
        .iter()
        .flat_map(|known| known.names.iter().copied());
    more.chain(all)
        .map(|own| {
            (
                strsim::damerau_levenshtein(&name, &own.to_ascii_lowercase()),
                own,
            )
        })
        .filter(|(distance, own)| *distance <= 2 && *distance < own.len())
        .min()
        .map(|(_, own)| own)
}

/// The provider at this host, which may get that provider's key.
pub(super) fn at_host(host: &str) -> Option<&'static Known> {
    PROVIDERS
        .iter()
        .find(|known| !known.keys.is_empty() && host_of(known.base_url).eq_ignore_ascii_case(host))
}

/// Whether an address is at this provider's own host.
pub(super) fn is_home_of(known: &Known, url: &str) -> bool {
    host_of(known.base_url).eq_ignore_ascii_case(host_of(url))
}

/// The provider that makes this model, by the name's beginning.
pub(super) fn maker_of(model: &str) -> Option<&'static Known> {
    const MAKERS: &[(&str, &str)] = &[
        ("gpt-", "openai"),
        ("chatgpt-", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("claude", "anthropic"),
        ("gemini", "gemini"),
        ("deepseek", "deepseek"),
        ("grok", "xai"),
        ("mistral", "mistral"),
        ("codestral", "mistral"),
        ("glm", "zai"),
        ("kimi", "kimi"),
        ("minimax", "minimax"),
    ];
    let model = model.to_ascii_lowercase();
    let (_, name) = MAKERS.iter().find(|(start, _)| model.starts_with(start))?;
    named(name)
}

/// Host and port of an address.
pub(super) fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    rest.rsplit_once('@').map_or(rest, |(_, host)| host)
}

/// Whether an address is on this machine.
pub(super) fn is_local(url: &str) -> bool {
    let host = host_of(url);
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    name == "localhost" || name == "::1" || name.starts_with("127.") || name == "0.0.0.0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hosts_and_makers_lead_to_providers() {
        assert_eq!(named("Google").map(|k| k.names[0]), Some("gemini"));
        assert_eq!(
            at_host("api.openai.com").map(|k| k.names[0]),
            Some("openai")
        );
        assert_eq!(at_host("127.0.0.1:8080"), None);
        assert_eq!(
            maker_of("Claude-Sonnet").map(|k| k.names[0]),
            Some("anthropic")
        );
        assert_eq!(maker_of("my-model"), None);
        assert_eq!(host_of("http://u:p@h:1/v1"), "h:1");
        for url in [
            "http://localhost:1/v1",
            "http://[::1]:80",
            "http://127.0.0.1",
        ] {
            assert!(is_local(url), "{url}");
        }
        assert!(!is_local("https://localhost.example.com/v1"));
    }

    #[test]
    fn no_name_is_given_twice_and_every_address_is_one() {
        let mut names: Vec<_> = PROVIDERS.iter().flat_map(|k| k.names).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(
            PROVIDERS
                .iter()
                .all(|k| k.base_url.starts_with("http") && !k.base_url.ends_with('/'))
        );
    }
}
