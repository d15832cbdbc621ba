//! Reading one value at a time: what fits is taken, what does not is named and replaced by its default.

use super::document::{Document, Kind, NodeId};
use super::problem::{Problem, ProblemKind, Severity};
use serde_yaml::{Mapping, Value};
use std::ops::RangeInclusive;
use std::path::Path;

/// The resolved tree together with the places of its values and the list of what was wrong.
pub(crate) struct Reader<'a> {
    root: Option<&'a Mapping>,
    places: &'a Places,
    path: &'a Path,
    problems: &'a mut Vec<Problem>,
}

/// Finds the line of a key; empty for a file that could not be parsed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    document: Document,
}

impl Places {
    pub(crate) fn new(document: Document) -> Self {
        Self { document }
    }

    /// Where the value of a dotted key stands, or the nearest part of it that is there.
    pub(crate) fn of(&self, key: &[&str]) -> Option<(usize, usize)> {
        let mut id = self.document.parts().first()?.root;
        let mut place = None;
        for name in key {
            let Some((found_key, value)) = self.entry(id, name) else {
                break;
            };
            let node = self.document.node(value);
            // An empty value has no place of its own.
            place = Some(if node.span.is_empty() {
                self.document.node(found_key).place
            } else {
                node.place
            });
            id = value;
        }
        place
    }

    /// Where the key itself stands.
    pub(crate) fn of_key(&self, key: &[&str]) -> Option<(usize, usize)> {
        let (last, before) = key.split_last()?;
        let mut id = self.document.parts().first()?.root;
        for name in before {
            id = self.entry(id, name)?.1;
        }
        Some(self.document.node(self.entry(id, last)?.0).place)
    }

    /// The scalar of a key as it was written.
    pub(crate) fn text_of(&self, key: &[&str]) -> Option<&str> {
        let mut id = self.document.parts().first()?.root;
        for name in key {
            id = self.entry(id, name)?.1;
        }
        self.document.scalar(id)
    }

    fn entry(&self, id: NodeId, name: &str) -> Option<(NodeId, NodeId)> {
        entry(&self.document, id, name, 0)
    }
}

