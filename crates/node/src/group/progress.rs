//! How far a group is: counters that link tasks add to, and smoothed rates.

use crate::event::Progress;
use anabranch_proto::time::{Duration, Time};
use std::sync::atomic::{AtomicU64, Ordering};

/// Running totals in bytes, added to by link tasks.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Content bytes sent.
    pub(crate) uploaded: AtomicU64,
    /// TLS records received.
    pub(crate) wire_down: AtomicU64,
    /// TLS records sent.
    pub(crate) wire_up: AtomicU64,
}

impl Counters {
    /// Puts the totals into `progress`.
    pub(crate) fn read(&self, progress: &mut Progress) {
        progress.uploaded = self.uploaded.load(Ordering::Relaxed);
        progress.wire_down = self.wire_down.load(Ordering::Relaxed);
        progress.wire_up = self.wire_up.load(Ordering::Relaxed);
    }
}

/// A rate smoothed over about four seconds.
#[derive(Debug, Default)]
struct Smoothed {
    total: u64,
    rate: f64,
}

impl Smoothed {
    /// The running total is `total` now, `span` after the last time.
    fn sample(&mut self, total: u64, span: Duration) -> f64 {
        let seconds = span.as_secs_f64().max(1e-3);
        let now = total.saturating_sub(self.total) as f64 / seconds;
        let gain = (seconds / 4.0).min(1.0);
        self.total = total;
        self.rate += (now - self.rate) * if self.rate == 0.0 { 1.0 } else { gain };
        self.rate
    }
}

/// Keeps a group's [`Progress`].
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) progress: Progress,
    down: Smoothed,
    up: Smoothed,
    sampled: Time,
}

impl Meter {
    /// Brings counters, rates and the time to go up to date; call it about twice a second.
    pub(super) fn sample(&mut self, now: Time, counters: &Counters, peers: u32) {
        let span = now.since(self.sampled);
        self.sampled = now;
        let progress = &mut self.progress;
        progress.peers = peers;
        counters.read(progress);
        progress.rate_down = self.down.sample(progress.from_source + progress.from_peers, span);
        progress.rate_up = self.up.sample(progress.uploaded, span);
        let left = progress.bytes_total.saturating_sub(progress.bytes_done);
        progress.eta = (left > 0 && progress.rate_down >= 1.0)
            .then(|| Duration::from_secs_f64(left as f64 / progress.rate_down));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_and_the_time_to_go_follow_what_arrives() {
        let (mut meter, counters) = (Meter::default(), Counters::default());
        meter.progress.bytes_total = 10_000_000;
        for half in 1..=20u64 {
            meter.progress.from_source = half * 250_000;
            meter.progress.bytes_done = half * 250_000;
            meter.sample(Time::from_secs_f64(half as f64 / 2.0), &counters, 3);
        }
        assert!((meter.progress.rate_down - 500_000.0).abs() < 5_000.0);
        let eta = meter.progress.eta.unwrap().as_secs_f64();
        assert!((eta - 10.0).abs() < 0.2, "{eta}");
    }

    #[test]
    fn a_group_that_stands_still_has_no_time_to_go() {
        let (mut meter, counters) = (Meter::default(), Counters::default());
        meter.progress.bytes_total = 10;
        meter.sample(Time::from_secs_f64(1.0), &counters, 0);
        assert_eq!(meter.progress.eta, None);
    }
}
