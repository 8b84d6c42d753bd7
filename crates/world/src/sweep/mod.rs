//! Seed sweeps: small scenarios with faults drawn from the seed, safety checked at every event,
//! liveness once the faults have stopped.
//!
//! **Safety**, at every event: the member's own invariants; it sends only blocks that it holds
//! (and a store never holds a block that came corrupt); it asks for no block twice without
//! counting why; it says it is done only when it is; no host carries more than its rate.
//!
//! **Liveness**: when the faults have stopped and a copy of every block is left at an honest host
//! that runs, every honest receiver that runs is complete within a bounded time. A receiver whose
//! member gave up while faults lasted is started once more, as its user would.
//!
//! On the packet wire the same scenarios play over a star with losses and short queues, each drawn too;
//! a path that is cut and heals there is TCP's to bear.
//!
//! A failure says which command replays it. The scenarios are drawn by [`draw`].

pub mod draw;
mod ground;

use crate::sim::{Fault, HostId, Life, Sim, SimError};
use anabranch_proto::overlay::{Overlay, Setup, System};
use anabranch_proto::summary::Bitmap;
use anabranch_proto::time::{Duration, Time};
use draw::{Exit, Scenario, SourceExit};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What is swept: a system, and what it promises to survive.
pub struct Subject {
    /// Its name, as `--system` takes it.
    pub name: String,
    /// Makes its members.
    pub member: Arc<dyn Fn(Setup) -> Box<dyn Overlay + Send> + Send + Sync>,
    /// Whether receivers finish without the source once every block is out there.
    pub survives_source: bool,
    /// Whether links carry packets, over a star with losses of its own, and are not fluid.
    pub is_packet: bool,
}

impl Subject {
    /// A system with its default parameters.
    pub fn of(system: System) -> Subject {
        let survives_source = match system {
            System::BulletPrime | System::BitTorrent => true,
            System::Star => false,
        };
        let member = Arc::new(move |setup| system.member(setup));
        Subject { name: system.name().to_owned(), member, survives_source, is_packet: false }
    }
}

impl Subject {
    /// On the packet wire.
    pub fn on_packets(self) -> Subject {
        Subject { is_packet: true, ..self }
    }
}

/// How the run of one seed went.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Passed {
    /// Events handled.
    pub events: u64,
    /// Whether liveness was due: a copy of every block was left.
    pub was_due: bool,
    /// When the last receiver was complete.
    pub last: Time,
    /// The hash of all that happened.
    pub trace: u64,
    /// Receivers that were started once more after their member gave up.
    pub retried: u32,
}

/// Why the run of one seed failed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error(
    "seed {seed}: {error}\nreplay: cargo run -p anabranch-world --release --bin sweep -- \
     --seeds {seed}..{end} --system {system} --wire {wire} --verbose",
    end = seed + 1
)]
pub struct Failed {
    /// The seed.
    pub seed: u64,
    /// The system.
    pub system: String,
    /// The wire.
    pub wire: &'static str,
    /// What went wrong.
    pub error: SimError,
}

/// The sum over many seeds.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// Seeds that passed.
    pub passed: u64,
    /// Seeds in which liveness was due.
    pub due: u64,
    /// Events in all.
    pub events: u64,
    /// Receivers started once more.
    pub retried: u64,
    /// What failed, by seed.
    pub failed: Vec<Failed>,
}

/// Runs every seed of a range on `threads` threads. The result does not depend on their number.
pub fn run(subject: &Subject, seeds: Range<u64>, threads: usize) -> Summary {
    let next = AtomicU64::new(seeds.start);
    let summary = Mutex::new(Summary::default());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let result = run_seed(subject, seed);
                    summary.lock().unwrap_or_else(|broken| broken.into_inner()).add(result);
                }
            });
        }
    });
    let mut summary = summary.into_inner().unwrap_or_else(|broken| broken.into_inner());
    summary.failed.sort_by_key(|failed| failed.seed);
    summary
}

impl Summary {
    fn add(&mut self, result: Result<Passed, Failed>) {
        match result {
            Ok(passed) => {
                self.passed += 1;
                self.due += u64::from(passed.was_due);
                self.events += passed.events;
                self.retried += u64::from(passed.retried);
            }
            Err(failed) => self.failed.push(failed),
        }
    }
}

