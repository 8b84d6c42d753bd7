//! Draws a scenario from a seed: hosts, rates, delays, clocks, and what goes wrong when.
//!
//! Which kinds of faults a scenario has is drawn first, each by a coin of its own: so some have
//! one kind only and many times, and some have all at once.

use super::{Subject, ground};
use crate::bounds;
use crate::clock::Clock;
use crate::sim::{Config, Factory, Fault, HostId, HostSpec, Quantum, Sim, SimError};
use crate::units::{Rate, kbit, ms};
use anabranch_proto::random::{Rng, RngExt, below, stream};
use anabranch_proto::time::{Duration, Time};

/// A scenario, ready to be played.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed it was drawn from, and the run's.
    pub seed: u64,
    /// Length of the content in bytes.
    pub content_len: u64,
    /// Length of a block in bytes.
    pub block_len: u32,
    /// The source and the receivers.
    pub hosts: Vec<HostSpec>,
    /// The longest one-way delay; each pair has its own below it.
    pub delay_max: Duration,
    /// How often rates are made anew.
    pub quantum: Quantum,
    /// What happens when.
    pub script: Vec<(Time, Fault)>,
    /// When the last fault of the script is over.
    pub faults_end: Time,
    /// How the source goes away, when it does.
    pub source_exit: Option<SourceExit>,
    /// How long after the last fault everyone must be complete.
    pub patience: Duration,
}

/// How a source goes away.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SourceExit {
    /// When; `None`: as soon as every block is held by some receiver.
    pub at: Option<Time>,
    /// How.
    pub how: Exit,
    /// How much later it comes back, when it does.
    pub returns_after: Option<Duration>,
}

/// Ways to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// In good order.
    Leaves,
    /// The program is killed.
    Killed,
    /// The machine is gone.
    Crashes,
}

/// Coins: which kinds of trouble a scenario has.
struct Kinds {
    is_mixed: bool,
    late: bool,
    crashes: bool,
    cuts: bool,
    partition: bool,
    slow: bool,
    corrupt: bool,
    unreachable: bool,
    drift: bool,
    source_exit: bool,
}

impl Scenario {
    /// The scenario of `seed`, in which the source may go away only when the system survives it.
    pub fn draw(seed: u64, survives_source: bool) -> Scenario {
        let rng = &mut stream(seed, "sweep", "scenario");
        let kinds = Kinds::draw(rng, survives_source);
        let hosts = draw_hosts(rng, &kinds);
        let blocks = rng.random_range(5..=60u64);
        let block_len = draw_block_len(rng, &hosts, blocks);
        let content_len = blocks * u64::from(block_len) - rng.random_range(0..u64::from(block_len));
        let mut scenario = Scenario {
            seed,
            content_len,
            block_len,
            hosts,
            delay_max: Duration::from_micros(rng.random_range(200..=100_000)),
            quantum: *pick(rng, &[Quantum::Exact, Quantum::Adaptive, Quantum::Every(ms(20))]),
            script: Vec::new(),
            faults_end: Time::ZERO,
            source_exit: None,
            patience: Duration::ZERO,
        };
        scenario.draw_faults(rng, &kinds);
        scenario.patience = scenario.patience();
        scenario
    }

    /// The world it plays in.
    pub(super) fn world(&self, subject: &Subject) -> Result<Sim, SimError> {
        let mut config = Config::new(self.seed, self.content_len, self.block_len);
        (config.check, config.quantum) = (true, self.quantum);
        let member = subject.member.clone();
        let factory = Box::new(move |setup| member(setup));
        let mut sim = if subject.is_packet {
            let (topology, terrain) =
                ground::of(self).map_err(|what| SimError::NotOnPackets { what })?;
            Sim::over_packets(&topology, terrain, config, factory)
        } else {
            self.fluid_world(config, factory)
        };
        self.script.iter().for_each(|(at, fault)| sim.schedule(*at, fault.clone()));
        Ok(sim)
    }

    fn fluid_world(&self, config: Config, factory: Factory) -> Sim {
        let mut sim = Sim::new(config, self.delay_max, factory);
        let (seed, delay_max) = (self.seed, self.delay_max.as_nanos() as u64);
        sim.set_delays(Box::new(move |from, to| {
            let pair = u64::from(from.min(to)) << 32 | u64::from(from.max(to));
            let spread = (seed ^ pair).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            Duration::from_nanos(1_000 + (spread * (delay_max >> 8)) / (u64::from(u32::MAX) >> 8))
        }));
        self.hosts.iter().for_each(|spec| {
            sim.add_host(spec.clone());
        });
        sim
    }

    fn draw_faults(&mut self, rng: &mut Rng, kinds: &Kinds) {
        let receivers = self.hosts.len() - 1;
        if kinds.crashes {
            self.draw_crashes(rng, kinds);
        }
        if kinds.cuts {
            for _ in 0..rng.random_range(1..=6) {
                let (a, b) = (below(rng, receivers + 1) as u32, below(rng, receivers + 1) as u32);
                if a != b {
                    let (from, to) = draw_span(rng, 12);
                    self.note(from, Fault::Cut(HostId(a), HostId(b)));
                    self.note(to, Fault::Heal(HostId(a), HostId(b)));
                }
            }
        }
        if kinds.partition && receivers >= 2 {
            let island: Vec<HostId> =
                (1..=receivers as u32).filter(|_| rng.random()).map(HostId).collect();
            let (from, to) = draw_span(rng, 12);
            self.note(from, Fault::Partition(island));
            self.note(to, Fault::HealAll);
        }
        if kinds.slow {
            self.draw_slow(rng);
        }
        if kinds.source_exit {
            let at = rng.random_bool(0.5).then(|| draw_time(rng, 10));
            let how = *pick(rng, &[Exit::Leaves, Exit::Killed, Exit::Crashes]);
            let returns_after =
                rng.random_bool(0.6).then(|| Duration::from_millis(rng.random_range(500..20_000)));
            self.source_exit = Some(SourceExit { at, how, returns_after });
        }
    }

