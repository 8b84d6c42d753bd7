//! How late things were: a histogram with a resolution of 3%, from 1 ns to hours, of fixed size.

/// Buckets per doubling: 2 to the power of this.
const FINE_BITS: u32 = 5;
const FINE: u64 = 1 << FINE_BITS;
const BUCKETS: usize = (64 - FINE_BITS as usize + 1) * FINE as usize;

/// Numbers of nanoseconds, counted.
pub(super) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    max: u64,
}

impl Histogram {
    pub(super) fn new() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], count: 0, max: 0 }
    }

    /// Counts one.
    pub(super) fn add(&mut self, nanoseconds: u64) {
        self.counts[bucket(nanoseconds)] += 1;
        self.count += 1;
        self.max = self.max.max(nanoseconds);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// The least number of nanoseconds that at least this share (0 to 1) does not exceed, rounded
    /// up by at most 3%; 0 when nothing was counted.
    pub(super) fn quantile(&self, share: f64) -> u64 {
        let wanted = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper(index).min(self.max);
            }
        }
        self.max
    }
}

/// Small numbers have a bucket each; above, the leading bits choose it.
fn bucket(value: u64) -> usize {
    let shift = (64 - FINE_BITS).saturating_sub(value.leading_zeros() + 1);
    (u64::from(shift) * FINE + (value >> shift)) as usize
}

/// The largest number in a bucket.
fn upper(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * FINE {
        return index;
    }
    let shift = index / FINE - 1;
    let leading = index - shift * FINE;
    ((leading + 1) << shift).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_falls_into_a_bucket_whose_bound_is_at_most_3_percent_above() {
        for value in (0..5000).chain((0..63).map(|bit| (1 << bit) + 12_345)).chain([u64::MAX]) {
            let bound = upper(bucket(value));
            assert!(bound >= value, "{value}: {bound}");
            assert!(bound - value <= value / 32 + 1, "{value}: {bound}");
            assert!(bucket(value) < BUCKETS);
        }
    }

    #[test]
    fn quantiles_of_a_known_distribution_are_found() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.quantile(0.99), 0);
        (1..=1000).for_each(|us| histogram.add(us * 1000));
        let near = |value: u64, expected: u64| value >= expected && value <= expected * 33 / 32;
        assert!(near(histogram.quantile(0.5), 500_000));
        assert!(near(histogram.quantile(0.99), 990_000));
        assert_eq!((histogram.quantile(1.0), histogram.count()), (1_000_000, 1000));
    }
}
