//! Whether an error means that the request was too long for the model.
//!
//! There is no common code for it. What providers say is told apart by their own words, with two traps: a limit of
//! tokens *per minute* is about time, and an answer limit (`max_tokens`) that is too large is about a setting.

use std::sync::OnceLock;

use regex::Regex;

/// A request that was too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Overflow {
    /// The window in tokens, where the text names it.
    pub(super) limit: Option<u64>,
    /// The request's size in tokens, where the text names it.
    pub(super) requested: Option<u64>,
    /// It was the size in bytes.
    pub(super) payload: bool,
}

/// What an error text turned out to mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The request is too long.
    TooLong(Overflow),
    /// The longest answer that was asked for is too long for this model.
    AnswerLimit,
    /// Something else.
    Other,
}

/// Codes that mean nothing else.
const CODES: &[&str] = &[
    "context_length_exceeded",
    "context_window_exceeded",
    "contextwindowexceedederror",
    "exceed_context_size_error",
    "model_max_prompt_tokens_exceeded",
    "tokens_limit_reached",
    "string_above_max_length",
];

/// Words that mean it unless the error is about a rate.
const WORDS: &[&str] = &[
    "maximum context length",
    "max context length",
    "context length exceeded",
    "exceeds the context length",
    "exceeds context length",
    "exceeds the model's context",
    "than the model's context length",
    "than the context length",
    "reached context length",
    "context window exceed",
    "context window limit",
    "exceeds the context window",
    "exceeds context window",
    "exceed the context window",
    "exceed context limit",
    "exceeds the available context size",
    "context size has been exceeded",
    "context size exceeded",
    "loaded with context length of only",
    "context the overflows",
    "context overflow",
    "prompt is too long",
    "prompt too long",
    "prompt exceeds max length",
    "input is too long",
    "input too long",
    "maximum prompt length",
    "exceeded model token limit",
    "exceeds the maximum number of tokens allowed",
    "exceeds the maximum number of input tokens",
    "maximum number of input tokens",
    "exceeds the maximum allowed length",
    "exceeds maximum allowed length",
    "too many input tokens",
    "too many tokens: total number of tokens in the prompt",
    "input token count",
    "prompt token count",
    "range of input length should be",
    "`inputs` tokens + `max_new_tokens` must be",
    "`inputs` must have less than",
    "reduce the length of the messages",
    "reduce the length of the prompt",
    "reduce the length of the input",
    "reduce your prompt",
    "too large for model with",
    "request body too large for",
    "超过最大长度",
    "超长",
    "上下文长度",
];

/// Words of limits per time.
const RATES: &[&str] = &[
    "rate limit",
    "rate_limit",
    "ratelimit",
    "per minute",
    "per min",
    "per hour",
    "per day",
    "(tpm)",
    "too many requests",
    "quota",
    "throttl",
];

/// What an error means. `text` is the whole body, or as much of it as matters.
pub(super) fn meaning(status: Option<u16>, text: &str) -> Meaning {
    let text = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let figures = Figures::read(&text);

    if let Some(other) = about_rates(&text, has(RATES), &figures)
        && !has(CODES)
    {
        return other;
    }
    if figures.answer_is_at_fault(&text) {
        return Meaning::AnswerLimit;
    }
    let by_bytes = text.contains("string_above_max_length");
    if has(CODES) || (has(WORDS) && status != Some(429)) {
        return Meaning::TooLong(Overflow {
            limit: figures.limit.filter(|_| !by_bytes),
            requested: figures.requested.filter(|_| !by_bytes),
            payload: by_bytes,
        });
    }
    if status == Some(413) || text.contains("request_too_large") {
        return Meaning::TooLong(Overflow {
            payload: true,
            ..Overflow::default()
        });
    }
    Meaning::Other
}

/// `None`: it is not about a rate.
fn about_rates(text: &str, is_rate: bool, figures: &Figures) -> Option<Meaning> {
    if text.contains("long context") && text.contains("extra usage") {
        // The longer window of the same model is paid for apart; the usual one is there.
        return Some(Meaning::TooLong(Overflow {
            limit: Some(200_000),
            ..Overflow::default()
        }));
    }
    if !is_rate {
        return None;
    }
    // More than a whole minute's tokens in one request: waiting would never help, a shorter request does.
    let alone = text.contains("request too large")
        && figures
            .limit
            .zip(figures.requested)
            .is_some_and(|(limit, asked)| asked > limit);
    Some(if alone {
        Meaning::TooLong(Overflow {
            limit: figures.limit,
            requested: figures.requested,
            payload: false,
        })
    } else {
        Meaning::Other
    })
}

