//! Runs of a file from one host to many, on [`anabranch_world::sim`].

mod feasible;
mod outcome;
mod script;

use super::probe::{self, Probes};
use super::{Outcome, RunError, choose, network};
use crate::scenario::source::Fault;
use crate::scenario::{Experiment, FileWorkload, Overlay, Series, SystemKind, Wire};
use anabranch_proto::overlay::bittorrent::BitTorrent;
use anabranch_proto::overlay::bullet_prime::BulletPrime;
use anabranch_proto::overlay::star::Star;
use anabranch_proto::time::{Duration, Time};
use anabranch_world::sim::{self, Config, Factory, Sim, SimError};
use anabranch_world::terrain::{Tcp, Terrain};
use anabranch_world::topology::{LinkIx, NodeIx, Routes, Topology};
use anabranch_world::units::Rate;
use script::Script;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Who takes part: the source first, then the receivers.
struct Members {
    nodes: Vec<NodeIx>,
}

impl Members {
    fn of(work: &FileWorkload, topology: &Topology) -> Result<Members, Fault> {
        let sources = choose::hosts(topology, &work.source)?;
        let [source] = sources[..] else {
            let text = format!("`source` fits {} hosts, and one has the file", sources.len());
            return Err(Fault::new(&work.source.span, text));
        };
        let mut nodes = vec![source];
        nodes.extend(choose::hosts(topology, &work.to)?.into_iter().filter(|at| *at != source));
        match nodes.len() {
            1 => Err(Fault::new(&work.to.span, "there is no receiver beside the source")),
            count if count > MEMBERS_MAX => {
                let text = format!("{count} members are too many: at most {MEMBERS_MAX}");
                Err(Fault::new(&work.to.span, text))
            }
            _ => Ok(Members { nodes }),
        }
    }
}

/// Checks hosts and the ways between them.
pub(super) fn check(
    experiment: &Experiment,
    work: &FileWorkload,
    topology: &Topology,
) -> Result<(), Fault> {
    let members = Members::of(work, topology)?;
    let mut routes = Routes::new(topology);
    let name = |node| network::name(topology, node);
    let source = members.nodes[0];
    // Ways are found per sender: back to the source they are only looked at in small networks.
    let is_small = members.nodes.len() <= WAYS_BACK_MAX;
    for &receiver in &members.nodes[1..] {
        for (a, b) in [(source, receiver), (receiver, source)] {
            if (a == source || is_small) && routes.delay(a, b).is_none() {
                let text = format!("no way leads from {:?} to {:?}; add a link", name(a), name(b));
                return Err(Fault::new(&work.to.span, text));
            }
        }
    }
    for fault in &work.faults {
        choose::hosts(topology, &fault.hosts)?;
    }
    let sampled = choose::sampled(topology, &experiment.measure)?;
    probe::check(experiment, topology, &sampled)?;
    factory(experiment).map(|_| ())
}

pub(super) fn run(
    experiment: &Experiment,
    work: &FileWorkload,
    topology: &Topology,
    seed: u64,
    (stem, interrupt): (Option<&Path>, &AtomicBool),
) -> Result<Outcome, RunError> {
    let broken = |fault: Fault| RunError::Failed(fault.text);
    let members = Members::of(work, topology).map_err(broken)?;
    let script =
        Script::draw(work, topology, &members.nodes, experiment.duration, seed).map_err(broken)?;
    let mut sim = build(experiment, work, topology, &members, &script, seed).map_err(broken)?;
    let failed = |error: SimError| RunError::Failed(error.to_string());
    let sampled = choose::sampled(topology, &experiment.measure).map_err(broken)?;
    let probes = match sim.network_mut() {
        Some(network) => Probes::open(experiment, topology, &sampled, stem, network)?,
        None => Probes::default(),
    };
    let mut queues = Queues::of(experiment, sampled);
    let end = Time::ZERO + experiment.duration;
    let mut at = Time::ZERO;
    while at < end {
        if interrupt.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        at = (at + queues.step).min(end);
        if sim.run(at, Sim::is_complete).map_err(failed)? {
            break;
        }
        queues.sample(at, &mut sim);
    }
    let cut = sim.network_mut().map_or(Ok(Vec::new()), |network| probes.finish(network))?;
    let rows = &queues.rows;
    let mut outcome =
        outcome::take(experiment, work, topology, (&script, rows), &sim, &members.nodes);
    cut.into_iter().for_each(|(scalar, is_cut)| outcome.set(scalar, is_cut));
    Ok(outcome)
}

