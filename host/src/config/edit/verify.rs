//! The proof that a planned change does what was asked for, and only that.

use super::plan::Planned;
use super::{Parsed, Refusal};
use crate::config::json::key_text;
use crate::config::key::KeyPath;
use crate::config::value::untag;
use serde_yaml::{Mapping, Value};
use std::path::Path;

/// Parses the new text and compares: every document must be what it was, but for the one value.
pub(super) fn check(
    old: &Parsed,
    new_body: &str,
    planned: &Planned,
    key: &KeyPath,
) -> Result<(), Refusal> {
    let refuse = |reason: String| Refusal {
        line: planned.line,
        reason,
        by_hand: planned.by_hand.clone(),
    };
    let new = Parsed::new(new_body, Path::new("")).map_err(|_| {
        refuse(format!(
            "{key} cannot be written here without breaking the file"
        ))
    })?;
    let mut expected = old.roots.clone();
    if expected.is_empty() {
        expected.push(Value::Null);
    }
    if !put(&mut expected[0], key.names(), &planned.plan.wanted) {
        return Err(refuse(format!(
            "{key} leads through a value that is no mapping"
        )));
    }
    if expected.len() != new.roots.len() {
        return Err(refuse(format!(
            "{key} cannot be written here without moving a document's end"
        )));
    }
    for (expected, found) in expected.iter().zip(&new.roots) {
        if let Some(other) = difference(expected, found) {
            let reason = if other.is_empty() || other == key.names().join(".") {
                format!("{key} cannot be written here so that it is read back as asked")
            } else {
                format!("changing {key} here would change {other} as well")
            };
            return Err(refuse(reason));
        }
    }
    Ok(())
}

/// Sets a value in a tree, as the edit should.
fn put(tree: &mut Value, names: &[String], wanted: &Value) -> bool {
    let Some((name, rest)) = names.split_first() else {
        // A tag in the file stays with the value.
        match tree {
            Value::Tagged(tagged) => tagged.value = wanted.clone(),
            _ => *tree = wanted.clone(),
        }
        return true;
    };
    match tree {
        Value::Tagged(tagged) => put(&mut tagged.value, names, wanted),
        Value::Null => {
            *tree = Value::Mapping(Mapping::new());
            put(tree, names, wanted)
        }
        Value::Mapping(mapping) => {
            let existing = mapping.keys().find(|key| key_text(key) == *name).cloned();
            let key = existing.unwrap_or_else(|| Value::String(name.clone()));
            put(mapping.entry(key).or_insert(Value::Null), rest, wanted)
        }
        Value::Sequence(items) => {
            let item = name
                .parse()
                .ok()
                .and_then(|index: usize| items.get_mut(index));
            item.is_some_and(|item| put(item, rest, wanted))
        }
        _ => false,
    }
}

/// The dotted key of the first value in which two trees differ; none if they are equal.
fn difference(a: &Value, b: &Value) -> Option<String> {
    if a == b {
        return None;
    }
    let inner = match (untag(a), untag(b)) {
        (Value::Mapping(a), Value::Mapping(b)) => {
            let mut keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            keys.find_map(|key| match (a.get(key), b.get(key)) {
                (Some(a), Some(b)) => difference(a, b).map(|rest| join(key_text(key), rest)),
                _ => Some(key_text(key)),
            })
        }
        (Value::Sequence(a), Value::Sequence(b)) if a.len() == b.len() => {
            let mut pairs = a.iter().zip(b).enumerate();
            pairs.find_map(|(index, (a, b))| {
                difference(a, b).map(|rest| join(index.to_string(), rest))
            })
        }
        _ => None,
    };
    Some(inner.unwrap_or_default())
}

fn join(name: String, rest: String) -> String {
    if rest.is_empty() {
        name
    } else {
        format!("{name}.{rest}")
    }
}
