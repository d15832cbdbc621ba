//! The host's own tools, as a model calls them: over real directories, with arguments of every kind.

#[path = "tools/confined.rs"]
mod confined;
#[path = "tools/property.rs"]
mod property;
#[path = "tools/reading.rs"]
mod reading;
#[path = "tools/searching.rs"]
mod searching;
#[path = "tools/support.rs"]
mod support;
