//! The simulator: hosts, links and faults in virtual time.
//!
//! One event at a time: it is handed to the session or member it concerns; what they want done is
//! done; then every end that was touched is pumped (an idle flow pulls its next parcel). A host's
//! inputs queue in its inbox, so nothing recurses and each host sees them in order.
//!
//! **Connecting** takes 2.5 round trips at the listener (TCP, TLS 1.3 with both certificates, the
//! dialler's proof), and half a round trip more at the dialler, because the listener says nothing
//! before it has seen the proof. A host that accepts no connections, or whose program does not
//! run, refuses after one round trip; one that is cut off or crashed silently lets the dial
//! time out. There is one link per pair: a dial that crosses one under way joins it.

mod ahead;
mod config;
mod dial;
mod fault;
mod frames;
mod host;
mod letters;
mod member;
mod packets;
mod view;
mod wire;

pub use crate::event::TraceHash;
pub use crate::paths::DelayFn;
pub use config::{Config, Congestion, Factory, Overhead, Quantum, Wire};
pub use fault::Fault;
pub use host::{BlockArrival, HostId, HostSpec, Life};

use crate::event::{Event, Queue};
use crate::fluid::Fluid;
use crate::net::{Network, Packet};
use crate::paths::Paths;
use crate::terrain::Terrain;
use crate::topology::Topology;
use anabranch_proto::link::backlog::Bounds;
use anabranch_proto::link::{FRAGMENT_LEN_MAX, LinkConfig};
use anabranch_proto::overlay::{Outcome, Output};
use anabranch_proto::time::{Duration, Time};
use anabranch_proto::transport;
use host::{Arrival, Host};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use thiserror::Error;
use wire::{End, Pipe};

/// Why a run cannot go on, or did not do what it must.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum SimError {
    /// A member tried to move data over the wire that models none.
    #[error(
        "{host} sent a block over the latency wire at {time:?}: that wire has no bandwidth, so \
         bulk systems would see endless room; use the fluid wire"
    )]
    BulkOnLatencyWire {
        /// Who.
        host: String,
        /// When.
        time: Time,
    },
    /// The packet wire cannot do what was asked of it.
    #[error("{what}")]
    NotOnPackets {
        /// What, and what to do instead.
        what: String,
    },
    /// Something that must always hold does not.
    #[error("at {time:?} {host}: {what}")]
    Violation {
        /// At which host.
        host: String,
        /// When.
        time: Time,
        /// What does not hold.
        what: String,
    },
    /// Events without end at one time.
    #[error("time stands still at {time:?}: {events} events without progress")]
    Livelock {
        /// When.
        time: Time,
        /// How many.
        events: u64,
    },
    /// The limit came first.
    #[error("not complete at {time:?}: {waiting}")]
    Unfinished {
        /// The limit.
        time: Time,
        /// Who lacks how much.
        waiting: String,
    },
}

/// A receiver that has everything.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Completion {
    /// Who.
    pub host: HostId,
    /// When.
    pub at: Time,
    /// Payload bytes the source had sent by then.
    pub source_out: u64,
}

/// The simulator. See [the module](self).
pub struct Sim {
    config: Config,
    /// The sessions' parameters, which they share.
    link: Arc<LinkConfig>,
    factory: Factory,
    now: Time,
    queue: Queue,
    trace: TraceHash,
    events: u64,
    events_now: u64,
    /// Counts starts and ends of hosts.
    life_changes: u64,
    hosts: Vec<Host>,
    names: BTreeMap<String, HostId>,
    paths: Paths,
    fluid: Fluid,
    packets: Option<Box<packets::Packets>>,
    ends: Vec<End>,
    pipes: Vec<Pipe>,
    frames: frames::Frames,
    letters: letters::Letters,
    dials: dial::Dials,
    script: Vec<Fault>,
    ready: VecDeque<u32>,
    /// Emptied inboxes, to be filled again by whoever needs one.
    inboxes: Vec<VecDeque<Arrival>>,
    touched: Vec<u32>,
    outputs: Vec<Output>,
    completions: Vec<Completion>,
    outcomes: Vec<(Time, Outcome)>,
    failure: Option<SimError>,
}

