//! An engine's module as a safe value.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hermes_engine_abi as abi;

use super::load::registered::RegisteredInstance;
use super::load::{self, LoadError, OpenError, Refusal};

/// A complete copy of what an engine exports, made once at load: nothing that a library changes later in its own
/// tables is seen. Clones are the same module.
#[derive(Clone)]
pub struct EngineModule(Arc<Inner>);

struct Inner {
    copy: load::raw::ModuleCopy,
    origin: Origin,
    registered: Mutex<Option<RegisteredInstance>>,
    registers: bool,
}

/// Where a module came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Linked into the program.
    BuiltIn,
    /// Loaded from a library.
    Library(LibraryOrigin),
}

/// A library on disk, and the copy of it that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryOrigin {
    /// The plugin's directory, where `plugin.yaml` lies.
    pub directory: PathBuf,
    /// The library's real path, as it is shown to people.
    pub library: PathBuf,
    /// The private copy that is mapped into this process.
    pub loaded_copy: PathBuf,
    /// SHA-256 over the library and its siblings, in hex.
    pub sha256: String,
    /// SHA-256 of the library file alone.
    pub library_sha256: String,
    /// Who put it there.
    pub source: Source,
}

/// Who put a plugin where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// It is part of the program.
    BuiltIn,
    /// It came with the program.
    Bundled,
    /// The user installed it.
    User,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => "built-in",
            Self::Bundled => "bundled",
            Self::User => "user",
        })
    }
}

impl EngineModule {
    /// The module of an engine that is linked into the program, as `engine_module!` of the author's SDK gives it.
    ///
    /// It passes the same checks as a library's: version, sizes, required slots, name.
    ///
    /// # Errors
    /// Says which of the checks the module fails.
    pub fn from_static(module: &'static abi::Module) -> Result<Self, LoadError> {
        load::raw::copy_static(module)
            .map(|copy| Self::new(copy, Origin::BuiltIn, None))
            .map_err(|error| LoadError::new("a built-in engine", Refusal::Module(error)))
    }

    pub(super) fn new(
        copy: load::raw::ModuleCopy,
        origin: Origin,
        registered: Option<RegisteredInstance>,
    ) -> Self {
        Self(Arc::new(Inner {
            copy,
            origin,
            registers: registered.is_some(),
            registered: Mutex::new(registered),
        }))
    }

    /// The engine's own name: what `context.engine` must be.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.copy.name
    }

    /// The engine's version; may be empty.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.0.copy.version
    }

    /// How it was built, for people; may be empty.
    #[must_use]
    pub fn build(&self) -> &str {
        &self.0.copy.build
    }

    /// Major and minor version of the border that the engine was built for.
    #[must_use]
    pub fn abi(&self) -> (u16, u16) {
        self.0.copy.abi
    }

    /// Whether the engine says that panics and exceptions are caught inside it.
    #[must_use]
    pub fn unwinds(&self) -> bool {
        self.0.copy.flags & abi::MODULE_UNWINDS != 0
    }

    /// The slots. One that lies outside the engine's table is `None`, and the required ones are all there.
    #[must_use]
    pub fn vtable(&self) -> &abi::EngineVtable {
        &self.0.copy.vtable
    }

    /// What its author has probably forgotten, each a sentence that says what to do about it.
    #[must_use]
    pub fn oddities(&self) -> Vec<String> {
        let table = self.vtable();
        half_of_the_tools(table.tool_schemas.is_some(), table.tool_call.is_some())
            .map(|(what, fix)| format!("context engine '{}' {what}; {fix}", self.name()))
            .into_iter()
            .collect()
    }

    /// Where the module came from.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// `built-in`, or the library's real path.
    #[must_use]
    pub fn loaded_from(&self) -> String {
        match &self.0.origin {
            Origin::BuiltIn => "built-in".to_owned(),
            Origin::Library(library) => library.library.display().to_string(),
        }
    }

    /// The instance that the plugin's `register(ctx)` handed over, once: whoever takes it owns it and destroys it.
    #[must_use]
    pub fn registered(&self) -> Option<RegisteredInstance> {
        self.0
            .registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Whether `register(ctx)` handed over an instance, taken or not. Such an engine has no other template.
    #[must_use]
    pub fn registers_instance(&self) -> bool {
        self.0.registers
    }

    /// Says that the library on disk is another one now. The loaded build stays in use until the program is restarted:
    /// code that threads may be running is never exchanged.
    #[must_use]
    pub fn replaced_on_disk(&self) -> Option<OpenError> {
        let Origin::Library(library) = &self.0.origin else {
            return None;
        };
        match super::copies::sha256_of_file(&library.library) {
            Ok(now) if now != library.library_sha256 => Some(OpenError::Replaced {
                library: library.library.clone(),
            }),
            _ => None,
        }
    }

    /// Whether both are the same loaded module.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for EngineModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineModule")
            .field("name", &self.name())
            .field("version", &self.version())
            .field("abi", &self.abi())
            .field("origin", self.origin())
            .finish_non_exhaustive()
    }
}

/// Tools are two slots. With one of them: what that means, and what to do.
pub(super) fn half_of_the_tools(schemas: bool, call: bool) -> Option<(&'static str, &'static str)> {
    match (schemas, call) {
        (true, false) => Some((
            "offers tools (`tool_schemas`) that it cannot carry out (no `tool_call`), so that every call of one is an error",
            "fill the slot `tool_call`, or leave `tool_schemas` out",
        )),
        (false, true) => Some((
            "can carry out tools (`tool_call`) that it never offers (no `tool_schemas`), so that no model calls one",
            "fill the slot `tool_schemas`, or leave `tool_call` out",
        )),
        _ => None,
    }
}
