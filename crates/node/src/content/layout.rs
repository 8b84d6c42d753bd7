//! Numbering of blocks.
