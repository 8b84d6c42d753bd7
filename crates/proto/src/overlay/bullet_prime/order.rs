//! In which order available blocks are asked for (Bullet §4.3.3.1).

use crate::id::BlockIndex;
use crate::random::{Rng, RngExt};

/// A policy: of the blocks a sender offers, the one with the least key is asked for first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RequestOrder {
    /// The longest known first.
    FirstEncountered,
    /// Any.
    Random,
    /// The one fewest senders have; ties by number, so that all members choose alike.
    Rarest,
    /// The one fewest senders have; ties at random.
    #[default]
    RarestRandom,
}

/// What a policy may look at.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Which block.
    pub block: BlockIndex,
    /// How many of this member's senders have it.
    pub rarity: u16,
    /// When it became known, as a running number.
    pub encountered: u32,
}

impl RequestOrder {
    /// The block's key: less is sooner.
    pub fn key(self, offer: Offer, rng: &mut Rng) -> (u32, u32) {
        match self {
            RequestOrder::FirstEncountered => (offer.encountered, offer.block),
            RequestOrder::Random => (0, rng.random()),
            RequestOrder::Rarest => (u32::from(offer.rarity), offer.block),
            RequestOrder::RarestRandom => (u32::from(offer.rarity), rng.random()),
        }
    }
}

/// The `count` offers with the least keys, in key order.
pub fn choose(
    order: RequestOrder,
    offers: impl Iterator<Item = Offer>,
    count: usize,
    rng: &mut Rng,
) -> Vec<BlockIndex> {
    let mut best: Vec<((u32, u32), BlockIndex)> = Vec::with_capacity(count + 1);
    for offer in offers {
        let full = best.len() == count;
        // A block rarer than none kept needs no random number.
        let coarse = order == RequestOrder::RarestRandom || order == RequestOrder::Rarest;
        if full && coarse && best.last().is_some_and(|(worst, _)| u32::from(offer.rarity) > worst.0)
        {
            continue;
        }
        let key = order.key(offer, rng);
        let at = best.partition_point(|(kept, _)| *kept <= key);
        if at < count {
            best.insert(at, (key, offer.block));
            best.truncate(count);
        }
    }
    best.into_iter().map(|(_, block)| block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    /// Block `i` has the rarity of the `i`th digit; all were met in order, later ones first.
    fn offers(rarities: &str) -> Vec<Offer> {
        let digits = rarities.bytes().map(|digit| u16::from(digit - b'0'));
        let count = rarities.len() as u32;
        digits
            .zip(0..)
            .map(|(rarity, block)| Offer { block, rarity, encountered: count - block })
            .collect()
    }

    fn chosen(order: RequestOrder, rarities: &str, count: usize, seed: u64) -> Vec<BlockIndex> {
        choose(order, offers(rarities).into_iter(), count, &mut stream(seed, "order", "test"))
    }

    #[test]
    fn first_encountered_takes_the_longest_known() {
        assert_eq!(chosen(RequestOrder::FirstEncountered, "11111", 2, 1), [4, 3]);
    }

    #[test]
    fn rarest_takes_the_rarest_by_number_for_everybody_alike() {
        for seed in 0..5 {
            assert_eq!(chosen(RequestOrder::Rarest, "3121511", 3, seed), [1, 3, 5]);
        }
    }

    #[test]
    fn rarest_random_takes_only_the_rarest_and_each_of_them_about_equally_often() {
        let mut counts = [0; 7];
        for seed in 0..2_000 {
            counts[chosen(RequestOrder::RarestRandom, "3121511", 1, seed)[0] as usize] += 1;
        }
        assert_eq!([counts[0], counts[2], counts[4]], [0, 0, 0]);
        for block in [1, 3, 5, 6] {
            assert!((400..600).contains(&counts[block]), "{counts:?}");
        }
    }

    #[test]
    fn random_ignores_rarity() {
        let first: std::collections::BTreeSet<_> =
            (0..100).map(|seed| chosen(RequestOrder::Random, "9911", 1, seed)[0]).collect();
        assert_eq!(first.len(), 4);
    }

    #[test]
    fn no_more_than_asked_and_no_more_than_there_are() {
        assert_eq!(chosen(RequestOrder::RarestRandom, "123", 10, 1).len(), 3);
        assert!(chosen(RequestOrder::RarestRandom, "123", 0, 1).is_empty());
        assert!(chosen(RequestOrder::RarestRandom, "", 5, 1).is_empty());
    }
}
