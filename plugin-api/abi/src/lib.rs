//! The frozen C border between the host and compiled context engines.
