//! Whether an answer of a helper model is a summary.

use crate::helper::{Class, Failure, Reply};

/// What an answer has to replace.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Estimate of the messages it stands for.
    pub replaces: u64,
    /// Longest useful answer, in tokens.
    pub budget: u64,
}

/// The summary in an answer: reasoning removed, blanks trimmed.
///
/// # Errors
/// [`Class::Empty`], [`Class::Truncated`], [`Class::Unusable`] or [`Class::TooLong`], with a sentence.
pub fn summary(reply: &Reply, bounds: Bounds) -> Result<String, Failure> {
    let text = without_thinking(&reply.text);
    let text = without_fence(text.trim());
    if text.is_empty() || matches!(text, "null" | "{}" | "[]" | "\"\"" | "None") {
        return Err(Failure::new(
            Class::Empty,
            "the helper model gave an empty summary",
        ));
    }
    if matches!(reply.finish_reason.as_str(), "length" | "max_tokens") {
        return Err(Failure::new(
            Class::Truncated,
            "the helper model's summary breaks off (length limit)",
        ));
    }
    if matches!(reply.finish_reason.as_str(), "error" | "content_filter") {
        let text = format!("the helper model stopped with `{}`", reply.finish_reason);
        return Err(Failure::new(Class::Unusable, text));
    }
    if let Some(what) = no_summary(text) {
        return Err(Failure::new(
            Class::Unusable,
            format!("the helper model answered with {what}, not with a summary"),
        ));
    }
    let words = words(text);
    let wanted = least_words(bounds.replaces);
    if words < wanted {
        let text = format!(
            "the helper model's summary has {words} words for {} tokens of conversation",
            bounds.replaces
        );
        return Err(Failure::new(Class::Unusable, text));
    }
    if crate::tokens::of_text(text) >= bounds.replaces.max(1) {
        return Err(Failure::new(
            Class::TooLong,
            "the summary is longer than the messages it would replace",
        ));
    }
    Ok(text.to_owned())
}

/// The fewest words that can sum up so many tokens.
fn least_words(tokens: u64) -> usize {
    if tokens < 500 {
        return 1;
    }
    4 + usize::try_from(tokens.saturating_sub(50_000) / 10_000)
        .unwrap_or(usize::MAX)
        .min(26)
}

/// Words of any script: letters that need no blanks between words count half a word each.
fn words(text: &str) -> usize {
    let spaced = text
        .split_whitespace()
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .count();
    let dense = text
        .chars()
        .filter(|c| matches!(*c, '\u{0e00}'..='\u{0eff}' | '\u{3040}'..='\u{9fff}'))
        .count();
    spaced + dense / 2
}

const THINKING: [(&str, &str); 3] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
];

/// The text without blocks of reasoning. A block that never ends takes the rest with it; an end without a beginning takes
/// what stands before it.
fn without_thinking(text: &str) -> String {
    let mut text = text.to_owned();
    for (open, close) in THINKING {
        while let Some(start) = text.find(open) {
            let end = text[start..]
                .find(close)
                .map_or(text.len(), |at| start + at + close.len());
            text.replace_range(start..end, "");
        }
        if let Some(at) = text.find(close) {
            text.replace_range(..at + close.len(), "");
        }
    }
    text
}

/// The inside of a code fence around the whole text.
fn without_fence(text: &str) -> &str {
    let Some(inner) = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
    else {
        return text;
    };
    match inner.split_once('\n') {
        Some((language, body)) if !language.trim().contains(' ') && !body.contains("```") => {
            body.trim()
        }
        _ => text,
    }
}

const REFUSALS: [&str; 18] = [
    "i can't help",
    "i cannot help",
    "i can't assist",
    "i cannot assist",
    "i can't do that",
    "i can't summarize",
    "i cannot summarize",
    "i'm sorry, but",
    "i am sorry, but",
    "i'm sorry, i can",
    "sorry, i can",
    "sorry, but i can",
    "i'm unable to",
    "i am unable to",
    "i won't be able to",
    "as an ai",
    "i must decline",
    "i'm not able to",
];
const ERRORS: [&str; 16] = [
    "error:",
    "error code",
    "[error]",
    "{\"error\"",
    "{\"detail\"",
    "http 4",
    "http 5",
    "http/1",
    "<html",
    "<!doctype",
    "internal server error",
    "bad gateway",
    "service unavailable",
    "gateway timeout",
    "rate limit",
    "traceback (most recent",
];

/// What a text is when it is no summary. Only the beginning counts, and a long text with sections is no refusal even if
/// it begins with a regret.
fn no_summary(text: &str) -> Option<&'static str> {
    let start: String = text
        .chars()
        .take(120)
        .map(|c| {
            if matches!(c, '’' | '‘') {
                '\''
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect();
    let start =
        start.trim_start_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '[' | '{' | '<'));
    let sections = text.lines().filter(|line| line.starts_with('#')).count();
    if sections < 2
        && text.len() < 1_500
        && REFUSALS.iter().any(|refusal| start.starts_with(refusal))
    {
        return Some("a refusal");
    }
    (sections < 2 && ERRORS.iter().any(|error| start.starts_with(error))).then_some("an error text")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(text: &str, replaces: u64) -> Result<String, Class> {
        let reply = Reply {
            text: text.to_owned(),
            finish_reason: "stop".to_owned(),
        };
        summary(
            &reply,
            Bounds {
                replaces,
                budget: 2_000,
            },
        )
        .map_err(|failure| failure.class)
    }

    // case: 28
    #[test]
    fn what_is_no_summary_is_refused_by_kind() {
        for empty in [
            "",
            "   \n",
            "null",
            "{}",
            "<think>a long thought</think>",
            "<think>never ends",
        ] {
            assert_eq!(judge(empty, 40_000), Err(Class::Empty), "{empty:?}");
        }
        for unusable in [
            "I can't help with that",
            "I’m sorry, but I can’t help with that.",
            "Error: HTTP 500 from upstream",
            "{\"error\":{\"message\":\"overloaded\"}}",
            "<html><body>502 Bad Gateway</body></html>",
        ] {
            assert_eq!(
                judge(unusable, 40_000),
                Err(Class::Unusable),
                "{unusable:?}"
            );
        }
        assert_eq!(
            judge("all went well", 300_000),
            Err(Class::Unusable),
            "three words for 300k tokens"
        );
        let cut = Reply {
            text: "## Goal\nport the parser and".to_owned(),
            finish_reason: "length".to_owned(),
        };
        let bounds = Bounds {
            replaces: 40_000,
            budget: 2_000,
        };
        assert_eq!(summary(&cut, bounds).unwrap_err().class, Class::Truncated);
    }

    // case: 33
    #[test]
    fn a_summary_longer_than_its_source_is_refused_by_size() {
        assert_eq!(
            judge(&"many words about little ".repeat(40), 12),
            Err(Class::TooLong)
        );
    }

    #[test]
    fn short_and_foreign_summaries_pass() {
        assert!(judge("## Summary\nread 40 files", 40_000).is_ok());
        assert!(
            judge(
                "<think>hm</think>\n```markdown\n## Ziel\nDie Datei lesen und ändern\n```",
                900
            )
            .is_ok()
        );
        assert!(judge("用户要求重命名解析器，文件已读取，测试通过", 40_000).is_ok());
        let honest =
            "I'm sorry, but the first attempt failed.\n## Goal\nx y z\n## Actions\n1. a b c";
        assert!(judge(honest, 4_000).is_ok(), "sections make it a summary");
    }
}
