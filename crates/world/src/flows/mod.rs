//! Plain connections over a [`Network`]: the workloads of transport experiments.
//!
//! Flows come from a list, in bulk, or from arrival processes; each is a pair of
//! [`Transport`](anabranch_proto::transport::Transport) machines, or a UDP source and a sink, that
//! lives from its start until the source knows that all has arrived. What is told of them: one
//! [`Record`] per flow, [`FlowSample`]s and [`LinkSample`]s at an interval, and goodput and
//! utilization since the end of a warm-up.
//!
//! ```
//! use anabranch_world::flows::{Bulk, Config, Flows, Group, TcpSpec, TransportSpec};
//! use anabranch_world::topology::{Limit, Link, LinkIx, Node, NodeIx, QueueSpec, Topology};
//! use anabranch_world::units::{mbit, ms};
//! use anabranch_proto::time::Time;
//!
//! let node = |name: &str| Node { name: name.into(), is_host: true };
//! let link = |from, to| Link {
//!     from: NodeIx(from), to: NodeIx(to), rate: mbit(10), delay: ms(10), loss: None, mtu: 1500,
//!     queue: QueueSpec::DropTail { limit: Limit::Packets(50) }, label: String::new(),
//! };
//! let topology = Topology {
//!     nodes: vec![node("a"), node("b")],
//!     links: vec![link(0, 1), link(1, 0)],
//!     ..Topology::default()
//! };
//! let mut flows = Flows::new(&topology, Config { warm_up: Time(2_000_000_000), ..Config::default() });
//! let transport = TransportSpec::named("newreno", TcpSpec::default()).expect("a name of NAMES");
//! let group = flows.add_group(Group { name: "bulk".into(), transport, is_sampled: false });
//! flows.add_bulk(group, &Bulk {
//!     count: 2, pairs: vec![(NodeIx(0), NodeIx(1))], start: Time::ZERO, stagger: ms(100),
//!     stop: None, bytes: None,
//! });
//! flows.run_until(Time(10_000_000_000));
//! assert!(flows.utilization(LinkIx(0)) > 0.9);
//! ```
//!
//! *Order.* What the network does at a time comes before what the ends do at that time; the ends'
//! deadlines come by (time, sequence). Chance comes from (seed, group's name and flow's number,
//! purpose), so another group changes nobody's numbers.
//!
//! *Cost.* A live flow costs its two machines and a few heap entries; a finished one its record. In
//! the steady state nothing is allocated per event.

mod ends;
mod record;
mod run;
mod spec;
mod timers;

pub use record::{FlowSample, LinkSample, Record, jain};
pub use spec::{
    Arrivals, Bulk, FlowIx, FlowSpec, Group, GroupIx, PltSpec, Sizes, TcpSpec, TransportSpec,
};

use crate::net::Network;
use crate::topology::{LinkIx, Routes, Topology};
use anabranch_proto::random::{self, Rng};
use anabranch_proto::time::{Duration, Time};
use anabranch_proto::transport::{self, Probe, udp};
use ends::Flow;
use timers::{Due, Timers};

/// How a run is made and what it shows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// Where chance comes from.
    pub seed: u64,
    /// Goodput and utilization are counted from here on. Default: from the start.
    pub warm_up: Time,
    /// How often sampled groups and `links` are sampled; `None`: never. A sample of a flow has
    /// some 100 bytes.
    pub sample: Option<Duration>,
    /// The links that are sampled.
    pub links: Vec<LinkIx>,
}

/// The simulator. See [the module](self).
pub struct Flows {
    config: Config,
    network: Network<transport::Packet>,
    routes: Routes,
    now: Time,
    timers: Timers,
    groups: Vec<Members>,
    processes: Vec<Process>,
    /// By flow.
    records: Vec<Record>,
    /// The place of each flow in `live`; `NOT_LIVE` before its start and after its end.
    places: Vec<u32>,
    live: Vec<Option<Flow>>,
    free: Vec<u32>,
    /// Bytes sent by each link when the warm-up ended.
    sent_before: Vec<u64>,
    /// Each link's rate in the topology, bytes per second.
    rates: Vec<f64>,
    flow_samples: Vec<FlowSample>,
    link_samples: Vec<LinkSample>,
}

/// A group and how many flows it has had.
#[derive(Debug)]
struct Members {
    group: Group,
    count: u32,
}

/// An arrival process.
#[derive(Debug)]
struct Process {
    group: GroupIx,
    arrivals: Arrivals,
    rng: Rng,
}

const NOT_LIVE: u32 = u32::MAX;

impl Flows {
    /// No flows yet, at time zero.
    pub fn new(topology: &Topology, config: Config) -> Flows {
        let mut timers = Timers::default();
        timers.push(config.warm_up, Due::WarmUp);
        if config.sample.is_some() {
            timers.push(Time::ZERO, Due::Sample);
        }
        Flows {
            network: Network::new(topology, config.seed),
            routes: Routes::new(topology),
            now: Time::ZERO,
            timers,
            groups: Vec::new(),
            processes: Vec::new(),
            records: Vec::new(),
            places: Vec::new(),
            live: Vec::new(),
            free: Vec::new(),
            sent_before: vec![0; topology.links.len()],
            rates: topology.links.iter().map(|link| link.rate.as_f64()).collect(),
            flow_samples: Vec::new(),
            link_samples: Vec::new(),
            config,
        }
    }

