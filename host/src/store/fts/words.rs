//! What of a message is searchable, and how text without blanks is cut into words.

use std::collections::BTreeSet;

use serde_json::Value;

/// Han, kana and hangul: scripts whose words are not parted by blanks and often have one or two characters.
pub(crate) fn is_cjk(c: char) -> bool {
    c.is_alphanumeric()
        && matches!(u32::from(c),
            0x3005..=0x3007 | 0x3041..=0x30FF | 0x3105..=0x318E | 0x31A0..=0x31FF | 0x3400..=0x4DBF
            | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3 | 0xF900..=0xFAD9 | 0x2_0000..=0x2_B81D)
}

/// Scripts without blanks between words whose words are longer: found as substrings.
pub(crate) fn unspaced(text: &str) -> bool {
    text.chars()
        .any(|c| matches!(u32::from(c), 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF))
}

/// Whether any character is CJK.
pub(crate) fn has_cjk(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(is_cjk)
}

/// The text as one- and two-character words, each once, with blanks between.
pub(crate) fn bigrams(text: &str) -> String {
    let mut words = BTreeSet::new();
    let mut before = None;
    for c in text.chars() {
        if !is_cjk(c) {
            before = None;
            continue;
        }
        words.insert((c, None));
        if let Some(before) = before {
            words.insert((before, Some(c)));
        }
        before = Some(c);
    }
    let mut out = String::with_capacity(words.len() * 6);
    for (first, second) in words {
        out.push(first);
        out.extend(second);
        out.push(' ');
    }
    out
}

/// A query that every text holding `term` satisfies: all its two-character words, or its single ones.
pub(crate) fn bigram_query(term: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for run in term.split(|c| !is_cjk(c)).filter(|run| !run.is_empty()) {
        let chars: Vec<char> = run.chars().collect();
        if let [only] = chars.as_slice() {
            words.push(format!("\"{only}\""));
        }
        words.extend(
            chars
                .windows(2)
                .map(|pair| format!("\"{}{}\"", pair[0], pair[1])),
        );
    }
    words.dedup();
    words.join(" AND ")
}

/// The searchable text of a row: its words, the tool's name, the names and arguments of its calls.
pub(crate) fn indexed_text(content: &str, tool_name: &str, tool_calls: &str) -> String {
    let content = match content
        .strip_prefix("\0json:")
        .map(serde_json::from_str::<Value>)
    {
        Some(Ok(value)) => {
            let mut words = Vec::new();
            texts(&value, &mut words);
            words.join("\n")
        }
        _ => content.to_owned(),
    };
    // See `schema::INDEXED_TEXT` for what a NUL would do.
    [content.as_str(), tool_name, &calls_text(tool_calls)]
        .join(" ")
        .replace('\0', " ")
}

/// The texts of content that is a list of parts; pictures and files have none.
fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(parts) => parts.iter().for_each(|part| texts(part, out)),
        Value::Object(part) => {
            for key in ["text", "content", "refusal", "transcript"] {
                if let Some(inner) = part.get(key) {
                    texts(inner, out);
                }
            }
        }
        _ => {}
    }
}

fn calls_text(tool_calls: &str) -> String {
    if tool_calls.is_empty() {
        return String::new();
    }
    let Ok(Value::Array(calls)) = serde_json::from_str::<Value>(tool_calls) else {
        return tool_calls.to_owned();
    };
    let mut words = Vec::new();
    for call in &calls {
        let function = call.get("function").unwrap_or(call);
        if let Some(name) = function.get("name").and_then(Value::as_str) {
            words.push(name.to_owned());
        }
        match function.get("arguments") {
            // Arguments are JSON inside a JSON string: as text, their escapes would hide the words.
            Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
                Ok(value) => leaves(&value, &mut words),
                Err(_) => words.push(text.clone()),
            },
            Some(value) => leaves(value, &mut words),
            None => {}
        }
    }
    words.join(" ")
}

fn leaves(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, out)),
        Value::Object(members) => {
            for (key, member) in members {
                out.push(key.clone());
                leaves(member, out);
            }
        }
        other => out.push(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_parts_are_text() {
        assert_eq!(
            indexed_text(
                "\0json:[{\"type\": \"text\", \"text\": \"\\u6f22\\u5b57\"}, {\"type\": \"image_url\", \"image_url\": {\"url\": \"data:x\"}}]",
                "read",
                r#"[{"id": "c", "function": {"name": "grep", "arguments": "{\"q\":\"\\u6771\\u4eac\",\"n\":3}"}}]"#
            ),
            "漢字 read grep q 東京 n 3"
        );
    }

    #[test]
    fn words_of_one_and_two_characters() {
        assert_eq!(bigrams("東京 is 漢"), "京 東 東京 漢 ");
        assert_eq!(bigram_query("東京都"), "\"東京\" AND \"京都\"");
        assert_eq!(bigram_query("漢a字"), "\"漢\" AND \"字\"");
    }
}
