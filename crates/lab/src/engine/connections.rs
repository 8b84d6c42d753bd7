//! Runs of connections, on [`anabranch_world::flows`].

use super::probe::{self, Probes};
use super::{Outcome, RunError, choose, network, quantiles, xcp_ways};
use crate::scenario::source::Fault;
use crate::scenario::{
    Experiment, Plt, PltControl, Series, System, SystemKind, TcpControl, Transport, TransportKind,
    Workload, WorkloadKind,
};
use crate::stats;
use crate::table::Table;
use anabranch_proto::random::{RngExt, stream};
use anabranch_proto::time::{Duration, Time};
use anabranch_proto::transport::congestion::{Choice, fast, xcp};
use anabranch_proto::transport::plt::Buffer;
use anabranch_proto::transport::{Class, tcp, udp};
use anabranch_world::flows::{
    Arrivals, Config, FlowIx, FlowSpec, Flows, Group, GroupIx, PltSpec, Record, Sizes, TcpSpec,
    TransportSpec,
};
use anabranch_world::topology::{LinkIx, NodeIx, Routes, Topology};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A workload as it is run.
struct Part<'a> {
    workload: &'a Workload,
    group: GroupIx,
    /// Whether the system under test moves it.
    is_systems: bool,
}

/// Checks hosts, ways and links, without running anything.
pub(super) fn check(
    experiment: &Experiment,
    workloads: &[Workload],
    topology: &Topology,
    seed: u64,
) -> Result<(), Fault> {
    let config = config(experiment, topology, seed)?;
    bottleneck(experiment, topology)?;
    probe::check(experiment, topology, &config.links)?;
    let mut flows = Flows::new(topology, config);
    add_all(experiment, workloads, topology, seed, &mut flows).map(|_| ())
}

pub(super) fn run(
    experiment: &Experiment,
    workloads: &[Workload],
    topology: &Topology,
    seed: u64,
    (stem, interrupt): (Option<&Path>, &AtomicBool),
) -> Result<Outcome, RunError> {
    let broken = |fault: Fault| RunError::Failed(fault.text);
    let config = config(experiment, topology, seed).map_err(broken)?;
    let traced = config.links.clone();
    let mut flows = Flows::new(topology, config);
    let parts = add_all(experiment, workloads, topology, seed, &mut flows).map_err(broken)?;
    let probes = Probes::open(experiment, topology, &traced, stem, flows.network_mut())?;
    for step in 1..=STEPS {
        if interrupt.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        flows.run_until(Time::ZERO + experiment.duration * step / STEPS);
    }
    let cut = probes.finish(flows.network_mut())?;
    let chosen = bottleneck(experiment, topology).map_err(broken)?;
    let busiest = || {
        let links = network::links(topology);
        links.max_by(|a, b| flows.utilization(*a).total_cmp(&flows.utilization(*b)))
    };
    let view = View { experiment, topology, flows: &flows, parts: &parts };
    let mut outcome = view.outcome(chosen.or_else(busiest));
    cut.into_iter().for_each(|(scalar, is_cut)| outcome.set(scalar, is_cut));
    Ok(outcome)
}

fn config(experiment: &Experiment, topology: &Topology, seed: u64) -> Result<Config, Fault> {
    let measure = &experiment.measure;
    let links = choose::sampled(topology, measure)?;
    let warm_up = Time::ZERO + experiment.warmup;
    let interval = measure.interval.unwrap_or(Duration::from_millis(100));
    Ok(Config { seed, warm_up, sample: Some(interval), links })
}

/// The link that is named as the bottleneck: the first that fits.
fn bottleneck(experiment: &Experiment, topology: &Topology) -> Result<Option<LinkIx>, Fault> {
    let measure = &experiment.measure;
    let Some(named) = &measure.bottleneck else { return Ok(None) };
    let links = choose::links(topology, std::slice::from_ref(named), &measure.span)?;
    Ok(links.first().copied())
}

fn add_all<'a>(
    experiment: &Experiment,
    workloads: &'a [Workload],
    topology: &Topology,
    seed: u64,
    flows: &mut Flows,
) -> Result<Vec<Part<'a>>, Fault> {
    let mut routes = Routes::new(topology);
    let mut parts = Vec::new();
    for workload in workloads {
        let pairs = choose::pairs(topology, &mut routes, &workload.from, &workload.to)?;
        let transport = transport_of(experiment, workload);
        if transport.is_some_and(|transport| transport.kind == TransportKind::Xcp) {
            xcp_ways::check(topology, &mut routes, &pairs, &workload.from.span)?;
        }
        let bdp = pairs.first().map_or(0, |&pair| path_bdp(topology, &mut routes, pair));
        parts.push(add(experiment, workload, (pairs, bdp), seed, flows));
    }
    Ok(parts)
}

