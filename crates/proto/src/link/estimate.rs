//! Estimators that protocols share: a smoothed round-trip time and a byte rate.

use crate::time::{Duration, Time};

/// A round-trip time smoothed as TCP does (RFC 6298 §2, gain 1/8).
#[derive(Clone, Copy, Debug, Default)]
pub struct Rtt {
    smoothed: Option<Duration>,
    min: Option<Duration>,
}

impl Rtt {
    /// Takes in a sample.
    pub fn sample(&mut self, rtt: Duration) {
        self.smoothed = Some(self.smoothed.map_or(rtt, |old| (old * 7 + rtt) / 8));
        self.min = Some(self.min.map_or(rtt, |old| old.min(rtt)));
    }

    /// The smoothed value.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The least sample.
    pub fn min(&self) -> Option<Duration> {
        self.min
    }
}

/// Bytes per second over a window that is closed by whoever reads it: the bytes counted since the
/// last close, divided by the time since.
#[derive(Clone, Copy, Debug)]
pub struct WindowRate {
    since: Time,
    bytes: u64,
}

impl WindowRate {
    /// An empty window that opens now.
    pub fn new(now: Time) -> WindowRate {
        WindowRate { since: now, bytes: 0 }
    }

    /// Counts bytes.
    pub fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Bytes per second so far; zero for an empty span.
    pub fn rate(&self, now: Time) -> f64 {
        let span = now.since(self.since).as_secs_f64();
        if span > 0.0 { self.bytes as f64 / span } else { 0.0 }
    }

    /// How long the window has been open.
    pub fn span(&self, now: Time) -> Duration {
        now.since(self.since)
    }

    /// The rate so far; the window starts anew.
    pub fn close(&mut self, now: Time) -> f64 {
        let rate = self.rate(now);
        *self = WindowRate::new(now);
        rate
    }
}

/// The rate at which a busy pipe delivers: bytes per second of the time it had something to
/// deliver, over the last few pieces. Idle time does not count.
///
/// Bytes and time are smoothed apart, each with gain 1/8. A mean of the pieces' own rates would be
/// off by orders of magnitude over TCP: after a loss, pieces that waited for the repeated segment
/// come all at one moment, and each of them seems to have taken no time.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceRate {
    bytes: f64,
    seconds: f64,
}

impl ServiceRate {
    /// A piece of `bytes` took `span` to come through.
    pub fn sample(&mut self, bytes: u64, span: Duration) {
        let gain = if self.bytes > 0.0 { 1.0 / 8.0 } else { 1.0 };
        self.bytes += (bytes as f64 - self.bytes) * gain;
        self.seconds += (span.as_secs_f64() - self.seconds) * gain;
    }

    /// Bytes per second; `None` before the first piece.
    pub fn rate(&self) -> Option<f64> {
        (self.bytes > 0.0).then(|| self.bytes / self.seconds.max(1e-6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_gives_bytes_over_its_own_span() {
        let mut window = WindowRate::new(Time::from_secs_f64(1.0));
        window.add(3_000);
        assert_eq!(window.close(Time::from_secs_f64(4.0)), 1_000.0);
        window.add(500);
        assert_eq!(window.rate(Time::from_secs_f64(5.0)), 500.0);
        assert_eq!(WindowRate::new(Time::ZERO).rate(Time::ZERO), 0.0);
    }

    #[test]
    fn a_service_rate_follows_a_tenfold_slowdown_within_a_dozen_pieces() {
        let mut service = ServiceRate::default();
        (0..8).for_each(|_| service.sample(1_000, Duration::from_millis(10)));
        (0..12).for_each(|_| service.sample(1_000, Duration::from_millis(100)));
        let rate = service.rate().unwrap();
        assert!((10_000.0..13_500.0).contains(&rate), "{rate}");
    }

    #[test]
    fn pieces_that_come_in_bursts_do_not_make_a_pipe_look_faster_than_it_is() {
        // Three of four pieces wait in TCP for a repeated segment and come with it.
        let mut service = ServiceRate::default();
        for piece in 0..64 {
            let span = if piece % 4 == 0 { 400_000 } else { 1 };
            service.sample(16_384, Duration::from_micros(span));
        }
        let rate = service.rate().unwrap();
        assert!((110_000.0..250_000.0).contains(&rate), "{rate}, not about 163,840");
    }
}
