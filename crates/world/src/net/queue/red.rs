//! Random early detection (Floyd, Jacobson: Random Early Detection Gateways for Congestion
//! Avoidance, 1993), with the gentle slope above `max` (Floyd 2000). It drops; it marks nothing.
//!
//! An average of the queue's length decides. Between `min` and `max` the probability of a drop
//! rises to `probability_max`, from there to 1 at twice `max`. A count since the last drop spaces
//! the drops evenly. While the queue is empty the average decays as if small packets had come to
//! find it empty.
//!
//! With a limit in bytes the average is in bytes and a packet's probability is proportional to
//! its length (§IV: `p_b · size / maximum size`); the maximum is the link's MTU.

use super::drop_tail;
use crate::net::stats::{Cause, Count};
use crate::topology::{Limit, RedSpec};
use anabranch_proto::random::{Rng, RngExt};
use anabranch_proto::time::Time;

/// Bytes of the small packet whose time on the wire is the unit in which an idle queue's average
/// decays: ns-2's default.
const IDLE_PACKET: u64 = 500;

/// RED's state at one queue.
#[derive(Debug)]
pub(crate) struct Red {
    spec: RedSpec,
    /// Nanoseconds of an idle packet.
    idle_ns: u64,
    mtu: u32,
    rng: Rng,
    /// The average length, in the limit's unit.
    average: f64,
    /// Packets that were taken since the last drop while drops were possible; -1 when none is.
    count: i64,
}

impl Red {
    pub(crate) fn new(spec: RedSpec, rate: u64, mtu: u32, rng: Rng) -> Red {
        let mut red = Red { spec, idle_ns: 1, mtu: mtu.max(1), rng, average: 0.0, count: -1 };
        red.set_rate(rate);
        red
    }

    /// The link's rate, bytes per second.
    pub(crate) fn set_rate(&mut self, rate: u64) {
        self.idle_ns = (IDLE_PACKET * 1_000_000_000 / rate.max(1)).max(1);
    }

    /// Whether a packet may join what is held. The queue was last empty from `idle_since` on.
    pub(crate) fn admit(
        &mut self,
        now: Time,
        held: Count,
        len: u32,
        idle_since: Time,
    ) -> Result<(), Cause> {
        self.sample(now, held, idle_since);
        if !drop_tail::fits(self.spec.limit, held, len) {
            self.count = 0;
            return Err(Cause::Full);
        }
        let base = self.base_probability(len);
        if base <= 0.0 {
            self.count = -1;
            return Ok(());
        }
        self.count += 1;
        // p_a = p_b / (1 - count · p_b), which makes the gaps between drops uniform (§VII). The
        // count goes up first, as in the paper's Fig. 2, so the gaps end at 1/p_b - 1.
        let spaced = 1.0 - self.count as f64 * base;
        let is_dropped = spaced <= base || self.rng.random::<f64>() < base / spaced;
        if is_dropped {
            self.count = 0;
            return Err(Cause::Early);
        }
        Ok(())
    }

    /// Takes the length that an arriving packet finds into the average.
    fn sample(&mut self, now: Time, held: Count, idle_since: Time) {
        let weight = self.spec.weight;
        if held.packets == 0 {
            let idle = now.0.saturating_sub(idle_since.0) / self.idle_ns;
            self.average *= power(1.0 - weight, idle.saturating_add(1));
        } else {
            let length = match self.spec.limit {
                Limit::Packets(_) => held.packets,
                Limit::Bytes(_) => held.bytes,
            };
            self.average += weight * (length as f64 - self.average);
        }
    }

    /// p_b, for a packet of `len` bytes.
    fn base_probability(&self, len: u32) -> f64 {
        let RedSpec { min, max, probability_max, .. } = self.spec;
        let average = self.average;
        let probability = if average < min {
            0.0
        } else if average < max {
            probability_max * (average - min) / (max - min)
        } else if average < 2.0 * max {
            probability_max + (1.0 - probability_max) * (average - max) / max
        } else {
            return 1.0;
        };
        match self.spec.limit {
            Limit::Packets(_) => probability,
            Limit::Bytes(_) => probability * f64::from(len) / f64::from(self.mtu),
        }
    }
}

