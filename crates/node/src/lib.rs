//! anabranch on real machines, on tokio: content, stores, identity, tickets and secure links.
//!
//! - [`content`]: what is shared: a file or a directory, its identity, its blocks and their hashes;
//! - [`store`]: where a group's blocks are read from and written to, safe against crashes.

#![deny(missing_docs)]

pub mod content;
pub mod store;
