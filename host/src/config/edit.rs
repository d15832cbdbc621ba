//! Changing one value of a file and nothing else.
