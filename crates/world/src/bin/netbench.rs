//! How many packet-hops per second the network alone carries on one core: no endpoints, only
//! packets that are sent again when they are delivered.
//!
//! `cargo run -p anabranch-world --release --bin netbench -- --flows 100 --hops 10000000`

use anabranch_proto::time::{Duration, Time};
use anabranch_proto::transport::packet::Segment;
use anabranch_proto::transport::{self, Body, Class};
use anabranch_world::flags::{Flags, wall_clock};
use anabranch_world::net::{Carried, Network, Observer, Packet, Step};
use anabranch_world::topology::{
    ClassMap, Limit, Link, LinkIx, Node, NodeIx, QueueSpec, RedSpec, Topology, XcpSpec,
};
use anabranch_world::units::{Rate, mbit, ms};
use std::process::ExitCode;

const USAGE: &str = "usage: netbench [--hops N (10000000)] [--flows N (100)] [--window PACKETS \
                     (20)] [--queue drop-tail|red|xcp|push-out|priority (all)]";

struct Options {
    hops: u64,
    flows: u32,
    window: u32,
    queue: Option<String>,
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
        "{} flows of {} packets in a dumbbell, 3 hops each way",
        options.flows, options.window
    );
    for (name, queue) in queues(options.flows * options.window) {
        if options.queue.as_ref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let topology = dumbbell(options.flows, &queue);
        report(name, "no body", &measure(Network::new(&topology, 1), &options, |_| ()));
        report(name, "transport", &measure(Network::new(&topology, 1), &options, segment));
        let mut watched = Network::new(&topology, 1);
        watched.observe(Box::new(Idle));
        report(name, "observed", &measure(watched, &options, segment));
    }
    memory();
    ExitCode::SUCCESS
}

fn options() -> Result<Options, String> {
    let mut flags = Flags::from_env()?;
    let options = Options {
        hops: flags.take("hops")?.unwrap_or(10_000_000),
        flows: flags.take("flows")?.unwrap_or(100),
        window: flags.take("window")?.unwrap_or(20),
        queue: flags.take("queue")?,
    };
    flags.finish()?;
    if options.flows == 0 || options.window == 0 {
        return Err("there must be a flow and a packet".into());
    }
    let all = queues(1);
    match &options.queue {
        Some(queue) if !all.iter().any(|(name, _)| name == queue) => {
            Err(format!("there is no queue {queue:?}"))
        }
        _ => Ok(options),
    }
}

/// Queues of the bottleneck that hold all packets, so that none is dropped for want of space.
fn queues(packets: u32) -> Vec<(&'static str, QueueSpec)> {
    let limit = Limit::Packets(packets);
    let tail = QueueSpec::DropTail { limit };
    let map = ClassMap { entries: vec![(0, 0), (1, 2), (4, 1)], other: 0 };
    let red = RedSpec {
        limit,
        min: f64::from(packets) * 0.9,
        max: f64::from(packets),
        probability_max: 0.0,
        weight: 0.002,
    };
    let xcp = XcpSpec { limit, alpha: 0.4, beta: 0.226, shuffle: 0.1 };
    vec![
        ("drop-tail", tail.clone()),
        ("red", QueueSpec::Red(red)),
        ("xcp", QueueSpec::Xcp(xcp)),
        ("push-out", QueueSpec::PushOut { limit, classes: 3, map: map.clone() }),
        ("priority", QueueSpec::Priority { classes: vec![tail.clone(), tail.clone(), tail], map }),
    ]
}