impl Sim {
    /// A world without hosts, all paths of which take `delay` one way.
    pub fn new(config: Config, delay: Duration, factory: Factory) -> Sim {
        let (fluid, trace) = (Fluid::new(Duration::from_millis(5)), TraceHash::new(config.seed));
        Sim {
            link: Arc::new(link_of(&config)),
            config,
            factory,
            now: Time::ZERO,
            queue: Queue::default(),
            trace,
            events: 0,
            events_now: 0,
            life_changes: 0,
            hosts: Vec::new(),
            names: BTreeMap::new(),
            paths: Paths::uniform(delay),
            fluid,
            packets: None,
            ends: Vec::new(),
            pipes: Vec::new(),
            frames: frames::Frames::default(),
            letters: letters::Letters::default(),
            dials: dial::Dials::default(),
            script: Vec::new(),
            ready: VecDeque::new(),
            inboxes: Vec::new(),
            touched: Vec::new(),
            outputs: Vec::new(),
            completions: Vec::new(),
            outcomes: Vec::new(),
            failure: None,
        }
    }

    /// A world on a topology: its hosts are there, and its links change when it says so.
    pub fn over(mut terrain: Terrain, config: Config, factory: Factory) -> Sim {
        if config.wire == Wire::Latency {
            terrain.delays_only();
        }
        let (hosts, script) = (std::mem::take(&mut terrain.hosts), terrain.script());
        let mut sim = Sim::new(config, Duration::ZERO, factory);
        sim.paths = Paths::over(terrain);
        for spec in hosts {
            sim.add_host(spec);
        }
        for (at, changes) in script {
            sim.schedule(at, Fault::Links(changes));
        }
        sim
    }

    /// A world on a topology whose links carry packets: the terrain says who is where, the topology
    /// it was made from is what the packets pass.
    pub fn over_packets(
        topology: &Topology,
        terrain: Terrain,
        config: Config,
        factory: Factory,
    ) -> Sim {
        let (nodes, access) = terrain.ports();
        let packets = packets::Packets::new(topology, nodes, access, config.seed);
        let mut sim = Sim::over(terrain, Config { wire: Wire::Packet, ..config }, factory);
        sim.packets = Some(Box::new(packets));
        sim
    }

    /// The packet wire's network, for its statistics.
    pub fn network(&self) -> Option<&Network<transport::Packet>> {
        self.packets.as_ref().map(|packets| packets.network())
    }

    /// The packet wire's network, for looking on and for what waits now. What is sent or changed
    /// there beside the simulator breaks the run.
    pub fn network_mut(&mut self) -> Option<&mut Network<transport::Packet>> {
        self.packets.as_mut().map(|packets| packets.network_mut())
    }

    /// Gives every ordered pair of hosts a delay of its own; before the run starts.
    pub fn set_delays(&mut self, delay: DelayFn) {
        self.paths = Paths::computed(delay);
    }

    /// Lets `fault` happen at `at`, after what was scheduled for that time before.
    pub fn schedule(&mut self, at: Time, fault: Fault) {
        let index = self.script.len() as u32;
        self.expect_start(&fault);
        self.script.push(fault);
        self.queue.push(at.max(self.now), Event::Script { index });
    }

    /// Runs until `limit`, or until `stop` holds; it is asked after each completion, fault, and
    /// end of a host. Returns whether it held.
    pub fn run(&mut self, limit: Time, stop: impl Fn(&Sim) -> bool) -> Result<bool, SimError> {
        self.choose_quantum();
        if self.config.wire == Wire::Packet && self.packets.is_none() {
            let what = "the packet wire needs a topology: make the world with Sim::over_packets, or the \
                        story with Story::packets";
            return Err(SimError::NotOnPackets { what: what.into() });
        }
        let looks_ahead = self.config.wire == Wire::Latency;
        while let Some(next) = self.next(limit) {
            if looks_ahead {
                self.look_ahead();
            }
            let is_turning_point = match next {
                Next::Packet(time, packet) => {
                    self.count_event(time)?;
                    self.handle_packet(packet)
                }
                Next::Event(time, event) => {
                    self.send_letters_for(event);
                    self.count_event(time)?;
                    self.handle_event(event)
                }
            };
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            if is_turning_point {
                self.send_letters();
                if stop(self) {
                    return Ok(true);
                }
            }
        }
        self.now = self.now.max(limit);
        Ok(stop(self))
    }

