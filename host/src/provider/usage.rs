//! What a request used, from whatever shape a provider says it in.
//!
//! The five buckets are the prompt's tokens that were computed (`input`), read from a cache, and written to one, the
//! answer's (`output`), and those of it that were thought (`reasoning`). The first three add up to `prompt_tokens`.

use serde_json::{Map, Value};

use crate::engine::Usage;

/// Reads a usage object. `None` if it names no number of tokens.
///
/// Knows the names of OpenAI (both APIs), Anthropic, DeepSeek, OpenRouter and llama.cpp. A number that is negative, no
/// number or beyond all reason counts as not said.
pub(super) fn canonical(said: &Map<String, Value>) -> Option<Usage> {
    let at = |path: &[&str]| find(said, path);
    let any = |paths: &[&[&str]]| paths.iter().find_map(|path| at(path));

    let read = any(&[
        &["prompt_tokens_details", "cached_tokens"],
        &["input_tokens_details", "cached_tokens"],
        &["cache_read_input_tokens"],
        &["prompt_cache_hit_tokens"],
        &["cached_tokens"],
        &["cache_read_tokens"],
    ]);
    let write = any(&[
        &["cache_creation_input_tokens"],
        &["prompt_tokens_details", "cache_write_tokens"],
        &["prompt_tokens_details", "cache_creation_tokens"],
        &["input_tokens_details", "cache_write_tokens"],
        &["cache_write_tokens"],
    ]);
    let reasoning = any(&[
        &["completion_tokens_details", "reasoning_tokens"],
        &["output_tokens_details", "reasoning_tokens"],
        &["reasoning_tokens"],
    ]);
    let cached = read.unwrap_or(0).saturating_add(write.unwrap_or(0));

    let mut prompt = at(&["prompt_tokens"]);
    if prompt.is_none() {
        // Anthropic's own API counts the cached part beside `input_tokens`, OpenAI's inside.
        let beside = said.contains_key("cache_read_input_tokens")
            || said.contains_key("cache_creation_input_tokens");
        prompt = at(&["input_tokens"]).map(|n| if beside { n.saturating_add(cached) } else { n });
    } else if prompt.is_some_and(|n| n < cached) {
        prompt = prompt.map(|n| n.saturating_add(cached));
    }
    let completion = any(&[&["completion_tokens"], &["output_tokens"]]);
    let mut total = at(&["total_tokens"]);
    let sum = prompt.zip(completion).map(|(a, b)| a.saturating_add(b));
    if total.is_none() {
        total = sum;
    }
    // One of the three can be had from the other two.
    let prompt = prompt.or_else(|| Some(total?.checked_sub(completion?)?).filter(|n| *n >= 0));
    let completion = completion.or_else(|| Some(total?.checked_sub(prompt?)?).filter(|n| *n >= 0));
    if prompt.is_none() && completion.is_none() && total.is_none() {
        return None;
    }

    let mut usage = Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: total,
        input_tokens: prompt.map(|n| n.saturating_sub(cached).max(0)),
        output_tokens: completion,
        cache_read_tokens: read,
        cache_write_tokens: write,
        reasoning_tokens: reasoning,
        json: String::new(),
    };
    usage.json = with_canonical_keys(said, &usage);
    Some(usage)
}

/// The object as the provider sent it, and the canonical keys that it lacks.
fn with_canonical_keys(said: &Map<String, Value>, usage: &Usage) -> String {
    let mut object = said.clone();
    for (key, tokens) in usage.buckets() {
        if let Some(tokens) = tokens {
            object
                .entry(key)
                .and_modify(|value| {
                    if tokens_of(value).is_none() {
                        *value = tokens.into();
                    }
                })
                .or_insert_with(|| tokens.into());
        }
    }
    Value::Object(object).to_string()
}

fn find(object: &Map<String, Value>, path: &[&str]) -> Option<i64> {
    let (first, rest) = path.split_first()?;
    let mut value = object.get(*first)?;
    for key in rest {
        value = value.get(key)?;
    }
    tokens_of(value)
}

/// More tokens than any request has; a number above is a fault of the provider's.
const MOST: i64 = 1 << 40;

fn tokens_of(value: &Value) -> Option<i64> {
    let number = match value {
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole,
            None => whole_of(number.as_f64()?)?,
        },
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (0..=MOST).contains(&number).then_some(number)
}

fn whole_of(number: f64) -> Option<i64> {
    // Through text: the one conversion that cannot lose anything unseen.
    (number.is_finite() && number.abs() < 1e15)
        .then(|| format!("{:.0}", number.trunc()).parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: Value) -> Option<Usage> {
        canonical(value.as_object().expect("an object"))
    }

    type Buckets = [Option<i64>; 8];

    fn buckets(value: Value) -> Buckets {
        let u = of(value).expect("usage");
        [
            u.prompt_tokens,
            u.completion_tokens,
            u.total_tokens,
            u.input_tokens,
            u.output_tokens,
            u.cache_read_tokens,
            u.cache_write_tokens,
            u.reasoning_tokens,
        ]
    }

    #[test]
    fn every_provider_s_names_end_in_the_same_buckets() {
        let openai = json!({"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,
            "prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":5}});
        let s = Some;
        assert_eq!(
            buckets(openai),
            [s(100), s(20), s(120), s(40), s(20), s(60), None, s(5)]
        );
        let responses = json!({"input_tokens":100,"output_tokens":20,"total_tokens":120,
            "input_tokens_details":{"cached_tokens":60},"output_tokens_details":{"reasoning_tokens":5}});
        assert_eq!(
            buckets(responses),
            [s(100), s(20), s(120), s(40), s(20), s(60), None, s(5)]
        );
        let anthropic = json!({"input_tokens":10,"output_tokens":20,
            "cache_read_input_tokens":60,"cache_creation_input_tokens":30});
        assert_eq!(
            buckets(anthropic),
            [s(100), s(20), s(120), s(10), s(20), s(60), s(30), None]
        );
        let deepseek = json!({"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,
            "prompt_cache_hit_tokens":60,"prompt_cache_miss_tokens":40});
        assert_eq!(
            buckets(deepseek),
            [s(100), s(20), s(120), s(40), s(20), s(60), None, None]
        );
        let only_total = json!({"total_tokens":7,"prompt_tokens":5});
        assert_eq!(
            buckets(only_total),
            [s(5), s(2), s(7), s(5), s(2), None, None, None]
        );
    }

    #[test]
    fn odd_numbers_count_as_not_said() {
        assert_eq!(of(json!({})), None);
        assert_eq!(
            of(json!({"prompt_tokens":-1,"completion_tokens":null})),
            None
        );
        assert_eq!(
            of(json!({"prompt_tokens":u64::MAX,"total_tokens":[]})),
            None
        );
        let text = of(json!({"prompt_tokens":"12","completion_tokens":3.9,"total_tokens":1e300}))
            .expect("usage");
        assert_eq!(text.prompt_tokens, Some(12));
        assert_eq!(text.completion_tokens, Some(3));
        assert_eq!(text.total_tokens, Some(15));
        assert!(of(json!({"prompt_tokens":i64::MAX})).is_none());
    }

    #[test]
    fn the_object_stays_as_it_came_and_gains_the_canonical_keys() {
        let usage =
            of(json!({"prompt_tokens":5,"completion_tokens":1,"cost":0.25})).expect("usage");
        assert_eq!(
            usage.json,
            r#"{"prompt_tokens":5,"completion_tokens":1,"cost":0.25,"total_tokens":6,"input_tokens":5,"output_tokens":1}"#
        );
    }
}
