//! How much may wait unsent below a session: enough for the pipe never to run dry, and no more.
//!
//! Whatever waits in a socket stands before every message and every block that comes later, and can
//! no longer be taken back. 128 KiB are nothing at 1 Gb/s; on a lossy path of 400 kb/s they hold up
//! a request for 2.6 s, longer than the blocks that it asks for take.

use crate::time::{Duration, Time};

/// Bounds of a backlog.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The least, in bytes. Default 4 KiB: three segments.
    pub min: u64,
    /// The most, in bytes. Default 128 KiB. Equal bounds make it fixed.
    pub max: u64,
    /// It is what the pipe sends in this time. Default 50 ms. Raised, messages wait longer; lowered
    /// below a scheduler's delays, the pipe runs dry.
    pub span: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { min: 4 * 1024, max: 128 * 1024, span: Duration::from_millis(50) }
    }
}

impl Bounds {
    /// Always so many bytes.
    pub fn fixed(bytes: u64) -> Bounds {
        Bounds { min: bytes, max: bytes, ..Bounds::default() }
    }
}

/// Follows what a pipe sends. Its limit is a power of two within the bounds, so that it changes
/// seldom, and falls by at most half per span: a pause does not forget a fast pipe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backlog {
    limit: u64,
    since: Time,
    sent_before: u64,
}

impl Backlog {
    /// Nothing has been sent.
    pub(super) fn new(bounds: &Bounds, now: Time) -> Backlog {
        Backlog { limit: bounds.min, since: now, sent_before: 0 }
    }

    /// Bytes that may wait.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Up to now the pipe sent `sent` bytes in all.
    pub(super) fn update(&mut self, bounds: &Bounds, now: Time, sent: u64) {
        let span = now.since(self.since);
        if span < bounds.span || bounds.min >= bounds.max {
            return;
        }
        let bytes = sent.saturating_sub(self.sent_before);
        let share = u128::from(bytes) * u128::from(bounds.span.as_nanos() as u64)
            / u128::from(span.as_nanos() as u64).max(1);
        let wanted = (share as u64).checked_next_power_of_two().unwrap_or(bounds.max);
        self.limit = wanted.max(self.limit / 2).clamp(bounds.min, bounds.max);
        (self.since, self.sent_before) = (now, sent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit after a pipe sent at `rate` bytes per second for `millis`, looked at each 10 ms.
    fn after(backlog: &mut Backlog, from_ms: u64, millis: u64, rate: u64) -> u64 {
        let mut sent = backlog.sent_before;
        for step in 1..=millis / 10 {
            sent += rate / 100;
            let now = Time((from_ms + step * 10) * 1_000_000);
            backlog.update(&Bounds::default(), now, sent);
        }
        backlog.limit()
    }

    #[test]
    fn it_is_what_the_pipe_sends_in_50_ms_within_its_bounds() {
        for (rate, limit) in [(50_000, 4096), (150_000, 8192), (1_000_000, 65_536)] {
            let mut backlog = Backlog::new(&Bounds::default(), Time::ZERO);
            assert_eq!(after(&mut backlog, 0, 1_000, rate), limit, "{rate} B/s");
        }
        let mut backlog = Backlog::new(&Bounds::default(), Time::ZERO);
        assert_eq!(after(&mut backlog, 0, 60, 1_000_000_000), 128 * 1024);
    }

    #[test]
    fn a_pause_halves_it_and_a_slower_pipe_is_followed_within_half_a_second() {
        let mut backlog = Backlog::new(&Bounds::default(), Time::ZERO);
        after(&mut backlog, 0, 500, 1_000_000_000);
        backlog.update(&Bounds::default(), Time::from_secs_f64(60.0), backlog.sent_before);
        assert_eq!(backlog.limit(), 64 * 1024);
        assert_eq!(after(&mut backlog, 60_000, 500, 40_000), 4096);
    }

    #[test]
    fn equal_bounds_fix_it() {
        let bounds = Bounds::fixed(16_384);
        let mut backlog = Backlog::new(&bounds, Time::ZERO);
        backlog.update(&bounds, Time::from_secs_f64(1.0), 1 << 40);
        assert_eq!(backlog.limit(), 16_384);
    }
}