/// `base` to a whole power by squaring: products only, so the same on every platform.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 && result > 0.0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_proto::random;

    const SPEC: RedSpec = RedSpec {
        limit: Limit::Packets(100),
        min: 10.0,
        max: 30.0,
        probability_max: 0.1,
        weight: 0.002,
    };

    fn red(spec: RedSpec) -> Red {
        Red::new(spec, 1_500_000, 1_500, random::stream(1, "a->b", "red"))
    }

    fn held(packets: u64) -> Count {
        Count { packets, bytes: packets * 1_500 }
    }

    /// Drops among `packets` arrivals that all find the same length, and the gaps between them.
    fn drops(red: &mut Red, packets: u32, found: Count, len: u32) -> (f64, Vec<u32>) {
        let (mut gaps, mut gap) = (Vec::new(), 0);
        for _ in 0..packets {
            gap += 1;
            if red.admit(Time::ZERO, found, len, Time::ZERO) == Err(Cause::Early) {
                gaps.push(gap);
                gap = 0;
            }
        }
        (gaps.len() as f64 / f64::from(packets), gaps)
    }

    #[test]
    fn the_average_follows_slowly() {
        let mut red = red(SPEC);
        for _ in 0..500 {
            red.admit(Time::ZERO, held(9), 1_500, Time::ZERO).unwrap();
        }
        // 9 (1 - 0.998^500).
        assert!((red.average - 5.692).abs() < 0.001, "{}", red.average);
    }

    #[test]
    fn below_min_nothing_is_dropped_and_above_twice_max_everything() {
        let mut low = red(RedSpec { weight: 1.0, ..SPEC });
        assert_eq!(drops(&mut low, 10_000, held(9), 1_500).0, 0.0);
        let mut high = red(RedSpec { weight: 1.0, ..SPEC });
        assert_eq!(drops(&mut high, 10_000, held(61), 1_500).0, 1.0);
    }

    #[test]
    fn gaps_between_drops_are_uniform_with_half_the_inverse_probability_as_mean() {
        let mut red = red(RedSpec { weight: 1.0, ..SPEC });
        // Half way: p_b = 0.05. Gaps are uniform on 1..=19: mean 10, each as likely.
        let (share, gaps) = drops(&mut red, 200_000, held(20), 1_500);
        assert!((share - 0.1).abs() < 0.001, "{share}");
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&1), Some(&19)));
        for length in 1..=19 {
            let of_it = gaps.iter().filter(|gap| **gap == length).count() as f64;
            assert!((of_it / gaps.len() as f64 - 1.0 / 19.0).abs() < 0.006, "{length}: {of_it}");
        }
    }

    #[test]
    fn the_slope_above_max_is_gentle() {
        let red = |average| Red { average, ..red(SPEC) }.base_probability(1_500);
        assert_eq!(red(30.0), 0.1);
        assert!((red(45.0) - 0.55).abs() < 1e-12);
        assert_eq!(red(60.0), 1.0);
    }

    #[test]
    fn in_bytes_a_short_packet_is_dropped_less_often() {
        let spec = RedSpec {
            limit: Limit::Bytes(150_000),
            min: 15_000.0,
            max: 45_000.0,
            weight: 1.0,
            ..SPEC
        };
        let (long, _) = drops(&mut red(spec), 100_000, held(20), 1_500);
        let (short, _) = drops(&mut red(spec), 100_000, held(20), 150);
        assert!((long / short - 10.0).abs() < 1.0, "{long} {short}");
    }

    #[test]
    fn the_average_decays_while_the_queue_is_empty() {
        let mut red = Red { average: 20.0, ..red(SPEC) };
        // 1.5 MB/s: 500 bytes take a third of a millisecond; 100 ms are 300 of them.
        red.admit(Time(150_000_000), held(0), 1_500, Time(50_000_000)).unwrap();
        assert!((red.average - 20.0 * 0.998f64.powi(301)).abs() < 1e-9, "{}", red.average);
    }

    #[test]
    fn a_full_queue_drops_whatever_the_average_says() {
        assert_eq!(red(SPEC).admit(Time::ZERO, held(100), 40, Time::ZERO), Err(Cause::Full));
    }
}