    /// What is next up to `limit`; at one time the network comes first.
    fn next(&mut self, limit: Time) -> Option<Next> {
        if let Some(packets) = &mut self.packets {
            let until = self.queue.next().map_or(limit, |next| next.min(limit));
            if let Some((time, packet)) = packets.poll(until) {
                return Some(Next::Packet(time, packet));
            }
        }
        let next = self.queue.next().filter(|next| *next <= limit);
        self.send_letters_before(next);
        self.queue.pop_until(limit).map(|(time, event)| Next::Event(time, event))
    }

    fn handle_packet(&mut self, packet: Packet<transport::Packet>) -> bool {
        let (done, changes) = (self.completions.len(), self.life_changes);
        self.trace.add(self.now.0);
        self.on_packet(packet);
        self.settle();
        done != self.completions.len() || changes != self.life_changes
    }

    fn count_event(&mut self, time: Time) -> Result<(), SimError> {
        debug_assert!(time >= self.now, "time never goes back");
        self.events += 1;
        self.events_now = if time > self.now { 0 } else { self.events_now + 1 };
        self.now = time;
        if self.events_now > EVENTS_AT_ONCE_MAX {
            return Err(SimError::Livelock { time, events: self.events_now });
        }
        Ok(())
    }

    /// Handles an event and all that follows from it at once; true when a host completed, or its
    /// life changed.
    fn handle_event(&mut self, event: Event) -> bool {
        let (done, changes) = (self.completions.len(), self.life_changes);
        self.trace.add(self.now.0);
        match event {
            Event::Served { flow, turn } => self.on_served(flow, turn),
            Event::Deliver { flow, frames } => self.on_deliver(flow, frames),
            Event::Boundary => self.fluid.rebalance(self.now, &mut self.queue),
            Event::TcpDue { end } => self.on_tcp_due(end),
            Event::SessionDue { end } => self.on_session_due(end),
            Event::MemberDue { host } => self.on_member_due(host),
            Event::Hello { end } => self.on_hello(end),
            Event::DialFailed { dial } => self.on_dial_failed(dial),
            Event::Break { end } => self.on_break(end),
            Event::Script { index } => self.on_script(index),
        }
        self.settle();
        if self.fluid.needs_rates() {
            self.fluid.rebalance(self.now, &mut self.queue);
        }
        if self.config.check && event == Event::Boundary {
            self.check_capacity();
        }
        done != self.completions.len() || changes != self.life_changes
    }

    /// Hands in all inputs and pumps all ends that were touched, until nothing is left to do.
    fn settle(&mut self) {
        while !(self.ready.is_empty() && self.touched.is_empty()) {
            if let Some(host) = self.ready.pop_front() {
                self.drain_inbox(host);
            } else if let Some(end) = self.touched.pop() {
                self.drain_session(end);
                self.pump(end);
            }
            if self.failure.is_some() {
                return;
            }
        }
    }

    fn choose_quantum(&mut self) {
        let quantum = match self.config.quantum {
            Quantum::Every(quantum) => quantum.max(Duration::from_nanos(1)),
            Quantum::Exact => Duration::ZERO,
            Quantum::Adaptive => {
                let fastest = self.hosts.iter().map(|host| host.spec.up.max(host.spec.down)).max();
                let secs = fastest.map_or(0.0, |rate| rate.secs_for(FRAGMENT_LEN_MAX.into()));
                Duration::from_secs_f64(secs / 4.0).clamp(QUANTUM_MIN, QUANTUM_MAX)
            }
        };
        self.fluid.set_quantum(quantum);
    }

    fn check_capacity(&mut self) {
        if let Err(what) = self.fluid.check() {
            self.violation("the wire", what);
        }
    }

    fn violation(&mut self, host: &str, what: String) {
        let (host, time) = (host.to_owned(), self.now);
        self.failure.get_or_insert(SimError::Violation { host, time, what });
    }
}

/// On the fluid wire nothing waits below a session, so its fragments need not be short.
fn link_of(config: &Config) -> LinkConfig {
    let mut link = config.link.clone();
    if config.wire != Wire::Packet {
        link.backlog = Bounds::fixed(link.backlog.max);
    }
    link
}

/// What a run does next.
#[expect(clippy::large_enum_variant, reason = "it lives for one step of the loop")]
enum Next {
    Packet(Time, Packet<transport::Packet>),
    Event(Time, Event),
}

const EVENTS_AT_ONCE_MAX: u64 = 1_000_000;
const QUANTUM_MIN: Duration = Duration::from_micros(50);
const QUANTUM_MAX: Duration = Duration::from_millis(5);
