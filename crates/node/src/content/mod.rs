//! What a group shares: one file or one directory, cut into verifiable blocks.
//!
//! A file's identity is its BLAKE3 hash, what `b3sum` prints; a directory's is the BLAKE3 of its
//! canonical manifest ([`manifest`]). Three units are kept apart: the *block* (asked for and
//! advertised), the *verify unit* (at most [`UNIT_LEN`] bytes: checked before it is stored) and the
//! *fragment* (on the wire; [`anabranch_proto::link`]).
//!
//! ```text
//!  root ── pages of block values (fetched top-down) ── a block's unit values (its proof) ── bytes
//! ```
//!
//! Where to look: [`info`] the group's signed parameters, [`scan`] a source's content,
//! [`tree`] hashes, pages and proofs, [`layout`] the numbering of blocks.

mod cache;
pub mod files;
pub(crate) mod hashing;
pub mod info;
pub mod layout;
pub mod manifest;
pub mod outboard;
pub mod scan;
pub mod tree;
mod walk;

pub use info::{GroupInfo, InfoError, Kind, Mtime};
pub use scan::{Scan, ScanError, ScanOptions};
pub use tree::PageId;

/// The longest verify unit, in bytes; a block that is shorter is one unit.
pub const UNIT_LEN: u32 = 64 * 1024;
/// The shortest block length a content may use, in bytes.
pub const BLOCK_SIZE_MIN: u32 = 16 * 1024;
/// The longest block length a content may use, in bytes: [`anabranch_proto::link::BLOCK_LEN_MAX`].
pub const BLOCK_SIZE_MAX: u32 = anabranch_proto::link::BLOCK_LEN_MAX;
/// The most blocks a content may have: 8 TiB in the longest blocks.
pub const BLOCKS_MAX: u32 = 1 << 20;

/// What kind of failure an error is, as exit codes tell them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The user asked for something that cannot be (exit code 2).
    Usage,
    /// Bytes are not what the source made, or the source contradicts itself (exit code 5).
    Integrity,
    /// The local disk: full, permission, exists, in use (exit code 6).
    Storage,
    /// The caller asked to stop (exit code 130).
    Cancelled,
}

/// The block length used when nobody chose one: the power of two that gives at most 2048 blocks,
/// within [`BLOCK_SIZE_MIN`]..[`BLOCK_SIZE_MAX`].
pub fn block_size_for(total_len: u64) -> u32 {
    let (min, max) = (u64::from(BLOCK_SIZE_MIN), u64::from(BLOCK_SIZE_MAX));
    let wanted = total_len.div_ceil(2048).clamp(min, max);
    wanted.next_power_of_two() as u32
}

/// Whether `size` may be a content's block length: a power of two within bounds.
pub fn is_block_size(size: u32) -> bool {
    size.is_power_of_two() && (BLOCK_SIZE_MIN..=BLOCK_SIZE_MAX).contains(&size)
}

/// The length of a content's verify units, in bytes.
pub fn unit_len(block_size: u32) -> u32 {
    block_size.min(UNIT_LEN)
}
