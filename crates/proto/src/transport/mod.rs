//! One endpoint of one connection between two hosts: packets in, packets out.
//!
//! An endpoint is a state machine over *byte ranges*: it knows how many bytes the application wrote
//! and which of them have arrived, never what they are. Packets are pulled, so what goes next is
//! decided when the host can send it.
//!
//! **The drain rule: after each call that changes an endpoint (`handle`, `handle_deadline`, `open`,
//! `write`, `finish`, `read`, `abort`), pull [`Transport::poll_transmit`] until it gives nothing,
//! then [`Transport::poll_event`] until it gives nothing, then arm [`Transport::next_deadline`].**
//! A late deadline is normal; an early call is harmless.
//!
//! Sequence numbers are 64-bit offsets in the stream and never wrap; a driver that puts packets on
//! a real wire, or into a capture file, truncates them there.

pub mod congestion;
mod events;
pub mod formula;
pub mod packet;
pub mod plt;
pub mod ranges;
pub mod tcp;
#[cfg(test)]
pub(crate) mod testing;
pub mod udp;

pub use congestion::{Acked, CongestionControl};
pub use packet::{Body, Class, Packet, XcpHeader};

use crate::time::{Duration, Time};

/// What an endpoint tells its application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The connection is set up as this end sees it.
    Connected,
    /// Bytes arrived in order: [`Transport::readable`] grew.
    Readable,
    /// All that was written before `finish` has been acknowledged.
    Delivered,
    /// The other end has finished and all of its bytes have arrived in order.
    Finished,
    /// The connection is gone: nothing more will come.
    Failed(Failure),
}

/// Why a connection is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The other end reset it.
    Reset,
    /// Nothing was acknowledged for too long.
    TimedOut,
}

/// What an endpoint shows of itself, for probes. Bytes, unless said.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Probe {
    /// Congestion window.
    pub window: u64,
    /// Slow-start threshold; `u64::MAX` before the first loss.
    pub ssthresh: u64,
    /// Sent and neither acknowledged nor taken for lost.
    pub flight: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub rtt: Duration,
    /// Payload sent for the first time.
    pub sent: u64,
    /// Payload sent again.
    pub resent: u64,
    /// Payload acknowledged in order.
    pub acked: u64,
    /// Windows in which a loss was found by acknowledgements.
    pub recoveries: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Congestion window of a sub-flow at a lower priority (PLT's LCM); zero for others.
    pub low_window: u64,
    /// Payload sent at the lower priority, whatever for.
    pub low_sent: u64,
    /// Of it, what was taken for lost.
    pub low_lost: u64,
    /// The loss rate that the sub-flow at the lower priority bears now, 0 to 1.
    pub low_mu: f64,
    /// When the peer first silenced the sub-flow at the lower priority.
    pub low_off_at: Option<Time>,
}

/// One endpoint of a connection that carries a byte stream each way. See [the module](self).
pub trait Transport: std::fmt::Debug {
    /// Begins the set-up, at the side that dials. The other side waits for the first packet.
    fn open(&mut self, now: Time);

    /// A packet arrived.
    fn handle(&mut self, now: Time, packet: Packet);

    /// `next_deadline` is reached.
    fn handle_deadline(&mut self, now: Time);

    /// When `handle_deadline` wants to be called.
    fn next_deadline(&self) -> Option<Time>;

    /// The next packet to send, if any may go now.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet>;

    /// What happened, oldest first.
    fn poll_event(&mut self) -> Option<Event>;

    /// The application appends `bytes` to its stream.
    fn write(&mut self, bytes: u64);

    /// The application will write no more.
    fn finish(&mut self);

    /// The application takes up to `bytes_max` of what has arrived in order; returns how many. It
    /// opens the receive window.
    fn read(&mut self, bytes_max: u64) -> u64;

    /// Bytes that arrived in order and have not been read.
    fn readable(&self) -> u64;

    /// Bytes that were written and have not been sent even once.
    fn unsent(&self) -> u64;

    /// The application gives up: the other end is reset.
    fn abort(&mut self, now: Time);

    /// What it shows of itself.
    fn probe(&self) -> Probe;
}
