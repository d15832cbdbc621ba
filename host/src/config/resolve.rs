//! From positions to values: aliases and merge keys put in, scalars given their types.

use super::document::{Document, Kind, MAX_DEPTH, NodeId, Style, SyntaxError};
use serde_yaml::value::{Tag, TaggedValue};
use serde_yaml::{Mapping, Value};

/// How much a file may grow by its aliases: nodes, plus one for each 64 bytes of text.
const MAX_GROWTH: usize = 500_000;

/// A key that stands twice in one mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Duplicate {
    /// The dotted key.
    pub(crate) key: String,
    /// Line of the earlier one, which is ignored.
    pub(crate) first_line: usize,
    /// Place of the later one, which counts.
    pub(crate) last: (usize, usize),
}

/// The value of one document: the last of two equal keys counts, a key of the mapping itself beats a merged one, and
/// of several merged mappings the first wins.
pub(crate) fn resolve(document: &Document, root: NodeId) -> Result<Value, SyntaxError> {
    let mut resolver = Resolver {
        document,
        cost: 0,
        inside: Vec::new(),
    };
    resolver.value(root)
}

struct Resolver<'a> {
    document: &'a Document,
    cost: usize,
    /// The collections we are in, to notice one that contains itself.
    inside: Vec<NodeId>,
}

impl Resolver<'_> {
    fn value(&mut self, id: NodeId) -> Result<Value, SyntaxError> {
        let id = self.document.target(id);
        let node = self.document.node(id);
        self.cost += 1;
        if let Kind::Scalar(text, _) = &node.kind {
            self.cost += text.len() / 64;
        }
        if self.cost > self.document.nodes().len() + MAX_GROWTH {
            return Err(self.error(id, "the aliases of this file make it too large".to_owned()));
        }
        let value = match &node.kind {
            Kind::Scalar(text, style) => return Ok(scalar(text, *style, node.tag.as_deref())),
            Kind::Alias(_) => Value::Null, // target() has followed it
            Kind::Seq(items, _) => {
                self.enter(id)?;
                let items = items
                    .iter()
                    .map(|item| self.value(*item))
                    .collect::<Result<_, _>>()?;
                self.inside.pop();
                Value::Sequence(items)
            }
            Kind::Map(entries, _) => {
                self.enter(id)?;
                let mapping = self.mapping(entries)?;
                self.inside.pop();
                Value::Mapping(mapping)
            }
        };
        Ok(with_tag(value, node.tag.as_deref()))
    }

    fn mapping(&mut self, entries: &[(NodeId, NodeId)]) -> Result<Mapping, SyntaxError> {
        let mut mapping = Mapping::new();
        let mut merged = Vec::new();
        for (key, value) in entries {
            if self.document.is_merge_key(*key) {
                match self.value(*value)? {
                    Value::Mapping(from) => merged.push(from),
                    Value::Sequence(list) => {
                        for item in list {
                            let Value::Mapping(from) = item else {
                                return Err(self.merge_error(*value));
                            };
                            merged.push(from);
                        }
                    }
                    _ => return Err(self.merge_error(*value)),
                }
            } else {
                let key = self.value(*key)?;
                let value = self.value(*value)?;
                mapping.insert(key, value);
            }
        }
        for (key, value) in merged.into_iter().flatten() {
            mapping.entry(key).or_insert(value);
        }
        Ok(mapping)
    }

    fn enter(&mut self, id: NodeId) -> Result<(), SyntaxError> {
        if self.inside.contains(&id) {
            return Err(self.error(id, "this part contains itself through an alias".to_owned()));
        }
        if self.inside.len() > MAX_DEPTH {
            return Err(self.error(id, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.inside.push(id);
        Ok(())
    }

    fn merge_error(&self, id: NodeId) -> SyntaxError {
        self.error(
            id,
            "a merge key (<<) takes a mapping or a list of mappings".to_owned(),
        )
    }

    fn error(&self, id: NodeId, message: String) -> SyntaxError {
        SyntaxError {
            place: Some(self.document.node(id).place),
            message,
        }
    }
}

/// The typed value of one scalar.
pub(crate) fn scalar(text: &str, style: Style, tag: Option<&str>) -> Value {
    match tag.and_then(|tag| tag.strip_prefix("tag:yaml.org,2002:")) {
        Some("str") => Value::String(text.to_owned()),
        Some("null") => Value::Null,
        Some(_) => plain(text),
        None => {
            let value = match style {
                Style::Plain if tag.is_none() => plain(text),
                _ => Value::String(text.to_owned()),
            };
            with_tag(value, tag)
        }
    }
}

/// A text without quotes. Which ones are numbers, booleans or null is `serde_yaml`'s decision, so that a value means
/// the same here and in every other place that reads YAML.
fn plain(text: &str) -> Value {
    let special = text.is_empty()
        || text.starts_with(|c: char| c.is_ascii_digit() || "+-.~nNtTfF".contains(c));
    let safe = text.len() <= 64
        && !text.contains(|c: char| c.is_whitespace() || ":#,[]{}&*!|>'\"%@`".contains(c))
        && !text.starts_with("---")
        && !text.starts_with("...")
        && text != "-";
    if special && safe {
        serde_yaml::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
    } else {
        Value::String(text.to_owned())
    }
}

/// A tag of the user's own stays with its value; `!` and the standard ones say nothing that we do not know.
fn with_tag(value: Value, tag: Option<&str>) -> Value {
    match tag {
        Some(tag) if tag.len() > 1 && !tag.starts_with("tag:yaml.org,2002:") => {
            Value::Tagged(Box::new(TaggedValue {
                tag: Tag::new(tag),
                value,
            }))
        }
        _ => value,
    }
}

/// All keys that stand twice, in file order.
pub(crate) fn duplicates(document: &Document) -> Vec<Duplicate> {
    let mut found = Vec::new();
    for part in document.parts() {
        walk(document, part.root, &mut Vec::new(), &mut found);
    }
    found
}

fn walk(document: &Document, id: NodeId, path: &mut Vec<String>, found: &mut Vec<Duplicate>) {
    match &document.node(id).kind {
        Kind::Scalar(..) | Kind::Alias(_) => {}
        Kind::Seq(items, _) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                walk(document, *item, path, found);
                path.pop();
            }
        }
        Kind::Map(entries, _) => {
            let mut seen: std::collections::HashMap<Value, usize> =
                std::collections::HashMap::new();
            for (key, value) in entries {
                let node = document.node(*key);
                if document.is_merge_key(*key) {
                    // Two merge keys are both followed, as in the original.
                    walk(document, *value, path, found);
                    continue;
                }
                let name = document.scalar(*key).unwrap_or("?");
                path.push(name.to_owned());
                let typed = resolve(document, *key).unwrap_or(Value::Null);
                if let Some(first_line) = seen.insert(typed, node.place.0) {
                    found.push(Duplicate {
                        key: path.join("."),
                        first_line,
                        last: node.place,
                    });
                }
                walk(document, *value, path, found);
                path.pop();
            }
        }
    }
}