    fn draw_crashes(&mut self, rng: &mut Rng, kinds: &Kinds) {
        // When the source may go, r1 stays: somebody must be there to join through.
        let first = if kinds.source_exit { 2 } else { 1 };
        for number in first..self.hosts.len() as u32 {
            if rng.random_bool(0.4) {
                let host = HostId(number);
                let (from, to) = draw_span(rng, 15);
                let kinds =
                    [Fault::Crash(host), Fault::Kill(host), Fault::Kill(host), Fault::Leave(host)];
                self.note(from, pick(rng, &kinds).clone());
                if rng.random_bool(0.7) {
                    let via = self.hosts[number as usize].ticket_of;
                    let again =
                        via.map_or(Fault::Start(host), |via| Fault::StartWithTicketOf(host, via));
                    self.note(to, again);
                }
            }
        }
    }

    fn draw_slow(&mut self, rng: &mut Rng) {
        for _ in 0..rng.random_range(1..=3) {
            let number = below(rng, self.hosts.len());
            let (host, spec) = (HostId(number as u32), &self.hosts[number]);
            let (up, down) = (spec.up, spec.down);
            let percent = rng.random_range(5..=50);
            let (from, to) = draw_span(rng, 10);
            self.note(from, Fault::Rates(host, up.percent(percent), down.percent(percent)));
            self.note(to, Fault::Rates(host, up, down));
        }
    }

    fn note(&mut self, at: Time, fault: Fault) {
        self.faults_end = self.faults_end.max(at);
        self.script.push((at, fault));
    }

    /// Two minutes for what waits and time-outs add, and ten times what the slowest need.
    fn patience(&self) -> Duration {
        let receivers: Vec<(Rate, Rate)> =
            self.hosts[1..].iter().map(|spec| (spec.up, spec.down)).collect();
        let up = self.hosts.iter().map(|spec| spec.up).min().unwrap_or(Rate::UNLIMITED);
        let all = bounds::kumar_ross(self.content_len, up, &receivers)
            + receivers.len() as f64 * up.secs_for(self.content_len);
        Duration::from_secs(120) + Duration::from_secs_f64(10.0 * all)
    }
}

impl Kinds {
    fn draw(rng: &mut Rng, survives_source: bool) -> Kinds {
        let mut coin = |chance: f64| rng.random_bool(chance);
        Kinds {
            is_mixed: coin(0.5),
            late: coin(0.4),
            crashes: coin(0.4),
            cuts: coin(0.4),
            partition: coin(0.2),
            slow: coin(0.3),
            corrupt: coin(0.25),
            unreachable: coin(0.3),
            drift: coin(0.5),
            source_exit: coin(0.35) && survives_source,
        }
    }
}

fn draw_hosts(rng: &mut Rng, kinds: &Kinds) -> Vec<HostSpec> {
    let count = rng.random_range(2..=12);
    let common = draw_rate(rng);
    let mut hosts: Vec<HostSpec> = Vec::new();
    for number in 0..count {
        let up = if kinds.is_mixed { draw_rate(rng) } else { common };
        let down = if kinds.is_mixed { draw_rate(rng) } else { common };
        let mut spec = match number {
            0 => HostSpec::source("source", up, down),
            _ => HostSpec::receiver(format!("r{number}"), up, down),
        };
        if kinds.drift {
            let offset = Duration::from_millis(rng.random_range(0..3_600_000));
            spec.clock = Clock { offset, drift_ppb: rng.random_range(-2_000_000..=2_000_000) };
        }
        // When the source may go, r1 stays, and others may join through it.
        let is_steady = number == 0 || (number == 1 && kinds.source_exit);
        if !is_steady {
            spec.reachable = !(kinds.unreachable && rng.random_bool(0.4));
            spec.corrupt = kinds.corrupt && rng.random_bool(0.3);
            if kinds.late && rng.random_bool(0.5) {
                spec.start = draw_time(rng, 15);
            }
            spec.ticket_of = kinds.source_exit.then_some(HostId(1));
        }
        hosts.push(spec);
    }
    hosts
}

/// From 256 kb/s to 16 Mb/s, each doubling as likely.
fn draw_rate(rng: &mut Rng) -> Rate {
    kbit(256 << rng.random_range(0..=6u32))
}

/// From 512 bytes to 64 KiB, each doubling as likely; but no more than lets the slowest host send
/// everything to everybody in a minute, so that no seed takes hours of virtual time.
fn draw_block_len(rng: &mut Rng, hosts: &[HostSpec], blocks: u64) -> u32 {
    let up_min = hosts.iter().map(|spec| spec.up.min(spec.down)).min().unwrap_or(Rate::UNLIMITED);
    let mut len = 1u32 << rng.random_range(9..=16u32);
    while len > 512 && up_min.secs_for(u64::from(len) * blocks * hosts.len() as u64) > 60.0 {
        len /= 2;
    }
    len
}

fn pick<'a, T>(rng: &mut Rng, choices: &'a [T]) -> &'a T {
    &choices[below(rng, choices.len())]
}

fn draw_time(rng: &mut Rng, secs_max: u64) -> Time {
    Time(rng.random_range(0..secs_max * 1_000) * 1_000_000)
}

/// A span that begins within 15 s and lasts from 0.2 s to `secs_max`.
fn draw_span(rng: &mut Rng, secs_max: u64) -> (Time, Time) {
    let from = draw_time(rng, 15);
    (from, from + Duration::from_millis(rng.random_range(200..secs_max * 1_000)))
}
