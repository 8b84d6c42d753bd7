//! TCP with SACK, as two ends of a connection of packets in virtual or real time.
//!
//! What a host of today does, by its RFCs: selective acknowledgements and their recovery (2018,
//! 2883, 6675, 6937), losses found by time and probes of the tail (8985), the retransmission timer over timestamps (6298, 7323), limited transmit (3042),
//! delayed acknowledgements (5681), flow control with window updates and probes (9293), undoing
//! (3522, 3708), over any [`CongestionControl`]. Offsets of 64 bits stand for sequence numbers.
//!
//! ```text
//!   Idle --open--> SynSent --------SYN+ACK-------> Established --reset, time-outs--> Dead
//!     \---SYN----> SynReceived ---acknowledged--->      |
//!      \------ first packet, without a set-up --------->|
//! ```
//!
//! - [`sender`]: what goes; serves other sequence spaces too;
//! - [`scoreboard`]: what is known of the bytes on their way;
//! - [`rto`]: how long to wait;
//! - [`receiver`]: what has arrived, and when to say so.
//!
//! Deviations: there is no TIME-WAIT; an endpoint answers for as long as it is kept. SYN and FIN
//! take no sequence number. Every packet carries a timestamp. The initial window is not reduced
//! after a lost SYN. Not there: ECN, urgent data, Nagle's rule, pacing.
//!
//! Page: `docs/transports.md`.

mod rack;
pub mod receiver;
pub mod rto;
pub mod scoreboard;
pub mod sender;
mod tail_probe;

use super::events::Events;
use super::packet::{Body, Class, IP_LEN, Packet, Segment};
use super::{CongestionControl, Event, Probe, Transport};
use crate::time::{Duration, Time, earliest};
use receiver::{Receiver, blocks_len};
use sender::{Outgoing, Sender};

/// Bytes of TCP's header with the timestamp option.
const HEADER_LEN: u32 = 20 + 12;
/// Options of a SYN: segment size, SACK, timestamp, window scale.
const SYN_OPTIONS_LEN: u32 = 20;

/// What shapes an endpoint. The two ends of a connection have to agree on `mss` and on whether
/// there is a set-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// What its packets are to routers. Default best effort.
    pub class: Class,
    /// Whether connections begin with a three-way handshake. Default yes. Without it data goes at
    /// once, as in ns-2 and the thesis.
    pub handshake: bool,
    /// SYNs that go unanswered before the connection fails. Default 6, as in Linux.
    pub syns_max: u32,
    /// The length of every header with IP's, bytes. Default none: by the options that a packet
    /// has. ns-2's is 40.
    pub header_len: Option<u16>,
    /// The window that the peer is taken to show before it did, bytes, when there is no handshake.
    /// Default none: as large as the own one.
    pub peer_window: Option<u64>,
    /// The sending half.
    pub sending: sender::Config,
    /// The receiving half. Its `mss` is set to that of the sending half.
    pub receiving: receiver::Config,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            class: Class::default(),
            handshake: true,
            syns_max: 6,
            header_len: None,
            peer_window: None,
            sending: sender::Config::default(),
            receiving: receiver::Config::default(),
        }
    }
}

