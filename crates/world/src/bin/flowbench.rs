//! How many packet-hops per second the simulator of flows carries on one core: bulk flows, or mice,
//! with both ends, in a dumbbell.
//!
//! `cargo run -p anabranch-world --release --bin flowbench -- --transport newreno --flows 50`

use anabranch_proto::time::{Duration, Time};
use anabranch_world::flags::{Flags, wall_clock};
use anabranch_world::flows::{
    Arrivals, Bulk, Config, Flows, Group, GroupIx, Sizes, TcpSpec, TransportSpec, jain,
};
use anabranch_world::topology::{Limit, Link, LinkIx, Node, NodeIx, QueueSpec, Topology, XcpSpec};
use anabranch_world::units::{Rate, mbit, ms};
use std::process::ExitCode;

const USAGE: &str = "usage: flowbench [--transport newreno|cubic|fast|fast-mi|xcp (all)]
    [--flows N (50)] [--mice FLOWS_PER_SECOND (0)] [--mbit R (250)] [--seconds VIRTUAL (20)]
    [--buffer PACKETS (2500)]";

struct Options {
    transport: Option<String>,
    flows: u32,
    mice: f64,
    rate: Rate,
    seconds: u64,
    buffer: u32,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(what) => {
            eprintln!("{what}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    println!(
        "{} bulk flows, {} mice/s, {:?}, 80 ms, buffer {} packets, {} s, 1000-byte payloads",
        options.flows, options.mice, options.rate, options.buffer, options.seconds
    );
    for name in anabranch_proto::transport::congestion::Choice::NAMES {
        if options.transport.as_ref().is_none_or(|wanted| wanted == name) {
            measure(name, &options);
        }
    }
    ExitCode::SUCCESS
}

fn options() -> Result<Options, String> {
    let mut flags = Flags::from_env()?;
    let options = Options {
        transport: flags.take("transport")?,
        flows: flags.take("flows")?.unwrap_or(50),
        mice: flags.take("mice")?.unwrap_or(0.0),
        rate: mbit(flags.take("mbit")?.unwrap_or(250)),
        seconds: flags.take("seconds")?.unwrap_or(20),
        buffer: flags.take("buffer")?.unwrap_or(2500),
    };
    flags.finish()?;
    match &options.transport {
        Some(name) if TransportSpec::named(name, TcpSpec::default()).is_none() => {
            Err(format!("there is no transport {name:?}"))
        }
        _ => Ok(options),
    }
}

fn measure(name: &str, options: &Options) {
    let topology = dumbbell(options, name == "xcp");
    let config = Config { seed: 1, warm_up: Time(5_000_000_000), ..Config::default() };
    let mut flows = Flows::new(&topology, config);
    let bulk = group(&mut flows, "bulk", name);
    let count = options.flows.max(1);
    let pairs: Vec<_> = (0..count).map(|n| (NodeIx(2 + 2 * n), NodeIx(3 + 2 * n))).collect();
    flows.add_bulk(
        bulk,
        &Bulk {
            count: options.flows,
            pairs: pairs.clone(),
            start: Time::ZERO,
            stagger: ms(7),
            stop: None,
            bytes: None,
        },
    );
    let mice = group(&mut flows, "mice", name);
    let stop = Time::ZERO + Duration::from_secs(options.seconds);
    let size = Sizes::new(25.0, 1.5);
    let (start, rate) = (Time::ZERO, options.mice);
    flows.add_arrivals(mice, Arrivals { pairs, rate, size, start, stop });
    let started = wall_clock();
    flows.run_until(stop);
    report(name, &flows, bulk, mice, started.elapsed());
}

fn group(flows: &mut Flows, group: &str, name: &str) -> GroupIx {
    let tcp = TransportSpec::named(name, TcpSpec::ns2());
    let transport = tcp.unwrap_or(TransportSpec::Tcp(TcpSpec::ns2()));
    flows.add_group(Group { name: group.into(), transport, is_sampled: false })
}

fn report(name: &str, flows: &Flows, bulk: GroupIx, mice: GroupIx, took: Duration) {
    let hops = flows.network().hops() as f64;
    let rates: Vec<f64> =
        flows.records_of(bulk).map(|r| (r.delivered - r.delivered_before) as f64).collect();
    let drops = flows.network().stats(LinkIx(0)).dropped_all().packets;
    let mut took_mice: Vec<f64> =
        flows.records_of(mice).filter_map(|r| Some(r.completion()?.as_secs_f64())).collect();
    took_mice.sort_by(f64::total_cmp);
    println!(
        "{name:8} {:6.2} M hops in {:6.2} s: {:5.2} M hops/s; utilization {:.4}, Jain {:.3}, \
         {drops} drops, {} live, mice {}, median {:.0} ms",
        hops / 1e6,
        took.as_secs_f64(),
        hops / 1e6 / took.as_secs_f64(),
        flows.utilization(LinkIx(0)),
        jain(rates),
        flows.live_count(),
        took_mice.len(),
        took_mice.get(took_mice.len() / 2).copied().unwrap_or_default() * 1e3,
    );
}

/// Hosts on each side of two routers, 38 ms between these; XCP at the bottleneck for XCP.
fn dumbbell(options: &Options, with_xcp: bool) -> Topology {
    let limit = Limit::Packets(options.buffer);
    let queue = match with_xcp {
        true => QueueSpec::Xcp(XcpSpec { limit, alpha: 0.4, beta: 0.226, shuffle: 0.1 }),
        false => QueueSpec::DropTail { limit },
    };
    let access = QueueSpec::DropTail { limit: Limit::Packets(100_000) };
    let node = |name: String, is_host| Node { name, is_host };
    let mut nodes = vec![node("left".into(), false), node("right".into(), false)];
    let mut links = Vec::new();
    let mut join = |a: u32, b: u32, rate: Rate, delay: Duration, queue: &QueueSpec| {
        for (from, to) in [(a, b), (b, a)] {
            let (from, to, queue) = (NodeIx(from), NodeIx(to), queue.clone());
            let label = String::new();
            links.push(Link { from, to, rate, delay, loss: None, mtu: 1_500, queue, label });
        }
    };
    join(0, 1, options.rate, ms(38), &queue);
    let fast = Rate::bytes_per_sec(options.rate.bytes() * 4);
    for n in 0..options.flows.max(1) {
        join(2 + 2 * n, 0, fast, ms(1), &access);
        join(3 + 2 * n, 1, fast, ms(1), &access);
        nodes.extend([node(format!("l{n}"), true), node(format!("r{n}"), true)]);
    }
    Topology { nodes, links, ..Topology::default() }
}
