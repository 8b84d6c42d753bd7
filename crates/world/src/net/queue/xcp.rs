//! An XCP router (Katabi, Handley, Rohrs: Congestion Control for High Bandwidth-Delay Product
//! Networks, SIGCOMM 2002, §3.3-3.5).
//!
//! Once per average round-trip time d the efficiency controller finds how many bytes the traffic
//! should change by, φ = α·d·S − β·Q, from the spare rate S and the persistent queue Q. The
//! fairness controller gives that out packet by packet: what is positive as equal additions to
//! the flows' rates, what is negative as shares of them; h = max(0, 0.1·y − |φ|) of the traffic
//! y is shuffled from one to the other. A packet that leaves takes the lower of its sender's wish
//! and the router's feedback.
//!
//! - Intervals are rolled on when packets come and go, not by a timer: an idle router costs
//!   nothing. Of several intervals without packets one is computed.
//! - A packet whose sender has no round-trip time yet counts as traffic and gets no feedback.
//! - Q is the least number of bytes that an arriving packet found waiting, the one in service
//!   aside, during the last propagation delay, taken as d minus the queue's own delay.
//! - In a lower class of a priority queue the capacity is what the higher classes left in the
//!   last interval (the paper has no classes).

use crate::topology::XcpSpec;
use anabranch_proto::time::{Duration, Time};
use anabranch_proto::transport::XcpHeader;

/// The interval before any round-trip time is known, and its bounds.
const INTERVAL_FIRST: f64 = 0.05;
const INTERVAL_MIN: f64 = 0.001;
const INTERVAL_MAX: f64 = 1.0;

/// The shortest time over which the least queue is taken, seconds.
const QUEUE_TIME_MIN: f64 = 0.002;

/// What is counted in one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Bytes that came.
    bytes: f64,
    /// Bytes that came with a round-trip time: they can be given feedback.
    bytes_controlled: f64,
    /// Σ rtt·s/cwnd, seconds.
    share: f64,
    /// Σ rtt²·s/cwnd, seconds².
    rtt_share: f64,
    /// Bytes that higher classes sent.
    higher: f64,
}

/// An XCP router's state at one queue.
#[derive(Debug)]
pub(crate) struct Router {
    spec: XcpSpec,
    /// Bytes per second.
    rate: f64,
    /// d, seconds.
    interval: f64,
    decides: Time,
    seen: Seen,
    /// Q, bytes; and how it is found.
    queue: f64,
    queue_least: f64,
    queue_decides: Time,
    /// ξ_p, 1/s²; ξ_n, 1/s.
    gain: f64,
    cut: f64,
    /// What is left to give and to take, bytes per second.
    gain_left: f64,
    cut_left: f64,
}

impl Router {
    pub(crate) fn new(spec: XcpSpec, rate: u64) -> Router {
        Router {
            spec,
            rate: rate as f64,
            interval: INTERVAL_FIRST,
            decides: after(Time::ZERO, INTERVAL_FIRST),
            seen: Seen::default(),
            queue: 0.0,
            queue_least: 0.0,
            queue_decides: Time::ZERO,
            gain: 0.0,
            cut: 0.0,
            gain_left: 0.0,
            cut_left: 0.0,
        }
    }

    pub(crate) fn set_rate(&mut self, rate: u64) {
        self.rate = rate as f64;
    }

    /// A higher class has used the link.
    pub(crate) fn yield_to(&mut self, len: u32) {
        self.seen.higher += f64::from(len);
    }

    /// A packet comes and finds `waiting` bytes.
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        waiting: u64,
        len: u32,
        header: Option<&mut XcpHeader>,
    ) {
        self.roll(now, waiting);
        self.queue_least = self.queue_least.min(waiting as f64);
        let len = f64::from(len);
        self.seen.bytes += len;
        if let Some((rtt, window, _)) = header.and_then(readable) {
            let share = rtt * len / window;
            self.seen.bytes_controlled += len;
            self.seen.share += share;
            self.seen.rtt_share += rtt * share;
        }
    }

    /// A packet leaves the queue for the wire, of which `waiting` bytes were in it.
    pub(crate) fn depart(
        &mut self,
        now: Time,
        waiting: u64,
        len: u32,
        header: Option<&mut XcpHeader>,
    ) {
        self.roll(now, waiting);
        let Some((rtt, window, header)) = header.and_then(readable) else { return };
        let len = f64::from(len);
        let mut plus = self.gain * rtt * rtt * len / window;
        let mut minus = self.cut * rtt * len;
        let feedback = plus - minus;
        if header.feedback > feedback {
            header.feedback = feedback;
        } else {
            // Another router, or the sender, allows less than this one would: what is not used
            // is not taken from the pools.
            minus = (minus + (feedback - header.feedback)).min(self.cut_left * rtt);
            plus = (header.feedback + minus).max(0.0);
        }
        self.gain_left -= plus / rtt;
        self.cut_left -= minus / rtt;
        // When a pool is empty its feedback stops until the next decision.
        if self.gain_left <= 0.0 {
            (self.gain, self.gain_left) = (0.0, 0.0);
        }
        if self.cut_left <= 0.0 {
            (self.cut, self.cut_left) = (0.0, 0.0);
        }
    }

    /// Carries out what fell due since the queue last changed; `waiting` bytes were in it.
    fn roll(&mut self, now: Time, waiting: u64) {
        let waiting = waiting as f64;
        if now >= self.queue_decides {
            self.queue = self.queue_least;
            self.queue_least = waiting;
            let own = waiting / self.rate;
            self.queue_decides = after(now, (self.interval - own).max(QUEUE_TIME_MIN));
        }
        if now >= self.decides {
            self.decide();
            self.decides = after(self.decides, self.interval);
            if now >= self.decides {
                self.decide();
                self.decides = after(now, self.interval);
            }
        }
    }

    /// The control decision at an interval's end (§3.4).
    fn decide(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        // The average is over flows, so a packet weighs rtt·s/cwnd (§3.4).
        let mean = if seen.share > 0.0 { seen.rtt_share / seen.share } else { self.interval };
        let d = self.interval;
        let capacity = (self.rate - seen.higher / d).max(0.0);
        let spare = capacity - seen.bytes / d;
        let change = self.spec.alpha * d * spare - self.spec.beta * self.queue;
        let shuffled = (self.spec.shuffle * seen.bytes - change.abs()).max(0.0);
        self.gain_left = (shuffled + change.max(0.0)) / d;
        self.cut_left = (shuffled + (-change).max(0.0)) / d;
        self.gain = ratio(self.gain_left, seen.share);
        self.cut = ratio(self.cut_left, seen.bytes_controlled);
        self.interval = mean.clamp(INTERVAL_MIN, INTERVAL_MAX);
    }
}

/// A header that routers can work with: (rtt in seconds, window, header).
fn readable(header: &mut XcpHeader) -> Option<(f64, f64, &mut XcpHeader)> {
    let (rtt, window) = (header.rtt.as_secs_f64(), header.window);
    (rtt > 0.0 && window > 0.0).then_some((rtt, window, header))
}

fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

fn after(time: Time, seconds: f64) -> Time {
    time + Duration::from_nanos((seconds * 1e9) as u64)
}

#[cfg(test)]
mod tests;
