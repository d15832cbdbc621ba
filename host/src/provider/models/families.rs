//! Families of models and their windows, for providers that do not tell.

/// Part of a name, window. Where a family has several sizes, the one that all of its members have.
const FAMILIES: &[(&str, u64)] = &[
    ("scripted", super::DEFAULT_WINDOW),
    ("gpt-5", 400_000),
    ("gpt-5-chat", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4", 8192),
    ("gpt-3.5-turbo", 16_385),
    ("gpt-oss", 131_072),
    ("o1", 200_000),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("claude", 200_000),
    ("claude-2", 100_000),
    ("gemini", 1_048_576),
    ("gemini-1.5-pro", 2_097_152),
    ("gemma", 8192),
    ("gemma-3", 131_072),
    ("gemma-3-1b", 32_768),
    ("gemma-3-270m", 32_768),
    ("gemma3", 131_072),
    ("gemma-3n", 32_768),
    ("deepseek", 128_000),
    ("grok", 131_072),
    ("grok-4", 256_000),
    ("grok-4-fast", 2_000_000),
    ("grok-code-fast", 256_000),
    ("llama-2", 4096),
    ("llama-3", 8192),
    ("llama3", 8192),
    ("llama-3.1", 131_072),
    ("llama-3.2", 131_072),
    ("llama-3.3", 131_072),
    ("llama3.1", 131_072),
    ("llama3.2", 131_072),
    ("llama3.3", 131_072),
    ("llama-4", 131_072),
    ("mistral", 32_768),
    ("mistral-large", 131_072),
    ("mistral-medium", 131_072),
    ("mistral-small", 32_768),
    ("mixtral", 32_768),
    ("ministral", 131_072),
    ("devstral", 131_072),
    ("magistral", 40_960),
    ("codestral", 256_000),
    ("qwen", 32_768),
    ("qwen2.5", 32_768),
    ("qwen3", 40_960),
    ("qwen3-coder", 262_144),
    ("qwen3-max", 262_144),
    ("qwen-max", 32_768),
    ("qwen-plus", 131_072),
    ("qwq", 131_072),
    ("kimi", 131_072),
    ("kimi-k2", 131_072),
    ("moonshot-v1-128k", 131_072),
    ("moonshot-v1-32k", 32_768),
    ("moonshot-v1-8k", 8192),
    ("glm", 128_000),
    ("glm-4.6", 200_000),
    ("glm-4.7", 200_000),
    ("glm-5", 200_000),
    ("minimax", 204_800),
    ("minimax-m1", 1_000_000),
    ("hermes-3", 131_072),
    ("hermes-4", 131_072),
    ("command-a", 256_000),
    ("command-r", 128_000),
    ("nova-lite", 300_000),
    ("nova-micro", 128_000),
    ("nova-pro", 300_000),
    ("phi-4", 16_384),
    ("nemotron", 131_072),
    ("step-3", 65_536),
    ("seed-oss", 524_288),
    ("granite", 131_072),
    ("smollm", 8192),
];

/// The window of the longest family name that a model's name holds as whole words and numbers.
pub(super) fn window(model: &str) -> Option<u64> {
    let model = model.to_ascii_lowercase();
    FAMILIES
        .iter()
        .filter(|(name, _)| holds(&model, name))
        .max_by_key(|(name, _)| name.len())
        .map(|(_, tokens)| *tokens)
}

/// Begins at a word, and cuts no number: `glm-5` is not in `glm-51`, `o1` not in `turbo1`.
fn holds(model: &str, name: &str) -> bool {
    model.match_indices(name).any(|(at, _)| {
        let before = model[..at].chars().next_back();
        let after = model[at + name.len()..].chars().next();
        let within_word = before.is_some_and(|c| c.is_ascii_alphanumeric());
        let within_number = name.ends_with(|c: char| c.is_ascii_digit())
            && after.is_some_and(|c| c.is_ascii_digit());
        !within_word && !within_number
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_wins_and_numbers_are_not_split() {
        assert_eq!(window("openai/gpt-4.1-mini"), Some(1_047_576));
        assert_eq!(window("GPT-4"), Some(8192));
        assert_eq!(window("gpt-41"), None);
        assert_eq!(window("anthropic/claude-sonnet-4.5"), Some(200_000));
        assert_eq!(window("glm-51"), Some(128_000));
        assert_eq!(window("turbo1"), None);
        assert_eq!(window("o1-mini-2024"), Some(128_000));
        assert_eq!(window(""), None);
    }

    #[test]
    fn no_family_stands_there_twice() {
        let mut names: Vec<_> = FAMILIES.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FAMILIES.len());
    }
}