/// What waits in front of links, over time.
struct Queues {
    links: Vec<LinkIx>,
    step: Duration,
    rows: Vec<(Time, LinkIx, u64)>,
}

impl Queues {
    fn of(experiment: &Experiment, links: Vec<LinkIx>) -> Queues {
        let measure = &experiment.measure;
        let is_asked = measure.series.contains(&Series::Queue);
        let links = if is_asked { links } else { Vec::new() };
        let step = measure.interval.filter(|_| is_asked).unwrap_or(STEP);
        Queues { links, step, rows: Vec::new() }
    }

    fn sample(&mut self, at: Time, sim: &mut Sim) {
        let Some(network) = sim.network_mut() else { return };
        for link in &self.links {
            let queued = network.queued(at, *link);
            self.rows.push((at, *link, queued.all().packets));
        }
    }
}

fn build(
    experiment: &Experiment,
    work: &FileWorkload,
    topology: &Topology,
    members: &Members,
    script: &Script,
    seed: u64,
) -> Result<Sim, Fault> {
    let mut config = Config::new(seed, work.size, work.block);
    config.wire = match experiment.wire {
        Wire::Packet => sim::Wire::Packet,
        Wire::Fluid => sim::Wire::Fluid,
        Wire::Latency => sim::Wire::Latency,
    };
    config.arrivals = true;
    config.check = false;
    if let Some(interval) = experiment.measure.interval {
        config.interval = interval;
    }
    let places: Vec<(String, NodeIx)> =
        script.hosts.iter().map(|host| (host.name.clone(), members.nodes[host.member])).collect();
    let mut terrain = Terrain::places(topology, &places)
        .map_err(|problem| Fault::new(&work.source.span, problem.what))?
        .tcp(Tcp::default());
    for (spec, host) in terrain.hosts.iter_mut().zip(&script.hosts) {
        spec.start = host.start;
    }
    let factory = factory(experiment)?;
    let mut sim = match experiment.wire {
        Wire::Packet => Sim::over_packets(topology, terrain, config, factory),
        Wire::Fluid | Wire::Latency => Sim::over(terrain, config, factory),
    };
    for (at, fault) in &script.faults {
        sim.schedule(*at, fault.clone());
    }
    Ok(sim)
}

/// What a host can send and receive: the sum of its links.
fn access(topology: &Topology, node: NodeIx) -> (Rate, Rate) {
    let sum = |is_it: &dyn Fn(&anabranch_world::topology::Link) -> bool| {
        let rates = topology.links.iter().filter(|link| is_it(link)).map(|link| link.rate.bytes());
        Rate::bytes_per_sec(rates.fold(0, u64::saturating_add))
    };
    (sum(&|link| link.from == node), sum(&|link| link.to == node))
}

/// What makes the system's members.
fn factory(experiment: &Experiment) -> Result<Factory, Fault> {
    let SystemKind::Overlay(overlay) = &experiment.system.kind else {
        return Err(Fault::new(&(0..0), "a file needs an overlay"));
    };
    Ok(match overlay {
        Overlay::Star => Box::new(|setup| Box::new(Star::new(setup))),
        Overlay::BulletPrime(system) => {
            let config = system.config();
            Box::new(move |setup| Box::new(BulletPrime::new(setup, config.clone())))
        }
        Overlay::BitTorrent(system) => {
            let config = system.config();
            Box::new(move |setup| Box::new(BitTorrent::new(setup, config.clone())))
        }
    })
}

/// The hosts that a number of `share` of `hosts` comes to, drawn with `rng`.
fn draw_share(
    hosts: &BTreeSet<usize>,
    share: f64,
    rng: &mut anabranch_proto::random::Rng,
) -> Vec<usize> {
    use anabranch_proto::random::RngExt;
    let mut left: Vec<usize> = hosts.iter().copied().collect();
    let wanted = (share * left.len() as f64).round() as usize;
    let mut drawn: Vec<usize> = (0..wanted.min(left.len()))
        .map(|_| {
            let at = rng.random_range(0..left.len());
            left.swap_remove(at)
        })
        .collect();
    drawn.sort_unstable();
    drawn
}

/// A run looks up this often, in virtual time, for Ctrl-C.
const STEP: Duration = Duration::from_secs(1);
/// In groups up to this size the way back to the source is checked before the run.
const WAYS_BACK_MAX: usize = 64;
/// Most members of a run.
const MEMBERS_MAX: usize = 10_000;
