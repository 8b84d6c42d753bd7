//! The packet wire: every link is a pair of TCP endpoints over a packet-level network.
//!
//! An end's frames are written to its endpoint as byte counts, and popped at the other end when
//! their last byte has arrived in order. As a socket's driver does, a pipe takes frames while less
//! than the session's backlog waits unsent in TCP; applications read at once.
//!
//! Connections begin as on the other wires, by timed events over the paths' propagation delays
//! (see [`super`]): the set-up's packets load no queue and are never lost, and TCP starts without
//! a handshake of its own when the set-up is over.

use super::host::Life;
use super::{Config, Sim, SimError};
use crate::event::Event;
use crate::net::{Network, Packet};
use crate::prefetch::prefetch;
use crate::terrain::Port;
use crate::topology::{Changed, LinkIx, NodeIx, Topology};
use crate::units::Rate;
use anabranch_proto::link::frame::Frame;
use anabranch_proto::overlay::DownReason;
use anabranch_proto::time::Time;
use anabranch_proto::transport::congestion::{Cubic, NewReno, Start};
use anabranch_proto::transport::tcp::{self, Endpoint};
use anabranch_proto::transport::{self, Body, Class, CongestionControl, Transport, packet};
use std::collections::VecDeque;

/// Bytes of IP's and TCP's headers, timestamps included.
const HEADER_LEN: u16 = 52;
/// TLS: bytes of a record beside its text, and the most text of one.
const RECORD_LEN: u64 = 22;
const RECORD_TEXT: u64 = 16 * 1024;

/// The network and the connections over it.
pub(super) struct Packets {
    network: Network<transport::Packet>,
    /// The hosts' nodes.
    nodes: Vec<NodeIx>,
    /// The hosts' access links, out and in, where there is one of each.
    access: Vec<Option<Port>>,
    mss: u32,
    /// The endpoint at each end.
    connections: Vec<Option<Box<Connection>>>,
}

/// A frame in the stream that leaves an end.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// Where it ends in the stream.
    end: u64,
    payload: u32,
    control: u32,
}

/// One endpoint of a link, and the stream that leaves it.
struct Connection {
    tcp: Endpoint,
    /// A [`Event::TcpDue`] is under way for this time.
    armed: Time,
    written: u64,
    /// Read at this end, of the other end's stream.
    read: u64,
    /// Frames that have not been popped at the other end; those of the pipe, in the same order.
    frames: VecDeque<Written>,
    /// How many of them have left this host.
    left: usize,
    unsent: u64,
    resent: u64,
    is_delivered: bool,
    is_finished: bool,
}

impl Packets {
    pub(super) fn new(
        topology: &Topology,
        nodes: &[NodeIx],
        access: Vec<Option<Port>>,
        seed: u64,
    ) -> Packets {
        // The terrain's script drives the changes, through `Sim::change_links`.
        let still = Topology { changes: Vec::new(), ..topology.clone() };
        let mtu = topology.links.iter().map(|link| link.mtu).min().unwrap_or(1500);
        Packets {
            network: Network::new(&still, seed),
            nodes: nodes.to_vec(),
            access,
            mss: mtu.saturating_sub(HEADER_LEN.into()).max(1),
            connections: Vec::new(),
        }
    }

    pub(super) fn network(&self) -> &Network<transport::Packet> {
        &self.network
    }

    pub(super) fn network_mut(&mut self) -> &mut Network<transport::Packet> {
        &mut self.network
    }

    /// The next delivery up to `limit`.
    pub(super) fn poll(&mut self, limit: Time) -> Option<(Time, Packet<transport::Packet>)> {
        if self.network.next_event().is_none_or(|at| at > limit) {
            return None;
        }
        self.network.poll(limit)
    }

    fn at(&mut self, end: u32) -> Option<&mut Connection> {
        self.connections.get_mut(end as usize)?.as_deref_mut()
    }
}

impl Connection {
    fn new(config: &Config, mss: u32) -> Connection {
        let start = Start { mss, ..Start::default() };
        let congestion: Box<dyn CongestionControl> = match config.congestion {
            super::Congestion::Cubic => Box::new(Cubic::new(start)),
            super::Congestion::NewReno => Box::new(NewReno::new(start)),
        };
        let sending = tcp::sender::Config { mss, ..tcp::sender::Config::default() };
        let shape = tcp::Config { handshake: false, sending, ..tcp::Config::default() };
        Connection {
            tcp: Endpoint::new(shape, congestion),
            armed: Time::FAR,
            written: 0,
            read: 0,
            frames: VecDeque::new(),
            left: 0,
            unsent: 0,
            resent: 0,
            is_delivered: false,
            is_finished: false,
        }
    }

