//! The list of what a directory holds.
