//! Which sub-piece to ask of a peer (Cohen §2.4; BEP 3).
//!
//! *Strict priority*: pieces that are begun come first, the rarest of them before others. *Rarest
//! first*: then the piece that the fewest peers have, ties at random; but the first pieces at
//! random, because a rare piece comes slowly and there is nothing to give in return yet.
//! *Endgame*: when every missing sub-piece has been asked for, each is asked of further peers, the
//! least asked before others, and cancelled there when it comes.

use super::config::{Config, Priority};
use super::pieces::Pieces;
use crate::id::BlockIndex;
use crate::overlay::Holdings;
use crate::random::{Rng, RngExt};
use crate::summary::Bitmap;
use std::collections::BTreeMap;

/// The state of every piece and sub-piece as a downloader sees it.
#[derive(Debug)]
pub(super) struct Picker {
    pieces: Pieces,
    random_first: u32,
    priority: Priority,
    /// Pieces held whole.
    have: Bitmap,
    /// How many peers have each piece.
    availability: Vec<u16>,
    /// At how many peers each block is asked for.
    asks: Vec<u16>,
    /// Pieces begun and not whole: how many of their missing blocks are asked for nowhere.
    begun: BTreeMap<u32, u32>,
    /// The keys of `begun`.
    begun_set: Bitmap,
    /// Missing blocks.
    missing: u32,
    /// Missing blocks that are asked for nowhere.
    unasked: u32,
}

impl Picker {
    pub(super) fn new(pieces: Pieces, config: &Config, holdings: &Holdings) -> Picker {
        let held = holdings.held();
        let count = pieces.count();
        let missing = held.len() - held.count();
        let mut picker = Picker {
            pieces,
            random_first: config.random_first,
            priority: config.priority,
            have: Bitmap::new(count),
            availability: vec![0; count as usize],
            asks: vec![0; held.len() as usize],
            begun: BTreeMap::new(),
            begun_set: Bitmap::new(count),
            missing,
            unasked: missing,
        };
        for piece in 0..count {
            let blocks = pieces.blocks(piece);
            let there = held.count_range(blocks.start, blocks.end);
            if there == blocks.len() as u32 {
                picker.have.insert(piece);
            } else if there > 0 {
                picker.begin(piece, held);
            }
        }
        picker
    }

    /// Pieces held whole.
    pub(super) fn have(&self) -> &Bitmap {
        &self.have
    }

    /// Whether every missing sub-piece has been asked for.
    pub(super) fn is_endgame(&self) -> bool {
        self.unasked == 0 && self.missing > 0
    }

    /// A peer has these pieces.
    pub(super) fn add_peer(&mut self, have: &Bitmap) {
        have.iter().for_each(|piece| self.add_piece(piece));
    }

    /// A peer is gone.
    pub(super) fn remove_peer(&mut self, have: &Bitmap) {
        have.iter().for_each(|piece| {
            let slot = &mut self.availability[piece as usize];
            *slot = slot.saturating_sub(1);
        });
    }

    /// A peer has this piece too.
    pub(super) fn add_piece(&mut self, piece: u32) {
        self.availability[piece as usize] += 1;
    }

    /// The sub-piece to ask next of a peer that has the pieces `theirs`, where `asked` is
    /// outstanding already.
    pub(super) fn choose(
        &self,
        rng: &mut Rng,
        holdings: &Holdings,
        theirs: &Bitmap,
        asked: &[BlockIndex],
    ) -> Option<BlockIndex> {
        if self.is_endgame() {
            return self.choose_again(rng, holdings, theirs, asked);
        }
        let begun = self.begun.iter().filter(|(piece, unasked)| {
            **unasked > 0 && theirs.contains(**piece) && self.next_in(holdings, **piece).is_some()
        });
        let rarity = |piece: u32| self.availability[piece as usize];
        let begun = begun.map(|(piece, _)| *piece).min_by_key(|piece| rarity(*piece));
        if let (Some(piece), Priority::Strict) = (begun, self.priority) {
            return self.next_in(holdings, piece);
        }
        let fresh = self.choose_piece(rng, holdings, theirs);
        let is_rarer = |fresh: &u32| begun.is_none_or(|begun| rarity(*fresh) < rarity(begun));
        fresh.filter(is_rarer).or(begun).and_then(|piece| self.next_in(holdings, piece))
    }

    /// The next piece to begin with.
    fn choose_piece(&self, rng: &mut Rng, holdings: &Holdings, theirs: &Bitmap) -> Option<u32> {
        let known = holdings.verifiable();
        let can_check = |piece: &u32| {
            known.is_full() || self.pieces.blocks(*piece).any(|block| known.contains(block))
        };
        let is_random = self.have.count() < self.random_first;
        let rarity = |piece: u32| if is_random { 0 } else { self.availability[piece as usize] };
        let (mut best, mut least, mut equals) = (None, u16::MAX, 0u32);
        for piece in theirs.iter_without(&[&self.have, &self.begun_set]).filter(can_check) {
            let rarity = rarity(piece);
            if rarity < least {
                (best, least, equals) = (Some(piece), rarity, 1);
            } else if rarity == least {
                equals += 1;
                // Each of the equals is as likely in the end.
                if rng.random_range(0..equals) == 0 {
                    best = Some(piece);
                }
            }
        }
        best
    }

