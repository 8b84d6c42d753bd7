//! Who starts when, goes when, and what breaks: drawn from the seed before the run.

use super::draw_share;
use crate::engine::{choose, network};
use crate::scenario::source::Fault;
use crate::scenario::{Churn, FileFaultKind, FileWorkload, Joins, Leave};
use anabranch_proto::random::{Rng, RngExt, stream};
use anabranch_proto::time::{Duration, Time};
use anabranch_proto::transport::udp::exponential;
use anabranch_world::sim::{self, HostId};
use anabranch_world::topology::{NodeIx, Topology};
use std::collections::BTreeSet;

/// One host of the simulation; with churn, several follow each other in one place.
pub(super) struct Host {
    /// Its name: the node's, and `#2` and so on for those who came in its place.
    pub(super) name: String,
    /// The place: the member's number, 0 the source.
    pub(super) member: usize,
    /// When it starts.
    pub(super) start: Time,
    /// When it goes.
    pub(super) end: Option<Time>,
    /// Whether it was there from the beginning of its place.
    pub(super) is_first: bool,
}

/// Everything that happens in a run beside the members' own doing.
pub(super) struct Script {
    /// All hosts, the source first.
    pub(super) hosts: Vec<Host>,
    /// What happens when.
    pub(super) faults: Vec<(Time, sim::Fault)>,
}

impl Script {
    pub(super) fn draw(
        work: &FileWorkload,
        topology: &Topology,
        nodes: &[NodeIx],
        duration: Duration,
        seed: u64,
    ) -> Result<Script, Fault> {
        let starts = starts(work, nodes.len() - 1, seed);
        let name = |member: usize| network::name(topology, nodes[member]).to_owned();
        let source =
            Host { name: name(0), member: 0, start: Time::ZERO, end: None, is_first: true };
        let mut script = Script { hosts: vec![source], faults: Vec::new() };
        for (member, start) in (1..nodes.len()).zip(starts) {
            let host = Host { name: name(member), member, start, end: None, is_first: true };
            script.hosts.push(host);
        }
        if let Some(churn) = work.churn {
            script.churn(churn, duration, seed);
        }
        script.add_faults(work, topology, nodes, seed)?;
        Ok(script)
    }

    /// Every receiver stays for an exponential time.
    fn churn(&mut self, churn: Churn, duration: Duration, seed: u64) {
        let end_of_run = Time::ZERO + duration;
        let mut number = 1;
        // The list grows while it is walked: who comes in somebody's place goes some time too.
        while number < self.hosts.len() && self.hosts.len() < HOSTS_MAX {
            let host = &mut self.hosts[number];
            let mut rng = stream(seed, &host.name, "lab: lifetime");
            let end = host.start + exponential(&mut rng, churn.lifetime);
            if end < end_of_run {
                host.end = Some(end);
                self.faults.push((end, gone(churn.leave, HostId(number as u32))));
                if churn.replace {
                    let (base, count) = match host.name.rsplit_once('#') {
                        Some((base, count)) => (base, count.parse::<u32>().unwrap_or(1)),
                        None => (host.name.as_str(), 1),
                    };
                    let name = format!("{base}#{}", count + 1);
                    let member = host.member;
                    self.hosts.push(Host { name, member, start: end, end: None, is_first: false });
                }
            }
            number += 1;
        }
    }

    fn add_faults(
        &mut self,
        work: &FileWorkload,
        topology: &Topology,
        nodes: &[NodeIx],
        seed: u64,
    ) -> Result<(), Fault> {
        for (number, fault) in work.faults.iter().enumerate() {
            let chosen = choose::hosts(topology, &fault.hosts)?;
            let members: BTreeSet<usize> =
                (0..nodes.len()).filter(|member| chosen.contains(&nodes[*member])).collect();
            let mut rng = stream(seed, &format!("fault {number}"), "lab: faults");
            let at = Time::ZERO + fault.at;
            for member in draw_share(&members, fault.share, &mut rng) {
                let host = HostId(member as u32);
                let what = match fault.kind {
                    FileFaultKind::Gone(how) => gone(how, host),
                    FileFaultKind::Restart => sim::Fault::Start(host),
                    FileFaultKind::Unreachable => sim::Fault::Reachable(host, false),
                    FileFaultKind::Corrupt => sim::Fault::Corrupt(host, true),
                };
                self.faults.push((at, what));
            }
        }
        Ok(())
    }
}

fn gone(how: Leave, host: HostId) -> sim::Fault {
    match how {
        Leave::Crash => sim::Fault::Crash(host),
        Leave::Kill => sim::Fault::Kill(host),
        Leave::Leave => sim::Fault::Leave(host),
    }
}

/// When each of `count` receivers starts.
fn starts(work: &FileWorkload, count: usize, seed: u64) -> Vec<Time> {
    let mut rng = stream(seed, &work.name, "lab: joins");
    let mut starts = match &work.joins {
        Joins::At(waves) => in_waves(waves, count, &mut rng),
        Joins::Poisson(rate) => {
            let mean = Duration::from_secs_f64((1.0 / rate).min(1e9));
            let mut at = Time::ZERO;
            let mut next = || {
                at += exponential(&mut rng, mean);
                at
            };
            (0..count).map(|_| next()).collect()
        }
    };
    for start in &mut starts {
        *start += work.stagger.mul_f64(rng.random::<f64>());
    }
    starts
}

/// Which receiver belongs to which wave is drawn: places in the topology are not waves.
fn in_waves(waves: &[(Duration, f64)], count: usize, rng: &mut Rng) -> Vec<Time> {
    let mut left: BTreeSet<usize> = (0..count).collect();
    let mut starts = vec![Time::ZERO; count];
    for (number, (at, share)) in waves.iter().enumerate() {
        let is_last = number + 1 == waves.len();
        let wanted = share * count as f64 / left.len().max(1) as f64;
        let drawn = draw_share(&left, if is_last { 1.0 } else { wanted }, rng);
        for receiver in drawn {
            left.remove(&receiver);
            starts[receiver] = Time::ZERO + *at;
        }
    }
    starts
}

/// Most hosts that churn makes.
const HOSTS_MAX: usize = 100_000;
