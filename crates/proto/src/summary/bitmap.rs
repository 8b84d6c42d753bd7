//! A set of block numbers below a fixed length, one bit each, with its count kept.

use crate::id::BlockIndex;
use serde::{Deserialize, Serialize};

/// A set of block numbers `0..len`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bitmap {
    len: u32,
    count: u32,
    words: Vec<u64>,
}

impl Bitmap {
    /// The empty set over `0..len`.
    pub fn new(len: u32) -> Bitmap {
        Bitmap { len, count: 0, words: vec![0; len.div_ceil(64) as usize] }
    }

    /// The set of all of `0..len`.
    pub fn full(len: u32) -> Bitmap {
        let mut all = Bitmap::new(len);
        all.insert_range(0, len);
        all
    }

    /// How many numbers the set ranges over.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many members the set has.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether every number is a member.
    pub fn is_full(&self) -> bool {
        self.count == self.len
    }

    /// Whether `index` is a member; false beyond the length.
    pub fn contains(&self, index: BlockIndex) -> bool {
        index < self.len && self.words[(index / 64) as usize] >> (index % 64) & 1 == 1
    }

    /// Adds `index`; returns whether it was new. Numbers beyond the length are ignored.
    pub fn insert(&mut self, index: BlockIndex) -> bool {
        if index >= self.len || self.contains(index) {
            return false;
        }
        self.words[(index / 64) as usize] |= 1 << (index % 64);
        self.count += 1;
        true
    }

    /// Removes `index`; returns whether it was there.
    pub fn remove(&mut self, index: BlockIndex) -> bool {
        if !self.contains(index) {
            return false;
        }
        self.words[(index / 64) as usize] &= !(1 << (index % 64));
        self.count -= 1;
        true
    }

    /// Adds every number in `from..to` (clamped to the length).
    pub fn insert_range(&mut self, from: BlockIndex, to: BlockIndex) {
        for index in from..to.min(self.len) {
            self.insert(index);
        }
    }

    /// How many members lie in `from..to`.
    pub fn count_range(&self, from: BlockIndex, to: BlockIndex) -> u32 {
        let to = to.min(self.len);
        if from >= to {
            return 0;
        }
        let (first, last) = ((from / 64) as usize, ((to - 1) / 64) as usize);
        (first..=last)
            .map(|word| {
                let mut bits = self.words[word];
                if word == first {
                    bits &= !0 << (from % 64);
                }
                if word == last && !to.is_multiple_of(64) {
                    bits &= !0 >> (64 - to % 64);
                }
                bits.count_ones()
            })
            .sum()
    }

    /// The members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = BlockIndex> + '_ {
        self.words.iter().enumerate().flat_map(|(word, &bits)| ones(word, bits))
    }

    /// The members of `self` that are in none of `others`, ascending.
    pub fn iter_without<'a>(
        &'a self,
        others: &'a [&'a Bitmap],
    ) -> impl Iterator<Item = BlockIndex> + 'a {
        self.words.iter().enumerate().flat_map(move |(word, &bits)| {
            let taken = others
                .iter()
                .fold(0, |acc, other| acc | other.words.get(word).copied().unwrap_or(0));
            ones(word, bits & !taken)
        })
    }

    /// How many members of `self` are not in `other`.
    pub fn count_without(&self, other: &Bitmap) -> u32 {
        self.words
            .iter()
            .enumerate()
            .map(|(word, &bits)| (bits & !other.words.get(word).copied().unwrap_or(0)).count_ones())
            .sum()
    }

    /// The set as bytes, least significant bit first, `len.div_ceil(8)` of them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(self.len.div_ceil(8) as usize);
        bytes
    }

    /// The set over `0..len` that [`Bitmap::to_bytes`] gave; `None` when the bytes are not exactly
    /// as many as `len` needs or have a bit set beyond it.
    pub fn from_bytes(len: u32, bytes: &[u8]) -> Option<Bitmap> {
        if bytes.len() != len.div_ceil(8) as usize {
            return None;
        }
        let mut words = vec![0u64; len.div_ceil(64) as usize];
        for (at, &byte) in bytes.iter().enumerate() {
            words[at / 8] |= u64::from(byte) << (at % 8 * 8);
        }
        if !len.is_multiple_of(64) && words.last().is_some_and(|last| last >> (len % 64) != 0) {
            return None;
        }
        let count = words.iter().map(|word| word.count_ones()).sum();
        Some(Bitmap { len, count, words })
    }
}

fn ones(word: usize, mut bits: u64) -> impl Iterator<Item = BlockIndex> {
    std::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let at = bits.trailing_zeros();
        bits &= bits - 1;
        Some(word as u32 * 64 + at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn bytes_with_a_bit_beyond_the_length_are_refused() {
        assert!(Bitmap::from_bytes(3, &[0b0000_0111]).is_some_and(|b| b.is_full()));
        assert!(Bitmap::from_bytes(3, &[0b0000_1000]).is_none());
        assert!(Bitmap::from_bytes(3, &[0, 0]).is_none());
        assert!(Bitmap::from_bytes(0, &[]).is_some_and(|b| b.is_full() && b.is_empty()));
    }

    proptest! {
        #[test]
        fn a_bitmap_is_the_set_of_what_was_inserted_and_not_removed(
            len in 1u32..300, ops in prop::collection::vec((any::<bool>(), 0u32..320), 0..200),
            from in 0u32..320, to in 0u32..320,
        ) {
            let mut bitmap = Bitmap::new(len);
            let mut model = BTreeSet::new();
            for (add, index) in ops {
                if add && index < len { prop_assert_eq!(bitmap.insert(index), model.insert(index)); }
                else if add { prop_assert!(!bitmap.insert(index)); }
                else { prop_assert_eq!(bitmap.remove(index), model.remove(&index)); }
            }
            prop_assert_eq!(bitmap.count() as usize, model.len());
            prop_assert_eq!(bitmap.iter().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
            let in_range = model.iter().filter(|&&i| i >= from && i < to).count();
            prop_assert_eq!(bitmap.count_range(from, to) as usize, in_range);
            let back = Bitmap::from_bytes(len, &bitmap.to_bytes());
            prop_assert_eq!(back, Some(bitmap));
        }

        #[test]
        fn no_bytes_panic_the_decoder(len in 0u32..2000, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(bitmap) = Bitmap::from_bytes(len, &bytes) {
                prop_assert_eq!(bitmap.to_bytes(), bytes);
            }
        }
    }
}
