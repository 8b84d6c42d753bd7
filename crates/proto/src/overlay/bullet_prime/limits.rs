//! How many peers to have, and which to drop (Bullet §4.2.3.2, Fig. 5).
//!
//! Deviations: Fig. 5 takes no branch when the number of peers did not change and may then freeze
//! at its maximum; here it tries one more. The bounds 6..25 that the text gives are applied here.
//! Fig. 5 runs at every RanSub distribute; here at distributes at least
//! [`super::Config::judge_interval`] apart, and both bandwidths are means over that span, so that
//! short epochs do not judge noise. A member that holds clearly less than its senders tries one
//! more whatever the comparison says: with noise, "fewer was not slower" can starve it.

use std::cmp::Ordering;

/// The number of senders (or receivers) aimed for: ManageSenders.
#[derive(Clone, Debug)]
pub struct PeerLimit {
    initial: usize,
    max: usize,
    bounds: (usize, usize),
    previous: Option<(usize, f64)>,
}

impl PeerLimit {
    /// Starts at `initial`, stays within `bounds`.
    pub fn new(initial: usize, bounds: (usize, usize)) -> PeerLimit {
        let initial = initial.clamp(bounds.0, bounds.1);
        PeerLimit { initial, max: initial, bounds, previous: None }
    }

    /// How many peers to have now.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Aims for one more than there are, and for no fewer than at the start: a member that falls
    /// behind does not try fewer.
    pub fn raise(&mut self) {
        let least = self.previous.map_or(self.max, |(peers, _)| peers + 1);
        self.max = self.max.max(least).max(self.initial).min(self.bounds.1);
    }

    /// Starts over from at least `peers`, as far as the bounds allow.
    pub fn restart_from(&mut self, peers: usize) {
        let peers = peers.min(self.bounds.1);
        if peers > self.initial {
            (self.initial, self.max, self.previous) = (peers, self.max.max(peers), None);
        }
    }

    /// Starts over from `peers` when it had started from more; whether it had.
    pub fn return_to(&mut self, peers: usize) -> bool {
        let peers = peers.clamp(self.bounds.0, self.bounds.1);
        let is_raised = self.initial > peers;
        if is_raised {
            (self.initial, self.max, self.previous) = (peers, peers, None);
        }
        is_raised
    }

    /// With `peers` peers the bandwidth was `bandwidth` since the last call.
    pub fn update(&mut self, peers: usize, bandwidth: f64) {
        let previous = self.previous.replace((peers, bandwidth));
        if peers != self.max {
            return;
        }
        let more = match previous {
            None => true,
            Some((before, bandwidth_before)) => {
                let faster = bandwidth > bandwidth_before;
                match peers.cmp(&before) {
                    Ordering::Less => !faster,
                    Ordering::Greater => faster,
                    // As many as before: try one more (see above), or one fewer at the top.
                    Ordering::Equal => peers < self.bounds.1,
                }
            }
        };
        let next = if more { self.max + 1 } else { self.max - 1 };
        self.max = next.clamp(self.bounds.0, self.bounds.1);
    }
}

/// Which of `values` lie more than `sigma` standard deviations below the mean, least first.
pub fn laggards(values: &[f64], sigma: f64) -> Vec<usize> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
    let bar = mean - sigma * libm::sqrt(variance);
    let mut below: Vec<usize> = (0..values.len()).filter(|&at| values[at] < bar).collect();
    below.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit() -> PeerLimit {
        PeerLimit::new(10, (6, 25))
    }

    #[test]
    fn a_full_set_first_tries_one_more() {
        let mut limit = limit();
        limit.update(10, 5.0);
        assert_eq!(limit.max(), 11);
    }

    #[test]
    fn a_set_that_is_not_full_is_left_alone() {
        let mut limit = limit();
        limit.update(9, 5.0);
        limit.update(8, 50.0);
        assert_eq!(limit.max(), 10);
    }

    #[test]
    fn a_peer_that_helped_is_followed_by_another_and_one_that_did_not_is_given_up() {
        let mut limit = limit();
        limit.update(10, 5.0);
        limit.update(11, 6.0);
        assert_eq!(limit.max(), 12);
        limit.update(12, 5.5);
        assert_eq!(limit.max(), 11);
        // Back to 11 and faster without it: try fewer still.
        limit.update(11, 6.0);
        assert_eq!(limit.max(), 10);
        limit.update(10, 4.0);
        assert_eq!(limit.max(), 11);
    }

    #[test]
    fn the_same_number_twice_does_not_freeze_the_set() {
        let mut limit = limit();
        limit.update(10, 5.0);
        limit.max = 10;
        limit.update(10, 5.0);
        assert_eq!(limit.max(), 11);
    }

    #[test]
    fn the_limit_stays_between_6_and_25() {
        let mut limit = limit();
        let mut most = 0;
        for round in 0..40 {
            limit.update(limit.max(), f64::from(round));
            most = most.max(limit.max());
        }
        assert_eq!(most, 25);
        let (mut bandwidth, mut least) = (1e9, 25);
        for _ in 0..40 {
            let peers = limit.max();
            // Faster with fewer, slower with more: always down.
            bandwidth *= if limit.previous.is_some_and(|(n, _)| peers < n) { 1.1 } else { 0.9 };
            limit.update(peers, bandwidth);
            least = least.min(limit.max());
        }
        assert_eq!(least, 6);
        assert!(limit.max() <= 7, "at the bottom it tries one more and gives it up again");
    }

    #[test]
    fn a_member_that_falls_behind_starts_over_from_the_initial_number_and_goes_up() {
        let mut limit = limit();
        limit.max = 7;
        limit.update(7, 5.0);
        limit.raise();
        assert_eq!(limit.max(), 10);
        limit.update(10, 5.0);
        limit.raise();
        assert!(limit.max() >= 11);
    }

    #[test]
    fn a_set_starts_over_from_a_higher_number_once_and_never_beyond_its_bounds() {
        let mut limit = limit();
        limit.restart_from(8);
        assert_eq!(limit.max(), 10);
        limit.restart_from(20);
        assert_eq!(limit.max(), 20);
        limit.update(20, 5.0);
        limit.update(21, 4.0);
        limit.restart_from(20);
        assert_eq!(limit.max(), 20, "what was learnt since is kept");
        limit.restart_from(90);
        assert_eq!(limit.max(), 25);
        assert!(limit.return_to(10));
        assert_eq!(limit.max(), 10);
        assert!(!limit.return_to(10));
    }

    #[test]
    fn only_peers_far_below_the_mean_are_laggards_and_equal_ones_never() {
        assert!(laggards(&[5.0; 10], 1.5).is_empty());
        let mut values = vec![5.0, 5.1, 4.9, 5.0, 5.2, 4.8, 5.0, 0.5, 0.1];
        assert_eq!(laggards(&values, 1.5), [8, 7]);
        values.truncate(7);
        assert!(laggards(&values, 1.5).len() <= 1);
        assert!(laggards(&[], 1.5).is_empty());
    }
}
