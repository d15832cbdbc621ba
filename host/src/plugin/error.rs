//! What can be wrong with a module that a library hands over.

use hermes_engine_abi as abi;

/// A slot that every engine must fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequiredSlot {
    /// Its name in the header.
    pub name: &'static str,
    /// The table ends before it (else it is there and `NULL`).
    pub beyond_table: bool,
}

/// Why a module is refused. Each of them is the engine's fault: the host has read what the engine wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// The entry returned no module.
    #[error("its entry `{}` returned NULL instead of a module", abi::ENTRY_SYMBOL)]
    Null,
    /// A table does not lie where a table of its type can lie.
    #[error("its {table} lies at an address that is not a multiple of 8")]
    Misaligned {
        /// Which table.
        table: &'static str,
    },
    /// A table says that it is too short to hold what major 1 has always had.
    #[error(
        "its {table} is {have} bytes long (`struct_size`); ABI {}.{} needs at least {need}",
        abi::ABI_MAJOR,
        abi::ABI_MINOR
    )]
    Short {
        /// Which table.
        table: &'static str,
        /// Its `struct_size`.
        have: u32,
        /// The least that it must be.
        need: usize,
    },
    /// Another major version of the border.
    #[error(
        "it is built for engine ABI {}.{}, this host ({}) speaks ABI {}.{}",
        .theirs.0, .theirs.1, env!("CARGO_PKG_VERSION"), abi::ABI_MAJOR, abi::ABI_MINOR
    )]
    WrongMajor {
        /// What the module says.
        theirs: (u16, u16),
    },
    /// The engine wants a newer minor version than this host has.
    #[error(
        "it needs a host with engine ABI {}.{min_host_minor} or newer, this host ({}) speaks ABI {}.{}",
        abi::ABI_MAJOR, env!("CARGO_PKG_VERSION"), abi::ABI_MAJOR, abi::ABI_MINOR
    )]
    HostTooOld {
        /// `min_host_minor` of the module.
        min_host_minor: u32,
    },
    /// There is no table of slots.
    #[error("its module has no engine table (`engine` is NULL)")]
    NoTable,
    /// A required slot is missing.
    #[error(
        "it lacks the required slot `{}` ({})",
        .0.name,
        if .0.beyond_table { "its table ends before it" } else { "it is NULL" }
    )]
    MissingSlot(RequiredSlot),
    /// A text of the module cannot be read.
    #[error("the {field} in its module {problem}")]
    BadText {
        /// Which text.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The name cannot be the value of `context.engine`.
    #[error("its engine name {name:?} {problem}")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The module has another name than the file and the manifest promise.
    #[error("the loaded engine calls itself {found:?}, but {promised_by} says {promised:?}")]
    NameMismatch {
        /// What the running library says.
        found: String,
        /// What was promised.
        promised: String,
        /// Who has promised it.
        promised_by: &'static str,
    },
    /// A Rust library was built against a changed copy of the border.
    #[error("it was built against a changed copy of the engine ABI: {first}")]
    Layout {
        /// The first difference, in one line.
        first: String,
    },
}

impl ModuleError {
    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::WrongMajor { theirs } if theirs.0 > abi::ABI_MAJOR => {
                "update this host, or install a build of the engine for this host's ABI".to_owned()
            }
            Self::WrongMajor { .. } => {
                "install a newer build of the engine, or ask its author for one".to_owned()
            }
            Self::HostTooOld { .. } => {
                "update this host, or install an older build of the engine".to_owned()
            }
            Self::NameMismatch { found, .. } => format!(
                "ask the engine's author to make both names agree (`engine: {found}` in plugin.yaml if {found:?} is right)"
            ),
            Self::Layout { .. } => {
                "rebuild the engine with an unchanged hermes-engine-abi crate".to_owned()
            }
            _ => "this is a fault of the engine: report it to its author".to_owned(),
        }
    }

    /// Whether it is merely built for something else, and not broken.
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        matches!(
            self,
            Self::WrongMajor { .. }
                | Self::HostTooOld { .. }
                | Self::Short { .. }
                | Self::Layout { .. }
        )
    }
}