    /// Appends a frame to the stream.
    fn write(&mut self, payload: u64, control: u64, sealing: u64) {
        let bytes = payload + control + sealing;
        self.tcp.write(bytes);
        self.written += bytes;
        let frame = Written { end: self.written, payload: payload as u32, control: control as u32 };
        self.frames.push_back(frame);
    }

    /// Counts the frames that have left since the last look: (payload, control).
    fn count_left(&mut self) -> (u64, u64) {
        let sent = self.written - self.tcp.unsent();
        let (mut payload, mut control) = (0, 0);
        while let Some(frame) = self.frames.get(self.left).filter(|frame| frame.end <= sent) {
            payload += u64::from(frame.payload);
            control += u64::from(frame.control);
            self.left += 1;
        }
        (payload, control)
    }
}

impl Sim {
    /// Both endpoints of a link are there.
    pub(super) fn make_connection(&mut self, first: u32) {
        let Some(packets) = &mut self.packets else { return };
        for end in first..first + 2 {
            if packets.connections.len() <= end as usize {
                packets.connections.resize_with(end as usize + 1, || None);
            }
            let connection = Connection::new(&self.config, packets.mss);
            packets.connections[end as usize] = Some(Box::new(connection));
        }
    }

    /// The set-up is over as `end` sees it.
    pub(super) fn open_connection(&mut self, end: u32) {
        let now = self.now;
        if let Some(connection) = self.packets.as_mut().and_then(|packets| packets.at(end)) {
            connection.tcp.open(now);
            self.turn(end);
        }
    }

    /// Gives a pipe the frames it has room for.
    pub(super) fn pump_packets(&mut self, end: u32) {
        let Some(connection) = self.packets.as_mut().and_then(|packets| packets.at(end)) else {
            return;
        };
        let Some(session) = &mut self.ends[end as usize].session else { return };
        let before = connection.written;
        while connection.tcp.unsent() < session.backlog()
            && let Some(frame) = session.poll_transmit()
        {
            let (payload, control) = super::wire::split_len(&frame);
            let sealing = match self.config.overhead {
                super::Overhead::None => 0,
                super::Overhead::TlsTcp => RECORD_LEN * (payload + control).div_ceil(RECORD_TEXT),
            };
            connection.write(payload, control, sealing);
            self.frames.push_back(&mut self.pipes[end as usize].frames, frame);
        }
        if connection.written > before {
            self.turn(end);
            self.check_unsent(end);
        }
    }

    fn check_unsent(&mut self, end: u32) {
        if !self.config.check {
            return;
        }
        let Some(session) = &self.ends[end as usize].session else { return };
        let most = self.config.link.low_water
            + u64::from(self.config.block_len)
            + self.config.link.backlog.max
            + anabranch_proto::link::MESSAGE_LEN_MAX as u64;
        let unsent = session.measured().unsent;
        if unsent > most {
            let host = self.ends[end as usize].host;
            let name = self.hosts[host as usize].spec.name.clone();
            self.violation(&name, format!("{unsent} bytes wait in one link"));
        }
    }

    /// After something has changed an endpoint: its packets go out, what it has to say is heard, its
    /// deadline is armed.
    fn turn(&mut self, end: u32) {
        let mut reading = 0;
        let mut failed = false;
        loop {
            self.transmit(end);
            let Some(connection) = self.packets.as_mut().and_then(|packets| packets.at(end)) else {
                return;
            };
            let mut is_readable = false;
            while let Some(event) = connection.tcp.poll_event() {
                match event {
                    transport::Event::Readable => is_readable = true,
                    transport::Event::Delivered => connection.is_delivered = true,
                    transport::Event::Finished => connection.is_finished = true,
                    transport::Event::Failed(_) => failed = true,
                    transport::Event::Connected => {}
                }
            }
            // Before the set-up is over at this end, what came waits in TCP.
            if !(is_readable || connection.tcp.readable() > 0)
                || (self.ends[end as usize].session.is_none() && !self.was_open(end))
            {
                break;
            }
            let Some(connection) = self.packets.as_mut().and_then(|packets| packets.at(end)) else {
                return;
            };
            let bytes = connection.tcp.read(u64::MAX);
            if bytes == 0 {
                break;
            }
            connection.read += bytes;
            reading += bytes;
        }
        self.arm_connection(end);
        if reading > 0 {
            self.pop_frames(end);
        }
        self.note_unsent(end);
        if failed {
            self.break_session(end);
        }
        self.forget_if_over(end, failed);
    }

