//! Hash trees.

/// A page of hashes: values of one tree that merge to a value known already.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct PageId {
    /// The tree: 0 is the file or the manifest.
    pub tree: u32,
    /// The page within the tree: 0 is the top.
    pub page: u32,
}

/// The most bytes a page has: 1024 values.
pub const PAGE_LEN_MAX: usize = 1024 * 32;