/// `flows` hosts on each side of two routers; 250 Mb/s and 40 ms between these.
fn dumbbell(flows: u32, queue: &QueueSpec) -> Topology {
    let node = |name: String, is_host| Node { name, is_host };
    let mut nodes = vec![node("left".into(), false), node("right".into(), false)];
    let access = QueueSpec::DropTail { limit: Limit::Packets(1_000) };
    let mut links = Vec::new();
    let mut join = |a: u32, b: u32, rate: Rate, delay: Duration, queue: &QueueSpec| {
        for (from, to) in [(a, b), (b, a)] {
            let (from, to, queue) = (NodeIx(from), NodeIx(to), queue.clone());
            let label = String::new();
            links.push(Link { from, to, rate, delay, loss: None, mtu: 1_500, queue, label });
        }
    };
    join(0, 1, mbit(250), ms(40), queue);
    for flow in 0..flows {
        let delay = Duration::from_micros(100 + u64::from(flow));
        join(2 + 2 * flow, 0, mbit(1_000), delay, &access);
        join(3 + 2 * flow, 1, mbit(1_000), delay, &access);
        nodes.extend([node(format!("l{flow}"), true), node(format!("r{flow}"), true)]);
    }
    Topology { nodes, links, ..Topology::default() }
}

fn segment(len: u32) -> transport::Packet {
    let (header_len, payload_len) = (40, len - 40);
    let body = Body::Tcp(Segment::default());
    transport::Packet { class: Class::BEST_EFFORT, header_len, payload_len, xcp: None, body }
}

struct Measured {
    hops: u64,
    wall: Duration,
    processor: Option<Duration>,
}

/// Each flow has a window of packets that go to and fro, long one way and short the other.
fn measure<B: Carried>(
    mut network: Network<B>,
    options: &Options,
    body: impl Fn(u32) -> B,
) -> Measured {
    for flow in 0..options.flows {
        let (from, to) = (NodeIx(2 + 2 * flow), NodeIx(3 + 2 * flow));
        for number in 0..options.window {
            let at = Time(u64::from(flow) * 1_000 + u64::from(number) * 100_000);
            let (len, dscp) = (1_500, [0, 1, 4][(flow % 3) as usize]);
            network.send(at, Packet { from, to, flow, len, dscp, body: body(len) });
        }
    }
    let warm = u64::from(options.flows * options.window) * 12;
    let go = |hops: u64, network: &mut Network<B>| {
        while network.hops() < hops
            && let Some((now, Packet { from, to, flow, len, dscp, body })) = network.poll(Time::FAR)
        {
            let len = if len == 1_500 { 40 } else { 1_500 };
            network.send(now, Packet { from: to, to: from, flow, len, dscp, body });
        }
    };
    go(warm, &mut network);
    let (started, processor, before) = (wall_clock(), processor_time(), network.hops());
    go(before + options.hops, &mut network);
    let processor = processor.and_then(|before| processor_time()?.checked_sub(before));
    Measured { hops: network.hops() - before, wall: started.elapsed(), processor }
}

fn report(queue: &str, what: &str, measured: &Measured) {
    let rate = |time: Duration| measured.hops as f64 / time.as_secs_f64().max(1e-9) / 1e6;
    let wall = rate(measured.wall);
    let processor = measured.processor.map_or_else(String::new, |time| {
        format!(", {:.2} per second of processor time", rate(time))
    });
    println!("{queue:<10} {what:<10} {wall:>7.2} million packet-hops/s{processor}");
}

/// What this process has used, where the system tells: in ticks of 10 ms on Linux. Others on the
/// machine change it less than the wall clock.
fn processor_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name in brackets: user and system time are fields 14 and 15 of the line.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks()? + ticks()?) * 10))
}

/// Sees everything and does nothing.
#[derive(Debug)]
struct Idle;

impl<B> Observer<B> for Idle {
    fn wants(&self, _: LinkIx) -> bool {
        true
    }
    fn see(&mut self, _: Time, _: LinkIx, _: Step, _: &Packet<B>) {}
}

/// What 100,000 links without packets take.
fn memory() {
    let before = resident();
    let topology = dumbbell(25_000, &QueueSpec::DropTail { limit: Limit::Packets(100) });
    let between = resident();
    let network = Network::<()>::new(&topology, 1);
    let after = resident();
    let links = topology.links.len() as u64;
    if let (Some(before), Some(between), Some(after)) = (before, between, after) {
        println!(
            "{links} idle links: {} bytes each, beside {} of the topology's",
            after.saturating_sub(between) / links,
            between.saturating_sub(before) / links
        );
    }
    drop(network);
}

/// Resident bytes of this process, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = status.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4_096)
}
