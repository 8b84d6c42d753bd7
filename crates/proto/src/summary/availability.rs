//! Summaries: in at most 120 bytes, roughly which blocks a member has (Bullet §4.2.3.1).
//!
//! Up to 960 blocks the summary is the exact bitmap. Beyond, the paper offers a histogram of
//! 256-block ranges or a bitmap of the last portion recovered.
//!
//! Deviation: 120 ranges of 256 blocks cover 30,720 blocks and a count of 0..=256 does not fit
//! eight bits, so the ranges here scale with the content (always [`RANGES`] of them) and a count is
//! the held share of its range in 1/255, where 0 means none and 255 means all.

use super::Bitmap;
use crate::id::BlockIndex;
use serde::{Deserialize, Serialize};

/// The most bytes of a summary's body.
pub const SUMMARY_LEN_MAX: usize = 120;
/// Ranges of a histogram.
pub const RANGES: u32 = SUMMARY_LEN_MAX as u32;
/// Up to so many blocks the exact bitmap fits.
pub const EXACT_BLOCKS_MAX: u32 = SUMMARY_LEN_MAX as u32 * 8;
/// Blocks the bitmap of a last portion covers: four bytes say where it starts.
const TAIL_BLOCKS: u32 = (SUMMARY_LEN_MAX as u32 - 4) * 8;

/// Which summary is made of contents beyond [`EXACT_BLOCKS_MAX`] blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SummaryKind {
    /// The share held of each of [`RANGES`] ranges.
    #[default]
    Histogram,
    /// The paper's choice: a bitmap of the last portion recovered.
    Tail,
}

/// A summary of what a member holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Summary {
    /// One bit per block.
    Exact(Vec<u8>),
    /// For each range the share held, in 1/255.
    Histogram(Vec<u8>),
    /// One bit per block from `from` on; nothing is said of the blocks before.
    Tail {
        /// The first block described.
        from: BlockIndex,
        /// One bit per block.
        bits: Vec<u8>,
    },
}

impl Summary {
    /// Summarises `held`.
    pub fn of(held: &Bitmap, kind: SummaryKind) -> Summary {
        if held.len() <= EXACT_BLOCKS_MAX {
            return Summary::Exact(held.to_bytes());
        }
        match kind {
            SummaryKind::Histogram => Summary::Histogram(histogram(held)),
            SummaryKind::Tail => tail(held),
        }
    }

    /// Whether the body keeps its bound; what came from the network and does not is dropped.
    pub fn is_valid(&self) -> bool {
        match self {
            Summary::Exact(bytes) => bytes.len() <= SUMMARY_LEN_MAX,
            Summary::Histogram(shares) => shares.len() == RANGES as usize,
            Summary::Tail { bits, .. } => bits.len() <= SUMMARY_LEN_MAX - 4,
        }
    }

    /// How many blocks that `mine` lacks the summary promises. Within a histogram's range the two
    /// sets are taken as independent.
    pub fn useful(&self, mine: &Bitmap) -> f64 {
        match self {
            Summary::Exact(bytes) => count_new(0, bytes, mine),
            Summary::Tail { from, bits } => count_new(*from, bits, mine),
            Summary::Histogram(shares) => shares
                .iter()
                .enumerate()
                .map(|(range, &share)| {
                    let (from, to) = range_of(range as u32, mine.len());
                    let lacking = (to - from) - mine.count_range(from, to);
                    f64::from(lacking) * f64::from(share) / 255.0
                })
                .sum(),
        }
    }
}

fn range_of(range: u32, blocks: u32) -> (BlockIndex, BlockIndex) {
    let border = |range: u32| (u64::from(range) * u64::from(blocks) / u64::from(RANGES)) as u32;
    (border(range), border(range + 1))
}

fn histogram(held: &Bitmap) -> Vec<u8> {
    (0..RANGES)
        .map(|range| {
            let (from, to) = range_of(range, held.len());
            let (size, count) = (to - from, held.count_range(from, to));
            match count {
                0 => 0,
                _ if count == size => 255,
                _ => (count * 255 / size).clamp(1, 254) as u8,
            }
        })
        .collect()
}

fn tail(held: &Bitmap) -> Summary {
    let end = held.iter().last().map_or(0, |last| last + 1);
    let from = end.saturating_sub(TAIL_BLOCKS);
    let mut bits = vec![0; (end - from).div_ceil(8) as usize];
    for block in (from..end).filter(|&block| held.contains(block)) {
        let at = block - from;
        bits[(at / 8) as usize] |= 1 << (at % 8);
    }
    Summary::Tail { from, bits }
}

