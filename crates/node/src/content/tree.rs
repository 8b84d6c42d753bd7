//! One BLAKE3 tree cut at blocks: block values, the pages that carry them, the check of a block.
//!
//! BLAKE3 hashes a text as a binary tree whose left halves are powers of two, so the values of
//! equal aligned pieces (verify units, blocks, runs of 1024 blocks) merge to the hash that `b3sum`
//! prints. A tree of at most 1024 blocks has one page: its block values, which merge to the root.
//! A longer one has a top page of the values of runs of 1024 blocks, and a leaf page per run. A
//! page is checked against what is known above it, so data flows long before the list is complete.
//!
//! The value of a tree's only block (or only unit) is the root itself: BLAKE3 finalises it
//! differently.

use super::unit_len;
use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root,
};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The most values a page has.
pub const PAGE_VALUES_MAX: u32 = 1024;
/// The most bytes a page has.
pub const PAGE_LEN_MAX: usize = PAGE_VALUES_MAX as usize * VALUE_LEN;
/// Bytes of one value.
pub const VALUE_LEN: usize = blake3::OUT_LEN;

/// A page of hashes: values of one tree that merge to a value known already.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct PageId {
    /// The tree: 0 is the file or the manifest.
    pub tree: u32,
    /// The page within the tree: 0 is the top.
    pub page: u32,
}

/// What a tree says about a page that was offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadPage {
    /// It does not merge to the value it must have.
    Corrupt,
    /// The tree has no such page, or does not know yet what it must merge to.
    Unknown,
}

/// What a block must hash to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// The block is the whole tree.
    Root([u8; 32]),
    /// The block is a part of its tree.
    Inner(ChainingValue),
}

/// The hashes of one tree, as far as they are known.
#[derive(Clone, Debug)]
pub struct Tree {
    root: [u8; 32],
    len: u64,
    block_size: u32,
    /// Values of runs of 1024 blocks; empty until known, and when there is one run.
    top: Vec<ChainingValue>,
    /// Block values by run; empty until known.
    runs: Vec<Box<[ChainingValue]>>,
}

impl Tree {
    /// A tree of `len` bytes of which the root is known.
    pub fn new(root: [u8; 32], len: u64, block_size: u32) -> Tree {
        let mut tree = Tree { root, len, block_size, top: Vec::new(), runs: Vec::new() };
        tree.runs = match tree.blocks() {
            0 | 1 => Vec::new(),
            blocks => vec![Box::default(); blocks.div_ceil(PAGE_VALUES_MAX) as usize],
        };
        tree
    }

    /// A tree of `len` bytes (at least two blocks) of which every block value is known.
    pub fn from_values(values: &[ChainingValue], len: u64, block_size: u32) -> Tree {
        debug_assert_eq!(values.len() as u64, len.div_ceil(u64::from(block_size)));
        debug_assert!(values.len() > 1, "the value of a single block is the root");
        let mut tree = Tree::new([0; 32], len, block_size);
        for (run, values) in tree.runs.iter_mut().zip(values.chunks(PAGE_VALUES_MAX as usize)) {
            *run = values.into();
        }
        if tree.runs.len() > 1 {
            tree.top = tree.runs.iter().map(|run| merge(run)).collect();
        }
        tree.root = merge_root(if tree.top.is_empty() { values } else { &tree.top });
        tree
    }

    /// The tree's root.
    pub fn root(&self) -> &[u8; 32] {
        &self.root
    }

    /// The tree's length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the tree has no bytes, and so no blocks.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many blocks the tree has.
    pub fn blocks(&self) -> u32 {
        self.len.div_ceil(u64::from(self.block_size)) as u32
    }

    /// The length of a block in bytes; zero beyond the end.
    pub fn block_len(&self, block: u32) -> u32 {
        let start = u64::from(block) * u64::from(self.block_size);
        self.len.saturating_sub(start).min(u64::from(self.block_size)) as u32
    }

    /// How many pages the tree has.
    pub fn pages(&self) -> u32 {
        match self.runs.len() as u32 {
            0 => 0,
            1 => 1,
            runs => runs + 1,
        }
    }

    /// What a block must hash to; `None` when that is not known yet or there is no such block.
    pub fn expected(&self, block: u32) -> Option<Expected> {
        if block >= self.blocks() {
            return None;
        }
        if self.runs.is_empty() {
            return Some(Expected::Root(self.root));
        }
        let run = &self.runs[(block / PAGE_VALUES_MAX) as usize];
        run.get((block % PAGE_VALUES_MAX) as usize).copied().map(Expected::Inner)
    }

    /// The blocks whose values are known, as ranges.
    pub fn known(&self) -> Vec<Range<u32>> {
        if self.runs.is_empty() {
            return if self.blocks() == 1 { vec![Range { start: 0, end: 1 }] } else { Vec::new() };
        }
        let known = self.runs.iter().enumerate().filter(|(_, run)| !run.is_empty());
        known.map(|(at, _)| self.run_range(at)).collect()
    }

