//! From a directory to an engine, one step a file. What an engine does once it is loaded is not this module's business.

mod error;
mod load;
mod module;
pub mod name;

pub use error::{ModuleError, RequiredSlot};
pub use load::registered::RegisteredInstance;
pub use load::{LoadError, Refusal};
pub use module::{EngineModule, LibraryOrigin, Origin, Source};
