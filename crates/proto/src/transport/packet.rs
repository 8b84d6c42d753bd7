//! What travels between two endpoints: a class, lengths, and a header that only transports read.

use crate::time::{Duration, Time};

/// Bytes of an IPv4 header.
pub const IP_LEN: u32 = 20;

/// A priority class, as the six bits of DSCP that routers look at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Class(pub u8);

impl Class {
    /// Best effort (RFC 2474): the default.
    pub const BEST_EFFORT: Class = Class(0);
    /// Lower effort (RFC 8622): what is spare.
    pub const LOWER_EFFORT: Class = Class(1);
    /// Between the two, for PLT-Short (thesis §3.3.6); any codepoint the routers' map knows.
    pub const MIDDLE: Class = Class(4);
}

/// A packet on its way.
#[derive(Clone, PartialEq, Debug)]
pub struct Packet {
    /// What routers treat it as.
    pub class: Class,
    /// Bytes of headers on the wire, IP's included.
    pub header_len: u16,
    /// Bytes of payload on the wire.
    pub payload_len: u32,
    /// XCP's congestion header, which routers change.
    pub xcp: Option<XcpHeader>,
    /// The transport's own header.
    pub body: Body,
}

impl Packet {
    /// Bytes on the wire.
    pub fn len(&self) -> u32 {
        u32::from(self.header_len) + self.payload_len
    }

    /// Whether it has no bytes: never, since every packet has a header.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The header of one kind of transport.
#[derive(Clone, PartialEq, Debug)]
pub enum Body {
    /// A segment of TCP, whatever its congestion control.
    Tcp(Segment),
    /// A datagram of a plain UDP source: its number and when it was sent.
    Datagram {
        /// Counts from 0.
        number: u64,
        /// When it was sent.
        sent: Time,
    },
    /// A packet of Priority Layered Transport.
    Plt(super::plt::Header),
}

/// The most SACK blocks a segment has: what fits beside the timestamp option (RFC 2018 §3).
pub const SACK_BLOCKS_MAX: usize = 3;

/// A range of the stream: `[start, end)`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// Behind the last byte.
    pub end: u64,
}

impl Range {
    /// Its bytes; none when it ends before it starts.
    pub fn len(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }
}

/// A TCP segment. The SYN and the FIN take no sequence number here: they are flags, the FIN with
/// the stream's length as its place.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Segment {
    /// Connection set-up.
    pub syn: bool,
    /// Whether `ack` means something.
    pub has_ack: bool,
    /// The stream ends behind this segment's payload.
    pub fin: bool,
    /// The connection is gone.
    pub rst: bool,
    /// Whether `ack` acknowledges the FIN too.
    pub fin_acked: bool,
    /// Offset of the first payload byte.
    pub seq: u64,
    /// All bytes before it have arrived.
    pub ack: u64,
    /// Bytes behind `ack` that may be sent.
    pub window: u64,
    /// Ranges that arrived out of order, the latest first; `sack_len` of them are meant. The first
    /// may lie below `ack`, for a duplicate (RFC 2883).
    pub sack: [Range; SACK_BLOCKS_MAX],
    /// How many of `sack` are meant.
    pub sack_len: u8,
    /// Timestamp value (RFC 7323): when it was sent.
    pub sent: Time,
    /// Timestamp echo: `sent` of the segment that caused this acknowledgement.
    pub echo: Option<Time>,
    /// XCP's feedback on its way back, bytes: the sum over the segments that this one
    /// acknowledges. It is apart from `xcp` of the packet, which is for the routers ahead.
    pub feedback: Option<f64>,
}

impl Segment {
    /// The blocks of `sack` that are meant.
    pub fn blocks(&self) -> &[Range] {
        &self.sack[..usize::from(self.sack_len).min(SACK_BLOCKS_MAX)]
    }
}

/// XCP's congestion header (Katabi et al., SIGCOMM 2002, §3.1).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct XcpHeader {
    /// The sender's congestion window, bytes.
    pub window: f64,
    /// The sender's estimate of the round-trip time; zero when it has none yet.
    pub rtt: Duration,
    /// The change of the window, bytes: the sender's wish, lowered by routers. The receiver
    /// returns it in [`Segment::feedback`].
    pub feedback: f64,
}
