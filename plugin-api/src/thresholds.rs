//! Thresholds per model: one map, written by the user under `compression.model_thresholds`, that every
//! engine can honour.

use serde_json::{Map, Value};

/// Looks up a model in a map of thresholds; `None` means no match: the engine's own threshold.
///
/// - A key counts where the model's name holds it, ASCII letters compared without case. The longest wins.
/// - `provider:rest` counts for that provider only. It ranks by the length of its rest, before a bare key
///   of the same length.
/// - A key counts as a bare one, too, where the model's name holds all of it (`llama3:70b`).
/// - Of equals the first wins.
/// - A match never splits a number: `glm-5` is not in `glm-51`.
/// - An empty key, and a value that is no number in (0, 1], are ignored.
///
/// `hermes_resolve_model_threshold` in `hermes_helpers.h` follows the same rules.
///
/// ```
/// use hermes_plugin_api::thresholds::resolve_model_threshold;
///
/// let map = serde_json::json!({ "glm-5": 0.7, "zai:glm": 0.6 });
/// let map = map.as_object().unwrap();
/// assert_eq!(resolve_model_threshold(map, "z/GLM-5", "zai"), Some(0.7));
/// assert_eq!(resolve_model_threshold(map, "glm-51", "zai"), Some(0.6));
/// assert_eq!(resolve_model_threshold(map, "glm-51", "other"), None);
/// ```
#[must_use]
pub fn resolve_model_threshold(
    map: &Map<String, Value>,
    model: &str,
    provider: &str,
) -> Option<f64> {
    let mut best: Option<(Rank, f64)> = None;
    for (key, value) in map {
        let Some(threshold) = value.as_f64().filter(|t| *t > 0.0 && *t <= 1.0) else {
            continue;
        };
        let Some(rank) = rank(key, model, provider) else {
            continue;
        };
        if best.is_none_or(|(leader, _)| rank > leader) {
            best = Some((rank, threshold));
        }
    }
    best.map(|(_, threshold)| threshold)
}

/// How well a key fits; compared field by field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    length: usize,
    scoped: bool,
}

fn rank(key: &str, model: &str, provider: &str) -> Option<Rank> {
    let as_rank = |part: &str, scoped| {
        holds(model.as_bytes(), part.as_bytes()).then_some(Rank {
            length: part.len(),
            scoped,
        })
    };
    let bare = as_rank(key, false);
    let scoped = rest_for(key, provider).and_then(|rest| as_rank(rest, true));
    bare.max(scoped)
}

/// The rest of `provider:rest` if the key is for this provider, whose own name may hold a colon.
fn rest_for<'a>(key: &'a str, provider: &str) -> Option<&'a str> {
    if provider.is_empty() {
        return None;
    }
    let (head, tail) = key.split_at_checked(provider.len())?;
    if head.eq_ignore_ascii_case(provider) {
        tail.strip_prefix(':')
    } else {
        None
    }
}

/// Whether `name` holds `part` without splitting a number.
fn holds(name: &[u8], part: &[u8]) -> bool {
    let (Some(first), Some(last)) = (part.first(), part.last()) else {
        return false;
    };
    name.windows(part.len()).enumerate().any(|(at, window)| {
        let before = at.checked_sub(1).and_then(|i| name.get(i));
        let after = name.get(at + part.len());
        window.eq_ignore_ascii_case(part)
            && !splits_number(before, first)
            && !splits_number(after, last)
    })
}

fn splits_number(outside: Option<&u8>, inside: &u8) -> bool {
    inside.is_ascii_digit() && outside.is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resolve(map: &Value, model: &str, provider: &str) -> Option<f64> {
        resolve_model_threshold(map.as_object().expect("a map"), model, provider)
    }

    // contract: CFG-2
    // case: 22
    #[test]
    fn longest_match_wins_every_time_and_nothing_sticks() {
        let map = json!({"glm-5": 0.7, "glm-5-1m": 0.25, "": 0.1, "GLM-5-1M-Turbo": 0.6, "bad": 1.7,
            "n": null, "t": true, "o": -0.5, "r": "0.5", "e": 0.0});
        let own = 0.5;
        let seen: Vec<f64> = [
            "z/glm-5-1m",
            "z/glm-5",
            "other",
            "z/glm-5-1m-turbo",
            "glm-51m",
            "other",
        ]
        .iter()
        .map(|model| resolve(&map, model, "zai").unwrap_or(own))
        .collect();
        assert_eq!(seen, [0.25, 0.7, 0.5, 0.6, 0.5, 0.5]);
    }

    // contract: CFG-2
    #[test]
    fn a_scoped_key_counts_for_its_provider_only_and_before_a_bare_one() {
        let map = json!({"claude": 0.4, "anthropic:claude": 0.8, "claude-sonnet": 0.9});
        assert_eq!(resolve(&map, "claude-opus", "Anthropic"), Some(0.8));
        assert_eq!(resolve(&map, "claude-opus", "openrouter"), Some(0.4));
        assert_eq!(resolve(&map, "claude-opus", ""), Some(0.4));
        assert_eq!(resolve(&map, "claude-sonnet", "anthropic"), Some(0.9));
    }

    #[test]
    fn a_colon_may_belong_to_the_model_or_to_the_provider() {
        let map = json!({"llama3:70b": 0.3, "custom:mine:llama3": 0.6, "anthropic:": 0.9});
        assert_eq!(resolve(&map, "llama3:70b", "ollama"), Some(0.3));
        assert_eq!(resolve(&map, "llama3:8b", "custom:mine"), Some(0.6));
        assert_eq!(resolve(&map, "llama3:8b", "custom"), None);
        assert_eq!(resolve(&map, "claude", "anthropic"), None);
    }

    #[test]
    fn a_number_is_never_split_on_either_side() {
        let map = json!({"5-mini": 0.2, "gpt-4": 0.3});
        assert_eq!(resolve(&map, "gpt-15-mini", ""), None);
        assert_eq!(resolve(&map, "gpt-5-mini", ""), Some(0.2));
        assert_eq!(resolve(&map, "gpt-41", ""), None);
        // A later place in the name may still fit.
        assert_eq!(resolve(&map, "gpt-41/gpt-4", ""), Some(0.3));
    }
}
