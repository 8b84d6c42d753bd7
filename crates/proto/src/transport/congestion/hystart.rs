//! Leaving slow start before it overflows the queue: HyStart (Ha and Rhee, 2011) as Linux has it,
//! and HyStart++ (RFC 9406).
//!
//! Both look at rounds, the time in which what was in flight at its start is acknowledged. HyStart
//! ends slow start when acknowledgements of a round come back to back for half the smallest
//! round-trip time, or when the first round-trip times of a round lie above the smallest ever seen.
//! HyStart++ looks at delays only, against the round before, and grows more slowly for five rounds
//! first, to see whether it was wrong.

use super::Acked;
use crate::time::{Duration, Time};

/// How a window in slow start finds its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SlowStart {
    /// By a loss or the threshold.
    Plain,
    /// By HyStart, with both detections, as Linux does.
    #[default]
    HyStart,
    /// By HyStart++.
    HyStartPlusPlus,
}

/// Windows below it are left alone by HyStart (`hystart_low_window`), segments.
const LOW_WINDOW: f64 = 16.0;
/// Acknowledgements closer than that form a train (`hystart_ack_delta_us`).
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// What Linux allows for the aggregation of segments, at the rates up to 2 Gb/s where its bound
/// applies.
const AGGREGATION: Duration = Duration::from_millis(1);
/// Round-trip times looked at in a round (both: 8).
const SAMPLES: u32 = 8;
/// Bounds of the rise of the round-trip time that counts (both).
const RISE: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));
/// CSS_GROWTH_DIVISOR of RFC 9406.
const SLOW_DIVISOR: f64 = 4.0;
/// CSS_ROUNDS of RFC 9406.
const SLOW_ROUNDS: u32 = 5;
/// L of RFC 9406 for senders that do not pace, segments.
const GROWTH_MAX: f64 = 8.0;

/// See [the module](self).
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    kind: SlowStart,
    /// Bytes to be acknowledged before the round ends.
    round_left: u64,
    round_start: Time,
    last_ack: Time,
    samples: u32,
    rtt_min_round: Duration,
    rtt_min_round_before: Duration,
    rtt_min: Duration,
    /// What ended the slow start, until it proves right: its smallest round-trip time, and rounds
    /// since.
    slow: Option<(Duration, u32)>,
}

impl HyStart {
    /// Before the first acknowledgement.
    pub fn new(kind: SlowStart) -> HyStart {
        HyStart {
            kind,
            round_left: 0,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            samples: 0,
            rtt_min_round: Duration::MAX,
            rtt_min_round_before: Duration::MAX,
            rtt_min: Duration::MAX,
            slow: None,
        }
    }

    /// An acknowledgement came in slow start. Gives the segments by which a window of `window`
    /// segments grows, or nothing when slow start is over.
    pub fn on_ack(&mut self, acked: &Acked, segments: f64, window: f64) -> Option<f64> {
        if self.kind == SlowStart::Plain {
            return Some(segments);
        }
        if self.round_left == 0 {
            self.begin_round(acked);
        }
        self.round_left = self.round_left.saturating_sub(acked.bytes);
        if let Some(rtt) = acked.rtt {
            self.rtt_min = self.rtt_min.min(rtt);
            if self.kind == SlowStart::HyStartPlusPlus || self.samples < SAMPLES {
                self.rtt_min_round = self.rtt_min_round.min(rtt);
            }
            self.samples += 1;
        }
        if self.kind == SlowStart::HyStartPlusPlus {
            return self.grow(segments);
        }
        let is_over = window >= LOW_WINDOW && self.is_over(acked.now);
        (!is_over).then_some(segments)
    }

    /// A slow start begins anew, after a time-out.
    pub fn restart(&mut self) {
        *self = HyStart { rtt_min: self.rtt_min, ..HyStart::new(self.kind) };
    }

    fn begin_round(&mut self, acked: &Acked) {
        self.round_left = acked.flight;
        self.round_start = acked.now;
        self.last_ack = acked.now;
        self.samples = 0;
        self.rtt_min_round_before = self.rtt_min_round;
        self.rtt_min_round = Duration::MAX;
        if let Some((_, rounds)) = &mut self.slow {
            *rounds += 1;
        }
    }

