//! The numbering of a content's blocks, and which bytes of which file each one is.
//!
//! A content is a row of trees, each cut into blocks of its own. A file is one tree. A directory is
//! first its manifest, then every large file in manifest order, then *packs*: files shorter than
//! half a block are put one behind the other, in manifest order, as many as fit into one block.
//! A pack is a tree of one block. Empty files and directories have no blocks.

use super::manifest::{EntryKind, Manifest};
use anabranch_proto::id::BlockIndex;
use std::ops::Range;

/// What bytes belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Tree 0: the file, or the manifest.
    First,
    /// The file with this number among the manifest's entries.
    Entry(u32),
}

/// Bytes of one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Which file.
    pub place: Place,
    /// Where in the file the bytes begin.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
}

/// One tree and its place in the numbering.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// The number of its first block.
    pub first_block: BlockIndex,
    /// Its length in bytes.
    pub len: u64,
    /// What it is.
    pub body: Body,
}

/// What a tree's bytes are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// The file, the manifest, or a large file.
    Whole(Place),
    /// These of the small files, one behind the other.
    Pack(Range<u32>),
}

/// A file within a pack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Small {
    /// The file's number among the manifest's entries.
    pub entry: u32,
    /// Where it begins in its pack, in bytes.
    pub offset: u32,
    /// Its length in bytes.
    pub len: u32,
}

/// The trees of a content, as far as they are known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    block_size: u32,
    spans: Vec<Span>,
    smalls: Vec<Small>,
}

impl Layout {
    /// The layout of a file of `len` bytes, or of a directory of which only the manifest's length
    /// is known.
    pub fn first(len: u64, block_size: u32) -> Layout {
        let span = Span { first_block: 0, len, body: Body::Whole(Place::First) };
        Layout { block_size, spans: vec![span], smalls: Vec::new() }
    }

    /// The layout of a directory; `None` when it has more than 2^32 blocks.
    pub fn directory(manifest: &Manifest, manifest_len: u64) -> Option<Layout> {
        let mut layout = Layout::first(manifest_len, manifest.block_size);
        let mut next = layout.block_count(manifest_len)?;
        for (at, entry) in manifest.entries.iter().enumerate() {
            let EntryKind::File { len, .. } = entry.kind else { continue };
            if is_small(len, manifest.block_size) {
                continue;
            }
            let body = Body::Whole(Place::Entry(at as u32));
            layout.spans.push(Span { first_block: next, len, body });
            next = next.checked_add(layout.block_count(len)?)?;
        }
        layout.smalls = pack(manifest);
        let mut from = 0;
        while from < layout.smalls.len() {
            let rest = &layout.smalls[from + 1..];
            let count = 1 + rest.iter().take_while(|small| small.offset > 0).count();
            let last = layout.smalls[from + count - 1];
            let len = u64::from(last.offset) + u64::from(last.len);
            let body = Body::Pack(from as u32..(from + count) as u32);
            layout.spans.push(Span { first_block: next, len, body });
            next = next.checked_add(1)?;
            from += count;
        }
        Some(layout)
    }

    /// Bytes per block.
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// The trees, by number.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// How many trees are packs.
    pub fn packs(&self) -> usize {
        self.spans.iter().filter(|span| matches!(span.body, Body::Pack(_))).count()
    }

    /// Blocks in all.
    pub fn blocks(&self) -> u32 {
        let last = self.spans.last().expect("there is always tree 0");
        last.first_block + self.block_count(last.len).unwrap_or(0)
    }

    /// The tree a block belongs to, and its number within that tree.
    pub fn locate(&self, block: BlockIndex) -> Option<(usize, u32)> {
        // Only tree 0 can have no blocks, and then it is the only one: the last span that begins
        // at or before the block is its own.
        let tree = self.spans.partition_point(|span| span.first_block <= block).checked_sub(1)?;
        let span = &self.spans[tree];
        let within = block - span.first_block;
        (within < self.block_count(span.len)?).then_some((tree, within))
    }

    /// The length of a block in bytes; zero where there is none.
    pub fn block_len(&self, block: BlockIndex) -> u32 {
        let Some((tree, within)) = self.locate(block) else { return 0 };
        let start = u64::from(within) * u64::from(self.block_size);
        (self.spans[tree].len - start).min(u64::from(self.block_size)) as u32
    }

    /// The small files of a pack; none of another tree.
    pub fn smalls(&self, body: &Body) -> &[Small] {
        match body {
            Body::Pack(range) => &self.smalls[range.start as usize..range.end as usize],
            Body::Whole(_) => &[],
        }
    }

    /// Where bytes `offset..offset + len` of a block are; `None` when the block has not so many.
    pub fn pieces(&self, block: BlockIndex, offset: u32, len: u32) -> Option<Vec<Piece>> {
        let (tree, within) = self.locate(block)?;
        let end = offset.checked_add(len)?;
        if end > self.block_len(block) {
            return None;
        }
        let body = &self.spans[tree].body;
        Some(match body {
            Body::Whole(place) => {
                let start = u64::from(within) * u64::from(self.block_size);
                vec![Piece { place: *place, offset: start + u64::from(offset), len }]
            }
            Body::Pack(_) => pack_pieces(self.smalls(body), offset, end),
        })
    }

    fn block_count(&self, len: u64) -> Option<u32> {
        u32::try_from(len.div_ceil(u64::from(self.block_size))).ok()
    }
}

/// Whether a file of `len` bytes is packed.
pub fn is_small(len: u64, block_size: u32) -> bool {
    len < u64::from(block_size / 2)
}

/// The small files in order, each with its offset in its pack; offset 0 begins a pack.
fn pack(manifest: &Manifest) -> Vec<Small> {
    let mut smalls = Vec::new();
    let mut offset = 0u32;
    for (at, entry) in manifest.entries.iter().enumerate() {
        let EntryKind::File { len, .. } = entry.kind else { continue };
        if len == 0 || !is_small(len, manifest.block_size) {
            continue;
        }
        let len = len as u32;
        if offset + len > manifest.block_size {
            offset = 0;
        }
        smalls.push(Small { entry: at as u32, offset, len });
        offset += len;
    }
    smalls
}

fn pack_pieces(smalls: &[Small], from: u32, to: u32) -> Vec<Piece> {
    let first = smalls.partition_point(|small| small.offset + small.len <= from);
    let touched = smalls[first..].iter().take_while(|small| small.offset < to);
    touched
        .map(|small| {
            let start = small.offset.max(from);
            let end = (small.offset + small.len).min(to);
            Piece {
                place: Place::Entry(small.entry),
                offset: u64::from(start - small.offset),
                len: end - start,
            }
        })
        .filter(|piece| piece.len > 0)
        .collect()
}

#[cfg(test)]
mod tests;
