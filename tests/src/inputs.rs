//! Recordings of real conversations and settings. They belong to others, and lie beside the workspace instead of in it.

use std::path::PathBuf;

/// All recorded conversations, by name. Where the folder is missing there are none, and the reason is printed.
#[must_use]
pub fn inputs() -> Vec<PathBuf> {
    let folder = folder();
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: {} is not there", folder.display());
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "json" || end == "jsonl")
        })
        .collect();
    files.sort();
    files
}

/// What one recorded file holds, if it is there; else the reason is printed.
#[must_use]
pub fn input(name: &str) -> Option<Vec<u8>> {
    let path = folder().join(name);
    let bytes = std::fs::read(&path);
    if let Err(error) = &bytes {
        println!("skipped: {}: {error}", path.display());
    }
    bytes.ok()
}

fn folder() -> PathBuf {
    crate::workspace().join("../shared/inputs")
}
