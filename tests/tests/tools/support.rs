//! A directory to work in, and calls as a model makes them.

use std::fs;
use std::path::{Path, PathBuf};

use hermes::agent::tools::{Place, Tool, built_in};
use hermes::provider::Cancel;
use serde_json::Value;
use tempfile::TempDir;

/// A working directory, with a folder around it that no tool may see.
pub(crate) struct Work {
    folder: TempDir,
    pub(crate) place: Place,
}

impl Work {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let real = folder.path().canonicalize().expect("a real path");
        fs::create_dir(real.join("work")).expect("a folder");
        fs::write(real.join("secret.txt"), "the secret outside\n").expect("a file");
        Self {
            folder,
            place: Place {
                directory: real.join("work"),
                kept_back: None,
                cancel: Cancel::new(),
            },
        }
    }

    /// A path in the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.directory.join(name)
    }

    /// The folder around it.
    pub(crate) fn outside(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, bytes).expect("a file");
    }

    #[cfg(unix)]
    pub(crate) fn link(&self, to: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(to, self.path(name)).expect("a link");
    }

    #[cfg(unix)]
    pub(crate) fn fifo(&self, name: &str) {
        let made = std::process::Command::new("mkfifo")
            .arg(self.path(name))
            .status()
            .expect("mkfifo runs");
        assert!(made.success());
    }

    pub(crate) fn read(&self, arguments: &Value) -> Value {
        self.call("read_file", &arguments.to_string())
    }

    pub(crate) fn search(&self, arguments: &Value) -> Value {
        self.call("search_files", &arguments.to_string())
    }

    /// Calls a tool by the name in its schema.
    pub(crate) fn call(&self, tool: &str, arguments: &str) -> Value {
        let tools = built_in();
        let found = tools.iter().find(|each| name(each.as_ref()) == tool);
        let text = found.expect("the tool").call(arguments, &self.place);
        let value: Value = serde_json::from_str(&text).expect("a result is JSON");
        assert!(value.is_object(), "{value}");
        value
    }
}

pub(crate) fn name(tool: &dyn Tool) -> String {
    let schema: Value = serde_json::from_str(tool.schema()).expect("a schema is JSON");
    schema["name"].as_str().expect("a name").to_owned()
}

/// The sentence of a call that failed.
pub(crate) fn error(value: &Value) -> &str {
    value["error"]
        .as_str()
        .unwrap_or_else(|| panic!("no error: {value}"))
}

/// The paths of a search's matches, in order.
pub(crate) fn paths(value: &Value) -> Vec<String> {
    let matches = value["matches"]
        .as_array()
        .unwrap_or_else(|| panic!("no matches: {value}"));
    matches
        .iter()
        .map(|each| {
            each["path"]
                .as_str()
                .or(each.as_str())
                .expect("a path")
                .to_owned()
        })
        .collect()
}
