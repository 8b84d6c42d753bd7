//! A hard case in ten lines.
//!
//! ```
//! use anabranch_proto::overlay::System;
//! use anabranch_world::story::Story;
//! use anabranch_world::units::{Size, mbit, ms, s};
//!
//! let mut story = Story::new(1, System::Star)
//!     .file(2.mb(), 64.kib())
//!     .hosts(3)
//!     .up(mbit(6))
//!     .delay(ms(25));
//! story.at(s(1)).cut("source", "r1");
//! story.at(s(3)).heal("source", "r1");
//! let end = story.run_until_complete(s(60)).unwrap();
//! end.assert_all_complete();
//! assert!(end.completion("r1").unwrap() > end.completion("r2").unwrap());
//! ```
//!
//! Hosts are called `source`, `r1`, `r2` and so on. What a story names and does not have is a
//! mistake in the story and panics.

use crate::clock::Clock;
use crate::meter::{Meter, Traffic};
use crate::sim::{Config, DelayFn, Factory, Fault, HostId, HostSpec, Sim, SimError, TraceHash};
use crate::terrain::Terrain;
use crate::topology::Topology;
use crate::units::{Rate, mbit};
use anabranch_proto::overlay::{Outcome, Overlay, Setup, Stats, System};
use anabranch_proto::time::{Duration, Time};

/// A scenario that is being told. See [the module](self).
pub struct Story {
    config: Config,
    factory: Factory,
    hosts: Vec<HostSpec>,
    delay: Duration,
    delays: Option<DelayFn>,
    terrain: Option<Terrain>,
    topology: Option<Topology>,
    script: Vec<(Time, Fault)>,
    held: Vec<(HostId, Vec<u32>)>,
}

