//! Why a file is not a library that this host can load.

use hermes_engine_abi as abi;

use super::NewerC;

/// What inspection found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The file cannot be read.
    #[error("the library cannot be read: {reason}")]
    Unreadable {
        /// The system's reason.
        reason: String,
    },
    /// It is something else.
    #[error("it is {what}, not a shared library")]
    NotALibrary {
        /// What it is.
        what: &'static str,
    },
    /// A library for another system.
    #[error("it is {found}, this host runs on {}", std::env::consts::OS)]
    OtherSystem {
        /// What it is.
        found: &'static str,
    },
    /// A library for another processor.
    #[error("it is built for {found}, this machine is {}", std::env::consts::ARCH)]
    OtherMachine {
        /// The processor that it is for.
        found: String,
    },
    /// The file ends before its own tables say.
    #[error("the file is cut off or damaged: {detail}")]
    Damaged {
        /// Which part is missing.
        detail: String,
    },
    /// It exports no entry.
    #[error(
        "it has no hermes engine entry point (`{}` or `{}`){}",
        abi::ENTRY_SYMBOL,
        abi::REGISTER_SYMBOL,
        match other {
            Some(version) => format!("; it is built for engine ABI {version}, this host ({}) speaks ABI {}.{}", env!("CARGO_PKG_VERSION"), abi::ABI_MAJOR, abi::ABI_MINOR),
            None => String::new(),
        }
    )]
    NoEntry {
        /// The major version of an entry that it does export.
        other: Option<String>,
    },
    /// The entry is a variable.
    #[error("it exports `{symbol}` as data; a hermes engine entry point is a function")]
    EntryIsData {
        /// The symbol.
        symbol: &'static str,
    },
    /// The name that it carries as data is none.
    #[error(
        "the engine name it carries (`{}`: \"{name}\") {problem}",
        abi::NAME_SYMBOL
    )]
    BadEngineName {
        /// The name, escaped.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// It needs a newer C library.
    #[error("it needs version {} of the C library, this machine has {}", .0.needs, .0.have)]
    NewerC(NewerC),
    /// The directory holds no library.
    #[error("there is no {} library in the folder{hint}", library_ending())]
    NoLibrary {
        /// What was looked for, as the end of the sentence.
        hint: String,
    },
    /// Several files could be the library.
    #[error("several libraries in the folder have an engine entry point: {}", .files.join(", "))]
    Ambiguous {
        /// Their names.
        files: Vec<String>,
    },
}

/// How the platform's libraries end.
pub(crate) fn library_ending() -> &'static str {
    std::env::consts::DLL_SUFFIX
}

impl InspectError {
    pub(crate) fn unreadable(error: &std::io::Error) -> Self {
        let reason = if error.kind() == std::io::ErrorKind::NotFound {
            "there is no such file".to_owned()
        } else {
            error.to_string()
        };
        Self::Unreadable { reason }
    }

    pub(super) fn damaged(detail: impl Into<String>) -> Self {
        Self::Damaged {
            detail: detail.into(),
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Unreadable { .. } => "make the file readable, or install the plugin again".into(),
            Self::NotALibrary { .. } | Self::Damaged { .. } => {
                "install the plugin again, or build it".into()
            }
            Self::OtherSystem { .. } | Self::OtherMachine { .. } => format!(
                "install a build for {}-{}",
                std::env::consts::OS,
                std::env::consts::ARCH
            ),
            Self::NoEntry { other: Some(_) } => {
                "update this host, or install a build of the engine for this host's ABI".into()
            }
            Self::NoEntry { other: None } => {
                "it is no plugin of this host; if you are its author, export the entry (Rust: `export_engine!`, C: hermes_engine.h)".into()
            }
            Self::EntryIsData { .. } | Self::BadEngineName { .. } => {
                "this is a fault of the engine: report it to its author".into()
            }
            Self::NewerC(_) => {
                "it was built on a newer system: build it here, or install a build for older systems".into()
            }
            Self::NoLibrary { .. } => format!(
                "build the plugin and put its {} file beside plugin.yaml; if it is there under another name, write `library: FILE` in plugin.yaml",
                library_ending()
            ),
            Self::Ambiguous { .. } => "write `library: FILE` in plugin.yaml".into(),
        }
    }

    /// Whether it is merely not for this host, and not broken.
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        !matches!(
            self,
            Self::Unreadable { .. }
                | Self::Damaged { .. }
                | Self::BadEngineName { .. }
                | Self::NoLibrary { .. }
                | Self::Ambiguous { .. }
        )
    }
}