impl Config {
    /// As ns-2's `sack1` has it, and so the thesis: no handshake, headers of 40 bytes, every
    /// segment acknowledged, recovery by the pipe alone, nothing undone, and a time-out in ticks of
    /// 10 ms. The initial window to go with it is two segments.
    pub fn as_in_ns2(mss: u32) -> Config {
        let rto = rto::Limits { granularity: Duration::from_millis(10), ..rto::Limits::default() };
        Config {
            handshake: false,
            header_len: Some(40),
            sending: sender::Config {
                mss,
                finds_lost_resends: false,
                proportional: false,
                rack_tlp: false,
                undoes: false,
                rto,
                ..sender::Config::default()
            },
            receiving: receiver::Config { delayed_ack: None, ..receiver::Config::default() },
            ..Config::default()
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle,
    SynSent,
    SynReceived,
    Established,
    Dead,
}

/// One end of a connection. See [the module](self).
#[derive(Debug)]
pub struct Endpoint {
    class: Class,
    header_len: Option<u16>,
    handshake: bool,
    syns_left: u32,
    state: State,
    sender: Sender,
    receiver: Receiver,
    events: Events,
    syn_due: bool,
    rst_due: bool,
    /// When the SYN goes again.
    syn_deadline: Option<Time>,
    /// What a SYN that came carried, for its answer.
    syn_echo: Option<Time>,
}

impl Endpoint {
    /// An end that has not begun. It dials when [`Transport::open`] is called and listens
    /// otherwise.
    pub fn new(config: Config, congestion: Box<dyn CongestionControl>) -> Endpoint {
        let receiving = receiver::Config { mss: config.sending.mss, ..config.receiving };
        let assumed = config.peer_window.unwrap_or(receiving.window());
        let peer_window = if config.handshake { 0 } else { assumed };
        Endpoint {
            class: config.class,
            header_len: config.header_len,
            handshake: config.handshake,
            syns_left: config.syns_max,
            state: State::Idle,
            sender: Sender::new(config.sending, congestion, peer_window),
            receiver: Receiver::new(receiving),
            events: Events::default(),
            syn_due: false,
            rst_due: false,
            syn_deadline: None,
            syn_echo: None,
        }
    }

    /// The sending half, to look at.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The receiving half, to look at.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Whether the set-up is done and the connection not gone.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Whether packets of the peer can come: it has answered, or there is no set-up.
    pub fn hears(&self) -> bool {
        match self.state {
            State::Idle => !self.handshake,
            State::SynReceived | State::Established => true,
            State::SynSent | State::Dead => false,
        }
    }

    /// See [`Sender::note_limited`].
    pub fn note_limited(&mut self) {
        self.sender.note_limited();
    }

    /// An acknowledgement goes, whatever has come.
    pub fn announce(&mut self) {
        self.receiver.announce();
    }

    /// An empty packet with an acknowledgement, whether one is due or not.
    pub fn bare(&mut self, now: Time) -> Packet {
        self.acknowledgement(now)
    }

    /// [`Transport::poll_transmit`] for a stream that is cut: see [`Sender::poll_transmit_cut`].
    pub fn poll_transmit_cut(&mut self, now: Time, cut: impl Fn(u64) -> u64) -> Option<Packet> {
        if self.rst_due {
            return Some(self.reset(now));
        }
        match self.state {
            State::SynSent | State::SynReceived => self.syn_due.then(|| self.syn(now)),
            State::Established => {
                let options = self.header_len.map_or_else(|| self.receiver.blocks_len(), |_| 0);
                match self.sender.poll_transmit_cut(now, options, cut) {
                    Some(out) => Some(self.data(now, out)),
                    None => self.receiver.is_due().then(|| self.acknowledgement(now)),
                }
            }
            State::Idle | State::Dead => None,
        }
    }

    // ---- set-up ----

    fn establish(&mut self, now: Time, echo: Option<Time>) {
        self.state = State::Established;
        self.syn_deadline = None;
        self.syn_due = false;
        if let Some(echo) = echo.filter(|echo| *echo <= now) {
            self.sender.rto().sample(now.since(echo), 1);
        }
        self.sender.rto().set_up();
        self.events.tell_once(Events::CONNECTED);
    }

    /// A packet in a state before `Established`. Gives whether it is to be read as one of an
    /// established connection.
    fn on_set_up(&mut self, now: Time, segment: &Segment) -> bool {
        match (self.state, segment.syn, segment.has_ack) {
            (State::Idle, ..) if !self.handshake => {
                self.establish(now, None);
                return true;
            }
            (State::Idle | State::SynSent | State::SynReceived, true, false) => {
                self.state = State::SynReceived;
                self.syn_due = true;
                self.syn_echo = Some(segment.sent);
                self.sender.on_edge(segment.window, segment.window);
            }
            (State::SynSent | State::SynReceived, true, true) => {
                self.sender.on_edge(segment.window, segment.window);
                self.establish(now, segment.echo);
                self.receiver.acknowledge(segment.sent);
            }
            (State::SynReceived, false, true) => {
                self.establish(now, segment.echo);
                return true;
            }
            _ => {}
        }
        false
    }

    fn syn(&mut self, now: Time) -> Packet {
        self.syn_due = false;
        self.syn_deadline = Some(now + self.sender.rto().timeout());
        let segment = Segment {
            syn: true,
            has_ack: self.state == State::SynReceived,
            window: self.receiver.window_at_start(),
            echo: self.syn_echo,
            sent: now,
            ..Segment::default()
        };
        self.packet(segment, SYN_OPTIONS_LEN - 12, 0)
    }

    fn on_syn_deadline(&mut self) {
        self.syn_deadline = None;
        self.syns_left = self.syns_left.saturating_sub(1);
        if self.syns_left == 0 {
            self.fail(Events::TIMED_OUT);
            return;
        }
        self.sender.rto().back_off();
        self.syn_due = true;
    }

    // ---- the end ----

    fn fail(&mut self, event: u8) {
        if self.state != State::Dead {
            self.state = State::Dead;
            self.events.tell(event);
        }
    }

    fn on_reset(&mut self, segment: &Segment) {
        // Only who sees the packets can name what comes next (RFC 5961 §3.2, by the window).
        if self.state != State::Idle && self.receiver.is_in_window(segment.seq) {
            self.fail(Events::RESET);
        }
    }

    fn note_ends(&mut self) {
        if self.sender.is_delivered() {
            self.events.tell_once(Events::DELIVERED);
        }
        if self.receiver.is_finished() {
            self.events.tell_once(Events::FINISHED);
        }
    }

    // ---- packets ----

    fn on_established(&mut self, now: Time, segment: &Segment, packet: &Packet) {
        if segment.has_ack {
            self.sender.on_ack(now, segment);
        }
        let fed = packet.xcp.map(|xcp| xcp.feedback);
        if self.receiver.on_segment(now, segment, packet.payload_len, fed) > 0 {
            self.events.tell(Events::READABLE);
        }
        self.note_ends();
    }

    fn data(&mut self, now: Time, out: Outgoing) -> Packet {
        let mut segment =
            Segment { seq: out.range.start, fin: out.fin, sent: now, ..Segment::default() };
        let len = (out.range.end - out.range.start) as u32;
        // A segment that was full when it was sent first has no room for blocks.
        let room =
            self.header_len.map_or_else(|| self.sender.mss().saturating_sub(len), |_| u32::MAX);
        self.receiver.fill(&mut segment, room);
        let blocks = blocks_len(usize::from(segment.sack_len));
        Packet { xcp: out.xcp, ..self.packet(segment, blocks, len) }
    }

    fn acknowledgement(&mut self, now: Time) -> Packet {
        let seq = self.sender.board().nxt();
        let mut segment = Segment { seq, sent: now, ..Segment::default() };
        self.receiver.fill(&mut segment, u32::MAX);
        let blocks = blocks_len(usize::from(segment.sack_len));
        self.packet(segment, blocks, 0)
    }

    fn reset(&mut self, now: Time) -> Packet {
        self.rst_due = false;
        let seq = self.sender.board().nxt();
        let segment = Segment { rst: true, seq, sent: now, ..Segment::default() };
        self.packet(segment, 0, 0)
    }

    fn packet(&self, segment: Segment, options: u32, payload_len: u32) -> Packet {
        let by_options = (IP_LEN + HEADER_LEN + options) as u16;
        Packet {
            class: self.class,
            header_len: self.header_len.unwrap_or(by_options),
            payload_len,
            xcp: None,
            body: Body::Tcp(segment),
        }
    }
}

impl Transport for Endpoint {
    fn open(&mut self, now: Time) {
        if self.state != State::Idle {
            return;
        }
        if self.handshake {
            self.state = State::SynSent;
            self.syn_due = true;
        } else {
            self.establish(now, None);
        }
    }

    fn handle(&mut self, now: Time, packet: Packet) {
        let Body::Tcp(segment) = &packet.body else { return };
        if segment.rst {
            self.on_reset(segment);
            return;
        }
        match self.state {
            // The reset may have been lost.
            State::Dead => self.rst_due = true,
            // The answer to its SYN was lost.
            State::Established if segment.syn => self.receiver.acknowledge(segment.sent),
            State::Established => self.on_established(now, segment, &packet),
            _ => {
                if self.on_set_up(now, segment) {
                    self.on_established(now, segment, &packet);
                }
            }
        }
    }

    fn handle_deadline(&mut self, now: Time) {
        if self.syn_deadline.is_some_and(|at| at <= now) {
            self.on_syn_deadline();
        }
        if self.state == State::Established {
            self.receiver.handle_deadline(now);
            if !self.sender.handle_deadline(now) {
                self.fail(Events::TIMED_OUT);
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        match self.state {
            State::Dead => None,
            State::Established => {
                earliest(self.sender.next_deadline(), self.receiver.next_deadline())
            }
            _ => self.syn_deadline,
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.poll_transmit_cut(now, |_| u64::MAX)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    fn finish(&mut self) {
        self.sender.finish();
        self.note_ends();
    }

    fn read(&mut self, bytes_max: u64) -> u64 {
        self.receiver.read(bytes_max)
    }

    fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    fn unsent(&self) -> u64 {
        self.sender.unsent()
    }

    fn abort(&mut self, _now: Time) {
        self.rst_due = !matches!(self.state, State::Idle | State::Dead);
        self.state = State::Dead;
    }

    fn probe(&self) -> Probe {
        let (board, counts) = (self.sender.board(), self.sender.counts());
        Probe {
            window: self.sender.congestion().window(),
            ssthresh: self.sender.congestion().ssthresh(),
            flight: board.pipe(),
            rtt: self.sender.srtt(),
            sent: board.nxt(),
            resent: counts.resent,
            acked: board.una(),
            recoveries: counts.recoveries,
            timeouts: counts.timeouts,
            ..Probe::default()
        }
    }
}

#[cfg(test)]
mod tests;
