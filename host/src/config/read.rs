//! Reading one value at a time: what fits is taken, what does not is named and replaced by its default.

use super::places::Places;
use super::problem::{Problem, ProblemKind, Severity};
use super::value::{
    as_bool, as_number, as_whole, child, child_of, is_secret, scalar_text, show, untag,
};
use serde_yaml::{Mapping, Value};
use std::ops::RangeInclusive;
use std::path::Path;

#[cfg(test)]
thread_local! {
    /// Every key that this thread's readers were asked for.
    pub(super) static ASKED: std::cell::RefCell<std::collections::BTreeSet<String>> = const {
        std::cell::RefCell::new(std::collections::BTreeSet::new())
    };
}

/// The resolved tree together with the places of its values and the list of what was wrong.
pub(crate) struct Reader<'a> {
    root: Option<&'a Mapping>,
    places: &'a Places,
    path: &'a Path,
    problems: &'a mut Vec<Problem>,
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
        #[cfg(test)]
        ASKED.with_borrow_mut(|asked| asked.insert(key.join(".")));
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

fn whole_range(range: &RangeInclusive<u64>) -> String {
    if *range.end() > u64::from(u32::MAX) {
        format!("a whole number from {} on", range.start())
    } else {
        format!("a whole number from {} to {}", range.start(), range.end())
    }
}
