//! Captures of simulated links, for Wireshark and tcpdump: every packet as its last bit goes on
//! the wire, with nanoseconds.
//!
//! A simulated packet has no bytes. Its IPv4 and TCP or UDP headers are made up from what the
//! transport says, so that sequence numbers, acknowledgements, SACK blocks, timestamps, windows
//! and DSCP can be analysed; of the payload only the length is told. What stands for what:
//!
//! - host n of the topology is 10.0.0.0 + n + 1; a flow's number is in its two ports, the same
//!   two in both directions;
//! - sequence numbers begin at 0 with the SYN, so a stream's byte 0 is 1; 64-bit offsets are cut
//!   down to 32;
//! - windows are in units of 2^14 bytes, rounded up, and SYNs say so; timestamps are milliseconds;
//! - checksums of TCP and UDP are 0;
//! - where a transport counts fewer bytes of headers than its options need, the frame is longer
//!   than the packet was.

use super::observe::{Observer, Step};
use super::packet::Packet;
use crate::topology::LinkIx;
use anabranch_proto::time::Time;
use anabranch_proto::transport::packet::{IP_LEN, Range, Segment};
use anabranch_proto::transport::plt;
use anabranch_proto::transport::{self, Body};
use std::io::{Result, Write};

/// pcap's magic number for times in nanoseconds, its version, and its link type for bare IP.
const MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: [u16; 2] = [2, 4];
const LINK_TYPE_RAW: u32 = 101;

/// The most bytes of a packet that are captured: the largest headers.
const CAPTURED_MAX: u32 = 128;

/// IP's protocol numbers.
const TCP: u8 = 6;
const UDP: u8 = 17;

const WINDOW_SHIFT: u8 = 14;

/// Ports begin here, and each has so many values.
const PORT_FIRST: u32 = 10_000;
const PORTS: u32 = 50_000;

/// A body whose first bytes on the wire are known.
pub trait Wired: Sized {
    /// Appends the packet's first bytes, at least its headers, to `bytes`; returns how long the
    /// packet is in all.
    fn head(packet: &Packet<Self>, bytes: &mut Vec<u8>) -> u32;
}

/// Writes the packets of chosen links in the pcap format.
pub struct Capture<W> {
    out: W,
    links: Vec<LinkIx>,
    head: Vec<u8>,
    record: Vec<u8>,
    outcome: Result<()>,
}

impl<W: Write> Capture<W> {
    /// A capture of `links` to `out`; buffer it. The file's head is written at once, and then each
    /// packet as one write.
    pub fn new(mut out: W, links: &[LinkIx]) -> Result<Capture<W>> {
        let mut head = Vec::with_capacity(CAPTURED_MAX as usize);
        head.extend(MAGIC.to_le_bytes());
        VERSION.iter().for_each(|part| head.extend(part.to_le_bytes()));
        for word in [0, 0, CAPTURED_MAX, LINK_TYPE_RAW] {
            head.extend(u32::to_le_bytes(word));
        }
        out.write_all(&head)?;
        let mut links = links.to_vec();
        links.sort_unstable();
        Ok(Capture { out, links, head, record: Vec::new(), outcome: Ok(()) })
    }

    fn record<B: Wired>(&mut self, at: Time, packet: &Packet<B>) -> Result<()> {
        self.head.clear();
        let len = B::head(packet, &mut self.head);
        self.head.truncate(CAPTURED_MAX as usize);
        let (secs, nanos) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
        self.record.clear();
        for word in [secs as u32, nanos as u32, self.head.len() as u32, len] {
            self.record.extend(word.to_le_bytes());
        }
        self.record.extend_from_slice(&self.head);
        self.out.write_all(&self.record)
    }
}

impl<W> std::fmt::Debug for Capture<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("links", &self.links).finish_non_exhaustive()
    }
}

impl<B: Wired, W: Write + Send> Observer<B> for Capture<W> {
    fn wants(&self, link: LinkIx) -> bool {
        self.links.binary_search(&link).is_ok()
    }

    fn see(&mut self, at: Time, _: LinkIx, step: Step, packet: &Packet<B>) {
        if step == Step::Sent && self.outcome.is_ok() {
            self.outcome = self.record(at, packet);
        }
    }

    fn finish(&mut self) -> Result<()> {
        std::mem::replace(&mut self.outcome, Ok(()))?;
        self.out.flush()
    }
}

/// Bytes are what they are.
impl Wired for Vec<u8> {
    fn head(packet: &Packet<Vec<u8>>, bytes: &mut Vec<u8>) -> u32 {
        let captured = packet.body.len().min(CAPTURED_MAX as usize);
        bytes.extend_from_slice(&packet.body[..captured]);
        packet.len
    }
}

