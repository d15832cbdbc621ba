//! What the author of a context engine depends on.