impl Story {
    /// A source and one receiver at 10 Mb/s, 10 ms apart, with 1 MB in blocks of 16 KiB.
    pub fn new(seed: u64, system: System) -> Story {
        let rate = mbit(10);
        Story {
            config: Config::new(seed, 1_000_000, 16 * 1024),
            factory: Box::new(move |setup| system.member(setup)),
            hosts: vec![
                HostSpec::source("source", rate, rate),
                HostSpec::receiver("r1", rate, rate),
            ],
            delay: Duration::from_millis(10),
            delays: None,
            terrain: None,
            topology: None,
            script: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Members made by `factory`, for a system with other than its default parameters.
    pub fn members(
        mut self,
        factory: impl Fn(Setup) -> Box<dyn Overlay + Send> + Send + 'static,
    ) -> Story {
        self.factory = Box::new(factory);
        self
    }

    /// The content: its length and that of its blocks, in bytes.
    pub fn file(mut self, len: u64, block: u64) -> Story {
        self.config.content_len = len;
        self.config.block_len = u32::try_from(block).unwrap_or(u32::MAX);
        self
    }

    /// So many hosts in all, the source among them; new ones are like the source.
    pub fn hosts(mut self, count: usize) -> Story {
        let (up, down) = (self.hosts[0].up, self.hosts[0].down);
        self.hosts.truncate(count.max(1));
        for number in self.hosts.len()..count {
            self.hosts.push(HostSpec::receiver(format!("r{number}"), up, down));
        }
        self
    }

    /// What every host can send.
    pub fn up(mut self, up: Rate) -> Story {
        self.hosts.iter_mut().for_each(|host| host.up = up);
        self
    }

    /// What every host can receive.
    pub fn down(mut self, down: Rate) -> Story {
        self.hosts.iter_mut().for_each(|host| host.down = down);
        self
    }

    /// The one-way delay between any two hosts.
    pub fn delay(mut self, delay: Duration) -> Story {
        self.delay = delay;
        self
    }

    /// One-way delays by host numbers (0 is the source).
    pub fn delays(mut self, delay: impl Fn(u32, u32) -> Duration + Send + 'static) -> Story {
        self.delays = Some(Box::new(delay));
        self
    }

    /// On a topology: its members take the place of the story's hosts, with the names that they
    /// have there, and its links that of the story's delays.
    pub fn terrain(mut self, terrain: Terrain) -> Story {
        self.hosts = terrain.hosts.clone();
        self.terrain = Some(terrain);
        self
    }

    /// On a topology whose links carry packets: as [`Story::terrain`], made from `topology`.
    pub fn packets(mut self, topology: Topology, terrain: Terrain) -> Story {
        self.topology = Some(topology);
        self.terrain(terrain)
    }

    /// Changes parameters of the run.
    pub fn configure(mut self, change: impl FnOnce(&mut Config)) -> Story {
        change(&mut self.config);
        self
    }

    /// Changes one host's specification.
    pub fn host(mut self, name: &str, change: impl FnOnce(&mut HostSpec)) -> Story {
        let id = self.id(name);
        change(&mut self.hosts[id.0 as usize]);
        self
    }

    /// One host's rates.
    pub fn rates(self, name: &str, up: Rate, down: Rate) -> Story {
        self.host(name, |host| (host.up, host.down) = (up, down))
    }

    /// A receiver that starts late.
    pub fn starts(self, name: &str, at: Duration) -> Story {
        self.host(name, |host| host.start = Time::ZERO + at)
    }

    /// A host that accepts no connections.
    pub fn unreachable(self, name: &str) -> Story {
        self.host(name, |host| host.reachable = false)
    }

    /// A host all of whose blocks are wrong.
    pub fn corrupt(self, name: &str) -> Story {
        self.host(name, |host| host.corrupt = true)
    }

    /// A host whose clock starts at `offset` and gains `drift_ppm` millionths.
    pub fn clock(self, name: &str, offset: Duration, drift_ppm: i64) -> Story {
        self.host(name, |host| host.clock = Clock { offset, drift_ppb: drift_ppm * 1_000 })
    }

    /// Blocks that a receiver holds before it starts.
    pub fn holds(mut self, name: &str, blocks: impl IntoIterator<Item = u32>) -> Story {
        let id = self.id(name);
        self.held.push((id, blocks.into_iter().collect()));
        self
    }

    /// What happens at `at`.
    pub fn at(&mut self, at: Duration) -> Moment<'_> {
        Moment { at: Time::ZERO + at, story: self }
    }

    /// The world of this story, before its first event.
    pub fn build(self) -> Sim {
        let mut sim = match self.terrain {
            Some(terrain) => {
                let mut terrain = terrain;
                terrain.hosts = self.hosts;
                match &self.topology {
                    Some(topology) => {
                        Sim::over_packets(topology, terrain, self.config, self.factory)
                    }
                    None => Sim::over(terrain, self.config, self.factory),
                }
            }
            None => {
                let mut sim = Sim::new(self.config, self.delay, self.factory);
                self.hosts.into_iter().for_each(|spec| {
                    sim.add_host(spec);
                });
                sim
            }
        };
        if let Some(delays) = self.delays {
            sim.set_delays(delays);
        }
        for (host, blocks) in self.held {
            sim.hold(host, blocks);
        }
        for (at, fault) in self.script {
            sim.schedule(at, fault);
        }
        sim
    }

    /// Runs until every receiver that runs is complete and none is still to start; an error when
    /// that takes longer than `limit`, or when something that must hold does not.
    pub fn run_until_complete(self, limit: Duration) -> Result<End, SimError> {
        let mut sim = self.build();
        if !sim.run(Time::ZERO + limit, Sim::is_complete)? {
            return Err(sim.unfinished());
        }
        Ok(End { sim })
    }

    /// Runs until `limit`, whatever happens.
    pub fn run_for(self, limit: Duration) -> Result<End, SimError> {
        let mut sim = self.build();
        sim.run(Time::ZERO + limit, |_| false)?;
        Ok(End { sim })
    }

    fn id(&self, name: &str) -> HostId {
        let at = self.hosts.iter().position(|host| host.name == name);
        HostId(at.unwrap_or_else(|| panic!("the story has no host {name}")) as u32)
    }
}

/// A time in a story, at which things happen.
pub struct Moment<'a> {
    at: Time,
    story: &'a mut Story,
}

