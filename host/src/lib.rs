//! A host for compiled context engines.