/// The last entry of this name in a mapping, else one from its merged mappings; list items go by number.
pub(crate) fn entry(
    document: &Document,
    id: NodeId,
    name: &str,
    depth: usize,
) -> Option<(NodeId, NodeId)> {
    if depth > super::document::MAX_DEPTH {
        return None;
    }
    let target = document.target(id);
    match &document.node(target).kind {
        Kind::Map(entries, _) => {
            let own = entries.iter().rev().find(|(key, _)| {
                !document.is_merge_key(*key) && document.scalar(*key) == Some(name)
            });
            if let Some(found) = own {
                return Some(*found);
            }
            let merged = entries
                .iter()
                .filter(|(key, _)| document.is_merge_key(*key));
            for (_, value) in merged {
                let value = document.target(*value);
                let sources = match &document.node(value).kind {
                    Kind::Seq(items, _) => items.clone(),
                    _ => vec![value],
                };
                for source in sources {
                    if let Some(found) = entry(document, source, name, depth + 1) {
                        return Some(found);
                    }
                }
            }
            None
        }
        Kind::Seq(items, _) => {
            let item = *items.get(name.parse::<usize>().ok()?)?;
            Some((item, item))
        }
        _ => None,
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(
        root: Option<&'a Mapping>,
        places: &'a Places,
        path: &'a Path,
        problems: &'a mut Vec<Problem>,
    ) -> Self {
        Self {
            root,
            places,
            path,
            problems,
        }
    }

    /// A value by its path; null counts as absent, as in the original.
    pub(crate) fn value(&self, key: &[&str]) -> Option<&'a Value> {
        let (first, rest) = key.split_first()?;
        let mut value = child_of(self.root?, first)?;
        for name in rest {
            value = child(value, name)?;
        }
        match untag(value) {
            Value::Null => None,
            value => Some(value),
        }
    }

    /// Takes note of a fault of a key.
    pub(crate) fn report(
        &mut self,
        kind: ProblemKind,
        severity: Severity,
        key: &[&str],
        message: String,
        hint: String,
    ) {
        let problem = Problem::new(kind, severity, self.path, message)
            .at(self.places.of(key))
            .key(key.join("."))
            .hint(hint);
        self.problems.push(problem);
    }

    fn refuse(&mut self, key: &[&str], value: &Value, expected: &str, used: &str) {
        let shown = if is_secret(key.last().copied().unwrap_or_default()) {
            "a value".to_owned()
        } else {
            show(value)
        };
        let message = format!(
            "{} is {shown}, expected {expected}; {used} is used",
            key.join(".")
        );
        let hint = "correct the value or remove the line".to_owned();
        self.report(ProblemKind::Value, Severity::Warning, key, message, hint);
    }

    /// A mapping; one that is absent or null is empty, another shape is named.
    pub(crate) fn section(&mut self, key: &[&str]) -> Mapping {
        match self.value(key) {
            None => Mapping::new(),
            Some(Value::Mapping(mapping)) => mapping.clone(),
            Some(other) => {
                let name = key.join(".");
                let message = format!(
                    "{name} is {}, expected a mapping (`{}:` with indented keys below); its defaults are used",
                    show(other),
                    key.last().copied().unwrap_or_default()
                );
                let hint = format!("write `{name}:` alone on its line and its keys indented below");
                self.report(ProblemKind::Shape, Severity::Warning, key, message, hint);
                Mapping::new()
            }
        }
    }

    /// The paths of the mappings in a list; a single mapping counts as a list of one.
    pub(crate) fn items(&mut self, key: &[&str]) -> Vec<Vec<String>> {
        let own: Vec<String> = key.iter().map(|name| (*name).to_owned()).collect();
        match self.value(key) {
            None => Vec::new(),
            Some(Value::Mapping(_)) => vec![own],
            Some(Value::Sequence(items)) => {
                let mut paths = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    let index = index.to_string();
                    if untag(item).is_mapping() {
                        let mut path = own.clone();
                        path.push(index);
                        paths.push(path);
                    } else {
                        let mut path = key.to_vec();
                        path.push(&index);
                        self.refuse(&path, item, "a mapping", "the rest of the list");
                    }
                }
                paths
            }
            Some(other) => {
                self.refuse(key, other, "a list of mappings", "an empty list");
                Vec::new()
            }
        }
    }

    /// A boolean; `yes`, `no`, `on` and `off` are ones.
    pub(crate) fn bool(&mut self, key: &[&str], default: bool) -> bool {
        let Some(value) = self.value(key) else {
            return default;
        };
        as_bool(value).unwrap_or_else(|| {
            self.refuse(key, value, "true or false", &default.to_string());
            default
        })
    }

    /// A number of a range. `expected` says the range in words.
    pub(crate) fn number(
        &mut self,
        key: &[&str],
        default: f64,
        expected: &str,
        fits: impl Fn(f64) -> bool,
    ) -> f64 {
        let Some(value) = self.value(key) else {
            return default;
        };
        match as_number(value) {
            Some(number) if fits(number) => number,
            _ => {
                self.refuse(key, value, expected, &default.to_string());
                default
            }
        }
    }

    /// A number that is brought into its range instead of being refused.
    pub(crate) fn clamped(
        &mut self,
        key: &[&str],
        default: f64,
        range: RangeInclusive<f64>,
    ) -> f64 {
        let Some(value) = self.value(key) else {
            return default;
        };
        let expected = format!("a number from {} to {}", range.start(), range.end());
        match as_number(value) {
            Some(number) if range.contains(&number) => number,
            Some(number) => {
                let used = number.clamp(*range.start(), *range.end());
                self.refuse(key, value, &expected, &used.to_string());
                used
            }
            None => {
                self.refuse(key, value, &expected, &default.to_string());
                default
            }
        }
    }

    /// A whole number of a range.
    pub(crate) fn whole(&mut self, key: &[&str], default: u64, range: RangeInclusive<u64>) -> u64 {
        let Some(value) = self.value(key) else {
            return default;
        };
        match as_whole(value).filter(|number| range.contains(number)) {
            Some(number) => number,
            None => {
                let expected = whole_range(&range);
                self.refuse(key, value, &expected, &default.to_string());
                default
            }
        }
    }

    /// A whole number that may be missing.
    pub(crate) fn optional_whole(
        &mut self,
        key: &[&str],
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let value = self.value(key)?;
        let number = as_whole(value).filter(|number| range.contains(number));
        if number.is_none() {
            let expected = whole_range(&range);
            self.refuse(key, value, &expected, "no value");
        }
        number
    }

    /// A text; numbers and booleans count as the text they were written as, an empty one as absent.
    pub(crate) fn text(&mut self, key: &[&str]) -> Option<String> {
        let value = self.value(key)?;
        match scalar_text(value, || self.places.text_of(key).map(str::to_owned)) {
            Some(text) if text.is_empty() => None,
            Some(text) => Some(text),
            None => {
                self.refuse(key, value, "a text", "no value");
                None
            }
        }
    }

    /// A list of texts; a single text counts as a list of one.
    pub(crate) fn texts(&mut self, key: &[&str]) -> Vec<String> {
        match self.value(key) {
            None => Vec::new(),
            Some(Value::Sequence(items)) => {
                let mut texts = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    match scalar_text(item, || None) {
                        Some(text) => texts.push(text),
                        None => {
                            let index = index.to_string();
                            let mut key = key.to_vec();
                            key.push(&index);
                            self.refuse(&key, item, "a text", "the rest of the list");
                        }
                    }
                }
                texts
            }
            Some(value) => match scalar_text(value, || None) {
                Some(text) if text.is_empty() => Vec::new(),
                Some(text) => vec![text],
                None => {
                    self.refuse(key, value, "a list of texts", "an empty list");
                    Vec::new()
                }
            },
        }
    }
}

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
            .find(|(key, _)| super::json::key_text(key) == name)
            .map(|(_, value)| value)
    })
}

fn whole_range(range: &RangeInclusive<u64>) -> String {
    if *range.end() > u64::from(u32::MAX) {
        format!("a whole number from {} on", range.start())
    } else {
        format!("a whole number from {} to {}", range.start(), range.end())
    }
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
