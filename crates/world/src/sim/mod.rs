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

mod dial;
mod fault;
mod host;
mod wire;

pub use crate::event::TraceHash;
pub use crate::paths::DelayFn;
pub use fault::Fault;
pub use host::{HostId, HostSpec, Life};

use crate::clock::Clock;
use crate::event::{Event, Queue};
use crate::fluid::Fluid;
use crate::meter::Meter;
use crate::paths::Paths;
use anabranch_proto::link::{FRAGMENT_LEN_MAX, LinkConfig};
use anabranch_proto::overlay::{Holdings, Outcome, Output, Overlay, Setup, Stats};
use anabranch_proto::time::{Duration, Time};
use host::Host;
use std::collections::{BTreeMap, VecDeque};
use thiserror::Error;
use wire::{End, Pipe};

/// Makes a member: how a scenario chooses the system and its parameters.
pub type Factory = Box<dyn Fn(Setup) -> Box<dyn Overlay + Send> + Send>;

/// How frames travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wire {
    /// Max-min fair shares of host and path rates, then the path's delay.
    #[default]
    Fluid,
    /// The path's delay only, for control planes: a block on it fails the run.
    Latency,
}

/// How often the fluid wire makes its rates anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Quantum {
    /// A quarter of the time a fragment takes at the fastest host rate, within 50 µs and 5 ms.
    #[default]
    Adaptive,
    /// This long.
    Every(Duration),
    /// At every change: exact, slow with many flows.
    Exact,
}

/// Bytes that lower layers add to what a host sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overhead {
    /// None: rates are net of headers, as the bounds are.
    #[default]
    None,
    /// TLS records (22 bytes per 16 KiB begun) and TCP/IP headers (40 bytes per 1,460 begun).
    TlsTcp,
}

impl Overhead {
    fn bytes(self, frame_bytes: u64) -> u64 {
        match self {
            Overhead::None => 0,
            Overhead::TlsTcp => {
                let sealed = frame_bytes + 22 * frame_bytes.div_ceil(16 * 1024);
                sealed - frame_bytes + 40 * sealed.div_ceil(1460)
            }
        }
    }
}

/// What a run is made of, beside its hosts.
#[derive(Clone, Debug)]
pub struct Config {
    /// Everything random comes from it.
    pub seed: u64,
    /// Length of the content in bytes.
    pub content_len: u64,
    /// Length of a block in bytes.
    pub block_len: u32,
    /// How frames travel. Default fluid.
    pub wire: Wire,
    /// How often rates are made anew. Default adaptive; longer is faster and coarser.
    pub quantum: Quantum,
    /// What lower layers add. Default nothing.
    pub overhead: Overhead,
    /// The sessions' parameters.
    pub link: LinkConfig,
    /// A dial that meets silence fails after this long. Default 3 s.
    pub dial_timeout: Duration,
    /// Least time between two deadlines of one member: a timer's granularity. Default 50 µs.
    pub timer_step: Duration,
    /// Whether invariants are checked at every event. Default: in debug builds.
    pub check: bool,
    /// The interval of the series over time. Default 1 s.
    pub interval: Duration,
}