    /// A group without flows.
    pub fn add_group(&mut self, group: Group) -> GroupIx {
        self.groups.push(Members { group, count: 0 });
        GroupIx(self.groups.len() as u32 - 1)
    }

    /// One more flow of a group. A start that is past is now.
    pub fn add(&mut self, group: GroupIx, spec: FlowSpec) -> FlowIx {
        let flow = self.record(group, spec);
        self.timers.push(spec.start.max(self.now), Due::Start(flow));
        flow
    }

    /// Several flows of a group; returns the first, the others follow it.
    pub fn add_bulk(&mut self, group: GroupIx, bulk: &Bulk) -> FlowIx {
        let first = FlowIx(self.records.len() as u32);
        let mut start = bulk.start;
        for (_, &(from, to)) in (0..bulk.count).zip(bulk.pairs.iter().cycle()) {
            self.add(group, FlowSpec { from, to, start, stop: bulk.stop, bytes: bulk.bytes });
            start += bulk.stagger;
        }
        first
    }

    /// Flows of a group that arrive as time goes by. A process without pairs or with a rate that is
    /// not above zero makes none.
    pub fn add_arrivals(&mut self, group: GroupIx, arrivals: Arrivals) {
        if arrivals.pairs.is_empty() || !arrivals.rate.is_normal() || arrivals.rate < 0.0 {
            return;
        }
        let name = format!("{}.{}", self.groups[group.0 as usize].group.name, self.processes.len());
        let rng = random::stream(self.config.seed, &name, "flows: arrivals");
        let start = arrivals.start.max(self.now);
        self.processes.push(Process { group, arrivals, rng });
        self.push_arrival(self.processes.len() as u32 - 1, start);
    }

    /// Carries out everything up to `until`, inclusive, and brings the records up to date.
    pub fn run_until(&mut self, until: Time) {
        self.run(until);
        self.settle();
    }

    /// The time reached.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many flows live.
    pub fn live_count(&self) -> usize {
        self.live.len() - self.free.len()
    }

    /// All flows that were added or have arrived, by [`FlowIx`].
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// A group's flows.
    pub fn records_of(&self, group: GroupIx) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |record| record.group == group)
    }

    /// A group.
    pub fn group(&self, group: GroupIx) -> &Group {
        &self.groups[group.0 as usize].group
    }

    /// Bytes of payload per second that reached a flow's sink in order between the end of the
    /// warm-up, or the flow's start when that is later, and now, or the flow's end.
    pub fn goodput(&self, flow: FlowIx) -> f64 {
        let record = &self.records[flow.0 as usize];
        let begin = record.start.max(self.config.warm_up);
        let end =
            [record.acknowledged, record.stop].into_iter().flatten().fold(self.now, Time::min);
        let span = end.since(begin).as_secs_f64();
        let bytes = record.delivered - record.delivered_before;
        if span > 0.0 { bytes as f64 / span } else { 0.0 }
    }

    /// Bytes of payload per second that reached a group's sinks between the end of the warm-up and
    /// now.
    pub fn goodput_of(&self, group: GroupIx) -> f64 {
        let bytes = self.records_of(group).map(|record| record.delivered - record.delivered_before);
        let span = self.now.since(self.config.warm_up).as_secs_f64();
        if span > 0.0 { bytes.sum::<u64>() as f64 / span } else { 0.0 }
    }

    /// The share of a link's rate, as the topology has it, that was used between the end of the
    /// warm-up and now.
    pub fn utilization(&self, link: LinkIx) -> f64 {
        let bytes = self.network.stats(link).sent().bytes - self.sent_before[link.0 as usize];
        let span = self.now.since(self.config.warm_up).as_secs_f64();
        if span > 0.0 { bytes as f64 / (self.rates[link.0 as usize] * span) } else { 0.0 }
    }

    /// What was sampled of flows, by time and flow.
    pub fn flow_samples(&self) -> &[FlowSample] {
        &self.flow_samples
    }

    /// What was sampled of links, by time.
    pub fn link_samples(&self) -> &[LinkSample] {
        &self.link_samples
    }

    /// The network, for its statistics.
    pub fn network(&self) -> &Network<transport::Packet> {
        &self.network
    }

    /// The network, for observers and changes.
    pub fn network_mut(&mut self) -> &mut Network<transport::Packet> {
        &mut self.network
    }

    /// Makes a record; the flow does not live yet.
    fn record(&mut self, group: GroupIx, spec: FlowSpec) -> FlowIx {
        let members = &mut self.groups[group.0 as usize];
        let there = self.routes.delay(spec.from, spec.to).unwrap_or_default();
        let back = self.routes.delay(spec.to, spec.from).unwrap_or_default();
        self.records.push(Record {
            group,
            number: members.count,
            from: spec.from,
            to: spec.to,
            start: spec.start.max(self.now),
            stop: spec.stop,
            bytes: spec.bytes,
            rtt_base: there.saturating_add(back),
            arrived: None,
            acknowledged: None,
            failed: None,
            delivered: 0,
            delivered_before: 0,
            sink: udp::Sink::default(),
            source: Probe::default(),
        });
        members.count += 1;
        self.places.push(NOT_LIVE);
        FlowIx(self.records.len() as u32 - 1)
    }
}

impl std::fmt::Debug for Flows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flows")
            .field("now", &self.now)
            .field("flows", &self.records.len())
            .field("live", &self.live_count())
            .finish_non_exhaustive()
    }
}
