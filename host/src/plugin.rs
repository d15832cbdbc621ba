//! From a directory to an engine, one step a file.
//!
//! 1. [`discover`] finds the directories and the library in each, [`manifest`] reads `plugin.yaml`. Nothing runs.
//! 2. [`trust`] asks who may write to the library, and [`inspect`] reads the library as data.
//! 3. [`copies`] puts the checked bytes where nobody else writes, and [`probe`] tries them in a child process.
//! 4. The copy is opened in this process, and the module's tables become an [`EngineModule`].
//! 5. [`report`] tells a person how far a plugin came, and what to do about it.
//!
//! [`Catalog`] is the door to all of them. What an engine does once it is loaded is not this module's business.

mod catalog;
pub mod copies;
pub mod discover;
mod entry;
mod error;
pub mod inspect;
mod load;
pub mod manifest;
pub mod marker;
mod module;
pub mod name;
pub mod probe;
pub mod report;
pub mod trust;

pub use catalog::{Candidate, Catalog, ScanOptions, SelectError};
pub use entry::{Entry, Kind};
pub use error::{ModuleError, RequiredSlot};
pub use load::registered::RegisteredInstance;
pub use load::{LoadError, OpenError, Refusal};
pub use module::{EngineModule, LibraryOrigin, Origin, Source};
pub use probe::helper::helper_main;