/// Runs the scenario of one seed; every sixteenth twice, to see that it does the same again.
pub fn run_seed(subject: &Subject, seed: u64) -> Result<Passed, Failed> {
    let wire = if subject.is_packet { "packet" } else { "fluid" };
    let fail = |error| Failed { seed, system: subject.name.clone(), wire, error };
    let scenario = Scenario::draw(seed, subject.survives_source);
    let passed = play(subject, &scenario).map_err(fail)?;
    if seed.is_multiple_of(16) {
        let again = play(subject, &scenario).map_err(fail)?;
        if again != passed {
            return Err(fail(SimError::Violation {
                host: "the run".into(),
                time: again.last,
                what: format!("differs when repeated: {passed:?}, then {again:?}"),
            }));
        }
    }
    Ok(passed)
}

fn play(subject: &Subject, scenario: &Scenario) -> Result<Passed, SimError> {
    let mut sim = scenario.world(subject)?;
    let faults_end = play_faults(&mut sim, scenario)?;
    let retried = retry_failed(&mut sim);
    let required: Vec<HostId> = sim.hosts().skip(1).filter(|&host| is_due(&sim, host)).collect();
    let was_due = every_block_lives(&sim);
    if was_due {
        let limit = faults_end + scenario.patience;
        let is_over = |sim: &Sim| required.iter().all(|&host| is_served(sim, host));
        if !is_over(&sim) && !sim.run(limit, is_over)? {
            return Err(sim.unfinished());
        }
    }
    let last = sim.completions().last().map_or(Time::ZERO, |done| done.at);
    let (events, trace) = (sim.events(), sim.trace_hash().value());
    Ok(Passed { events, was_due, last, trace, retried })
}

/// Runs until the last fault is over; returns when.
fn play_faults(sim: &mut Sim, scenario: &Scenario) -> Result<Time, SimError> {
    let mut end = scenario.faults_end;
    if let Some(exit) = &scenario.source_exit {
        let left_at = find_exit(sim, exit, scenario.patience)?;
        let source = HostId(0);
        sim.schedule(
            left_at,
            match exit.how {
                Exit::Leaves => Fault::Leave(source),
                Exit::Killed => Fault::Kill(source),
                Exit::Crashes => Fault::Crash(source),
            },
        );
        if let Some(after) = exit.returns_after {
            sim.schedule(left_at + after, Fault::Start(source));
            end = end.max(left_at + after);
        }
        end = end.max(left_at);
    }
    // Grace: what the last fault set off (a link given up, a member that gives up) comes after it.
    end += GRACE;
    sim.run(end, |_| false)?;
    Ok(end)
}

/// When the source goes: at a time drawn, or as soon as every block is out there.
fn find_exit(sim: &mut Sim, exit: &SourceExit, patience: Duration) -> Result<Time, SimError> {
    if let Some(at) = exit.at {
        return Ok(at);
    }
    let limit = Time::ZERO + patience;
    while sim.now() < limit && !is_all_out(sim, sim.hosts().skip(1)) {
        let next = sim.now() + Duration::from_millis(100);
        sim.run(next, |_| false)?;
    }
    Ok(sim.now())
}

/// Starts receivers whose member gave up while faults lasted once more.
fn retry_failed(sim: &mut Sim) -> u32 {
    let failed: Vec<HostId> =
        sim.hosts().skip(1).filter(|&host| matches!(sim.life(host), Life::Failed(_))).collect();
    for &host in &failed {
        let start = match sim.spec(host).ticket_of {
            Some(via) => Fault::StartWithTicketOf(host, via),
            None => Fault::Start(host),
        };
        sim.schedule(sim.now(), start);
    }
    failed.len() as u32
}

/// Whether a receiver must become complete: it runs (or is started once more) and is honest.
fn is_due(sim: &Sim, host: HostId) -> bool {
    let runs = matches!(sim.life(host), Life::Up | Life::Failed(_));
    runs && !sim.spec(host).corrupt
}

/// A receiver that was complete may have left since.
fn is_served(sim: &Sim, host: HostId) -> bool {
    sim.holdings(host).is_complete()
}

/// Whether honest hosts that run hold every block between them.
fn every_block_lives(sim: &Sim) -> bool {
    is_all_out(sim, sim.hosts())
}

fn is_all_out(sim: &Sim, hosts: impl Iterator<Item = HostId>) -> bool {
    let mut out = Bitmap::new(sim.holdings(HostId(0)).blocks());
    for host in hosts.filter(|&host| sim.life(host) == Life::Up && !sim.spec(host).corrupt) {
        sim.holdings(host).held().iter().for_each(|block| {
            out.insert(block);
        });
    }
    out.is_full()
}

/// Longer than a silent link takes to be given up.
const GRACE: Duration = Duration::from_secs(12);

#[cfg(test)]
mod tests;
