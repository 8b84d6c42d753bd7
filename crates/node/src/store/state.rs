//! What a store knows while blocks come: the layout, the hashes, what is held.

use super::{Learned, PageError};
use crate::content::layout::{Body, Layout, Place};
use crate::content::manifest::{EntryKind, Manifest};
use crate::content::tree::{BadPage, Expected, Tree};
use crate::content::{GroupInfo, Kind, PageId};
use anabranch_proto::id::BlockIndex;
use anabranch_proto::summary::Bitmap;
use std::path::PathBuf;
use std::sync::Arc;

/// What changes while blocks come.
#[derive(Debug)]
pub(super) struct State {
    pub(super) layout: Arc<Layout>,
    pub(super) trees: Vec<Tree>,
    pub(super) held: Bitmap,
    pub(super) bytes_held: u64,
    /// Whether the layout is whole: always so for a file, for a directory with its manifest.
    pub(super) laid_out: bool,
    /// Held and not yet on disk.
    pub(super) blocks_unflushed: Vec<BlockIndex>,
    /// Where the finished content is.
    pub(super) finished: Option<PathBuf>,
}

impl State {
    /// Of a receiver that holds nothing and knows the root only.
    pub(super) fn new(info: &GroupInfo) -> State {
        let first_len = info.first_tree_len();
        State {
            layout: Arc::new(Layout::first(first_len, info.block_size)),
            trees: vec![Tree::new(info.root, first_len, info.block_size)],
            held: Bitmap::new(info.blocks),
            bytes_held: 0,
            laid_out: matches!(info.kind, Kind::File { .. }),
            blocks_unflushed: Vec::new(),
            finished: None,
        }
    }

    /// What a block must hash to, with its number in its tree.
    pub(super) fn expected(&self, block: BlockIndex) -> Option<(u32, Expected)> {
        let (tree, within) = self.layout.locate(block)?;
        Some((within, self.trees[tree].expected(within)?))
    }

    /// The verifiable blocks of the trees from number `from_tree` on.
    pub(super) fn verifiable(&self, from_tree: usize) -> Vec<(BlockIndex, BlockIndex)> {
        let mut ranges: Vec<(BlockIndex, BlockIndex)> = Vec::new();
        let spans = self.layout.spans().iter().zip(&self.trees).skip(from_tree);
        for (span, tree) in spans {
            for known in tree.known() {
                let (from, to) = (span.first_block + known.start, span.first_block + known.end);
                match ranges.last_mut() {
                    Some(last) if last.1 == from => last.1 = to,
                    _ => ranges.push((from, to)),
                }
            }
        }
        ranges
    }

    pub(super) fn accept_page(&mut self, id: PageId, bytes: &[u8]) -> Result<Learned, PageError> {
        let tree = self.trees.get_mut(id.tree as usize).ok_or(PageError::Unknown)?;
        let known = tree.accept_page(id.page, bytes).map_err(|bad| match bad {
            BadPage::Corrupt => PageError::Corrupt,
            BadPage::Unknown => PageError::Unknown,
        })?;
        let first = self.layout.spans()[id.tree as usize].first_block;
        let verifiable = match known.is_empty() {
            true => Vec::new(),
            false => vec![(first + known.start, first + known.end)],
        };
        Ok(Learned { lengths: Vec::new(), verifiable })
    }

    /// Whether the manifest is there and the layout not yet known.
    pub(super) fn can_lay_out(&self) -> bool {
        let first = self.layout.blocks();
        !self.laid_out && self.held.count_range(0, first) == first
    }

    /// Takes the layout that the manifest gives; says what that teaches.
    pub(super) fn lay_out(&mut self, layout: Layout, manifest: &Manifest) -> Learned {
        let mut packs = manifest.packs.iter();
        for span in &layout.spans()[1..] {
            let root = match span.body {
                Body::Whole(Place::Entry(entry)) => match manifest.entries[entry as usize].kind {
                    EntryKind::File { hash, .. } => Some(hash),
                    _ => None,
                },
                Body::Whole(Place::First) => None,
                Body::Pack(_) => packs.next().copied(),
            };
            let root = root.expect("a checked manifest has a hash for every tree");
            self.trees.push(Tree::new(root, span.len, layout.block_size()));
        }
        let known = self.layout.blocks();
        let lengths = (known..layout.blocks()).map(|block| (block, layout.block_len(block)));
        let lengths = lengths.collect();
        self.layout = Arc::new(layout);
        self.laid_out = true;
        Learned { lengths, verifiable: self.verifiable(1) }
    }

    /// Marks a block as held; returns whether it was new.
    pub(super) fn hold(&mut self, block: BlockIndex, len: u32) -> bool {
        let is_new = self.held.insert(block);
        if is_new {
            self.bytes_held += u64::from(len);
            self.blocks_unflushed.push(block);
        }
        is_new
    }

    /// Marks a block as held that was there when the store was opened, on disk or not yet.
    pub(super) fn restore(&mut self, block: BlockIndex, is_synced: bool) {
        if self.held.insert(block) {
            self.bytes_held += u64::from(self.layout.block_len(block));
            if !is_synced {
                self.blocks_unflushed.push(block);
            }
        }
    }
}
