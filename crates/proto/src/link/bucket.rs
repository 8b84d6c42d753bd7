//! A token bucket: holds a byte rate over any longer span, and lets a short burst through.

use crate::time::{Duration, Time};

/// A limit in bytes per second with a burst. Spending may overdraw it once, by one piece; it then
/// refuses until the debt is paid, so the long-run rate holds whatever the size of the pieces.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: f64,
    burst: f64,
    level: f64,
    at: Time,
}

impl Bucket {
    /// A full bucket of `rate` bytes per second, with a burst of `burst_for` at that rate.
    pub fn new(rate: u64, burst_for: Duration, now: Time) -> Bucket {
        let rate = rate.max(1) as f64;
        let burst = rate * burst_for.as_secs_f64();
        Bucket { rate, burst, level: burst, at: now }
    }

    /// Whether something may be spent now.
    pub fn is_open(&mut self, now: Time) -> bool {
        self.refill(now);
        self.level > 0.0
    }

    /// Takes `bytes` out.
    pub fn spend(&mut self, now: Time, bytes: u64) {
        self.refill(now);
        self.level -= bytes as f64;
    }

    /// When it opens again; `now` when it is open.
    pub fn opens_at(&mut self, now: Time) -> Time {
        if self.is_open(now) {
            return now;
        }
        now + Duration::from_secs_f64((1.0 - self.level) / self.rate)
    }

    fn refill(&mut self, now: Time) {
        let gained = now.since(self.at).as_secs_f64() * self.rate;
        self.level = (self.level + gained).min(self.burst);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_rate_within_the_burst_whatever_the_pieces() {
        for piece in [100u64, 1_500, 16_384, 300_000] {
            let mut now = Time::ZERO;
            let mut bucket = Bucket::new(1_000_000, Duration::from_millis(50), now);
            let mut sent = 0;
            while now < Time::from_secs_f64(10.0) {
                while bucket.is_open(now) {
                    bucket.spend(now, piece);
                    sent += piece;
                }
                now = bucket.opens_at(now);
            }
            let excess = sent as f64 - 10_000_000.0;
            assert!(excess.abs() <= 50_000.0 + piece as f64, "{piece}: {excess}");
        }
    }

    #[test]
    fn a_shut_bucket_says_exactly_when_it_opens() {
        let mut bucket = Bucket::new(1_000, Duration::from_secs(1), Time::ZERO);
        bucket.spend(Time::ZERO, 3_000);
        let opens = bucket.opens_at(Time::ZERO);
        assert!(!bucket.is_open(opens - Duration::from_millis(2)));
        assert!(bucket.is_open(opens));
    }
}
