//! Tree.
