//! The `library` key: a plain file name, or one for each platform.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Which file of the directory is the library.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    expecting = "`library` must be a file name, or a file name for each platform"
)]
pub enum LibraryKey {
    /// The same name everywhere.
    Name(String),
    /// A name by platform: `linux-x86_64`, else `linux`; `_` and `amd64`/`arm64` are understood too.
    ByPlatform(BTreeMap<String, String>),
}

impl LibraryKey {
    /// The file name for the platform that this host runs on.
    #[must_use]
    pub fn for_this_platform(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::ByPlatform(table) => {
                let find = |wanted: &str| {
                    table
                        .iter()
                        .find(|(key, _)| normal(key) == wanted)
                        .map(|(_, name)| name.as_str())
                };
                find(&normal(&this_platform())).or_else(|| find(std::env::consts::OS))
            }
        }
    }

    /// Every name must be a plain file name; the first that is not is returned with its problem.
    pub(super) fn check(&self) -> Result<(), (String, &'static str)> {
        let one = |name: &String| match crate::plugin::name::check(name) {
            Ok(()) => Ok(()),
            Err(problem) => Err((name.escape_debug().to_string(), problem)),
        };
        match self {
            Self::Name(name) => one(name),
            Self::ByPlatform(table) => table.values().try_for_each(one),
        }
    }
}

/// This platform's key in a table.
fn this_platform() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

/// One spelling for the ways in which platforms are written.
fn normal(key: &str) -> String {
    key.to_ascii_lowercase()
        .replace("amd64", "x86_64")
        .replace("x86-64", "x86_64")
        .replace("arm64", "aarch64")
        .replace("darwin", "macos")
        .replace("linux_", "linux-")
        .replace("macos_", "macos-")
        .replace("windows_", "windows-")
}