/// Bytes that fill the way from one host to another and back at the rate of its slowest link.
fn path_bdp(topology: &Topology, routes: &mut Routes, (from, to): (NodeIx, NodeIx)) -> u64 {
    let delay = |routes: &mut Routes, a, b| routes.delay(a, b).unwrap_or_default();
    let rtt = delay(routes, from, to) + delay(routes, to, from);
    let path = routes.path(from, to).unwrap_or_default().iter();
    let rate =
        path.map(|link| topology.links[link.0 as usize].rate.as_f64()).fold(f64::MAX, f64::min);
    (rate * rtt.as_secs_f64()) as u64
}

fn add<'a>(
    experiment: &Experiment,
    workload: &'a Workload,
    (pairs, bdp): (Vec<(NodeIx, NodeIx)>, u64),
    seed: u64,
    flows: &mut Flows,
) -> Part<'a> {
    let (start, stop) =
        (Time::ZERO + workload.active.0, workload.active.1.map(|at| Time::ZERO + at));
    let own = own_transport(workload);
    let transport = own.or(system_transport(&experiment.system));
    let series = &experiment.measure.series;
    let of_flows = [Series::Window, Series::Rtt, Series::Throughput];
    let measures_windows = of_flows.iter().any(|one| series.contains(one));
    let is_bulk = matches!(workload.kind, WorkloadKind::Bulk { .. });
    let group = flows.add_group(Group {
        name: workload.name.clone(),
        transport: match (&workload.kind, transport) {
            (WorkloadKind::Udp { rate, on_off, packet, class, .. }, _) => {
                udp_spec(*rate, *on_off, *packet, *class)
            }
            (_, Some(transport)) => spec(transport, bdp),
            (_, None) => TransportSpec::Tcp(TcpSpec::default()),
        },
        is_sampled: is_bulk && measures_windows,
    });
    let mut bulk = |count: Option<u32>, bytes, stagger: Duration, jitter: Duration| {
        let mut rng = stream(seed, &workload.name, "lab: starts");
        let count = count.unwrap_or(pairs.len() as u32);
        for (number, &(from, to)) in (0..count).zip(pairs.iter().cycle()) {
            let late = jitter.mul_f64(rng.random::<f64>());
            flows.add(
                group,
                FlowSpec { from, to, start: start + stagger * number + late, stop, bytes },
            );
        }
    };
    match &workload.kind {
        WorkloadKind::Bulk { count, size, stagger, jitter, .. } => {
            bulk(*count, *size, *stagger, *jitter);
        }
        // Without a rate there is nothing.
        WorkloadKind::Udp { rate: 0.0, .. } => {}
        WorkloadKind::Udp { count, .. } => bulk(*count, None, Duration::ZERO, Duration::ZERO),
        WorkloadKind::Mice { rate, mean, shape, largest, .. } => {
            let payload = transport.map_or(1000.0, |transport| f64::from(transport.payload));
            let max = (*largest as f64 / payload).ceil() as u64;
            let size = Sizes { mean: *mean as f64 / payload, shape: *shape, max };
            let stop = stop.unwrap_or(Time::ZERO + experiment.duration);
            flows.add_arrivals(group, Arrivals { pairs, rate: *rate, size, start, stop });
        }
    }
    let is_systems = own.is_none() && !matches!(workload.kind, WorkloadKind::Udp { .. });
    Part { workload, group, is_systems }
}

/// What moves a workload's bytes, unless it is UDP.
fn transport_of<'a>(experiment: &'a Experiment, workload: &'a Workload) -> Option<&'a Transport> {
    match workload.kind {
        WorkloadKind::Udp { .. } => None,
        _ => own_transport(workload).or(system_transport(&experiment.system)),
    }
}

fn own_transport(workload: &Workload) -> Option<&Transport> {
    match &workload.kind {
        WorkloadKind::Bulk { transport, .. } | WorkloadKind::Mice { transport, .. } => {
            transport.as_ref()
        }
        WorkloadKind::Udp { .. } => None,
    }
}

