//! How fast bytes pass, over the last twenty seconds: what chokes are decided by (BEP 3).

use crate::time::{Duration, Time};

/// The span looked back on.
const SPAN: Duration = Duration::from_secs(20);
/// What a measure has been open for at least, so that its first bytes are no peak.
const OPEN: Duration = Duration::from_secs(1);

/// A rolling mean: bytes are weighed into the rate of a span that slides along, of at most
/// twenty seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    rate: f64,
    since: Time,
    last: Time,
}

impl Rate {
    pub(super) fn new(now: Time) -> Rate {
        Rate { rate: 0.0, since: now - OPEN, last: now }
    }

    /// Counts bytes.
    pub(super) fn add(&mut self, now: Time, bytes: u64) {
        let before = self.rate * self.last.since(self.since).as_secs_f64();
        let span = now.since(self.since).max(OPEN).as_secs_f64();
        self.rate = (before + bytes as f64) / span;
        self.last = now;
        self.since = self.since.max(now - SPAN);
    }

    /// Bytes per second.
    pub(super) fn at(mut self, now: Time) -> f64 {
        self.add(now, 0);
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_flow_has_its_rate_and_one_that_stops_is_forgotten_within_a_minute() {
        let mut rate = Rate::new(Time::ZERO);
        let at = |tenths: u64| Time::ZERO + Duration::from_millis(100 * tenths);
        (1..=300).for_each(|tenth| rate.add(at(tenth), 1_000));
        assert!((9_500.0..10_500.0).contains(&rate.at(at(300))), "{rate:?}");
        assert!((4_000.0..6_000.0).contains(&rate.at(at(500))), "{}", rate.at(at(500)));
        assert!(rate.at(at(900)) < 3_000.0);
    }
}
