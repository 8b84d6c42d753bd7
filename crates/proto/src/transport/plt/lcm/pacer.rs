//! Burst control: the LCM's packets go in bursts of a few, at the pace at which the window leaves
//! (thesis §3.2.2, "ACK-pacing … restricts from sending more than a certain number of packets at
//! the same time"; neither pace nor number is given).
//!
//! A bucket of `burst` packets fills at a rate of `gain · window / rtt`. Without a measured
//! round-trip time it fills in `blind`. Acknowledgements only wake the sender.

use crate::time::{Duration, Time};

/// How bursts are bounded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Packets that may go at once. Default 16. Raised: fewer timers, longer queues.
    pub burst: u32,
    /// The rate in windows per round trip. Default 1.25. At 1 the window would never be used up.
    pub gain: f64,
    /// The time in which the bucket fills before a round-trip time is known. Default 1 ms.
    pub blind: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config { burst: 16, gain: 1.25, blind: Duration::from_millis(1) }
    }
}

/// See [the module](self). Bytes.
#[derive(Clone, Debug)]
pub struct Pacer {
    config: Config,
    mss: f64,
    tokens: f64,
    filled: Time,
}

impl Pacer {
    /// A full bucket.
    pub fn new(config: Config, mss: u32) -> Pacer {
        let mss = f64::from(mss.max(1));
        Pacer { tokens: mss * f64::from(config.burst.max(1)), config, mss, filled: Time::ZERO }
    }

    fn capacity(&self) -> f64 {
        self.mss * f64::from(self.config.burst.max(1))
    }

    /// Bytes per second.
    fn rate(&self, window: u64, rtt: Duration) -> f64 {
        if rtt.is_zero() {
            self.capacity() / self.config.blind.as_secs_f64().max(1e-6)
        } else {
            (window as f64).max(self.mss) * self.config.gain / rtt.as_secs_f64()
        }
    }

    /// Whether `len` bytes may go now.
    pub fn allows(&mut self, now: Time, len: u64, window: u64, rtt: Duration) -> bool {
        let gained = now.since(self.filled).as_secs_f64() * self.rate(window, rtt);
        self.tokens = (self.tokens + gained).min(self.capacity());
        self.filled = now;
        self.tokens >= len as f64
    }

    /// `len` bytes went.
    pub fn spend(&mut self, len: u64) {
        self.tokens -= len as f64;
    }

    /// When half a bucket, and `len` bytes, will be there.
    pub fn ready(&self, len: u64, window: u64, rtt: Duration) -> Time {
        let wanted = (self.capacity() / 2.0).max(len as f64) - self.tokens;
        self.filled + Duration::from_secs_f64((wanted / self.rate(window, rtt)).clamp(1e-6, 60.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn no_more_than_a_burst_goes_at_once_and_a_window_in_less_than_a_round_trip() {
        let mut pacer = Pacer::new(Config { burst: 4, ..Config::default() }, 10);
        let (window, rtt, mut now, mut sent) = (1_000, 100 * MS, Time::ZERO, 0);
        while sent < 1_000 {
            let mut burst = 0;
            while pacer.allows(now, 10, window, rtt) {
                pacer.spend(10);
                burst += 10;
            }
            assert!(burst <= 40, "{burst}");
            sent += burst;
            now = now.max(pacer.ready(10, window, rtt));
        }
        let took = now.since(Time::ZERO);
        assert!(took > 75 * MS && took < 85 * MS, "{took:?}");
    }

    #[test]
    fn before_a_round_trip_is_known_bursts_come_at_fixed_times() {
        let mut pacer = Pacer::new(Config { burst: 4, ..Config::default() }, 10);
        (0..4).for_each(|_| pacer.spend(10));
        assert!(!pacer.allows(Time::ZERO, 10, 1_000, Duration::ZERO));
        assert_eq!(pacer.ready(10, 1_000, Duration::ZERO), Time::ZERO + MS / 2);
    }
}
