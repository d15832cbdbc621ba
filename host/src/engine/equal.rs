//! Whether two texts are the same JSON value: key order, blanks and spelling aside.

use serde_json::{Number, Value};

/// A hash that is the same for equal values; `None` when the text is no JSON.
pub(crate) fn hash(text: &str) -> Option<u64> {
    serde_json::from_str::<Value>(text).ok().map(|v| mix(&v))
}

/// Whether both texts are the same value.
pub(crate) fn same(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    match (
        serde_json::from_str::<Value>(a),
        serde_json::from_str::<Value>(b),
    ) {
        (Ok(a), Ok(b)) => equal(&a, &b),
        _ => false,
    }
}

fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => number(a) == number(b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// A number by its value, so that `1`, `1.0` and `1e0` are one. Integers beyond what a float can hold
/// stay exact.
#[derive(PartialEq)]
enum Exact {
    Integer(i128),
    Float(u64),
}

fn number(number: &Number) -> Exact {
    if let Some(integer) = number.as_i128() {
        return Exact::Integer(integer);
    }
    let float = number.as_f64().unwrap_or(f64::NAN);
    // In this range every whole float is an integer that `i128` holds exactly.
    if float.fract() == 0.0 && float.abs() < 1e30 {
        #[allow(clippy::cast_possible_truncation)]
        return Exact::Integer(float as i128);
    }
    Exact::Float(float.to_bits())
}

fn mix(value: &Value) -> u64 {
    match value {
        Value::Null => 1,
        Value::Bool(false) => 2,
        Value::Bool(true) => 3,
        Value::Number(n) => match number(n) {
            Exact::Integer(n) => part(4, &n.to_le_bytes()),
            Exact::Float(bits) => part(5, &bits.to_le_bytes()),
        },
        Value::String(text) => part(6, text.as_bytes()),
        Value::Array(items) => items
            .iter()
            .fold(7, |seed, item| part(seed, &mix(item).to_le_bytes())),
        // A sum, because the order of keys must not matter.
        Value::Object(members) => members.iter().fold(8, |sum: u64, (key, value)| {
            sum.wrapping_add(part(mix(value), key.as_bytes()))
        }),
    }
}

fn part(seed: u64, bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
}

#[cfg(test)]
mod tests {
    use super::{hash, same};

    #[test]
    fn spelling_and_order_do_not_matter_but_values_do() {
        // contract: HOOK-9
        let one = r#"{"role":"user","content":"é","n":1,"o":{"a":[1.5,null],"b":true}}"#;
        let two =
            r#"{ "o": {"b":true,"a":[1.50,null]}, "n": 1.0, "content": "\u00e9", "role": "user" }"#;
        assert!(same(one, two));
        assert_eq!(hash(one), hash(two));
        for other in [
            r#"{"role":"user","content":"e","n":1,"o":{"a":[1.5,null],"b":true}}"#,
            r#"{"role":"user","content":"é","n":2,"o":{"a":[1.5,null],"b":true}}"#,
            r#"{"role":"user","content":"é","n":1,"o":{"a":[null,1.5],"b":true}}"#,
            r#"{"role":"user","content":"é","n":1}"#,
        ] {
            assert!(!same(one, other), "{other}");
            assert_ne!(hash(one), hash(other), "{other}");
        }
        assert!(!same("9007199254740993", "9007199254740992"));
        assert_eq!(hash("not json"), None);
    }
}
