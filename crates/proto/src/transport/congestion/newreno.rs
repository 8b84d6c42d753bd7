//! The window of Reno and NewReno (RFC 5681), with bytes counted (RFC 3465): slow start by what was
//! acknowledged, one segment per window after it, half on a loss.
//!
//! Which losses belong to one window, and what is sent in recovery, is the sender's (RFC 6582 and
//! RFC 6675).

use super::{Acked, CongestionControl, Start};
use crate::time::{Duration, Time};

/// Segments by which one acknowledgement opens the window in slow start: L of RFC 3465 §2.2.
const SEGMENTS_PER_ACK: u64 = 2;

/// See [the module](self). Bytes.
#[derive(Clone, Debug)]
pub struct NewReno {
    mss: u64,
    window_initial: u64,
    window: u64,
    ssthresh: u64,
    /// Acknowledged since the window grew last, beyond slow start.
    counted: u64,
    /// L counts as one segment in the slow start after a time-out (RFC 3465 §2.3).
    after_timeout: bool,
    /// Window and threshold before the last loss or time-out.
    before: Option<(u64, u64)>,
}

impl NewReno {
    /// A window at its start.
    pub fn new(start: Start) -> NewReno {
        NewReno {
            mss: u64::from(start.mss),
            window_initial: start.bytes(),
            window: start.bytes(),
            ssthresh: start.ssthresh.unwrap_or(u64::MAX),
            counted: 0,
            after_timeout: false,
            before: None,
        }
    }

    /// Half of what was out, without what limited transmit added (RFC 5681 §3.2).
    fn reduce(&mut self, flight: u64) {
        self.before = Some((self.window, self.ssthresh));
        self.ssthresh = (flight.min(self.window) / 2).max(2 * self.mss);
        self.counted = 0;
    }
}

impl CongestionControl for NewReno {
    fn name(&self) -> &'static str {
        "newreno"
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    fn on_ack(&mut self, acked: &Acked) {
        if acked.is_recovering || !acked.is_limited {
            return;
        }
        if self.window < self.ssthresh {
            let segments = if self.after_timeout { 1 } else { SEGMENTS_PER_ACK };
            self.window += acked.bytes.min(segments * self.mss);
            return;
        }
        self.counted += acked.bytes;
        if self.counted >= self.window {
            self.counted -= self.window;
            self.window += self.mss;
        }
    }

    fn on_loss(&mut self, _now: Time, flight: u64) {
        self.reduce(flight);
        self.window = self.ssthresh;
        self.after_timeout = false;
    }

    fn on_recovered(&mut self, _now: Time) {}

    fn on_timeout(&mut self, _now: Time, flight: u64) {
        self.reduce(flight);
        self.window = self.mss;
        self.after_timeout = true;
    }

    fn on_spurious(&mut self, _now: Time) {
        if let Some((window, ssthresh)) = self.before.take() {
            self.window = self.window.max(window);
            self.ssthresh = self.ssthresh.max(ssthresh);
            self.after_timeout = false;
        }
    }

    fn on_idle(&mut self, _now: Time, _idle: Duration) {
        self.window = self.window.min(self.window_initial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    fn control(window: u32, ssthresh: u64) -> NewReno {
        NewReno::new(Start { mss: MSS as u32, window, ssthresh: Some(ssthresh) })
    }

    fn acked(bytes: u64) -> Acked {
        Acked {
            now: Time::ZERO,
            bytes,
            rtt: None,
            srtt: Duration::ZERO,
            flight: 0,
            is_recovering: false,
            is_limited: true,
            feedback: None,
        }
    }

    #[test]
    fn slow_start_opens_by_two_segments_per_acknowledgement_at_most() {
        let mut reno = control(10, u64::MAX);
        reno.on_ack(&acked(MSS));
        assert_eq!(reno.window(), 11 * MSS);
        reno.on_ack(&acked(5 * MSS));
        assert_eq!(reno.window(), 13 * MSS);
    }

    #[test]
    fn beyond_the_threshold_a_window_of_bytes_opens_it_by_one_segment() {
        let mut reno = control(10, 10 * MSS);
        (0..9).for_each(|_| reno.on_ack(&acked(MSS)));
        assert_eq!(reno.window(), 10 * MSS);
        reno.on_ack(&acked(MSS));
        assert_eq!(reno.window(), 11 * MSS);
    }

    #[test]
    fn a_loss_halves_what_was_out_but_not_below_two_segments() {
        let mut reno = control(10, u64::MAX);
        reno.on_loss(Time::ZERO, 12 * MSS);
        assert_eq!((reno.window(), reno.ssthresh()), (5 * MSS, 5 * MSS));
        reno.on_loss(Time::ZERO, 3 * MSS);
        assert_eq!((reno.window(), reno.ssthresh()), (2 * MSS, 2 * MSS));
    }

    #[test]
    fn a_time_out_leaves_one_segment_and_slow_start_by_single_segments() {
        let mut reno = control(20, u64::MAX);
        reno.on_timeout(Time::ZERO, 20 * MSS);
        assert_eq!((reno.window(), reno.ssthresh()), (MSS, 10 * MSS));
        reno.on_ack(&acked(2 * MSS));
        assert_eq!(reno.window(), 2 * MSS);
    }

    #[test]
    fn a_needless_reaction_is_taken_back() {
        let mut reno = control(20, 30 * MSS);
        reno.on_loss(Time::ZERO, 20 * MSS);
        reno.on_spurious(Time::ZERO);
        assert_eq!((reno.window(), reno.ssthresh()), (20 * MSS, 30 * MSS));
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow_and_an_idle_one_shrinks_to_the_initial() {
        let mut reno = control(10, u64::MAX);
        reno.on_ack(&Acked { is_limited: false, ..acked(MSS) });
        assert_eq!(reno.window(), 10 * MSS);
        (0..20).for_each(|_| reno.on_ack(&acked(MSS)));
        reno.on_idle(Time::ZERO, Duration::from_secs(5));
        assert_eq!(reno.window(), 10 * MSS);
    }
}