fn system_transport(system: &System) -> Option<&Transport> {
    match &system.kind {
        SystemKind::Transport(transport) => Some(transport),
        SystemKind::Overlay(_) => None,
    }
}

fn spec(transport: &Transport, bdp: u64) -> TransportSpec {
    let congestion = match transport.kind {
        TransportKind::Tcp(control) => tcp_control(control),
        TransportKind::Fast { alpha, mi } => fast_control(alpha, mi),
        TransportKind::Xcp => Choice::Xcp(xcp::Config::default()),
        TransportKind::Plt(plt) => return plt_spec(transport, &plt, bdp),
    };
    let config = tcp_config(transport, TcpSpec::default().config);
    let window_initial = transport.initial_window;
    TransportSpec::Tcp(TcpSpec { congestion, window_initial, ssthresh: None, config })
}

fn tcp_control(control: TcpControl) -> Choice {
    match control {
        TcpControl::NewReno => Choice::NewReno,
        TcpControl::Cubic => Choice::Cubic,
    }
}

fn fast_control(alpha: u32, mi: bool) -> Choice {
    let base = if mi { fast::Config::with_increase() } else { fast::Config::default() };
    Choice::Fast(fast::Config { alpha: f64::from(alpha), ..base })
}

/// What every transport says of its packets, set-up and acknowledgements.
fn tcp_config(transport: &Transport, base: tcp::Config) -> tcp::Config {
    let mut config = base;
    config.handshake = transport.handshake;
    config.header_len = transport.header;
    config.sending.mss = transport.payload;
    config.receiving.mss = transport.payload;
    if let Some(window) = transport.receive_window {
        config.receiving.buffer = window;
    }
    if !transport.delayed_ack {
        config.receiving.delayed_ack = None;
    }
    config
}

/// Without a given receive window PLT's tunes itself.
fn plt_spec(transport: &Transport, plt: &Plt, bdp: u64) -> TransportSpec {
    let mut config = plt.config(bdp);
    config.hcm = tcp_config(transport, config.hcm);
    if let Some(window) = transport.receive_window {
        config.buffer = Buffer::Fixed(window);
    }
    let congestion = match plt.hcm {
        PltControl::Tcp(control) => tcp_control(control),
        PltControl::Fast { alpha } => fast_control(alpha, false),
    };
    TransportSpec::Plt(PltSpec { congestion, window_initial: transport.initial_window, config })
}

fn udp_spec(
    rate: f64,
    on_off: Option<(Duration, Duration)>,
    payload: u32,
    class: u8,
) -> TransportSpec {
    let pattern =
        on_off.map_or(udp::Pattern::Constant, |(on, off)| udp::Pattern::OnOff { on, off });
    TransportSpec::Udp(udp::Config { pattern, rate: rate as u64, payload, class: Class(class) })
}

/// A run that is over, for taking numbers from.
struct View<'a> {
    experiment: &'a Experiment,
    topology: &'a Topology,
    flows: &'a Flows,
    parts: &'a [Part<'a>],
}

