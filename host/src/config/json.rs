//! YAML values as JSON, the form in which engines get their settings.

use super::value::untag;
use serde_json::{Map, Value as Json};
use serde_yaml::Value;

/// The same value as JSON. Tags are dropped, keys become texts, and the numbers that JSON does not have (`.nan`,
/// `.inf`) become the texts that stand for them in YAML.
pub(crate) fn to_json(value: &Value) -> Json {
    match untag(value) {
        Value::Null | Value::Tagged(_) => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Number(number) => {
            if let Some(number) = number.as_u64() {
                Json::from(number)
            } else if let Some(number) = number.as_i64() {
                Json::from(number)
            } else {
                let float = number.as_f64().and_then(serde_json::Number::from_f64);
                float.map_or_else(|| Json::String(number.to_string()), Json::Number)
            }
        }
        Value::String(text) => Json::String(text.clone()),
        Value::Sequence(items) => Json::Array(items.iter().map(to_json).collect()),
        Value::Mapping(mapping) => {
            let mut object = Map::new();
            for (key, value) in mapping {
                object.insert(key_text(key), to_json(value));
            }
            Json::Object(object)
        }
    }
}

/// A mapping key as text.
pub(crate) fn key_text(key: &Value) -> String {
    match untag(key) {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        other => to_json(other).to_string(),
    }
}