    /// Whether the set-up was over here once: what comes later is read, and dropped if nobody
    /// listens.
    fn was_open(&self, end: u32) -> bool {
        self.pipes[end as usize].was_open
    }

    fn transmit(&mut self, end: u32) {
        let (host, peer) = (self.ends[end as usize].host, self.ends[end as usize].peer);
        let is_cut = self.paths.is_severed(host, peer);
        let now = self.now;
        let Some(packets) = &mut self.packets else { return };
        let (from, to) = (packets.nodes[host as usize], packets.nodes[peer as usize]);
        let Some(Some(connection)) = packets.connections.get_mut(end as usize) else { return };
        let mut headers = 0;
        while let Some(packet) = connection.tcp.poll_transmit(now) {
            headers += u64::from(packet.header_len);
            if !is_cut {
                packets.network.send(now, Packet::of(from, to, end, packet));
            }
        }
        if headers == 0 {
            return;
        }
        let resent = connection.tcp.sender().counts().resent;
        let again = resent - std::mem::replace(&mut connection.resent, resent);
        let (payload, control) = connection.count_left();
        self.hosts[host as usize].meter.sent(now, payload, control, headers + again);
    }

    fn arm_connection(&mut self, end: u32) {
        let Some(connection) = self.packets.as_mut().and_then(|packets| packets.at(end)) else {
            return;
        };
        if let Some(at) = connection.tcp.next_deadline()
            && at < connection.armed
        {
            connection.armed = at;
            self.queue.push(at.max(self.now), Event::TcpDue { end });
        }
    }

    /// The endpoint's deadline, or one that has moved on since.
    pub(super) fn on_tcp_due(&mut self, end: u32) {
        let now = self.now;
        let Some(connection) = self.packets.as_mut().and_then(|packets| packets.at(end)) else {
            return;
        };
        if connection.armed > now {
            return;
        }
        connection.armed = Time::FAR;
        if connection.tcp.next_deadline().is_some_and(|at| at <= now) {
            connection.tcp.handle_deadline(now);
            return self.turn(end);
        }
        self.arm_connection(end);
    }

    /// A packet has arrived.
    pub(super) fn on_packet(&mut self, packet: Packet<transport::Packet>) {
        let end = packet.flow ^ 1;
        let (host, peer) = (self.ends[end as usize].host, self.ends[end as usize].peer);
        self.trace.add((u64::from(packet.flow) << 32) | u64::from(packet.len));
        if self.paths.is_severed(host, peer) {
            return;
        }
        let now = self.now;
        self.look_at_connection(end);
        match self.packets.as_mut().and_then(|packets| packets.at(end)) {
            Some(connection) => {
                connection.tcp.handle(now, packet.body);
                self.turn(end);
            }
            None => self.answer_with_reset(host, &packet),
        }
    }

    /// Asks for all that a packet for `end` needs, so that it comes together.
    fn look_at_connection(&self, end: u32) {
        let connection = self.packets.as_ref().and_then(|packets| {
            packets.connections.get(end as usize).and_then(|connection| connection.as_deref())
        });
        connection.into_iter().for_each(prefetch);
        let end = self.ends.get(end as usize);
        end.and_then(|end| end.session.as_deref()).into_iter().for_each(prefetch);
    }

    /// A machine that runs and knows nothing of a connection says so.
    fn answer_with_reset(&mut self, host: u32, packet: &Packet<transport::Packet>) {
        let Body::Tcp(segment) = &packet.body.body else { return };
        let state = &self.hosts[host as usize];
        let is_gone = state.life == Life::Crashed && state.is_silent;
        if segment.rst || is_gone {
            return;
        }
        let answer = packet::Segment { rst: true, seq: segment.ack, ..packet::Segment::default() };
        let body = transport::Packet {
            class: Class::default(),
            header_len: HEADER_LEN,
            payload_len: 0,
            xcp: None,
            body: Body::Tcp(answer),
        };
        let (from, to, flow) = (packet.to, packet.from, packet.flow ^ 1);
        if let Some(packets) = &mut self.packets {
            packets.network.send(self.now, Packet::of(from, to, flow, body));
        }
    }

