//! Where in the file a key stands.

use super::document::{Document, Kind, MAX_DEPTH, NodeId};

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
fn entry(document: &Document, id: NodeId, name: &str, depth: usize) -> Option<(NodeId, NodeId)> {
    if depth > MAX_DEPTH {
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