    /// The pages that could be checked now and are not known, the top one first.
    pub fn missing_pages(&self) -> impl Iterator<Item = u32> + '_ {
        let top_missing = self.runs.len() > 1 && self.top.is_empty();
        let first_leaf = u32::from(self.runs.len() > 1);
        let leaves =
            self.runs.iter().enumerate().filter(move |(_, run)| run.is_empty() && !top_missing);
        top_missing
            .then_some(0)
            .into_iter()
            .chain(leaves.map(move |(at, _)| at as u32 + first_leaf))
    }

    /// The bytes of a page; `None` when it is not known or does not exist.
    pub fn page(&self, page: u32) -> Option<Vec<u8>> {
        let values: &[ChainingValue] = match self.runs.len() {
            0 => &[],
            1 if page == 0 => &self.runs[0],
            1 => &[],
            _ if page == 0 => &self.top,
            _ => self.runs.get(page as usize - 1)?,
        };
        if values.is_empty() { None } else { Some(values.concat()) }
    }

    /// Checks a page and keeps it; returns the blocks whose values it made known (none for a top
    /// page, or for a page known already).
    pub fn accept_page(&mut self, page: u32, bytes: &[u8]) -> Result<Range<u32>, BadPage> {
        let runs = self.runs.len();
        let is_top = runs > 1 && page == 0;
        let run = if runs > 1 { page.wrapping_sub(1) } else { page } as usize;
        if page >= self.pages() {
            return Err(BadPage::Unknown);
        }
        let wanted = if is_top { runs } else { self.run_range(run).len() };
        let (values, rest) = bytes.as_chunks::<VALUE_LEN>();
        if values.len() != wanted || !rest.is_empty() {
            return Err(BadPage::Corrupt);
        }
        let right = if is_top || runs == 1 {
            merge_root(values) == self.root
        } else {
            // A run of one block is the last one; its value is in the top page as it is.
            let expected = self.top.get(run).ok_or(BadPage::Unknown)?;
            merge(values) == *expected
        };
        if !right {
            return Err(BadPage::Corrupt);
        }
        if is_top {
            self.top = values.to_vec();
            return Ok(0..0);
        }
        if !self.runs[run].is_empty() {
            return Ok(0..0);
        }
        self.runs[run] = values.into();
        Ok(self.run_range(run))
    }

    fn run_range(&self, run: usize) -> Range<u32> {
        let start = run as u32 * PAGE_VALUES_MAX;
        start..self.blocks().min(start + PAGE_VALUES_MAX)
    }
}

/// What a block's units must hash to: made from its proof, asked unit by unit.
#[derive(Debug)]
pub struct BlockCheck {
    /// Where the block begins in its tree, in bytes.
    start: u64,
    unit_len: u32,
    units: Units,
}

#[derive(Debug)]
enum Units {
    One(Expected),
    Many(Vec<ChainingValue>),
}

impl BlockCheck {
    /// The check of block number `block` of its tree, of `len` bytes, which must hash to
    /// `expected`; `None` when `proof` does not merge to that. The proof of a block of one unit is
    /// empty, otherwise it is its units' values.
    pub fn new(
        expected: Expected,
        block: u32,
        block_size: u32,
        len: u32,
        proof: &[u8],
    ) -> Option<BlockCheck> {
        let unit_len = unit_len(block_size);
        let start = u64::from(block) * u64::from(block_size);
        if len <= unit_len {
            let units = Units::One(expected);
            return proof.is_empty().then_some(BlockCheck { start, unit_len, units });
        }
        let (values, rest) = proof.as_chunks::<VALUE_LEN>();
        if !rest.is_empty() || values.len() != len.div_ceil(unit_len) as usize {
            return None;
        }
        let right = match expected {
            Expected::Root(root) => merge_root(values) == root,
            Expected::Inner(value) => merge(values) == value,
        };
        right.then(|| BlockCheck { start, unit_len, units: Units::Many(values.to_vec()) })
    }

    /// Whether `bytes` are unit number `unit` of the block.
    pub fn is_right(&self, unit: u32, bytes: &[u8]) -> bool {
        let start = self.start + u64::from(unit) * u64::from(self.unit_len);
        match &self.units {
            Units::One(Expected::Root(root)) => blake3::hash(bytes).as_bytes() == root,
            Units::One(Expected::Inner(value)) => unit_value(bytes, start) == *value,
            Units::Many(values) => {
                values.get(unit as usize).is_some_and(|value| unit_value(bytes, start) == *value)
            }
        }
    }
}

/// The value of the piece `bytes` of a tree, which begins at byte `start`: a whole verify unit or
/// the last one, and not the whole tree.
pub fn unit_value(bytes: &[u8], start: u64) -> ChainingValue {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(start);
    hasher.update(bytes);
    hasher.finalize_non_root()
}

/// The value of the piece of a tree whose equal parts (the last may be shorter) have `values`; not
/// the whole tree.
pub fn merge(values: &[ChainingValue]) -> ChainingValue {
    match values {
        [] => unreachable!("a piece has at least one part"),
        [value] => *value,
        _ => {
            let (left, right) = values.split_at(left_len(values.len()));
            merge_subtrees_non_root(&merge(left), &merge(right), Mode::Hash)
        }
    }
}

/// The root of the tree whose equal parts (two or more; the last may be shorter) have `values`.
pub fn merge_root(values: &[ChainingValue]) -> [u8; 32] {
    debug_assert!(values.len() > 1, "a single part's value is not the root");
    let (left, right) = values.split_at(left_len(values.len()));
    *merge_subtrees_root(&merge(left), &merge(right), Mode::Hash).as_bytes()
}

/// The greatest power of two below `parts`.
fn left_len(parts: usize) -> usize {
    parts.div_ceil(2).next_power_of_two()
}

#[cfg(test)]
mod tests;
