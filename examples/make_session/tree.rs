//! The repository's own source files, read once.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Folders that hold the sources the dialogue is about.
const FOLDERS: [&str; 4] = ["plugin-api", "plugins", "host/src", "tests/src"];

/// Texts by their path, with `/` between names, in order.
pub(crate) struct Tree(BTreeMap<String, String>);

impl Tree {
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        for folder in FOLDERS {
            walk(&root.join(folder), folder, &mut files)?;
        }
        Ok(Tree(files))
    }

    /// The Rust files worth a task: every fifth one, then the ones behind those, and so on, so that a dialogue of any
    /// length touches all parts.
    pub(crate) fn sources(&self) -> Vec<String> {
        let worth =
            |(path, text): &(&String, &String)| path.ends_with(".rs") && text.lines().count() > 40;
        let all: Vec<&String> = self.0.iter().filter(worth).map(|(path, _)| path).collect();
        (0..5)
            .flat_map(|start| all.iter().skip(start).step_by(5))
            .map(|path| (*path).clone())
            .collect()
    }

    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    pub(crate) fn set(&mut self, path: &str, text: String) {
        self.0.insert(path.to_owned(), text);
    }

    /// Files at or below a path.
    pub(crate) fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0
            .iter()
            .filter(move |(path, _)| {
                path.strip_prefix(folder).is_some_and(|rest| {
                    folder.is_empty() || rest.is_empty() || rest.starts_with('/')
                })
            })
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }
}

fn walk(folder: &Path, shown: &str, files: &mut BTreeMap<String, String>) -> io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let shown = format!("{shown}/{name}");
        let path = entry.path();
        if path.is_dir() {
            if name != "target" {
                walk(&path, &shown, files)?;
            }
        } else if [".rs", ".h", ".hpp", ".toml"]
            .iter()
            .any(|end| name.ends_with(end))
            && let Ok(text) = fs::read_to_string(&path)
        {
            files.insert(shown, text);
        }
    }
    Ok(())
}
