//! Looking at one resolved value: what is inside it, what it may stand for, and how a message names it.

use super::json::key_text;
use serde_yaml::{Mapping, Value};

/// A value inside another: by key in a mapping, by number in a list.
pub(crate) fn child<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match untag(value) {
        Value::Mapping(mapping) => child_of(mapping, name),
        Value::Sequence(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Keys that YAML takes for numbers or booleans are found by their text.
pub(crate) fn child_of<'v>(mapping: &'v Mapping, name: &str) -> Option<&'v Value> {
    mapping.get(name).or_else(|| {
        let mut others = mapping.iter().filter(|(key, _)| !key.is_string());
        others
            .find(|(key, _)| key_text(key) == name)
            .map(|(_, value)| value)
    })
}

/// A value without the tags around it.
pub(crate) fn untag(value: &Value) -> &Value {
    match value {
        Value::Tagged(tagged) => untag(&tagged.value),
        value => value,
    }
}

/// A boolean in any of the spellings of YAML 1.1, quoted or not.
pub(crate) fn as_bool(value: &Value) -> Option<bool> {
    match untag(value) {
        Value::Bool(value) => Some(*value),
        Value::Number(number) => match number.as_u64() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        },
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "y" => Some(true),
            "false" | "no" | "off" | "n" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// A finite number, quoted or not.
pub(crate) fn as_number(value: &Value) -> Option<f64> {
    let number = match untag(value) {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// A whole number of zero or more, quoted or not; `256_000` and `2e5` are ones too.
pub(crate) fn as_whole(value: &Value) -> Option<u64> {
    match untag(value) {
        Value::Number(number) => number.as_u64().or_else(|| {
            let number = number.as_f64()?;
            // Up to 2^53 each whole f64 is exact, and its decimal form is the integer.
            let whole = number >= 0.0 && number.fract() == 0.0 && number <= 9_007_199_254_740_992.0;
            whole.then(|| format!("{number:.0}").parse().ok())?
        }),
        Value::String(text) => text.trim().replace('_', "").parse().ok(),
        _ => None,
    }
}

/// The text of a scalar. `written` gives the spelling in the file where the type has lost it (`1.0`, `True`).
pub(crate) fn scalar_text(
    value: &Value,
    written: impl FnOnce() -> Option<String>,
) -> Option<String> {
    match untag(value) {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(written().unwrap_or_else(|| value.to_string())),
        Value::Number(value) => Some(written().unwrap_or_else(|| value.to_string())),
        _ => None,
    }
}

/// Does this key hold something that must not be shown?
pub(crate) fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["api_key", "apikey", "password", "secret", "token"]
        .iter()
        .any(|word| key.ends_with(word))
}

/// A value as a message names it.
pub(crate) fn show(value: &Value) -> String {
    match untag(value) {
        Value::Null => "empty".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => {
            let mut short: String = text.chars().take(40).collect();
            if short.len() < text.len() {
                short.push('…');
            }
            format!("the text {short:?}")
        }
        Value::Sequence(items) => format!("a list of {}", items.len()),
        Value::Mapping(mapping) => format!("a mapping of {} keys", mapping.len()),
        Value::Tagged(_) => "a tagged value".to_owned(),
    }
}