impl Moment<'_> {
    /// Any fault.
    pub fn fault(self, fault: Fault) -> Self {
        self.story.script.push((self.at, fault));
        self
    }

    /// A host's machine is gone without a word.
    pub fn crash(self, name: &str) -> Self {
        let id = self.story.id(name);
        self.fault(Fault::Crash(id))
    }

    /// A host's program is killed; its machine resets the links.
    pub fn kill(self, name: &str) -> Self {
        let id = self.story.id(name);
        self.fault(Fault::Kill(id))
    }

    /// A host that is down starts again with what it holds.
    pub fn restart(self, name: &str) -> Self {
        let id = self.story.id(name);
        self.fault(Fault::Start(id))
    }

    /// A host starts (again) with a ticket that another prints then.
    pub fn start_with_ticket_of(self, name: &str, via: &str) -> Self {
        let (id, via) = (self.story.id(name), self.story.id(via));
        self.fault(Fault::StartWithTicketOf(id, via))
    }

    /// A host leaves in good order.
    pub fn leave(self, name: &str) -> Self {
        let id = self.story.id(name);
        self.fault(Fault::Leave(id))
    }

    /// Nothing passes between two hosts any more.
    pub fn cut(self, a: &str, b: &str) -> Self {
        let (a, b) = (self.story.id(a), self.story.id(b));
        self.fault(Fault::Cut(a, b))
    }

    /// The path between two hosts is whole again.
    pub fn heal(self, a: &str, b: &str) -> Self {
        let (a, b) = (self.story.id(a), self.story.id(b));
        self.fault(Fault::Heal(a, b))
    }

    /// Every path is whole again.
    pub fn heal_all(self) -> Self {
        self.fault(Fault::HealAll)
    }

    /// These hosts are cut off from all others.
    pub fn partition(self, names: &[&str]) -> Self {
        let island = names.iter().map(|name| self.story.id(name)).collect();
        self.fault(Fault::Partition(island))
    }

    /// A host's rates change.
    pub fn rates(self, name: &str, up: Rate, down: Rate) -> Self {
        let id = self.story.id(name);
        self.fault(Fault::Rates(id, up, down))
    }

    /// The one-way delay between two hosts changes.
    pub fn delay(self, a: &str, b: &str, delay: Duration) -> Self {
        let (a, b) = (self.story.id(a), self.story.id(b));
        self.fault(Fault::Delay(a, b, delay))
    }

    /// The path between two hosts carries at most `rate` each way.
    pub fn path_rate(self, a: &str, b: &str, rate: Rate) -> Self {
        let (a, b) = (self.story.id(a), self.story.id(b));
        self.fault(Fault::PathRate(a, b, Some(rate)))
    }
}

/// How a story ended.
pub struct End {
    sim: Sim,
}

impl End {
    /// The world as it is now.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// Lets the world run on for `span`: farewells and reports arrive.
    pub fn linger(mut self, span: Duration) -> Result<End, SimError> {
        let limit = self.sim.now() + span;
        self.sim.run(limit, |_| false)?;
        Ok(self)
    }

    /// Panics unless every receiver that runs holds everything and has said so.
    pub fn assert_all_complete(&self) {
        assert!(self.sim.is_complete(), "{}", self.sim.unfinished());
    }

    /// When a host was complete.
    pub fn completion(&self, name: &str) -> Option<Time> {
        self.sim.completion(self.id(name))
    }

    /// When the last receiver was complete; the start when none was.
    pub fn completion_last(&self) -> Time {
        self.sim.completions().last().map_or(Time::ZERO, |done| done.at)
    }

    /// What receivers reported to the root.
    pub fn outcomes(&self) -> Vec<&Outcome> {
        self.sim.outcomes().iter().map(|(_, outcome)| outcome).collect()
    }

    /// What a host's member counted.
    pub fn stats(&self, name: &str) -> Stats {
        self.sim.stats(self.id(name))
    }

    /// What a host sent and received.
    pub fn traffic(&self, name: &str) -> Traffic {
        self.meter(name).total
    }

    /// What a host sent and received, over time.
    pub fn meter(&self, name: &str) -> &Meter {
        self.sim.meter(self.id(name))
    }

    /// The sum over all hosts.
    pub fn traffic_sum(&self) -> Traffic {
        let totals = self.sim.hosts().map(|host| self.sim.meter(host).total);
        totals.fold(Traffic::default(), Traffic::plus)
    }

    /// The hash of all that happened.
    pub fn trace_hash(&self) -> TraceHash {
        self.sim.trace_hash()
    }

    fn id(&self, name: &str) -> HostId {
        self.sim.host(name).unwrap_or_else(|| panic!("the story has no host {name}"))
    }
}