/// The numbers in a text.
#[derive(Debug, Default)]
struct Figures {
    limit: Option<u64>,
    requested: Option<u64>,
    /// Of `requested`, the part that is the longest answer.
    answer: Option<u64>,
}

impl Figures {
    fn read(text: &str) -> Self {
        let patterns = patterns();
        let mut found = Self {
            limit: first(&patterns.limit, text),
            requested: first(&patterns.requested, text),
            answer: first(&patterns.answer, text),
        };
        // Where only the prompt is named, the answer comes on top.
        if let (Some(prompt), Some(answer)) = (first(&patterns.prompt_only, text), found.answer) {
            found.requested = prompt.checked_add(answer);
        }
        found
    }

    /// Whether it is the longest answer that cannot fit, however short the messages.
    fn answer_is_at_fault(&self, text: &str) -> bool {
        let about_answer = [
            "max_tokens",
            "max_completion_tokens",
            "max_output_tokens",
            "max_new_tokens",
        ]
        .iter()
        .any(|name| text.contains(name));
        match (self.limit, self.answer) {
            (Some(limit), Some(answer)) => answer >= limit.saturating_sub(limit / 4),
            _ => {
                about_answer
                    && [
                        "too large",
                        "too high",
                        "less than or equal",
                        "at most",
                        "must be less",
                        "maximum allowed number of output",
                    ]
                    .iter()
                    .any(|word| text.contains(word))
                    && !["input tokens", "messages", "prompt", "`inputs`"]
                        .iter()
                        .any(|word| text.contains(word))
            }
        }
    }
}

struct Patterns {
    limit: Vec<Regex>,
    requested: Vec<Regex>,
    answer: Vec<Regex>,
    prompt_only: Vec<Regex>,
}

/// `N` stands for a number with or without separators of thousands.
fn patterns() -> &'static Patterns {
    static PATTERNS: OnceLock<Patterns> = OnceLock::new();
    PATTERNS.get_or_init(|| Patterns {
        limit: compile(&[
            r"context length (?:is|of|:)? ?(?:only )?N",
            r"N maximum context length",
            r"> N maximum",
            r"context limit: N \+ N > (?P<n>N)",
            r"available context size \(N",
            r#""n_ctx"\s*:\s*N"#,
            r"tokens allowed \(?N",
            r"maximum prompt length is N",
            r"model token limit:? N",
            r"context length \(N tokens",
            r"maximum allowed length \(N",
            r"max(?:imum)? size:? N tokens",
            r"must be <= N",
            r"must have less than N tokens",
            r"cannot exceed N",
            r"input length should be \[\d+, ?N\]",
            r"context (?:window|size|length) (?:of|is|:|=)? ?(?:only )?N",
            r"limit (?:is|of) N",
            r"limit:? N",
        ]),
        requested: compile(&[
            r"passed N input tokens",
            r"you requested (?:about |a total of )?N",
            r"requested:? (?:about |a total of )?N",
            r"resulted in N tokens",
            r"too long:? N",
            r"request \(N tokens\)",
            r#""n_prompt_tokens"\s*:\s*N"#,
            r"input token count \(N\)",
            r"token count of N",
            r"(?:request|prompt|input) (?:has|contains)(?: at least)? N",
            r"given: N",
            r"received N",
            r"current length is N",
            r"input (?:length )?\(N tokens",
            r"context limit: N \+",
        ]),
        answer: compile(&[
            r"N (?:tokens )?(?:in|for) (?:the |your )?(?:completion|output)",
            r"max_(?:completion_|output_|new_)?tokens['`]? is too large:? N",
            r"context limit: N \+ (?P<n>N)",
        ]),
        prompt_only: compile(&[
            r"(?:request|prompt|input) (?:has|contains)(?: at least)? N input tokens",
            r"context limit: N \+",
        ]),
    })
}

fn compile(patterns: &[&str]) -> Vec<Regex> {
    const NUMBER: &str = r"\d[\d,_]*";
    patterns
        .iter()
        .filter_map(|pattern| {
            let named = if pattern.contains("(?P<n>") {
                pattern
                    .replace("(?P<n>N)", &format!("(?P<n>{NUMBER})"))
                    .replace('N', NUMBER)
            } else {
                pattern.replace('N', &format!("(?P<n>{NUMBER})"))
            };
            Regex::new(&named).ok()
        })
        .collect()
}

fn first(patterns: &[Regex], text: &str) -> Option<u64> {
    patterns.iter().find_map(|pattern| {
        let number = pattern.captures(text)?.name("n")?.as_str();
        number.replace([',', '_'], "").parse().ok()
    })
}

#[cfg(test)]
mod tests;
