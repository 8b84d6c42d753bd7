//! Pieces: ranges of blocks. A block is a sub-piece, what is asked for; a piece is what is
//! announced and served.

use crate::id::BlockIndex;
use crate::summary::Bitmap;
use std::ops::Range;

/// Most pieces of a content: a bitfield of 32 KiB.
const PIECES_MAX: u32 = 1 << 18;

/// How blocks make pieces; all have the same number but the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pieces {
    blocks: u32,
    per_piece: u32,
}

impl Pieces {
    /// Pieces of about `piece_len` bytes of `blocks` blocks of `block_len` bytes.
    pub(super) fn new(blocks: u32, block_len: u32, piece_len: u32) -> Pieces {
        let wanted = piece_len / block_len.max(1);
        Pieces { blocks, per_piece: wanted.max(blocks.div_ceil(PIECES_MAX)).max(1) }
    }

    /// Blocks of a piece.
    pub(super) fn per_piece(&self) -> u32 {
        self.per_piece
    }

    /// How many pieces there are.
    pub(super) fn count(&self) -> u32 {
        self.blocks.div_ceil(self.per_piece)
    }

    /// The piece a block belongs to.
    pub(super) fn of(&self, block: BlockIndex) -> u32 {
        block / self.per_piece
    }

    /// The blocks of a piece.
    pub(super) fn blocks(&self, piece: u32) -> Range<BlockIndex> {
        let start = piece.saturating_mul(self.per_piece).min(self.blocks);
        start..start.saturating_add(self.per_piece).min(self.blocks)
    }

    /// Whether all blocks of a piece are held.
    pub(super) fn is_whole(&self, held: &Bitmap, piece: u32) -> bool {
        let blocks = self.blocks(piece);
        held.count_range(blocks.start, blocks.end) == blocks.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_sub_pieces_of_16_kib_make_a_piece_of_256_and_the_last_piece_is_shorter() {
        let pieces = Pieces::new(40, 16 * 1024, 256 * 1024);
        assert_eq!((pieces.per_piece(), pieces.count()), (16, 3));
        assert_eq!(pieces.blocks(2), 32..40);
        assert_eq!([pieces.of(15), pieces.of(16), pieces.of(39)], [0, 1, 2]);
        assert!(pieces.blocks(3).is_empty());
        let mut held = Bitmap::new(40);
        held.insert_range(32, 39);
        assert!(!pieces.is_whole(&held, 2));
        held.insert(39);
        assert!(pieces.is_whole(&held, 2) && !pieces.is_whole(&held, 1));
    }

    #[test]
    fn a_block_longer_than_a_piece_is_a_piece_and_pieces_have_an_upper_bound() {
        assert_eq!(Pieces::new(10, 1 << 20, 1 << 18).count(), 10);
        let many = Pieces::new(u32::MAX, 1 << 20, 1 << 18);
        assert!(many.count() <= PIECES_MAX, "{}", many.count());
        assert_eq!(many.blocks(many.count() - 1).end, u32::MAX);
    }
}
