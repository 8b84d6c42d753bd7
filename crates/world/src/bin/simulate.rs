//! Runs one distribution in the simulator and prints it as a table, each figure beside its bound.
//!
//! `cargo run -p anabranch-world --release --bin simulate -- --nodes 100 --rate-mbit 6`

use anabranch_proto::link::backlog::Bounds;
use anabranch_proto::overlay::System;
use anabranch_proto::time::{Duration, Time};
use anabranch_world::bounds;
use anabranch_world::flags::{Flags, wall_clock};
use anabranch_world::meter::Series;
use anabranch_world::sim::{Completion, Congestion, Overhead, Quantum, Sim};
use anabranch_world::story::Story;
use anabranch_world::terrain::{Tcp, Terrain};
use anabranch_world::topology::{NodeIx, Topology};
use anabranch_world::units::Rate;
use std::process::ExitCode;

const USAGE: &str = "usage: simulate [--nodes N] [--size BYTES] [--block BYTES] [--rate-mbit R]
    [--rtt-ms T] [--seed S] [--system bullet-prime|star|bittorrent] [--quantum-us Q (0: exact)]
    [--limit-s VIRTUAL_SECONDS] [--slow PERCENT (the last receiver's rate)] [--check]
    [--topology FILE (its hosts are the nodes, the first the source) [--wire fluid|packet]
    [--congestion cubic|newreno] [--backlog BYTES] [--tls]] [--timeline]";

struct Options {
    nodes: usize,
    size: u64,
    block: u64,
    rate: Rate,
    rtt: Duration,
    seed: u64,
    system: System,
    quantum: Quantum,
    limit: Duration,
    slow: Option<u64>,
    check: bool,
    world: Option<World>,
    congestion: Congestion,
    backlog: Option<u64>,
    has_tls: bool,
    has_timeline: bool,
}

/// What is said by a topology file instead of rates and a delay.
struct World {
    topology: Topology,
    terrain: Terrain,
    is_packet: bool,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(what) => {
            eprintln!("{what}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let started = wall_clock();
    let mut sim = story(&options).build();
    let outcome = sim.run(Time::ZERO + options.limit, Sim::is_complete);
    report(&options, &sim, started.elapsed());
    if options.has_timeline {
        report_timeline(&sim);
    }
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("{}", sim.unfinished());
            ExitCode::FAILURE
        }
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options, String> {
    let mut flags = Flags::from_env()?;
    let quantum = match flags.take("quantum-us")? {
        None => Quantum::Adaptive,
        Some(0) => Quantum::Exact,
        Some(us) => Quantum::Every(Duration::from_micros(us)),
    };
    let rate_mbit: f64 = flags.take("rate-mbit")?.unwrap_or(6.0);
    let rtt_ms: f64 = flags.take("rtt-ms")?.unwrap_or(50.0);
    let system: System = flags.take("system")?.unwrap_or_default();
    // BitTorrent asks for what it is told is a block: its sub-piece of 16 KiB.
    let block = if system == System::BitTorrent { 16 * 1024 } else { 64 * 1024 };
    let options = Options {
        nodes: flags.take("nodes")?.unwrap_or(100),
        size: flags.take("size")?.unwrap_or(100_000_000),
        block: flags.take("block")?.unwrap_or(block),
        rate: Rate::bits_per_sec((rate_mbit * 1e6) as u64),
        rtt: Duration::from_secs_f64((rtt_ms / 1e3).max(0.0)),
        seed: flags.take("seed")?.unwrap_or(1),
        system,
        quantum,
        limit: Duration::from_secs(flags.take("limit-s")?.unwrap_or(100_000)),
        slow: flags.take("slow")?,
        check: flags.take_switch("check"),
        world: world(&mut flags)?,
        congestion: flags.take("congestion")?.unwrap_or_default(),
        backlog: flags.take("backlog")?,
        has_tls: flags.take_switch("tls"),
        has_timeline: flags.take_switch("timeline"),
    };
    flags.finish()?;
    if options.nodes < 2 || options.block == 0 || options.size == 0 {
        return Err("there must be at least two nodes and one byte".into());
    }
    Ok(options)
}

fn world(flags: &mut Flags) -> Result<Option<World>, String> {
    let wire: Option<String> = flags.take("wire")?;
    let is_packet = match wire.as_deref() {
        None | Some("fluid") => false,
        Some("packet") => true,
        Some(other) => return Err(format!("--wire {other}: fluid or packet is wanted")),
    };
    let Some(file) = flags.take::<String>("topology")? else {
        return match is_packet {
            true => Err("--wire packet needs --topology FILE".into()),
            false => Ok(None),
        };
    };
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let topology = Topology::parse(&text, &file).map_err(|error| error.to_string())?;
    let is_host = |node: &NodeIx| topology.nodes[node.0 as usize].is_host;
    let members: Vec<NodeIx> =
        (0..topology.nodes.len() as u32).map(NodeIx).filter(is_host).collect();
    let terrain =
        Terrain::new(&topology, &members).map_err(|problem| format!("{file}: {}", problem.what))?;
    // Packets lose by themselves; the fluid wire by formula.
    let terrain = if is_packet { terrain } else { terrain.tcp(Tcp::default()) };
    Ok(Some(World { topology, terrain, is_packet }))
}

fn story(options: &Options) -> Story {
    let (quantum, check) = (options.quantum, options.check);
    let story = Story::new(options.seed, options.system)
        .file(options.size, options.block)
        .hosts(options.nodes)
        .up(options.rate)
        .down(options.rate)
        .delay(options.rtt / 2)
        .configure(|config| {
            (config.quantum, config.check) = (quantum, check);
            config.congestion = options.congestion;
            if let Some(bytes) = options.backlog {
                config.link.backlog = Bounds::fixed(bytes);
            }
            if options.has_tls {
                config.overhead = Overhead::TlsTcp;
            }
        });
    let story = match &options.world {
        Some(world) if world.is_packet => {
            story.packets(world.topology.clone(), world.terrain.clone())
        }
        Some(world) => story.terrain(world.terrain.clone()),
        None => story,
    };
    match options.slow {
        None => story,
        Some(percent) => {
            let rate = options.rate.percent(percent);
            story.rates(&format!("r{}", options.nodes - 1), rate, rate)
        }
    }
}

fn report(options: &Options, sim: &Sim, wall: Duration) {
    let specs: Vec<_> = sim.hosts().map(|host| sim.spec(host)).collect();
    let receivers: Vec<_> = specs[1..].iter().map(|spec| (spec.up, spec.down)).collect();
    let bound = bounds::kumar_ross(options.size, specs[0].up, &receivers);
    let blocks = options.size.div_ceil(options.block) as u32;
    let whole_blocks = bounds::mundinger(options.size, blocks, specs[0].up, receivers.len() as u32);
    let done = sim.completions();
    let at = |share: f64| quantile(done, receivers.len(), share);
    let row = |name: &str, value: String| println!("{name:<34} {value}");
    println!("{:?}, {} nodes, seed {}", options.system, specs.len(), options.seed);
    row("bound (Kumar-Ross)", format!("{bound:.3} s"));
    row("bound (Mundinger, whole blocks)", format!("{whole_blocks:.3} s"));
    for (name, share) in
        [("median", 0.5), ("90th percentile", 0.9), ("95th percentile", 0.95), ("last", 1.0)]
    {
        let value = at(share).map_or("not reached".into(), |done| {
            let secs = done.at.as_secs_f64();
            format!("{secs:.3} s   {:.4} of the bound", secs / bound)
        });
        row(&format!("completion, {name}"), value);
    }
    let source = at(0.9).map_or("not reached".into(), |done| {
        format!("{:.4} F", done.source_out as f64 / options.size as f64)
    });
    row("source sent until 90% were done", source);
    report_traffic(sim, &row);
    if let Some(network) = sim.network() {
        let hops = network.hops();
        let rate = hops as f64 / wall.as_secs_f64().max(1e-9) / 1e6;
        row("packet hops", format!("{hops} ({rate:.2} million/s)"));
    }
    row("wall time", format!("{:.2} s", wall.as_secs_f64()));
    let rate = sim.events() as f64 / wall.as_secs_f64().max(1e-9);
    row("events", format!("{} ({:.2} million/s)", sim.events(), rate / 1e6));
    row("trace", format!("{:?}", sim.trace_hash()));
}

fn report_traffic(sim: &Sim, row: &impl Fn(&str, String)) {
    let mut all = anabranch_world::meter::Traffic::default();
    let (mut depth, mut requests) = (0, 0);
    let mut again = [0; 4];
    for host in sim.hosts() {
        all = all.plus(sim.meter(host).total);
        let stats = sim.stats(host);
        depth = depth.max(stats.depth_now);
        requests += stats.requests;
        let stats = [
            stats.rerequests_lost,
            stats.rerequests_slow,
            stats.rerequests_bad,
            stats.rerequests_endgame,
        ];
        again.iter_mut().zip(stats).for_each(|(sum, count)| *sum += count);
    }
    let percent =
        |part: u64, whole: u64| format!("{:.3}%", part as f64 * 100.0 / whole.max(1) as f64);
    row("duplicates of payload", percent(all.duplicate_in, all.payload_in));
    row("control of frame bytes", percent(all.control_out, all.control_out + all.payload_out));
    let [lost, slow, bad, endgame] = again;
    row(
        "requests",
        format!("{requests}, again: {lost} lost, {slow} slow, {bad} refused, {endgame} at the end"),
    );
    row("depth of the tree", depth.to_string());
}

/// Second by second: how much of its uplink the source fills, and what receivers get and send.
fn report_timeline(sim: &Sim) {
    let mbit = |bytes: u64| bytes as f64 * 8.0 / 1e6;
    let hosts: Vec<_> = sim.hosts().collect();
    let receivers = hosts.len() - 1;
    let until = |series: &anabranch_world::meter::Series, second: u64| {
        series.bytes_until(Time::from_secs_f64(second as f64))
    };
    let per_receiver = |which: fn(&anabranch_world::meter::Meter) -> &Series, second: u64| {
        let rates = hosts[1..].iter().map(|&host| {
            let series = which(sim.meter(host));
            until(series, second + 1) - until(series, second)
        });
        let rates: Vec<f64> = rates.map(mbit).collect();
        let mean = rates.iter().sum::<f64>() / receivers as f64;
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        (mean, least, rates.iter().copied().fold(0.0, f64::max))
    };
    let last = sim.completions().last().map_or(sim.now(), |done| done.at);
    println!(
        "second  source out   receivers in: mean, least, most   out: mean, least, most (Mb/s of payload)"
    );
    for second in 0..last.as_secs_f64().ceil() as u64 {
        let source = &sim.meter(hosts[0]).payload_out;
        let out = mbit(until(source, second + 1) - until(source, second));
        let (mean, least, most) = per_receiver(|meter| &meter.payload_in, second);
        let (mean_out, least_out, most_out) = per_receiver(|meter| &meter.payload_out, second);
        println!(
            "{second:>6}  {out:>10.2}   {mean:>18.2} {least:>6.2} {most:>6.2}   {mean_out:>9.2} {least_out:>6.2} {most_out:>6.2}"
        );
    }
}

fn quantile(done: &[Completion], receivers: usize, share: f64) -> Option<&Completion> {
    let rank = (receivers as f64 * share).ceil().max(1.0) as usize;
    done.get(rank - 1)
}
