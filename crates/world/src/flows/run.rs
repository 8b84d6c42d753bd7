//! The loop: the network's events and the ends' deadlines, in the order of time.

use super::ends::{Around, Came, Ends, Flow, Stream};
use super::record::{FlowSample, LinkSample};
use super::spec::{FlowIx, FlowSpec, TransportSpec};
use super::timers::Due;
use super::{Flows, NOT_LIVE};
use crate::net::Packet;
use crate::topology::LinkIx;
use anabranch_proto::random;
use anabranch_proto::time::{Duration, Time};
use anabranch_proto::transport::{self, Probe, udp};

impl Flows {
    pub(super) fn run(&mut self, until: Time) {
        loop {
            let limit = self.timers.next().unwrap_or(Time::FAR).min(until);
            if let Some((at, packet)) = self.network.poll(limit) {
                self.now = at;
                self.deliver(packet);
                continue;
            }
            match self.timers.pop_until(limit) {
                Some((at, due)) => {
                    self.now = at;
                    self.carry_out(due);
                }
                None => break,
            }
        }
        self.now = self.now.max(until);
    }

    fn deliver(&mut self, packet: Packet<transport::Packet>) {
        let flow = FlowIx(packet.flow);
        self.with(flow, |live, around| live.handle(packet, around));
    }

    fn carry_out(&mut self, due: Due) {
        match due {
            Due::Start(flow) => self.start(flow),
            Due::Stop(flow) => self.end(flow),
            Due::Source(flow) => self.with(flow, Flow::source_due),
            Due::Sink(flow) => self.with(flow, Flow::sink_due),
            Due::Arrival(process) => self.arrive(process),
            Due::WarmUp => self.warm_up(),
            Due::Sample => self.sample(),
        }
    }

    /// Calls an end of a live flow, and notes what came of it; what is for a flow that is over
    /// (a late packet, an old entry) is nothing.
    fn with(&mut self, flow: FlowIx, call: impl FnOnce(&mut Flow, &mut Around<'_>) -> Came) {
        let place = self.places[flow.0 as usize];
        let Some(Some(live)) = self.live.get_mut(place as usize) else { return };
        let around =
            &mut Around { now: self.now, network: &mut self.network, timers: &mut self.timers };
        let came = call(live, around);
        if came == Came::Nothing {
            return;
        }
        let record = &mut self.records[flow.0 as usize];
        match came {
            Came::Nothing => {}
            Came::Arrived => record.arrived = Some(self.now),
            Came::Acknowledged => record.acknowledged = Some(self.now),
            Came::Failed(failure) => record.failed = Some(failure),
        }
        if matches!(came, Came::Acknowledged | Came::Failed(_)) {
            self.end(flow);
        }
    }

    fn start(&mut self, flow: FlowIx) {
        let record = self.records[flow.0 as usize];
        let members = &self.groups[record.group.0 as usize];
        let ends = match &members.group.transport {
            TransportSpec::Tcp(spec) => Ends::Stream(Stream::new(spec.pair(), record.bytes)),
            TransportSpec::Plt(spec) => Ends::Stream(Stream::new(spec.pair(), record.bytes)),
            TransportSpec::Udp(config) => {
                let name = format!("{}.{}", members.group.name, record.number);
                let rng = random::stream(self.config.seed, &name, "flows: datagrams");
                let source = udp::Source::new(*config, self.now, rng);
                Ends::Datagrams { source, sink: udp::Sink::default() }
            }
        };
        let live = Some(Flow { flow, from: record.from, to: record.to, ends });
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.live.push(None);
                self.live.len() as u32 - 1
            }
        };
        self.live[place as usize] = live;
        self.places[flow.0 as usize] = place;
        if let Some(stop) = record.stop {
            self.timers.push(stop.max(self.now), Due::Stop(flow));
        }
        self.with(flow, Flow::open);
    }

    /// Both ends vanish, without a packet.
    fn end(&mut self, flow: FlowIx) {
        let place = self.places[flow.0 as usize];
        if place == NOT_LIVE {
            return;
        }
        self.update_record(place);
        self.live[place as usize] = None;
        self.places[flow.0 as usize] = NOT_LIVE;
        self.free.push(place);
    }

    fn arrive(&mut self, index: u32) {
        let process = &mut self.processes[index as usize];
        let arrivals = &process.arrivals;
        let (from, to) = arrivals.pairs[random::below(&mut process.rng, arrivals.pairs.len())];
        let packets = arrivals.size.draw(&mut process.rng);
        let group = process.group;
        let (bytes, stop) = match &self.groups[group.0 as usize].group.transport {
            TransportSpec::Tcp(spec) => (Some(packets * u64::from(spec.segment())), None),
            TransportSpec::Plt(spec) => (Some(packets * u64::from(spec.segment())), None),
            TransportSpec::Udp(config) => {
                let bytes = packets as f64 * f64::from(config.packet_len());
                (None, Some(self.now + Duration::from_secs_f64(bytes / config.rate_mean())))
            }
        };
        let start = self.now;
        let flow = self.record(group, FlowSpec { from, to, start, stop, bytes });
        self.start(flow);
        self.push_arrival(index, self.now);
    }

    /// The next arrival after `from`, unless the process is over by then.
    pub(super) fn push_arrival(&mut self, index: u32, from: Time) {
        let process = &mut self.processes[index as usize];
        let mean = Duration::from_secs_f64((1.0 / process.arrivals.rate).min(1e9));
        let at = from + udp::exponential(&mut process.rng, mean);
        if at < process.arrivals.stop {
            self.timers.push(at, Due::Arrival(index));
        }
    }

    fn warm_up(&mut self) {
        self.settle();
        for record in &mut self.records {
            record.delivered_before = record.delivered;
        }
        for (link, sent) in self.sent_before.iter_mut().enumerate() {
            *sent = self.network.stats(LinkIx(link as u32)).sent().bytes;
        }
    }

    fn sample(&mut self) {
        self.settle();
        let at = self.now;
        for live in self.live.iter().flatten() {
            let record = &self.records[live.flow.0 as usize];
            if self.groups[record.group.0 as usize].group.is_sampled {
                let (flow, delivered, source) = (live.flow, record.delivered, record.source);
                self.flow_samples.push(FlowSample { at, flow, delivered, source });
            }
        }
        for &link in &self.config.links {
            let queued = self.network.queued(at, link).all();
            let stats = self.network.stats(link);
            self.link_samples.push(LinkSample {
                at,
                link,
                packets: queued.packets,
                bytes: queued.bytes,
                sent: stats.sent().bytes,
                dropped: stats.dropped_all().packets,
            });
        }
        if let Some(interval) = self.config.sample {
            self.timers.push(at + interval.max(Duration::from_micros(1)), Due::Sample);
        }
    }

    /// Brings the records of live flows up to date.
    pub(super) fn settle(&mut self) {
        for place in 0..self.live.len() {
            self.update_record(place as u32);
        }
    }

    fn update_record(&mut self, place: u32) {
        let Some(live) = &self.live[place as usize] else { return };
        let record = &mut self.records[live.flow.0 as usize];
        match &live.ends {
            Ends::Stream(stream) => {
                record.delivered = stream.delivered;
                record.source = stream.probe();
            }
            Ends::Datagrams { source, sink } => {
                record.delivered = sink.bytes;
                record.sink = *sink;
                record.source = Probe { sent: source.sent_bytes(), ..Probe::default() };
            }
        }
    }
}