impl Config {
    /// The defaults for a content of `content_len` bytes in blocks of `block_len`.
    pub fn new(seed: u64, content_len: u64, block_len: u32) -> Config {
        Config {
            seed,
            content_len,
            block_len,
            wire: Wire::Fluid,
            quantum: Quantum::Adaptive,
            overhead: Overhead::None,
            link: LinkConfig::default(),
            dial_timeout: Duration::from_secs(3),
            timer_step: Duration::from_micros(50),
            check: cfg!(debug_assertions),
            interval: Duration::from_secs(1),
        }
    }
}

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
    ends: Vec<End>,
    pipes: Vec<Pipe>,
    dials: dial::Dials,
    script: Vec<Fault>,
    ready: VecDeque<u32>,
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
            ends: Vec::new(),
            pipes: Vec::new(),
            dials: dial::Dials::default(),
            script: Vec::new(),
            ready: VecDeque::new(),
            touched: Vec::new(),
            outputs: Vec::new(),
            completions: Vec::new(),
            outcomes: Vec::new(),
            failure: None,
        }
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
        while let Some((time, event)) = self.queue.pop_until(limit) {
            self.count_event(time)?;
            let is_turning_point = self.handle_event(event);
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            if is_turning_point && stop(self) {
                return Ok(true);
            }
        }
        self.now = self.now.max(limit);
        Ok(stop(self))
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
        loop {
            if let Some(host) = self.ready.pop_front() {
                self.drain_inbox(host);
            } else if let Some(end) = self.touched.pop() {
                self.drain_session(end);
                self.pump(end);
            } else {
                return;
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

/// What can be seen of a world.
impl Sim {
    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What the run was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The hash of everything that happened so far.
    pub fn trace_hash(&self) -> TraceHash {
        self.trace
    }

    /// How many events were handled.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// How many events wait.
    pub fn events_waiting(&self) -> usize {
        self.queue.len()
    }

    /// All hosts, in the order in which they were added; the source is the first.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..self.hosts.len() as u32).map(HostId)
    }

    /// The host called `name`.
    pub fn host(&self, name: &str) -> Option<HostId> {
        self.names.get(name).copied()
    }

    /// What a host was made with, as faults have changed it.
    pub fn spec(&self, host: HostId) -> &HostSpec {
        &self.at(host).spec
    }

    /// Whether a host runs.
    pub fn life(&self, host: HostId) -> Life {
        self.at(host).life
    }

    /// What a host holds.
    pub fn holdings(&self, host: HostId) -> &Holdings {
        &self.at(host).holdings
    }

    /// A host's clock.
    pub fn clock(&self, host: HostId) -> Clock {
        self.at(host).spec.clock
    }

    /// What a host's member counts (the last one's, when the host is down); zeros before it ran.
    pub fn stats(&self, host: HostId) -> Stats {
        let host = self.at(host);
        host.member.as_ref().map_or(host.stats_last, |member| *member.stats())
    }

    /// What a host's member says of whom to join through.
    pub fn member(&self, host: HostId) -> Option<&(dyn Overlay + Send)> {
        self.at(host).member.as_deref()
    }

    /// What a host sent and received.
    pub fn meter(&self, host: HostId) -> &Meter {
        &self.at(host).meter
    }

    /// How many links a host has now.
    pub fn links(&self, host: HostId) -> usize {
        self.at(host).peers.len()
    }

    /// Completions so far, in order.
    pub fn completions(&self) -> &[Completion] {
        &self.completions
    }

    /// When a host reported that it has everything, the first time.
    pub fn completion(&self, host: HostId) -> Option<Time> {
        self.completions.iter().find(|done| done.host == host).map(|done| done.at)
    }

    /// What receivers reported to the root, and when it heard.
    pub fn outcomes(&self) -> &[(Time, Outcome)] {
        &self.outcomes
    }

    /// Whether every receiver that runs is complete, and none is still to start.
    pub fn is_complete(&self) -> bool {
        let waits = |host: &Host| {
            let is_busy = host.life == Life::Up && !host.is_done && !host.started_complete();
            !host.spec.is_source && (is_busy || host.starts_waiting > 0)
        };
        !self.hosts.iter().any(waits)
    }

    /// The error for a run that was not complete when it should have been.
    pub fn unfinished(&self) -> SimError {
        let waiting: Vec<String> = self
            .hosts
            .iter()
            .filter(|host| !host.spec.is_source && !host.is_done)
            .take(10)
            .map(|host| {
                let held = host.holdings.held();
                let (name, life) = (&host.spec.name, host.life);
                format!("{name} ({life:?}) holds {} of {}", held.count(), held.len())
            })
            .collect();
        SimError::Unfinished { time: self.now, waiting: waiting.join(", ") }
    }

    fn at(&self, host: HostId) -> &Host {
        &self.hosts[host.0 as usize]
    }
}

const EVENTS_AT_ONCE_MAX: u64 = 1_000_000;
const QUANTUM_MIN: Duration = Duration::from_micros(50);
const QUANTUM_MAX: Duration = Duration::from_millis(5);