    /// HyStart's two detections.
    fn is_over(&mut self, now: Time) -> bool {
        if now.since(self.last_ack) <= TRAIN_GAP {
            self.last_ack = now;
            if now.since(self.round_start) > self.rtt_min.saturating_add(AGGREGATION) / 2 {
                return true;
            }
        }
        self.samples >= SAMPLES && self.rtt_min_round > self.risen(self.rtt_min)
    }

    fn risen(&self, base: Duration) -> Duration {
        base.saturating_add((base / 8).clamp(RISE.0, RISE.1))
    }

    /// RFC 9406 §4.2.
    fn grow(&mut self, segments: f64) -> Option<f64> {
        let grown = segments.min(GROWTH_MAX);
        let has_samples = self.samples >= SAMPLES;
        match self.slow {
            None => {
                let is_over = has_samples
                    && self.rtt_min_round_before < Duration::MAX
                    && self.rtt_min_round >= self.risen(self.rtt_min_round_before);
                self.slow = is_over.then_some((self.rtt_min_round, 0));
                Some(grown)
            }
            Some((base, _)) if has_samples && self.rtt_min_round < base => {
                self.slow = None;
                Some(grown)
            }
            Some((_, rounds)) if rounds >= SLOW_ROUNDS => None,
            Some(_) => Some(grown / SLOW_DIVISOR),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acked(ms: u64, rtt: u64, flight: u64) -> Acked {
        Acked {
            now: Time(ms * 1_000_000),
            bytes: 1,
            rtt: Some(Duration::from_millis(rtt)),
            srtt: Duration::ZERO,
            flight,
            is_recovering: false,
            is_limited: true,
            feedback: None,
        }
    }

    /// Rounds of 20 acknowledgements, 10 ms apart, each round with its round-trip time. Gives what
    /// each round grew by, until slow start is over.
    fn rounds(kind: SlowStart, rtts: &[u64]) -> Vec<f64> {
        let mut hystart = HyStart::new(kind);
        let mut now = 0;
        let mut grown = Vec::new();
        for &rtt in rtts {
            grown.push(0.0);
            for _ in 0..20 {
                now += 10;
                let Some(by) = hystart.on_ack(&acked(now, rtt, 20), 1.0, 20.0) else {
                    return grown;
                };
                *grown.last_mut().unwrap() += by;
            }
        }
        grown
    }

    #[test]
    fn hystart_ends_when_round_trips_rise_by_an_eighth() {
        assert_eq!(rounds(SlowStart::HyStart, &[80, 90, 90]), [20.0; 3]);
        assert_eq!(rounds(SlowStart::HyStart, &[80, 91]), [20.0, 7.0]);
    }

    #[test]
    fn hystart_ends_when_a_train_of_acknowledgements_lasts_half_a_round_trip() {
        let mut hystart = HyStart::new(SlowStart::HyStart);
        let over = (0..).find(|ms| hystart.on_ack(&acked(*ms, 80, 1_000), 1.0, 20.0).is_none());
        // Half of 80 ms and of the allowance.
        assert_eq!(over, Some(41));
        let mut hystart = HyStart::new(SlowStart::HyStart);
        let mut acks = (0..200).map(|n| hystart.on_ack(&acked(3 * n, 80, 1_000), 1.0, 20.0));
        assert!(acks.all(|grown| grown.is_some()), "3 ms apart there is no train");
        let mut hystart = HyStart::new(SlowStart::HyStart);
        let mut acks = (0..200).map(|ms| hystart.on_ack(&acked(ms, 80, 1_000), 1.0, 15.0));
        assert!(acks.all(|grown| grown.is_some()), "small windows are left alone");
    }

    #[test]
    fn hystart_plus_plus_slows_down_first_and_ends_after_five_rounds() {
        let grown = rounds(SlowStart::HyStartPlusPlus, &[80, 91, 91, 91, 91, 91, 91, 91]);
        assert_eq!(grown[0], 20.0);
        assert_eq!(grown[1], 8.0 + 12.0 / 4.0);
        assert_eq!(grown[2..6], [5.0; 4]);
        assert_eq!(grown.len(), 7);
        assert_eq!(grown[6], 0.0);
    }

    #[test]
    fn hystart_plus_plus_goes_on_when_the_rise_was_a_mistake() {
        let grown = rounds(SlowStart::HyStartPlusPlus, &[80, 91, 80, 80]);
        assert_eq!(grown[3], 20.0);
    }

    #[test]
    fn plain_slow_start_never_ends_by_itself() {
        assert_eq!(rounds(SlowStart::Plain, &[80, 500, 5_000]), [20.0; 3]);
    }
}
