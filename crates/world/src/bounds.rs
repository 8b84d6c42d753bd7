//! The least time in which a file can reach everyone: what completions are compared with.
//!
//! Rates are net of headers, times without propagation delay.

use crate::units::Rate;

/// `max(F/u_s, F/d_min, N·F/(u_s + Σu_i))` in seconds, for a file of `file` bytes, a source that
/// sends at `source_up`, and receivers with these (up, down) rates: the last receiver cannot be
/// complete earlier, and fluid distribution reaches it (Kumar & Ross 2006, Theorem 1). Zero when
/// there are no receivers.
pub fn kumar_ross(file: u64, source_up: Rate, receivers: &[(Rate, Rate)]) -> f64 {
    let Some(down_min) = receivers.iter().map(|(_, down)| *down).min() else { return 0.0 };
    let up_sum: f64 = receivers.iter().map(|(up, _)| up.as_f64()).sum();
    let all = receivers.len() as f64 * file as f64 / (source_up.as_f64() + up_sum);
    source_up.secs_for(file).max(down_min.secs_for(file)).max(all)
}

/// `(F/u) · (1 + ⌊log₂ N⌋ / M)` in seconds: the least time to bring a file of `file` bytes in
/// `blocks` whole blocks to `receivers` receivers when all uplinks, the source's too, are `up` and
/// downlinks do not bind (Mundinger, Weber & Weiss 2008). Zero when there are no receivers.
pub fn mundinger(file: u64, blocks: u32, up: Rate, receivers: u32) -> f64 {
    let Some(doublings) = receivers.checked_ilog2() else { return 0.0 };
    up.secs_for(file) * (1.0 + f64::from(doublings) / f64::from(blocks.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Size, mbit};

    #[test]
    fn each_of_the_three_terms_binds_when_it_should() {
        let file = 75.mb();
        let equal = [(mbit(6), mbit(6)); 10];
        assert_eq!(kumar_ross(file, mbit(6), &equal), 100.0);
        assert_eq!(kumar_ross(file, mbit(3), &equal), 200.0);
        let mut slow = equal;
        slow[3].1 = mbit(1);
        assert_eq!(kumar_ross(file, mbit(6), &slow), 600.0);
        // Ten receivers that send next to nothing: the source sends almost everything.
        let mute = [(mbit(1).percent(1), mbit(6)); 10];
        let time = kumar_ross(file, mbit(6), &mute);
        assert!((980.0..1000.0).contains(&time), "{time}");
        assert_eq!(kumar_ross(file, mbit(6), &[]), 0.0);
    }

    #[test]
    fn whole_blocks_cost_one_block_time_per_doubling() {
        let file = 75.mb();
        assert_eq!(mundinger(file, 100, mbit(6), 1), 100.0);
        assert_eq!(mundinger(file, 100, mbit(6), 8), 103.0);
        assert_eq!(mundinger(file, 100, mbit(6), 15), 103.0);
        assert_eq!(mundinger(file, 1, mbit(6), 8), 400.0);
        assert_eq!(mundinger(file, 1, mbit(6), 0), 0.0);
    }
}
