//! What came of a file's run.

use super::script::Script;
use super::{access, feasible};
use crate::engine::{Outcome, network};
use crate::scenario::{Experiment, FileWorkload, Series, Wire};
use crate::stats;
use crate::table::{Table, Value};
use anabranch_proto::time::Time;
use anabranch_world::bounds;
use anabranch_world::meter::Traffic;
use anabranch_world::sim::{BlockArrival, HostId, Sim};
use anabranch_world::topology::{LinkIx, NodeIx, Routes, Topology};
use std::collections::BTreeMap;

/// A run that is over, for taking numbers from.
struct View<'a> {
    experiment: &'a Experiment,
    work: &'a FileWorkload,
    topology: &'a Topology,
    script: &'a Script,
    /// What waited in front of links, when.
    queues: &'a [(Time, LinkIx, u64)],
    sim: &'a Sim,
    /// The node of each host.
    nodes: Vec<NodeIx>,
    /// When each host could have everything over TCP; empty when that was not computed.
    feasible: Vec<f64>,
}

pub(super) fn take(
    experiment: &Experiment,
    work: &FileWorkload,
    topology: &Topology,
    (script, queues): (&Script, &[(Time, LinkIx, u64)]),
    sim: &Sim,
    members: &[NodeIx],
) -> Outcome {
    let nodes: Vec<NodeIx> = script.hosts.iter().map(|host| members[host.member]).collect();
    let names = members.iter().map(|node| network::name(topology, *node).to_owned());
    let places: Vec<(String, NodeIx)> = names.zip(members.iter().copied()).collect();
    let share = if experiment.wire == Wire::Packet { PAYLOAD_SHARE } else { 1.0 };
    let by_member = feasible::times(topology, &places, (work.size, work.block), share);
    let times = script.hosts.iter().map(|host| by_member.get(host.member).copied());
    let feasible = times.collect::<Option<Vec<f64>>>().unwrap_or_default();
    let view = View { experiment, work, topology, script, queues, sim, nodes, feasible };
    let mut outcome = Outcome::default();
    view.completions(&mut outcome);
    view.traffic(&mut outcome);
    view.blocks(&mut outcome);
    view.link_stress(&mut outcome);
    outcome.set("virtual_s", sim.now().as_secs_f64());
    outcome.tables.push(view.nodes_table());
    outcome.tables.push(view.completions_table());
    if !experiment.measure.series.is_empty() {
        outcome.tables.push(view.series_table());
    }
    outcome
}