    /// Gives the session at `end` the frames whose last byte has been read.
    fn pop_frames(&mut self, end: u32) {
        let (host, from) = (self.ends[end as usize].host, (end ^ 1) as usize);
        let Some(packets) = &mut self.packets else { return };
        let read = packets.connections[end as usize].as_ref().map_or(0, |here| here.read);
        let Some(Some(there)) = packets.connections.get_mut(from) else { return };
        let local = self.hosts[host as usize].clock.local(self.now);
        let mut session = self.ends[end as usize].session.as_mut();
        if let Some(session) = &mut session {
            session.heard(local);
        }
        let (mut payload, mut control, mut popped) = (0, 0, 0usize);
        while there.frames.front().is_some_and(|frame| frame.end <= read) {
            let Some(written) = there.frames.pop_front() else { break };
            popped += 1;
            let frame: Option<Frame> = self.frames.pop_front(&mut self.pipes[from].frames);
            let (Some(session), Some(frame)) = (&mut session, frame) else { continue };
            payload += u64::from(written.payload);
            control += u64::from(written.control);
            if session.handle_frame(local, frame).is_err() {
                break;
            }
        }
        if popped == 0 {
            return;
        }
        there.left = there.left.saturating_sub(popped);
        self.hosts[host as usize].meter.received(self.now, payload, control);
        self.drain_session(end);
        self.touched.push(end);
    }

    /// Tells the session what waits unsent, when that has changed.
    fn note_unsent(&mut self, end: u32) {
        let host = self.ends[end as usize].host;
        let now = self.hosts[host as usize].clock.local(self.now);
        let Some(connection) = self.packets.as_mut().and_then(|packets| packets.at(end)) else {
            return;
        };
        let unsent = connection.tcp.unsent();
        let has_changed = std::mem::replace(&mut connection.unsent, unsent) != unsent;
        let Some(session) = &mut self.ends[end as usize].session else { return };
        if !has_changed && unsent > 0 {
            return;
        }
        session.set_pipe_unsent(now, unsent);
        if unsent < session.backlog() && session.wants_transmit() {
            self.touched.push(end);
        }
        self.end_if_flushed(end);
        self.drain_session(end);
    }

    fn break_session(&mut self, end: u32) {
        if let Some(session) = &mut self.ends[end as usize].session {
            session.fail(DownReason::Broken);
            self.drain_session(end);
        }
    }

    /// The session at `end` is over: in good order, TCP delivers what was written; else the far
    /// side is reset.
    pub(super) fn end_connection(&mut self, end: u32, in_order: bool) {
        let now = self.now;
        let Some(connection) = self.packets.as_mut().and_then(|packets| packets.at(end)) else {
            return;
        };
        if in_order {
            connection.tcp.finish();
        } else {
            connection.tcp.abort(now);
        }
        self.turn(end);
        self.forget_if_over(end, !in_order);
    }

    /// The host of `end` is gone without a word.
    pub(super) fn vanish(&mut self, end: u32) {
        self.ends[end as usize].drop_session();
        self.forget_connection(end);
    }

    /// The connection is over at this end.
    fn forget_connection(&mut self, end: u32) {
        let Some(packets) = &mut self.packets else { return };
        if let Some(slot) = packets.connections.get_mut(end as usize) {
            *slot = None;
        }
        // What it wrote and what had not arrived is lost with it.
        self.frames.clear(&mut self.pipes[end as usize].frames);
    }

    fn forget_if_over(&mut self, end: u32, is_dead: bool) {
        if self.ends[end as usize].session.is_some() || !self.was_open(end) {
            return;
        }
        let Some(connection) = self.packets.as_mut().and_then(|packets| packets.at(end)) else {
            return;
        };
        // Frames that wait here still belong to the far end, which pops them by this stream.
        let is_over = is_dead || (connection.is_delivered && connection.is_finished);
        if is_over && (is_dead || connection.frames.is_empty()) {
            self.forget_connection(end);
        }
    }

    /// Links change; hosts' rates as the terrain sees them are of no concern here.
    pub(super) fn change_links(&mut self, changes: &[(LinkIx, Changed)]) {
        let now = self.now;
        if let Some(packets) = &mut self.packets {
            changes.iter().for_each(|&(link, to)| packets.network.change(now, link, to));
        }
    }

    /// A host's rates change: those of its access links.
    pub(super) fn change_access(&mut self, host: u32, up: Rate, down: Rate) {
        let now = self.now;
        let Some(packets) = &mut self.packets else { return };
        match packets.access.get(host as usize).copied().flatten() {
            Some((out, into)) => {
                packets.network.change(now, out, Changed::Rate(up));
                packets.network.change(now, into, Changed::Rate(down));
            }
            None => self.refuse(format!(
                "a host with several access links has no rate of its own to change on the packet \
                 wire ({}); change its links instead",
                self.hosts[host as usize].spec.name
            )),
        }
    }

    pub(super) fn refuse(&mut self, what: String) {
        self.failure.get_or_insert(SimError::NotOnPackets { what });
    }
}