fn count_new(from: BlockIndex, bits: &[u8], mine: &Bitmap) -> f64 {
    let blocks =
        (0..bits.len() as u32 * 8).filter(|at| bits[(at / 8) as usize] >> (at % 8) & 1 == 1);
    let new = blocks
        .map(|at| from.saturating_add(at))
        .filter(|&block| block < mine.len() && !mine.contains(block));
    new.count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{RngExt, stream};

    fn random_set(blocks: u32, share: f64, seed: u64) -> Bitmap {
        let mut rng = stream(seed, "summary", "test");
        let mut set = Bitmap::new(blocks);
        (0..blocks).filter(|_| rng.random_bool(share)).for_each(|block| {
            set.insert(block);
        });
        set
    }

    fn encoded_len(summary: &Summary) -> usize {
        postcard::to_stdvec(summary).unwrap().len()
    }

    #[test]
    fn up_to_960_blocks_the_promise_is_exact() {
        for blocks in [1, 8, 500, 960] {
            let (theirs, mine) = (random_set(blocks, 0.6, 1), random_set(blocks, 0.5, 2));
            let summary = Summary::of(&theirs, SummaryKind::Histogram);
            assert!(matches!(summary, Summary::Exact(_)));
            assert_eq!(summary.useful(&mine), f64::from(theirs.count_without(&mine)));
        }
    }

    #[test]
    fn any_number_of_blocks_fits_120_bytes_and_a_small_head() {
        for blocks in [961, 1_526, 30_720, 131_072, 4_000_000] {
            let held = random_set(blocks, 0.3, 3);
            for kind in [SummaryKind::Histogram, SummaryKind::Tail] {
                let summary = Summary::of(&held, kind);
                assert!(summary.is_valid());
                assert!(encoded_len(&summary) <= SUMMARY_LEN_MAX + 4, "{blocks} {kind:?}");
            }
        }
    }

    #[test]
    fn a_histogram_promises_about_what_independent_sets_differ_by() {
        let (theirs, mine) = (random_set(20_000, 0.4, 4), random_set(20_000, 0.7, 5));
        let promise = Summary::of(&theirs, SummaryKind::Histogram).useful(&mine);
        let truth = f64::from(theirs.count_without(&mine));
        assert!((promise / truth - 1.0).abs() < 0.05, "{promise} for {truth}");
    }

    #[test]
    fn a_histogram_never_promises_blocks_of_empty_ranges_nor_hides_a_single_block() {
        let mut held = Bitmap::new(100_000);
        held.insert(99_999);
        let summary = Summary::of(&held, SummaryKind::Histogram);
        let promise = summary.useful(&Bitmap::new(100_000));
        assert!((0.5..4.0).contains(&promise), "{promise}");
        let empty = Summary::of(&Bitmap::new(100_000), SummaryKind::Histogram);
        assert_eq!(empty.useful(&Bitmap::new(100_000)), 0.0);
    }

    /// Why the histogram is the default: ranking candidates by promised blocks, it is right far
    /// more often than the bitmap of the last portion once nodes fetch in random order.
    #[test]
    fn a_histogram_ranks_random_holdings_better_than_the_tail_bitmap() {
        let right = |kind| {
            (0..200u64)
                .filter(|&seed| {
                    let mine = random_set(5_000, 0.3, seed * 3);
                    let a = random_set(5_000, 0.2 + 0.003 * seed as f64, seed * 3 + 1);
                    let b = random_set(5_000, 0.5, seed * 3 + 2);
                    let promise = |set: &Bitmap| Summary::of(set, kind).useful(&mine);
                    let truth = a.count_without(&mine) > b.count_without(&mine);
                    (promise(&a) > promise(&b)) == truth
                })
                .count()
        };
        let (histogram, tail) = (right(SummaryKind::Histogram), right(SummaryKind::Tail));
        assert!(histogram > tail, "histogram {histogram}, tail {tail} of 200");
        assert!(histogram >= 190);
    }

    #[test]
    fn hostile_summaries_are_recognised_and_never_panic() {
        let mine = Bitmap::new(10);
        assert!(!Summary::Exact(vec![0xff; 121]).is_valid());
        assert!(!Summary::Histogram(vec![1; 119]).is_valid());
        let wild = Summary::Tail { from: u32::MAX - 3, bits: vec![0xff; 116] };
        assert!(wild.is_valid());
        assert_eq!(wild.useful(&mine), 0.0);
    }
}