impl Wired for transport::Packet {
    fn head(packet: &Packet<transport::Packet>, bytes: &mut Vec<u8>) -> u32 {
        let body = &packet.body;
        let room = u32::from(body.header_len).saturating_sub(IP_LEN);
        bytes.resize(IP_LEN as usize, 0);
        let protocol = match &body.body {
            Body::Tcp(segment) => {
                tcp(packet, segment, room, bytes);
                TCP
            }
            Body::Plt(header) => {
                tcp(packet, &as_segment(header), room, bytes);
                TCP
            }
            Body::Datagram { .. } => {
                ports(packet, bytes);
                bytes.extend(((8 + body.payload_len) as u16).to_be_bytes());
                bytes.extend([0, 0]);
                UDP
            }
        };
        let len = bytes.len() as u32 + body.payload_len;
        ip(packet, len, protocol, &mut bytes[..IP_LEN as usize]);
        len
    }
}

/// PLT as a reader of TCP sees it: both sub-flows in their virtual streams. Its own option is left
/// out; no-operations stand in its place.
fn as_segment(header: &plt::Header) -> Segment {
    match header {
        plt::Header::High(high) => high.segment,
        plt::Header::Low(low) => Segment { seq: low.seq, sent: low.sent, ..Segment::default() },
        plt::Header::Report(report) => Segment {
            has_ack: true,
            ack: report.from,
            window: report.credit.window,
            sack: report.blocks,
            sack_len: report.blocks_len,
            echo: report.echo,
            ..Segment::default()
        },
    }
}

/// The IPv4 header (RFC 791), in place.
fn ip<B>(packet: &Packet<B>, len: u32, protocol: u8, header: &mut [u8]) {
    header[0] = 0x45;
    header[1] = packet.dscp << 2;
    header[2..4].copy_from_slice(&u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes());
    // Do not fragment.
    header[6] = 0x40;
    header[8] = 64;
    header[9] = protocol;
    header[12..16].copy_from_slice(&(0x0a00_0001 + packet.from.0).to_be_bytes());
    header[16..20].copy_from_slice(&(0x0a00_0001 + packet.to.0).to_be_bytes());
    let words = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Source and destination port: the end with the lower number has the low part of the flow's.
fn ports<B>(packet: &Packet<B>, bytes: &mut Vec<u8>) {
    let low = (PORT_FIRST + packet.flow % PORTS) as u16;
    let high = (PORT_FIRST + packet.flow / PORTS % PORTS) as u16;
    let (from, to) = if packet.from <= packet.to { (low, high) } else { (high, low) };
    bytes.extend(from.to_be_bytes());
    bytes.extend(to.to_be_bytes());
}

/// The TCP header (RFC 9293) with its options, of at least `room` bytes as far as there may be.
fn tcp<B>(packet: &Packet<B>, segment: &Segment, room: u32, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    ports(packet, bytes);
    let seq = if segment.syn { 0 } else { on_wire(segment.seq) };
    let ack = on_wire(segment.ack).wrapping_add(u32::from(segment.fin_acked));
    bytes.extend(seq.to_be_bytes());
    bytes.extend(if segment.has_ack { ack } else { 0 }.to_be_bytes());
    let flags = [segment.fin, segment.syn, segment.rst, false, segment.has_ack];
    let flags = flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag));
    // A SYN's window is not scaled (RFC 7323 §2.2).
    let window = match segment.syn {
        true => segment.window,
        false => segment.window.div_ceil(1 << WINDOW_SHIFT),
    };
    bytes.extend([0, flags]);
    bytes.extend(u16::try_from(window).unwrap_or(u16::MAX).to_be_bytes());
    bytes.extend([0; 4]);
    options(segment, bytes);
    let wanted = (bytes.len() - start).max(room as usize).next_multiple_of(4).min(60);
    // Filled up with no-operations.
    bytes.resize(start + wanted, 1);
    bytes[start + 12] = (wanted as u8 / 4) << 4;
}

/// Window scale, SACK permitted, timestamps, SACK blocks; aligned by no-operations.
fn options(segment: &Segment, bytes: &mut Vec<u8>) {
    if segment.syn {
        bytes.extend([1, 3, 3, WINDOW_SHIFT, 1, 1, 4, 2]);
    }
    bytes.extend([1, 1, 8, 10]);
    let milliseconds = |time: Time| (time.0 / 1_000_000) as u32;
    bytes.extend(milliseconds(segment.sent).to_be_bytes());
    bytes.extend(segment.echo.map_or(0, milliseconds).to_be_bytes());
    let blocks = &segment.sack[..usize::from(segment.sack_len).min(segment.sack.len())];
    if !blocks.is_empty() {
        bytes.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
    }
    for Range { start, end } in blocks {
        bytes.extend(on_wire(*start).to_be_bytes());
        bytes.extend(on_wire(*end).to_be_bytes());
    }
}

/// A stream's offset as a sequence number: the SYN is 0.
fn on_wire(offset: u64) -> u32 {
    (offset as u32).wrapping_add(1)
}

#[cfg(test)]
mod tests;