impl View<'_> {
    fn outcome(&self, bottleneck: Option<LinkIx>) -> Outcome {
        let mut outcome = Outcome::default();
        self.goodput(&mut outcome, bottleneck);
        if let Some(link) = bottleneck {
            self.link(&mut outcome, link);
        }
        self.completions(&mut outcome);
        for part in self.parts {
            let name = part.workload.name.replace('-', "_");
            outcome.set(format!("{name}_goodput_mbps"), self.flows.goodput_of(part.group) * MBIT);
        }
        outcome.tables.push(self.flows_table());
        outcome.tables.push(self.links_table());
        if !self.experiment.measure.series.is_empty() {
            outcome.tables.push(self.series_table());
        }
        outcome
    }

    /// Flows of the system under test.
    fn records(&self) -> impl Iterator<Item = (FlowIx, &Record, &Workload)> {
        self.flows.records().iter().zip(0..).filter_map(|(record, number)| {
            let part = self.parts.get(record.group.0 as usize)?;
            part.is_systems.then_some((FlowIx(number), record, part.workload))
        })
    }

    fn goodput(&self, outcome: &mut Outcome, bottleneck: Option<LinkIx>) {
        let systems = self.parts.iter().filter(|part| part.is_systems);
        let goodput: f64 = systems.map(|part| self.flows.goodput_of(part.group)).sum();
        outcome.set("goodput_mbps", goodput * MBIT);
        if let Some(link) = bottleneck {
            let rate = self.topology.links[link.0 as usize].rate.as_f64();
            let transport = system_transport(&self.experiment.system);
            let payload = transport.map_or(1000, |transport| transport.payload);
            let header = transport.and_then(|transport| transport.header).map_or(HEADER, u32::from);
            let share = f64::from(payload) / f64::from(payload + header);
            outcome.set("goodput_fraction", goodput / (rate * share));
            outcome.set("utilization", self.flows.utilization(link));
        }
        let bulk: Vec<f64> = self
            .records()
            .filter(|(_, _, workload)| {
                matches!(workload.kind, WorkloadKind::Bulk { size: None, .. })
            })
            .map(|(flow, ..)| self.flows.goodput(flow) * MBIT)
            .collect();
        if !bulk.is_empty() {
            outcome.set("jain", stats::jain(&bulk));
            for (name, share) in [("min", 0.0), ("median", 0.5), ("max", 1.0)] {
                outcome.set(format!("flow_goodput_{name}_mbps"), stats::quantile(&bulk, share));
            }
        }
        let sources = || self.records().map(|(_, record, _)| &record.source);
        let resent: u64 = sources().map(|source| source.resent).sum();
        let sent: u64 = sources().map(|source| source.sent + source.resent).sum();
        if sent > 0 {
            outcome.set("resent_fraction", resent as f64 / sent as f64);
        }
        let low: u64 = sources().map(|source| source.low_sent).sum();
        if low > 0 {
            let lost: u64 = sources().map(|source| source.low_lost).sum();
            outcome.set("low_fraction", low as f64 / sent as f64);
            outcome.set("low_lost_fraction", lost as f64 / low as f64);
        }
        if let Some(at) = sources().filter_map(|source| source.low_off_at).min() {
            outcome.set("low_off_s", at.as_secs_f64());
        }
    }

    fn link(&self, outcome: &mut Outcome, link: LinkIx) {
        let stats = self.flows.network().stats(link);
        let (dropped, offered) = (stats.dropped_all().packets, stats.offered().packets);
        outcome.set("drops", dropped as f64);
        if offered > 0 {
            outcome.set("drop_fraction", dropped as f64 / offered as f64);
        }
        let warm_up = Time::ZERO + self.experiment.warmup;
        let samples = self.flows.link_samples().iter();
        let queue: Vec<f64> = samples
            .filter(|sample| sample.link == link && sample.at >= warm_up)
            .map(|sample| sample.packets as f64)
            .collect();
        outcome.set("queue_mean_packets", stats::mean(&queue));
        outcome.set("queue_max_packets", stats::quantile(&queue, 1.0));
    }

    /// Flow completion times of sized flows that began after the warm-up.
    fn completions(&self, outcome: &mut Outcome) {
        let warm_up = Time::ZERO + self.experiment.warmup;
        let sized: Vec<&Record> = self
            .records()
            .map(|(_, record, _)| record)
            .filter(|record| record.bytes.is_some() && record.start >= warm_up)
            .collect();
        if sized.is_empty() {
            return;
        }
        let taken = |record: &&Record| completion(record).map(|took| took.as_secs_f64());
        let times: Vec<f64> = sized.iter().filter_map(taken).collect();
        outcome.set("flows_started", sized.len() as f64);
        outcome.set("flows_finished", times.len() as f64);
        quantiles::set(outcome, "fct", "s", &times);
        let rtts: Vec<f64> = sized.iter().filter_map(|record| in_rtts(record)).collect();
        quantiles::set(outcome, "fct", "rtt", &rtts);
    }

    fn flows_table(&self) -> Table {
        let mut table = Table::new(
            "flows",
            &[
                "workload",
                "flow",
                "from",
                "to",
                "start_s",
                "size_bytes",
                "goodput_mbps",
                "fct_s",
                "fct_rtt",
                "sent_bytes",
                "resent_bytes",
                "recoveries",
                "timeouts",
            ],
        );
        let mut counts = vec![0_usize; self.parts.len()];
        for (record, number) in self.flows.records().iter().zip(0..) {
            let Some(part) = self.parts.get(record.group.0 as usize) else { continue };
            let count = &mut counts[record.group.0 as usize];
            *count += 1;
            if *count > FLOW_ROWS_MAX {
                continue;
            }
            let source = &record.source;
            table.push(vec![
                part.workload.name.as_str().into(),
                f64::from(record.number).into(),
                network::name(self.topology, record.from).into(),
                network::name(self.topology, record.to).into(),
                record.start.as_secs_f64().into(),
                record.bytes.map(|bytes| bytes as f64).into(),
                (self.flows.goodput(FlowIx(number)) * MBIT).into(),
                completion(record).map(|took| took.as_secs_f64()).into(),
                in_rtts(record).into(),
                (source.sent as f64).into(),
                (source.resent as f64).into(),
                (source.recoveries as f64).into(),
                (source.timeouts as f64).into(),
            ]);
        }
        table
    }

    fn links_table(&self) -> Table {
        let mut table = Table::new(
            "links",
            &[
                "link",
                "label",
                "rate_mbps",
                "utilization",
                "sent_packets",
                "sent_bytes",
                "dropped_packets",
                "peak_queue_packets",
            ],
        );
        for link in network::links(self.topology) {
            let (spec, stats) =
                (&self.topology.links[link.0 as usize], self.flows.network().stats(link));
            if stats.offered().packets == 0 {
                continue;
            }
            let peak = stats.classes().iter().map(|class| class.peak.packets).max();
            table.push(vec![
                network::link_name(self.topology, link).into(),
                spec.label.as_str().into(),
                (spec.rate.as_f64() * MBIT).into(),
                self.flows.utilization(link).into(),
                (stats.sent().packets as f64).into(),
                (stats.sent().bytes as f64).into(),
                (stats.dropped_all().packets as f64).into(),
                peak.map(|packets| packets as f64).into(),
            ]);
        }
        table
    }

    fn series_table(&self) -> Table {
        let mut table = Table::new("series", &["time_s", "what", "of", "value"]);
        let series = &self.experiment.measure.series;
        let mut row = |at: Time, what: &str, of: &str, value: f64| {
            table.push(vec![at.as_secs_f64().into(), what.into(), of.into(), value.into()]);
        };
        let mut before = std::collections::BTreeMap::new();
        for sample in self.flows.flow_samples() {
            let record = &self.flows.records()[sample.flow.0 as usize];
            if record.number >= self.experiment.measure.flows_shown {
                continue;
            }
            let Some(part) = self.parts.get(record.group.0 as usize) else { continue };
            let of = format!("{} {}", part.workload.name, record.number);
            if series.contains(&Series::Window) {
                row(sample.at, "window_bytes", &of, sample.source.window as f64);
                if sample.source.low_sent > 0 {
                    row(sample.at, "low_window_bytes", &of, sample.source.low_window as f64);
                }
            }
            // Before the first sample there is none.
            let rtt = sample.source.rtt.as_secs_f64() * 1e3;
            if series.contains(&Series::Rtt) && rtt > 0.0 {
                row(sample.at, "rtt_ms", &of, rtt);
            }
            let last = before.insert(sample.flow, (sample.at, sample.delivered));
            if let Some((at, delivered)) = last.filter(|_| series.contains(&Series::Throughput)) {
                let secs = sample.at.since(at).as_secs_f64();
                let bytes = sample.delivered - delivered;
                row(sample.at, "throughput_mbps", &of, bytes as f64 * MBIT / secs);
            }
        }
        if series.contains(&Series::Queue) {
            for sample in self.flows.link_samples() {
                let of = network::link_name(self.topology, sample.link);
                row(sample.at, "queue_packets", &of, sample.packets as f64);
            }
        }
        table
    }
}

/// From the start until the source knew that all had arrived, as the thesis measures it.
fn completion(record: &Record) -> Option<Duration> {
    record.acknowledged.map(|at| at.since(record.start))
}

fn in_rtts(record: &Record) -> Option<f64> {
    let rtt = record.rtt_base.as_secs_f64();
    completion(record).filter(|_| rtt > 0.0).map(|took| took.as_secs_f64() / rtt)
}

/// From bytes per second to 10⁶ bits per second.
const MBIT: f64 = 8.0 / 1e6;
/// Headers of a full segment, when they are not given: IP and TCP with timestamps.
const HEADER: u32 = 52;
/// A run looks up this often for Ctrl-C.
const STEPS: u32 = 100;
/// Most rows of one workload in `flows.csv`, per run; the scalars are over all flows.
const FLOW_ROWS_MAX: usize = 2000;
