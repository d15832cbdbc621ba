//! Why a plugin does not serve, by the step that refused it.

use std::path::PathBuf;

use super::super::copies::CopyError;
use super::super::discover::DiscoverError;
use super::super::error::ModuleError;
use super::super::inspect::InspectError;
use super::super::manifest::ManifestError;
use super::super::probe::ProbeError;
use super::super::report::{Status, Step};
use super::super::trust::TrustError;

/// Why a plugin does not serve: where it lies, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {cause}")]
pub struct LoadError {
    /// The plugin's directory or library, for people.
    pub place: String,
    /// What is wrong.
    pub cause: Refusal,
}

impl LoadError {
    pub(crate) fn new(place: impl Into<String>, cause: impl Into<Refusal>) -> Self {
        Self {
            place: place.into(),
            cause: cause.into(),
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        self.cause.fix()
    }
}

/// What is wrong with a plugin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The directory cannot be used.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// The manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Somebody else could change it.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The library, as data, is not one for this host.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// There is no private copy of it.
    #[error(transparent)]
    Copy(CopyError),
    /// It failed in a child process, or could not be tried.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// It failed while it was opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The module that it hands over is not one that this host can use.
    #[error(transparent)]
    Module(#[from] ModuleError),
}

impl From<CopyError> for Refusal {
    /// Faults that have a step of their own are shown as that step's.
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Trust(error) => Self::Trust(error),
            CopyError::Inspect(error) => Self::Inspect(error),
            other => Self::Copy(other),
        }
    }
}

impl Refusal {
    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Discover(error) => error.fix(),
            Self::Manifest(error) => error.fix(),
            Self::Trust(error) => error.fix(),
            Self::Inspect(error) => error.fix(),
            Self::Copy(error) => error.fix(),
            Self::Probe(error) => error.fix(),
            Self::Open(error) => error.fix(),
            Self::Module(error) => error.fix(),
        }
    }

    /// The step that refused it.
    #[must_use]
    pub fn step(&self) -> Step {
        match self {
            Self::Discover(_) => Step::Discover,
            Self::Manifest(_) => Step::Manifest,
            Self::Trust(_) => Step::Trust,
            Self::Inspect(_) => Step::Inspect,
            Self::Probe(_) => Step::Probe,
            Self::Copy(_) | Self::Open(_) | Self::Module(_) => Step::Load,
        }
    }

    /// How a list shows it.
    #[must_use]
    pub fn status(&self) -> Status {
        let incompatible = |yes| {
            if yes {
                Status::Incompatible
            } else {
                Status::Broken
            }
        };
        match self {
            Self::Discover(error) => error.status(),
            Self::Trust(_) => Status::Untrusted,
            Self::Inspect(error) => incompatible(error.is_incompatible()),
            Self::Probe(error) => error.status(),
            Self::Open(error) => error.status(),
            Self::Module(error) => incompatible(error.is_incompatible()),
            Self::Manifest(_) | Self::Copy(_) => Status::Broken,
        }
    }
}

/// What can go wrong once a library's code runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system's loader refuses it.
    #[error("the system cannot load it: {text}")]
    System {
        /// The loader's own sentence.
        text: String,
    },
    /// A symbol that was there as data is not there now.
    #[error("`{name}` cannot be found in it: {text}")]
    Symbol {
        /// The symbol.
        name: &'static str,
        /// The loader's own sentence.
        text: String,
    },
    /// `register(ctx)` failed.
    #[error("its register function failed with status {status}")]
    RegisterFailed {
        /// What it returned.
        status: i32,
    },
    /// `register(ctx)` of an engine directory registered nothing.
    #[error("its register function has registered no context engine")]
    RegisteredNothing,
    /// `create` succeeded without an instance.
    #[error("its slot `create` says OK but hands over no instance")]
    NoInstance,
    /// `create` says: fine, but not here.
    #[error("the engine says that it is not available here{}", with_text(text))]
    Unavailable {
        /// The engine's own sentence.
        text: String,
    },
    /// A slot failed.
    #[error("its slot `{slot}` failed with status {status}{}", with_text(text))]
    Slot {
        /// Which slot.
        slot: &'static str,
        /// What it returned.
        status: i32,
        /// The engine's own sentence.
        text: String,
    },
    /// The host ended while the engine was inside a call.
    #[error("it is set aside: {when} the host ended while this engine was inside `{slot}`")]
    SetAside {
        /// The slot.
        slot: String,
        /// How long ago, for people.
        when: String,
    },
    /// Another library of this directory is loaded already.
    #[error("{library} was replaced after it was loaded; the loaded build stays in use")]
    Replaced {
        /// The library.
        library: PathBuf,
    },
}

fn with_text(text: &str) -> String {
    if text.is_empty() {
        ", without a reason".to_owned()
    } else {
        format!(": {text}")
    }
}

impl OpenError {
    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::System { text } => system_fix(text),
            Self::Unavailable { .. } => {
                "give it what it asks for; if that stands in config.yaml, it is only read when a conversation starts".to_owned()
            }
            Self::SetAside { .. } => {
                "`hermes plugins use` gives it another chance, and so does a new build".to_owned()
            }
            Self::Replaced { .. } => "restart to use the new build".to_owned(),
            _ => "this is a fault of the engine: report it to its author".to_owned(),
        }
    }

    /// How a list shows it.
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::System { text }
                if text.contains("version `") || text.contains("cannot open shared object") =>
            {
                Status::Incompatible
            }
            Self::Unavailable { .. } => Status::Unavailable,
            _ => Status::Broken,
        }
    }
}

/// A hint in plain words to a sentence of the system's loader.
fn system_fix(text: &str) -> String {
    if text.contains("undefined symbol") {
        "the library calls a function that nothing provides: rebuild it, or report it to its author"
    } else if text.contains("GLIBC") || text.contains("GLIBCXX") || text.contains("version `") {
        "it was built on a newer system: build it here, or install a build for older systems"
    } else if text.contains("cannot open shared object file") {
        "install the library it names; if it came with the plugin, put it beside the engine and link the engine with `-Wl,-rpath,$ORIGIN`"
    } else if text.contains("failed to map segment") || text.contains("noexec") {
        "the folder of private copies lies on a disk that forbids running programs: move HERMES_HOME"
    } else {
        "rebuild the plugin on this machine, or install another build"
    }
    .to_owned()
}
