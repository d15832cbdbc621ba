//! One conversation at work: drives [`crate::context`] from a provider and a store.

pub mod registry;
pub mod tools;
