//! Recorded conversations from other projects, kept outside the repository.

use std::path::PathBuf;

/// Names and bytes of the recorded files; empty, with a printed reason, where they are missing.
pub(crate) fn recorded() -> Vec<(String, Vec<u8>)> {
    let folder: PathBuf = [
        env!("CARGO_MANIFEST_DIR"),
        "..",
        "..",
        "..",
        "shared",
        "inputs",
    ]
    .iter()
    .collect();
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: no recorded conversations at {}", folder.display());
        return Vec::new();
    };
    let mut files: Vec<_> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.ends_with(".jsonl") || name.ends_with(".json")
        })
        .map(|entry| {
            let bytes = std::fs::read(entry.path()).expect("a listed file can be read");
            (entry.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect();
    files.sort();
    files
}
/// The bytes of the file whose name begins with `prefix`.
pub(crate) fn named(prefix: &str) -> Option<Vec<u8>> {
    recorded()
        .into_iter()
        .find(|(name, _)| name.starts_with(prefix))
        .map(|(_, bytes)| bytes)
}
