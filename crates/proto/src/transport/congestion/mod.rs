//! Window-based congestion control, as a part that any sender with acknowledgements can use.
//!
//! The sender finds losses, keeps the retransmission timer and limits itself to the window; the
//! control only says how large the window is. A sender reports each acknowledgement, the first
//! loss of a window once, and each time-out.

pub mod choice;
pub mod cubic;
pub mod fast;
pub mod hystart;
pub mod newreno;
pub mod xcp;

pub use choice::Choice;
pub use cubic::Cubic;
pub use newreno::NewReno;

use super::packet::XcpHeader;
use crate::time::{Duration, Time};

/// An acknowledgement that told the sender something new.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Acked {
    /// When it came.
    pub now: Time,
    /// Bytes newly acknowledged, in order or selectively.
    pub bytes: u64,
    /// A round-trip time measured with it.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Bytes in flight before it.
    pub flight: u64,
    /// Whether the sender is in the recovery that `on_loss` began, or this ends it. After a
    /// time-out it is not: the window grows again while the sender fills the gaps.
    pub is_recovering: bool,
    /// Whether the window, and not the application or the receiver, limited the sender.
    pub is_limited: bool,
    /// XCP's feedback as the receiver returned it, bytes.
    pub feedback: Option<f64>,
}

/// What a window begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// Bytes of a full segment.
    pub mss: u32,
    /// The initial window, segments. Default 10 (RFC 6928); ns-2 and the thesis: 2.
    pub window: u32,
    /// The initial slow-start threshold, bytes; none at first, by RFC 5681 §3.1.
    pub ssthresh: Option<u64>,
}

impl Default for Start {
    fn default() -> Start {
        Start { mss: 1448, window: 10, ssthresh: None }
    }
}

impl Start {
    /// The initial window, bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.mss) * u64::from(self.window.max(1))
    }
}

/// How large the congestion window is. Windows are in bytes.
pub trait CongestionControl: std::fmt::Debug + Send {
    /// Its name, as in scenarios: `newreno`, `cubic`, …
    fn name(&self) -> &'static str;

    /// The congestion window. At least one segment.
    fn window(&self) -> u64;

    /// The slow-start threshold, `u64::MAX` when there is none yet.
    fn ssthresh(&self) -> u64;

    /// Bytes were acknowledged.
    fn on_ack(&mut self, acked: &Acked);

    /// The first loss of a window was found by acknowledgements, with `flight` bytes out.
    fn on_loss(&mut self, now: Time, flight: u64);

    /// The recovery that `on_loss` began is over.
    fn on_recovered(&mut self, now: Time);

    /// The retransmission timer ran out, with `flight` bytes out.
    fn on_timeout(&mut self, now: Time, flight: u64);

    /// A loss or time-out turned out to be none: undo what it did, if that can be done.
    fn on_spurious(&mut self, _now: Time) {}

    /// The sender had nothing to send for `idle`, longer than its retransmission time-out (RFC
    /// 5681 §4.1).
    fn on_idle(&mut self, _now: Time, _idle: Duration) {}

    /// What the next data packet carries to the routers, for XCP.
    fn stamp(&mut self, _now: Time, _srtt: Duration) -> Option<XcpHeader> {
        None
    }
}
