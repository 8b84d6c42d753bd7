//! The retransmission time-out (RFC 6298), from samples that timestamps give (RFC 7323).
//!
//! Every acknowledgement gives a sample, and a retransmitted segment's is as good as any other
//! (the echo says which copy it was), which is what Karn's rule is about. Since a window of samples
//! would forget the past within one round trip, their weights are divided by the samples
//! that a round trip is expected to give (RFC 7323 appendix G).

use crate::time::Duration;

/// The limits of a retransmission time-out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Before the first sample. 1 s (RFC 6298 §2.1).
    pub initial: Duration,
    /// At least. Default 200 ms, as in Linux and ns-2; RFC 6298 §2.4 wants 1 s.
    pub min: Duration,
    /// At most, with back-off. 60 s (RFC 6298 §2.5).
    pub max: Duration,
    /// G: what is added to the smoothed round-trip time at least. Default 200 ms, as in Linux, where
    /// the minimum bounds the variance and not the sum.
    pub granularity: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            initial: Duration::from_secs(1),
            min: Duration::from_millis(200),
            max: Duration::from_secs(60),
            granularity: Duration::from_millis(200),
        }
    }
}

/// See [the module](self). Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Rto {
    initial: u64,
    min: u64,
    max: u64,
    granularity: u64,
    /// Zero before the first sample.
    srtt: u64,
    rttvar: u64,
    /// Time-outs since the last acknowledgement of something new.
    backoff: u32,
    has_sample: bool,
    /// The set-up had to be repeated.
    was_slow: bool,
}

/// 2^32 s would overflow the maximum long before.
const BACKOFF_MAX: u32 = 32;

impl Rto {
    /// No sample yet.
    pub fn new(limits: Limits) -> Rto {
        Rto {
            initial: nanos(limits.initial),
            min: nanos(limits.min),
            max: nanos(limits.max),
            granularity: nanos(limits.granularity),
            srtt: 0,
            rttvar: 0,
            backoff: 0,
            has_sample: false,
            was_slow: false,
        }
    }

    /// A round-trip time was measured, with as many full segments in flight.
    pub fn sample(&mut self, rtt: Duration, segments: u64) {
        let rtt = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX / 64).clamp(1, u64::MAX / 64);
        if !self.has_sample {
            self.has_sample = true;
            self.was_slow = false;
            self.srtt = rtt;
            self.rttvar = rtt / 2;
            return;
        }
        let expected = segments.div_ceil(2).clamp(1, 1 << 24);
        let gap = self.srtt.abs_diff(rtt);
        move_to(&mut self.rttvar, gap, 4 * expected);
        move_to(&mut self.srtt, rtt, 8 * expected);
    }

    /// Smoothed round-trip time; zero before the first sample.
    pub fn srtt(&self) -> Duration {
        Duration::from_nanos(self.srtt)
    }

    /// The time-out now, back-off included.
    pub fn timeout(&self) -> Duration {
        let base = if self.has_sample {
            let spread = (4 * self.rttvar).max(self.granularity);
            (self.srtt + spread).max(self.min)
        } else if self.was_slow {
            // RFC 6298 §5.7.
            3 * self.initial
        } else {
            self.initial
        };
        let backed_off = base.saturating_mul(1 << self.backoff.min(BACKOFF_MAX));
        Duration::from_nanos(backed_off.min(self.max))
    }

    /// The timer ran out (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Something new was acknowledged.
    pub fn forget_back_off(&mut self) {
        self.backoff = 0;
    }

    /// The set-up is done, after repeated SYNs when the timer had run out (RFC 6298 §5.7).
    pub fn set_up(&mut self) {
        self.was_slow |= self.backoff > 0 && !self.has_sample;
        self.backoff = 0;
    }

    /// How often the timer ran out since something new was acknowledged.
    pub fn backoffs(&self) -> u32 {
        self.backoff
    }
}

/// Moves `value` towards `target` by one part in `weight`.
fn move_to(value: &mut u64, target: u64, weight: u64) {
    if target >= *value {
        *value += (target - *value) / weight;
    } else {
        *value -= (*value - target) / weight;
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 8).min(u64::MAX / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn exact() -> Limits {
        Limits { min: MS, granularity: Duration::ZERO, ..Limits::default() }
    }

    #[test]
    fn the_first_sample_gives_three_round_trips_by_rfc_6298_2_2() {
        let mut rto = Rto::new(exact());
        assert_eq!(rto.timeout(), Duration::from_secs(1));
        rto.sample(100 * MS, 1);
        assert_eq!((rto.srtt(), rto.timeout()), (100 * MS, 300 * MS));
    }

    #[test]
    fn later_samples_weigh_an_eighth_and_a_quarter_by_rfc_6298_2_3() {
        let mut rto = Rto::new(exact());
        rto.sample(80 * MS, 1);
        rto.sample(160 * MS, 1);
        // RTTVAR = 3/4 * 40 + 1/4 * 80 = 50; SRTT = 7/8 * 80 + 1/8 * 160 = 90.
        assert_eq!((rto.srtt(), rto.timeout()), (90 * MS, 290 * MS));
    }

    #[test]
    fn a_window_of_samples_weighs_as_much_as_one_by_rfc_7323_g() {
        let (mut one, mut many) = (Rto::new(exact()), Rto::new(exact()));
        one.sample(80 * MS, 1);
        many.sample(80 * MS, 1);
        one.sample(160 * MS, 1);
        (0..500).for_each(|_| many.sample(160 * MS, 1_000));
        let gap = one.srtt().abs_diff(many.srtt());
        assert!(gap < MS, "{:?} {:?}", one.srtt(), many.srtt());
    }

    #[test]
    fn each_time_out_doubles_it_up_to_the_maximum_by_rfc_6298_5_5() {
        let mut rto = Rto::new(exact());
        rto.sample(100 * MS, 1);
        rto.back_off();
        assert_eq!(rto.timeout(), 600 * MS);
        (0..100).for_each(|_| rto.back_off());
        assert_eq!(rto.timeout(), Duration::from_secs(60));
        rto.forget_back_off();
        assert_eq!(rto.timeout(), 300 * MS);
    }

    #[test]
    fn a_repeated_set_up_begins_with_three_seconds_by_rfc_6298_5_7() {
        let mut rto = Rto::new(exact());
        rto.back_off();
        rto.set_up();
        assert_eq!(rto.timeout(), Duration::from_secs(3));
    }

    #[test]
    fn the_granularity_stands_in_for_a_variance_that_is_too_small() {
        let mut rto = Rto::new(Limits::default());
        (0..1_000).for_each(|_| rto.sample(500 * MS, 1));
        assert!(rto.timeout() >= 700 * MS && rto.timeout() < 701 * MS, "{:?}", rto.timeout());
    }
}
