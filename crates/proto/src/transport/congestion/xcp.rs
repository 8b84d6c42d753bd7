//! The sender of XCP (Katabi, Handley, Rohrs, SIGCOMM 2002, here cited as `[XCP]`): the routers say
//! how the window is to change, and the sender does so.
//!
//! Every data packet carries the sender's window, its round-trip time and its wish; each router on
//! the way lowers the wish to what it grants, the receiver returns it, and the sender adds it to its
//! window: `w = max(w + feedback, segment)` ([XCP §3.2]). The wish is what would bring the sender to
//! the rate it desires within one round trip, shared over the packets of a window:
//! `(rate · rtt - w) / (w / segment)`. The first packets, before there is a round-trip time, carry a
//! round-trip time of zero and wish for nothing.
//!
//! Losses are answered as TCP does: one halves the window, a time-out leaves one segment; there is
//! no slow start.
//!
//! Requirements, not checked here: every queue of the path that can fill is an XCP router's. A wish
//! that no router has lowered is believed, and such a window ends at the receiver's window.
//!
//! Deviations: feedback that comes while a loss is being repaired is used too (the paper does not
//! say; the ns-2 sender ignores it on duplicate acknowledgements).

use super::{Acked, CongestionControl, Start};
use crate::time::{Duration, Time};
use crate::transport::packet::XcpHeader;

/// The parameters of XCP's sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// The rate it desires, bytes per second. Default: 1.25e12 (10 Tb/s), more than any link has,
    /// so that the routers alone decide.
    pub rate: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config { rate: 1.25e12 }
    }
}

/// XCP's window. See [the module](self).
#[derive(Debug)]
pub struct Xcp {
    config: Config,
    /// Bytes of a segment.
    segment: f64,
    /// The window in bytes.
    window: f64,
    /// Half of the window at the last loss; nothing here depends on it.
    ssthresh: u64,
    /// The window before the last loss or time-out, bytes.
    before: Option<f64>,
}

impl Xcp {
    /// A control that begins as `start` says.
    pub fn new(config: Config, start: Start) -> Xcp {
        let segment = f64::from(start.mss.max(1));
        let window = (start.bytes() as f64).max(segment);
        let ssthresh = start.ssthresh.unwrap_or(u64::MAX);
        Xcp { config, segment, window, ssthresh, before: None }
    }

    fn cut(&mut self, window: f64) {
        self.before = Some(self.window);
        self.ssthresh = (self.window / 2.0).max(2.0 * self.segment) as u64;
        self.window = window.max(self.segment);
    }
}

impl CongestionControl for Xcp {
    fn name(&self) -> &'static str {
        "xcp"
    }

    fn window(&self) -> u64 {
        self.window as u64
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    fn on_ack(&mut self, acked: &Acked) {
        let Some(feedback) = acked.feedback.filter(|bytes| bytes.is_finite()) else {
            return;
        };
        // A window that is not used must not grow: the router counts on what it grants being sent.
        if feedback < 0.0 || acked.is_limited {
            self.window = (self.window + feedback).max(self.segment);
        }
    }

    fn on_loss(&mut self, _now: Time, _flight: u64) {
        self.cut((self.window / 2.0).max(2.0 * self.segment));
    }

    fn on_recovered(&mut self, _now: Time) {}

    fn on_timeout(&mut self, _now: Time, _flight: u64) {
        self.cut(self.segment);
    }

    fn on_spurious(&mut self, _now: Time) {
        if let Some(before) = self.before.take() {
            self.window = self.window.max(before);
        }
    }

    fn stamp(&mut self, _now: Time, srtt: Duration) -> Option<XcpHeader> {
        let wish = match srtt.is_zero() {
            true => 0.0,
            false => {
                let packets = (self.window / self.segment).max(1.0);
                (self.config.rate * srtt.as_secs_f64() - self.window) / packets
            }
        };
        Some(XcpHeader { window: self.window, rtt: srtt, feedback: wish })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(window: u32) -> Start {
        Start { mss: 1000, window, ssthresh: None }
    }

    fn acked(feedback: Option<f64>) -> Acked {
        Acked {
            now: Time(1),
            bytes: 1000,
            rtt: None,
            srtt: Duration::from_millis(80),
            flight: 10_000,
            is_recovering: false,
            is_limited: true,
            feedback,
        }
    }

    #[test]
    fn the_window_changes_by_the_feedback_and_never_falls_below_a_segment() {
        let mut xcp = Xcp::new(Config::default(), start(10));
        xcp.on_ack(&acked(Some(2_500.5)));
        assert_eq!(xcp.window(), 12_500);
        xcp.on_ack(&acked(Some(-1_000.0)));
        assert_eq!(xcp.window(), 11_500);
        xcp.on_ack(&acked(None));
        assert_eq!(xcp.window(), 11_500);
        xcp.on_ack(&acked(Some(-1e9)));
        assert_eq!(xcp.window(), 1_000);
        xcp.on_ack(&acked(Some(f64::NAN)));
        assert_eq!(xcp.window(), 1_000);
    }

    #[test]
    fn granted_wishes_of_one_window_bring_the_desired_rate() {
        let rtt = Duration::from_millis(80);
        let mut xcp = Xcp::new(Config { rate: 1e6 }, start(10));
        let header = xcp.stamp(Time(1), rtt).unwrap();
        assert_eq!((header.window, header.rtt), (10_000.0, rtt));
        for _ in 0..10 {
            xcp.on_ack(&acked(Some(header.feedback)));
        }
        assert_eq!(xcp.window(), 80_000); // 1 MB/s for 80 ms
    }

    #[test]
    fn the_first_packets_have_no_round_trip_time_and_no_wish() {
        let mut xcp = Xcp::new(Config::default(), start(2));
        let header = xcp.stamp(Time(1), Duration::ZERO).unwrap();
        assert_eq!(header, XcpHeader { window: 2_000.0, rtt: Duration::ZERO, feedback: 0.0 });
    }

    #[test]
    fn losses_are_answered_as_tcp_does_and_undone_when_they_were_none() {
        let mut xcp = Xcp::new(Config::default(), start(20));
        xcp.on_loss(Time(1), 20_000);
        assert_eq!(xcp.window(), 10_000);
        xcp.on_spurious(Time(2));
        assert_eq!(xcp.window(), 20_000);
        xcp.on_timeout(Time(3), 20_000);
        assert_eq!(xcp.window(), 1_000);
    }
}
