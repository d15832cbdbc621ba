//! The tools of the dialogue. Their outputs are real; edits go to the copy in memory.

use serde_json::Value;

use crate::tree::Tree;

/// A search shows so many lines.
const HITS: usize = 24;

pub(crate) struct Tools {
    pub(crate) tree: Tree,
}

impl Tools {
    pub(crate) fn new(tree: Tree) -> Self {
        Tools { tree }
    }

    pub(crate) fn run(&mut self, name: &str, arguments: &Value) -> String {
        let text = |key: &str| arguments[key].as_str().unwrap_or_default();
        match name {
            "list_files" => self.list(text("path")),
            "read_file" => {
                let number = |key: &str| {
                    arguments[key]
                        .as_u64()
                        .and_then(|n| usize::try_from(n).ok())
                        .unwrap_or(0)
                };
                self.read(text("path"), number("from"), number("lines"))
            }
            "search" => self.search(text("pattern"), text("path")),
            "edit_file" => self.edit(text("path"), text("old"), text("new")),
            "check" => self.check(text("path")),
            other => format!("error: there is no tool {other}"),
        }
    }

    fn list(&self, folder: &str) -> String {
        let lines: Vec<String> = self
            .tree
            .below(folder)
            .map(|(path, text)| {
                format!(
                    "{path}  {} lines, {} bytes",
                    text.lines().count(),
                    text.len()
                )
            })
            .collect();
        if lines.is_empty() {
            return format!("error: no such folder: {folder}");
        }
        lines.join("\n")
    }

    fn read(&self, path: &str, from: usize, lines: usize) -> String {
        let Some(text) = self.tree.get(path) else {
            return format!("error: no such file: {path}");
        };
        let from = from.max(1);
        let total = text.lines().count();
        let shown = text.lines().enumerate().skip(from - 1).take(lines.max(1));
        let body: Vec<String> = shown
            .map(|(at, line)| format!("{:>4} | {line}", at + 1))
            .collect();
        let last = (from - 1 + body.len()).min(total);
        format!(
            "{path} ({total} lines), lines {from} to {last}\n{}",
            body.join("\n")
        )
    }

    fn search(&self, pattern: &str, folder: &str) -> String {
        let hits: Vec<String> = self
            .tree
            .below(folder)
            .flat_map(|(path, text)| {
                let found = text
                    .lines()
                    .enumerate()
                    .filter(|(_, line)| line.contains(pattern));
                found.map(move |(at, line)| format!("{path}:{}: {}", at + 1, line.trim()))
            })
            .collect();
        let more = hits.len().saturating_sub(HITS);
        let mut shown = hits[..hits.len() - more].join("\n");
        if more > 0 {
            shown.push_str(&format!("\n... and {more} more"));
        }
        if hits.is_empty() {
            format!("no match for '{pattern}'")
        } else {
            shown
        }
    }

    fn edit(&mut self, path: &str, old: &str, new: &str) -> String {
        let Some(text) = self.tree.get(path) else {
            return format!("error: no such file: {path}");
        };
        match text.matches(old).count() {
            1 => {
                let line = text[..text.find(old).unwrap_or(0)].lines().count().max(1);
                let changed = text.replacen(old, new, 1);
                self.tree.set(path, changed);
                format!("replaced 1 occurrence in {path}, near line {line}")
            }
            count => format!(
                "error: the text to replace occurs {count} times in {path}; it must occur once"
            ),
        }
    }

    fn check(&self, path: &str) -> String {
        let Some(text) = self.tree.get(path) else {
            return format!("error: no such file: {path}");
        };
        let mut faults = Vec::new();
        let mut before = "";
        for (at, line) in text.lines().enumerate() {
            let item = line.trim_start();
            if line.chars().count() > 120 {
                faults.push(format!(
                    "{path}:{}: {} columns",
                    at + 1,
                    line.chars().count()
                ));
            }
            let documented =
                before.trim_start().starts_with("///") || before.trim_start().starts_with("#[");
            if item.starts_with("pub fn ") && !documented {
                faults.push(format!("{path}:{}: no documentation: {item}", at + 1));
            }
            before = line;
        }
        if faults.is_empty() {
            return format!("{path}: no faults in {} lines", text.lines().count());
        }
        format!("{} faults\n{}", faults.len(), faults.join("\n"))
    }
}