impl View<'_> {
    /// All receivers with their numbers.
    fn receivers(&self) -> impl Iterator<Item = HostId> {
        (1..self.script.hosts.len() as u32).map(HostId)
    }

    fn start(&self, host: HostId) -> Time {
        self.script.hosts[host.0 as usize].start
    }

    /// Seconds from a receiver's start until it had everything.
    fn took(&self, host: HostId) -> Option<f64> {
        self.sim.completion(host).map(|at| at.since(self.start(host)).as_secs_f64())
    }

    fn completions(&self, outcome: &mut Outcome) {
        let times: Vec<f64> = self.receivers().filter_map(|host| self.took(host)).collect();
        outcome.set("receivers", (self.script.hosts.len() - 1) as f64);
        outcome.set("completed", times.len() as f64);
        for (name, share) in [("median", 0.5), ("p90", 0.9), ("p95", 0.95), ("last", 1.0)] {
            outcome.set(format!("completion_{name}_s"), stats::quantile(&times, share));
        }
        let bound = self.bound();
        outcome.set("bound_s", bound);
        for (name, share) in [("median", 0.5), ("last", 1.0)] {
            let ratio = stats::quantile(&times, share).map(|time| time / bound);
            outcome.set(format!("completion_{name}_ratio"), ratio);
        }
        let feasible = self.feasible.get(1..).unwrap_or_default();
        for (name, share) in [("median", 0.5), ("last", 1.0)] {
            outcome.set(format!("tcp_feasible_{name}_s"), stats::quantile(feasible, share));
        }
    }

    /// The least time for the last receiver, if all started at once and stayed.
    fn bound(&self) -> f64 {
        let rates = |member: &usize| access(self.topology, self.nodes[*member]);
        let first: Vec<usize> =
            (0..self.script.hosts.len()).filter(|host| self.script.hosts[*host].is_first).collect();
        let receivers: Vec<_> = first.iter().skip(1).map(rates).collect();
        let bound = bounds::kumar_ross(self.work.size, rates(&0).0, &receivers);
        // The other wires' rates are net of headers already.
        if self.experiment.wire == Wire::Packet { bound / PAYLOAD_SHARE } else { bound }
    }

    fn traffic(&self, outcome: &mut Outcome) {
        let all = (0..self.script.hosts.len() as u32).map(HostId);
        let sum =
            all.map(|host| self.sim.meter(host).total).fold(Traffic::default(), Traffic::plus);
        let life = |host: HostId| {
            let end = self.script.hosts[host.0 as usize].end.unwrap_or(self.sim.now());
            end.min(self.sim.now()).since(self.start(host)).as_secs_f64()
        };
        let members = self.script.hosts.len() as f64;
        let lives: f64 = (0..self.script.hosts.len() as u32).map(|host| life(HostId(host))).sum();
        outcome.set("control_bytes", sum.control_out as f64 / members);
        outcome.set("control_kbps", sum.control_out as f64 * 8.0 / 1e3 / lives);
        if sum.payload_in > 0 {
            let duplicate = sum.duplicate_in as f64 / sum.payload_in as f64;
            outcome.set("duplicate_fraction", duplicate);
            outcome.set("control_fraction", sum.control_out as f64 / sum.payload_in as f64);
        }
        let source = self.sim.meter(HostId(0)).total.payload_out;
        outcome.set("source_ratio", source as f64 / self.work.size as f64);
    }

    /// Start-up, and the end of the download.
    fn blocks(&self, outcome: &mut Outcome) {
        let firsts: Vec<f64> = self.receivers().filter_map(|host| self.first_block(host)).collect();
        outcome.set("first_block_median_s", stats::median(&firsts));
        let overages: Vec<f64> = self
            .receivers()
            .filter(|host| self.sim.completion(*host).is_some())
            .filter_map(|host| overage(self.sim.arrivals(host)))
            .collect();
        outcome.set("last_blocks_overage_s", stats::mean(&overages));
        for (name, from, to) in [("5s", 0.0, 5.0), ("10s", 5.0, 10.0), ("20s", 10.0, 20.0)] {
            let rates: Vec<f64> = self.receivers().map(|host| self.rate(host, from, to)).collect();
            outcome.set(format!("rate_until_{name}_median_mbps"), stats::median(&rates));
        }
    }

    /// Seconds from a receiver's start until its first block.
    fn first_block(&self, host: HostId) -> Option<f64> {
        let first = self.sim.arrivals(host).first()?;
        Some(first.at.since(self.start(host)).as_secs_f64())
    }

    /// Mean download rate between two times after a receiver's start, 10⁶ bits per second.
    fn rate(&self, host: HostId, from: f64, to: f64) -> f64 {
        let start = self.start(host).as_secs_f64();
        let series = &self.sim.meter(host).payload_in;
        let until = |secs: f64| series.bytes_until(Time::from_secs_f64(start + secs)) as f64;
        (until(to) - until(from)) * 8.0 / 1e6 / (to - from)
    }

    /// How often each link carried the same block: the copies that crossed it, over the blocks.
    fn link_stress(&self, outcome: &mut Outcome) {
        let mut routes = Routes::new(self.topology);
        let mut copies: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut pairs: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for host in self.receivers() {
            for arrival in self.sim.arrivals(host) {
                let pair = (self.nodes[arrival.from.0 as usize].0, self.nodes[host.0 as usize].0);
                pairs.entry(pair).or_default().push(arrival.block);
            }
        }
        for ((from, to), blocks) in pairs {
            let Some(path) = routes.path(NodeIx(from), NodeIx(to)) else { continue };
            for link in path {
                copies.entry(link.0).or_default().extend(&blocks);
            }
        }
        let stress = |blocks: &mut Vec<u32>| {
            let all = blocks.len() as f64;
            blocks.sort_unstable();
            blocks.dedup();
            all / blocks.len() as f64
        };
        let stresses: Vec<f64> = copies.values_mut().map(stress).collect();
        outcome.set("link_stress_mean", stats::mean(&stresses));
        outcome.set("link_stress_max", stats::quantile(&stresses, 1.0));
    }

    fn nodes_table(&self) -> Table {
        let mut table = Table::new(
            "nodes",
            &[
                "host",
                "start_s",
                "payload_in_bytes",
                "payload_out_bytes",
                "control_in_bytes",
                "control_out_bytes",
                "duplicate_bytes",
                "senders",
                "receivers",
                "depth",
            ],
        );
        for (number, host) in self.script.hosts.iter().enumerate().take(ROWS_MAX) {
            let id = HostId(number as u32);
            let (total, stats) = (self.sim.meter(id).total, self.sim.stats(id));
            let numbers = [
                total.payload_in as f64,
                total.payload_out as f64,
                total.control_in as f64,
                total.control_out as f64,
                total.duplicate_in as f64,
                f64::from(stats.senders_now),
                f64::from(stats.receivers_now),
                f64::from(stats.depth_now),
            ];
            let mut row: Vec<Value> =
                vec![host.name.as_str().into(), host.start.as_secs_f64().into()];
            row.extend(numbers.map(Value::Number));
            table.push(row);
        }
        table
    }

    /// All receivers, those that were not complete too: without a time.
    fn completions_table(&self) -> Table {
        let columns = [
            "host",
            "start_s",
            "completion_s",
            "ratio",
            "is_first",
            "first_block_s",
            "rate_10_to_20s_mbps",
            "tcp_feasible_s",
        ];
        let mut table = Table::new("completions", &columns);
        let bound = self.bound();
        for host in self.receivers().take(ROWS_MAX) {
            let script = &self.script.hosts[host.0 as usize];
            let took = self.took(host);
            table.push(vec![
                script.name.as_str().into(),
                script.start.as_secs_f64().into(),
                took.into(),
                took.map(|time| time / bound).into(),
                f64::from(u8::from(script.is_first)).into(),
                self.first_block(host).into(),
                self.rate(host, 10.0, 20.0).into(),
                self.feasible.get(host.0 as usize).copied().into(),
            ]);
        }
        table
    }

    fn series_table(&self) -> Table {
        let mut table = Table::new("series", &["time_s", "what", "of", "value"]);
        let series = &self.experiment.measure.series;
        for host in self.receivers().take(ROWS_MAX) {
            let name = self.script.hosts[host.0 as usize].name.as_str();
            let mut row = |secs: f64, what: &str, value: f64| {
                table.push(vec![secs.into(), what.into(), name.into(), value.into()]);
            };
            if series.contains(&Series::Throughput) {
                let received = &self.sim.meter(host).payload_in;
                let step = received.interval().as_secs_f64();
                for (number, bytes) in received.bytes().iter().enumerate() {
                    let rate = *bytes as f64 * 8.0 / 1e6 / step;
                    row((number as f64 + 1.0) * step, "throughput_mbps", rate);
                }
            }
            let arrivals = self.sim.arrivals(host);
            if series.contains(&Series::Progress) {
                let step = arrivals.len().div_ceil(PROGRESS_ROWS).max(1);
                for (number, arrival) in arrivals.iter().enumerate().step_by(step) {
                    row(arrival.at.as_secs_f64(), "blocks", (number + 1) as f64);
                }
            }
            if series.contains(&Series::Blocks) {
                for (number, pair) in arrivals.windows(2).enumerate() {
                    let interval = pair[1].at.since(pair[0].at).as_secs_f64();
                    // Not by time but by number: the n-th interval of every receiver compares.
                    row((number + 1) as f64, "block_interval_s", interval);
                }
            }
        }
        for (at, link, packets) in self.queues {
            let of = network::link_name(self.topology, *link);
            let (at, packets) = (at.as_secs_f64(), *packets as f64);
            table.push(vec![at.into(), "queue_packets".into(), of.into(), packets.into()]);
        }
        table
    }
}

/// What the last 20 intervals between blocks took, above 20 mean ones, in seconds (Bullet §5.12).
fn overage(arrivals: &[BlockArrival]) -> Option<f64> {
    let (first, last) = (arrivals.first()?.at, arrivals.last()?.at);
    let intervals = arrivals.len() - 1;
    let before = arrivals.get(intervals.checked_sub(LAST_BLOCKS)?)?.at;
    let mean = last.since(first).as_secs_f64() / intervals as f64;
    Some(last.since(before).as_secs_f64() - LAST_BLOCKS as f64 * mean)
}

const LAST_BLOCKS: usize = 20;
/// Payload of a full packet on the packet wire, of its length: 52 bytes are headers.
const PAYLOAD_SHARE: f64 = 1448.0 / 1500.0;
/// Most hosts with rows of their own, per run.
const ROWS_MAX: usize = 10_000;
/// Rows of progress per receiver.
const PROGRESS_ROWS: usize = 200;
