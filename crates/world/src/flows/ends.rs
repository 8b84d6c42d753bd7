//! The two ends of a flow while it lives.

use super::spec::{FlowIx, Pair};
use super::timers::{Armed, Due, Timers};
use crate::net::{Network, Packet};
use crate::topology::NodeIx;
use anabranch_proto::time::Time;
use anabranch_proto::transport::{self, Event, Failure, Probe, Transport, udp};

/// A live flow.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) flow: FlowIx,
    pub(super) from: NodeIx,
    pub(super) to: NodeIx,
    pub(super) ends: Ends,
}

/// Both ends: what they are depends on the group's transport.
#[derive(Debug)]
pub(super) enum Ends {
    /// A pair that makes a byte stream.
    Stream(Stream),
    /// A source and a sink of datagrams.
    Datagrams { source: udp::Source, sink: udp::Sink },
}

/// A pair of transports.
#[derive(Debug)]
pub(super) struct Stream {
    source: End,
    sink: End,
    /// Bytes that have arrived in order.
    pub(super) delivered: u64,
    /// Bytes there are; `None`: without end.
    bytes: Option<u64>,
}

#[derive(Debug)]
struct End {
    transport: Box<dyn Transport>,
    armed: Armed,
}

/// What a call to an end brought about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Came {
    /// Nothing to tell.
    Nothing,
    /// All bytes have arrived at the sink.
    Arrived,
    /// The source knows that all bytes have arrived.
    Acknowledged,
    /// An end gave up.
    Failed(Failure),
}

/// A stream without end has more bytes than any run moves.
const ENDLESS: u64 = 1 << 60;

/// What an end needs of the world.
pub(super) struct Around<'a> {
    pub(super) now: Time,
    pub(super) network: &'a mut Network<transport::Packet>,
    pub(super) timers: &'a mut Timers,
}

impl Stream {
    /// A source that will move `bytes`, and a sink.
    pub(super) fn new(pair: Pair, bytes: Option<u64>) -> Stream {
        let (source, sink) = pair;
        let end = |transport| End { transport, armed: Armed::NOT };
        Stream { source: end(source), sink: end(sink), delivered: 0, bytes }
    }

    pub(super) fn probe(&self) -> Probe {
        self.source.transport.probe()
    }
}

impl Flow {
    /// The first call.
    pub(super) fn open(&mut self, around: &mut Around<'_>) -> Came {
        if let Ends::Stream(stream) = &mut self.ends {
            let source = &mut stream.source.transport;
            source.write(stream.bytes.unwrap_or(ENDLESS));
            if stream.bytes.is_some() {
                source.finish();
            }
            source.open(around.now);
        }
        self.drain_source(around)
    }

    /// A packet of this flow arrived at one of its ends.
    pub(super) fn handle(
        &mut self,
        packet: Packet<transport::Packet>,
        around: &mut Around<'_>,
    ) -> Came {
        let is_for_sink = packet.to == self.to;
        match &mut self.ends {
            Ends::Datagrams { sink, .. } => {
                sink.handle(around.now, &packet.body);
                Came::Nothing
            }
            Ends::Stream(stream) if is_for_sink => {
                stream.sink.transport.handle(around.now, packet.body);
                self.drain_sink(around)
            }
            Ends::Stream(stream) => {
                stream.source.transport.handle(around.now, packet.body);
                self.drain_source(around)
            }
        }
    }

    /// An entry of the source came up.
    pub(super) fn source_due(&mut self, around: &mut Around<'_>) -> Came {
        if let Ends::Stream(stream) = &mut self.ends {
            let source = &mut stream.source;
            if !source.armed.came_up(around.now) {
                return Came::Nothing;
            }
            if source.transport.next_deadline().is_some_and(|deadline| deadline <= around.now) {
                source.transport.handle_deadline(around.now);
            }
        }
        self.drain_source(around)
    }

    /// An entry of the sink came up.
    pub(super) fn sink_due(&mut self, around: &mut Around<'_>) -> Came {
        if let Ends::Stream(stream) = &mut self.ends {
            let sink = &mut stream.sink;
            if !sink.armed.came_up(around.now) {
                return Came::Nothing;
            }
            if sink.transport.next_deadline().is_some_and(|deadline| deadline <= around.now) {
                sink.transport.handle_deadline(around.now);
            }
        }
        self.drain_sink(around)
    }

    fn drain_source(&mut self, around: &mut Around<'_>) -> Came {
        let (from, to, flow) = (self.from, self.to, self.flow);
        let stream = match &mut self.ends {
            Ends::Stream(stream) => stream,
            Ends::Datagrams { source, .. } => {
                while let Some(packet) = source.poll_transmit(around.now) {
                    around.network.send(around.now, Packet::of(from, to, flow.0, packet));
                }
                around.timers.push(source.next_deadline(), Due::Source(flow));
                return Came::Nothing;
            }
        };
        let source = &mut stream.source;
        while let Some(packet) = source.transport.poll_transmit(around.now) {
            around.network.send(around.now, Packet::of(from, to, flow.0, packet));
        }
        let mut came = Came::Nothing;
        while let Some(event) = source.transport.poll_event() {
            match event {
                Event::Delivered => came = Came::Acknowledged,
                Event::Failed(failure) => came = Came::Failed(failure),
                Event::Connected | Event::Readable | Event::Finished => {}
            }
        }
        source.armed.arm(source.transport.next_deadline(), Due::Source(flow), around.timers);
        came
    }

    fn drain_sink(&mut self, around: &mut Around<'_>) -> Came {
        let (from, to, flow) = (self.from, self.to, self.flow);
        let Ends::Stream(stream) = &mut self.ends else {
            return Came::Nothing;
        };
        let sink = &mut stream.sink;
        // The application takes everything at once, so the acknowledgement tells of a free buffer.
        let read = sink.transport.read(u64::MAX);
        while let Some(packet) = sink.transport.poll_transmit(around.now) {
            around.network.send(around.now, Packet::of(to, from, flow.0, packet));
        }
        let mut came = Came::Nothing;
        if read > 0 {
            stream.delivered += read;
            if stream.bytes.is_some_and(|bytes| stream.delivered >= bytes) {
                came = Came::Arrived;
            }
        }
        while let Some(event) = sink.transport.poll_event() {
            if let Event::Failed(failure) = event {
                came = Came::Failed(failure);
            }
        }
        sink.armed.arm(sink.transport.next_deadline(), Due::Sink(flow), around.timers);
        came
    }
}