    /// Endgame: a missing block that this peer was not asked for, of those asked least.
    fn choose_again(
        &self,
        rng: &mut Rng,
        holdings: &Holdings,
        theirs: &Bitmap,
        asked: &[BlockIndex],
    ) -> Option<BlockIndex> {
        let held = holdings.held();
        let (mut best, mut least, mut equals) = (None, u16::MAX, 0u32);
        for &piece in self.begun.keys().filter(|piece| theirs.contains(**piece)) {
            for block in self.pieces.blocks(piece) {
                if held.contains(block) || asked.contains(&block) {
                    continue;
                }
                let asks = self.asks[block as usize];
                if asks < least {
                    (best, least, equals) = (Some(block), asks, 1);
                } else if asks == least {
                    equals += 1;
                    if rng.random_range(0..equals) == 0 {
                        best = Some(block);
                    }
                }
            }
        }
        best
    }

    /// The first block of a piece that is missing and asked for nowhere.
    fn next_in(&self, holdings: &Holdings, piece: u32) -> Option<BlockIndex> {
        let (held, known) = (holdings.held(), holdings.verifiable());
        let is_free = |block: &BlockIndex| {
            !held.contains(*block) && self.asks[*block as usize] == 0 && known.contains(*block)
        };
        self.pieces.blocks(piece).find(is_free)
    }

    /// A missing block is asked of a peer; whether it was asked of another already.
    pub(super) fn on_ask(&mut self, held: &Bitmap, block: BlockIndex) -> bool {
        let piece = self.pieces.of(block);
        if !self.begun.contains_key(&piece) {
            self.begin(piece, held);
        }
        let asks = &mut self.asks[block as usize];
        *asks += 1;
        if *asks == 1 {
            self.unasked -= 1;
            if let Some(unasked) = self.begun.get_mut(&piece) {
                *unasked -= 1;
            }
        }
        *asks > 1
    }

    /// A block that was asked of a peer will not come from it.
    pub(super) fn on_release(&mut self, held: &Bitmap, block: BlockIndex) {
        let asks = &mut self.asks[block as usize];
        *asks = asks.saturating_sub(1);
        if *asks == 0 && !held.contains(block) {
            self.unasked += 1;
            if let Some(unasked) = self.begun.get_mut(&self.pieces.of(block)) {
                *unasked += 1;
            }
        }
    }

    /// A block is held now that was not. Gives its piece when that is whole with it.
    pub(super) fn on_held(&mut self, held: &Bitmap, block: BlockIndex) -> Option<u32> {
        let piece = self.pieces.of(block);
        self.missing -= 1;
        if self.asks[block as usize] == 0 {
            self.unasked -= 1;
            match self.begun.get_mut(&piece) {
                Some(unasked) => *unasked -= 1,
                None => self.begin(piece, held),
            }
        }
        if !self.pieces.is_whole(held, piece) {
            return None;
        }
        self.begun.remove(&piece);
        self.begun_set.remove(piece);
        self.have.insert(piece).then_some(piece)
    }

    fn begin(&mut self, piece: u32, held: &Bitmap) {
        let is_unasked =
            |block: &BlockIndex| !held.contains(*block) && self.asks[*block as usize] == 0;
        let unasked = self.pieces.blocks(piece).filter(is_unasked).count() as u32;
        self.begun.insert(piece, unasked);
        self.begun_set.insert(piece);
    }

    /// Checks the counts against the holdings and against what the peers have and were asked.
    pub(super) fn check_invariants<'a>(
        &self,
        held: &Bitmap,
        peers: impl Iterator<Item = (&'a Bitmap, &'a [BlockIndex])>,
    ) -> Result<(), String> {
        let mut asks = vec![0u16; self.asks.len()];
        let mut availability = vec![0u16; self.availability.len()];
        for (have, asked) in peers {
            have.iter().for_each(|piece| availability[piece as usize] += 1);
            asked.iter().for_each(|&block| asks[block as usize] += 1);
        }
        if asks != self.asks || availability != self.availability {
            return Err("the picker's counts differ from the peers'".into());
        }
        if let Some(block) = held.iter().find(|&block| asks[block as usize] > 0) {
            return Err(format!("block {block} is held and still asked for"));
        }
        let missing = held.len() - held.count();
        let asked = asks.iter().filter(|&&asks| asks > 0).count() as u32;
        if self.missing != missing || self.unasked != missing - asked {
            return Err(format!("{} of {missing} missing blocks known", self.missing));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
