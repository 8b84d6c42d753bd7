//! A set of blocks told in full, to a peer.

use super::Bitmap;
use serde::{Deserialize, Serialize};

/// A set as it is told: the two most frequent ones cost a byte.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Exact {
    /// The empty set.
    Nothing,
    /// The full set.
    All,
    /// One bit per block, as [`Bitmap::to_bytes`] writes it.
    Bits(Vec<u8>),
}

impl Exact {
    /// How `set` is told.
    pub fn of(set: &Bitmap) -> Exact {
        match set {
            set if set.is_empty() => Exact::Nothing,
            set if set.is_full() => Exact::All,
            set => Exact::Bits(set.to_bytes()),
        }
    }

    /// The set over `blocks` blocks; `None` when it is not one.
    pub fn bitmap(&self, blocks: u32) -> Option<Bitmap> {
        match self {
            Exact::Nothing => Some(Bitmap::new(blocks)),
            Exact::All => Some(Bitmap::full(blocks)),
            Exact::Bits(bytes) => Bitmap::from_bytes(blocks, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_comes_back_as_it_was_and_one_of_another_size_is_refused() {
        let mut some = Bitmap::new(13);
        some.insert(12);
        for set in [Bitmap::new(13), some.clone(), Bitmap::full(13)] {
            assert_eq!(Exact::of(&set).bitmap(13), Some(set));
        }
        assert_eq!(Exact::of(&some).bitmap(200), None);
    }
}
