//! Whole networks drawn from a seed: trees of routers with hosts, all kinds of queues and loss,
//! schedules of changes, packets at random times.

use super::*;
use crate::topology::{
    Change, ClassMap, Loss, LossModel, NodeIx, QueueSpec, RedSpec, Side, XcpSpec,
};
use crate::units::Rate;
use anabranch_proto::random::{Rng, RngExt, below};
use anabranch_proto::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// How many networks each property is tried on.
const SEEDS: u64 = 150;

/// What queues are drawn.
#[derive(Clone, Copy, PartialEq)]
enum Kinds {
    /// Those that decide at arrival.
    Ring,
    /// All.
    All,
}

fn draw_limit(rng: &mut Rng) -> Limit {
    match rng.random_bool(0.5) {
        true => Limit::Packets(rng.random_range(1..20)),
        false => Limit::Bytes(rng.random_range(1_500..30_000)),
    }
}

fn draw_map(rng: &mut Rng) -> ClassMap {
    let entries = (0..3).map(|dscp| (dscp, rng.random_range(0..3))).collect();
    ClassMap { entries, other: rng.random_range(0..3) }
}

fn draw_queue(rng: &mut Rng, kinds: Kinds, depth: u32) -> QueueSpec {
    let last = if kinds == Kinds::Ring { 2 } else { 5 - depth };
    match rng.random_range(0..last) {
        0 => QueueSpec::DropTail { limit: draw_limit(rng) },
        1 => {
            let limit = draw_limit(rng);
            let unit = if matches!(limit, Limit::Packets(_)) { 1.0 } else { 1_000.0 };
            QueueSpec::Red(RedSpec {
                limit,
                min: 2.0 * unit,
                max: 6.0 * unit,
                probability_max: 0.2,
                weight: 0.1,
            })
        }
        2 => {
            let limit = draw_limit(rng);
            QueueSpec::Xcp(XcpSpec { limit, alpha: 0.4, beta: 0.226, shuffle: 0.1 })
        }
        3 => QueueSpec::PushOut { limit: draw_limit(rng), classes: 3, map: draw_map(rng) },
        _ => QueueSpec::Priority {
            classes: (0..3).map(|_| draw_queue(rng, kinds, depth + 1)).collect(),
            map: draw_map(rng),
        },
    }
}

fn draw_loss(rng: &mut Rng) -> Loss {
    let model = match rng.random_bool(0.5) {
        true => LossModel::Independent { probability: rng.random_range(0.0..0.2) },
        false => LossModel::GilbertElliott {
            to_bad: rng.random_range(0.0..0.2),
            to_good: rng.random_range(0.1..0.9),
            loss_good: 0.01,
            loss_bad: 0.7,
        },
    };
    Loss { model, side: if rng.random_bool(0.5) { Side::Before } else { Side::After } }
}

fn draw_rate(rng: &mut Rng) -> Rate {
    // Odd rates too, whose times have remainders; and one that never binds.
    match rng.random_range(0..10) {
        0 => Rate::UNLIMITED,
        1..5 => mbit(rng.random_range(1..20)),
        _ => Rate::bytes_per_sec(rng.random_range(90_001..3_000_000)),
    }
}

fn draw_delay(rng: &mut Rng) -> Duration {
    match rng.random_range(0..5) {
        0 => Duration::ZERO,
        _ => Duration::from_micros(rng.random_range(1..30_000)),
    }
}

fn draw_change(rng: &mut Rng) -> Changed {
    match rng.random_range(0..6) {
        0 => Changed::Down,
        1 | 2 => Changed::Rate(draw_rate(rng)),
        3 => Changed::Delay(draw_delay(rng)),
        4 => Changed::Loss(rng.random_bool(0.7).then(|| draw_loss(rng))),
        _ => Changed::Up,
    }
}

/// A tree of routers with a host at each, a few links more, and changes within two seconds.
fn draw_topology(rng: &mut Rng, kinds: Kinds) -> Topology {
    let routers = rng.random_range(1..5u32);
    let router = |n| Node { name: format!("r{n}"), is_host: false };
    let host = |n| Node { name: format!("h{n}"), is_host: true };
    let nodes: Vec<Node> = (0..routers).map(router).chain((0..=routers).map(host)).collect();
    let mut pairs: Vec<(u32, u32)> = (1..routers).map(|n| (n, rng.random_range(0..n))).collect();
    pairs.extend((0..=routers).map(|n| (routers + n, n % routers)));
    if routers > 2 {
        pairs.push((0, routers - 1));
    }
    let mut topology = Topology { nodes, ..Topology::default() };
    for (a, b) in pairs {
        for (from, to) in [(a, b), (b, a)] {
            topology.links.push(Spec {
                from: NodeIx(from),
                to: NodeIx(to),
                rate: draw_rate(rng),
                delay: draw_delay(rng),
                loss: rng.random_bool(0.3).then(|| draw_loss(rng)),
                mtu: if rng.random_bool(0.9) { 1_500 } else { 1_000 },
                queue: draw_queue(rng, kinds, 0),
                label: String::new(),
            });
        }
    }
    for _ in 0..rng.random_range(0..12) {
        topology.changes.push(Change {
            at: Time(rng.random_range(0..2_000) * 1_000_000),
            link: LinkIx(below(rng, topology.links.len()) as u32),
            to: draw_change(rng),
        });
    }
    topology.changes.sort_by_key(|change| change.at);
    topology
}

/// Packets by time; bursts at whole milliseconds, so that many things happen at one time.
fn draw_packets(rng: &mut Rng, topology: &Topology) -> Vec<(Time, Packet<()>)> {
    let hosts: Vec<u32> = (0..topology.nodes.len() as u32)
        .filter(|node| topology.nodes[*node as usize].is_host)
        .collect();
    let mut packets: Vec<_> = (0..rng.random_range(50..600))
        .map(|flow| {
            let host = |rng: &mut Rng| NodeIx(hosts[below(rng, hosts.len())]);
            let len = if rng.random_bool(0.5) { 1_500 } else { rng.random_range(40..1_500) };
            let (from, to, dscp) = (host(rng), host(rng), rng.random_range(0..4));
            let at = Time(rng.random_range(0..2_000) * 1_000_000);
            (at, Packet { from, to, flow, len, dscp, body: () })
        })
        .collect();
    packets.sort_by_key(|packet| packet.0);
    packets
}

fn draw(seed: u64, kinds: Kinds) -> (Topology, Vec<(Time, Packet<()>)>) {
    let mut rng = random::stream(seed, "whole", "draw");
    let topology = draw_topology(&mut rng, kinds);
    let packets = draw_packets(&mut rng, &topology);
    (topology, packets)
}

/// (time, flow) of each delivery.
type Delivered = Vec<(Time, u32)>;

/// Polls up to each packet's time, sends it, and polls to the end.
fn run(network: &mut Network<()>, packets: &[(Time, Packet<()>)]) -> Delivered {
    let mut delivered = Vec::new();
    for (at, packet) in packets {
        while let Some((when, packet)) = network.poll(*at) {
            delivered.push((when, packet.flow));
        }
        network.send(*at, packet.clone());
    }
    while let Some((when, packet)) = network.poll(Time::FAR) {
        delivered.push((when, packet.flow));
    }
    delivered
}

fn all_stats(network: &Network<()>, topology: &Topology) -> Vec<LinkStats> {
    (0..topology.links.len()).map(|link| network.stats(LinkIx(link as u32))).collect()
}

/// Sees everything and does nothing.
#[derive(Debug)]
struct Idle;

impl Observer<()> for Idle {
    fn wants(&self, _: LinkIx) -> bool {
        true
    }
    fn see(&mut self, _: Time, _: LinkIx, _: Step, _: &Packet<()>) {}
}

#[test]
fn the_ring_and_departures_by_events_do_the_same() {
    for seed in 0..SEEDS {
        let (topology, packets) = draw(seed, Kinds::Ring);
        let mut ring = Network::new(&topology, seed);
        let mut events = Network::new(&topology, seed);
        events.observe(Box::new(Idle));
        let delivered = run(&mut ring, &packets);
        assert_eq!(delivered, run(&mut events, &packets), "seed {seed}");
        let (ring, events) = (all_stats(&ring, &topology), all_stats(&events, &topology));
        assert_eq!(ring, events, "seed {seed}");
    }
}

#[test]
fn a_link_can_be_observed_from_any_time_on() {
    for seed in 0..SEEDS {
        let (topology, packets) = draw(seed, Kinds::Ring);
        let mut ring = Network::new(&topology, seed);
        let expected = run(&mut ring, &packets);
        let mut later = Network::new(&topology, seed);
        let (before, after) = packets.split_at(packets.len() / 2);
        let mut delivered = Vec::new();
        for (at, packet) in before {
            while let Some((when, packet)) = later.poll(*at) {
                delivered.push((when, packet.flow));
            }
            later.send(*at, packet.clone());
        }
        later.observe(Box::new(Idle));
        delivered.extend(run(&mut later, after));
        assert_eq!(delivered, expected, "seed {seed}");
        assert_eq!(all_stats(&later, &topology), all_stats(&ring, &topology), "seed {seed}");
    }
}

#[test]
fn every_packet_is_accounted_for_at_every_time() {
    for seed in 0..SEEDS {
        let (topology, packets) = draw(seed, Kinds::All);
        let mut network = Network::new(&topology, seed);
        let mut delivered = 0;
        for (at, packet) in &packets {
            while network.poll(*at).is_some() {
                delivered += 1;
            }
            conserve(&mut network, &topology, *at, seed);
            network.send(*at, packet.clone());
        }
        while network.poll(Time::FAR).is_some() {
            delivered += 1;
        }
        conserve(&mut network, &topology, Time::FAR, seed);
        let dropped: u64 =
            all_stats(&network, &topology).iter().map(|link| link.dropped_all().packets).sum();
        assert_eq!(packets.len() as u64, delivered + dropped + network.unroutable(), "seed {seed}");
        assert_eq!(network.under_way(), 0, "seed {seed}");
    }
}

/// `offered = sent + dropped before the wire + queued`, `sent ≥ arrived + dropped behind it`, in
/// packets and bytes of each class.
fn conserve(network: &mut Network<()>, topology: &Topology, now: Time, seed: u64) {
    for link in (0..topology.links.len()).map(|link| LinkIx(link as u32)) {
        let queued = network.queued(now, link);
        let stats = network.stats(link);
        for (class, queued) in stats.classes().iter().zip(queued.classes()) {
            let of = |was_sent| {
                let causes = Cause::ALL.into_iter().filter(move |one| one.was_sent() == was_sent);
                causes.map(|cause| class.dropped(cause)).sum::<Count>()
            };
            let mut sum = class.sent;
            sum += of(false);
            sum += *queued;
            assert_eq!(class.offered, sum, "seed {seed} {link:?} at {now:?}");
            let mut through = class.arrived;
            through += of(true);
            assert!(through.packets <= class.sent.packets, "seed {seed} {link:?}");
            assert!(queued.packets <= class.peak.packets, "seed {seed} {link:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_does_not() {
    let mut differing = 0;
    for seed in 0..SEEDS / 3 {
        let (topology, packets) = draw(seed, Kinds::All);
        let run = |with| run(&mut Network::new(&topology, with), &packets);
        let first = run(seed);
        assert_eq!(first, run(seed), "seed {seed}");
        differing += u64::from(first != run(seed + 1));
    }
    assert!(differing > SEEDS / 10, "{differing}");
}

#[test]
fn sending_ahead_of_the_events_changes_nothing() {
    for seed in 0..SEEDS {
        let (topology, packets) = draw(seed, Kinds::All);
        let expected = run(&mut Network::new(&topology, seed), &packets);
        // All at once, then polled: as if the caller had been late by two seconds.
        let mut network = Network::new(&topology, seed);
        for (at, packet) in &packets {
            network.send(*at, packet.clone());
        }
        let mut delivered = Vec::new();
        while let Some((at, packet)) = network.poll(Time::FAR) {
            delivered.push((at, packet.flow));
        }
        assert_eq!(delivered, expected, "seed {seed}");
    }
}

/// Flows in the order in which they were queued, sent, arrived; by link and DSCP.
type Order = BTreeMap<(LinkIx, u8), [Vec<u32>; 3]>;

/// Keeps the order of steps, and the time of the last.
#[derive(Clone, Debug, Default)]
struct Orders(Arc<Mutex<Order>>, Arc<Mutex<Time>>);

impl Observer<()> for Orders {
    fn wants(&self, _: LinkIx) -> bool {
        true
    }

    fn see(&mut self, at: Time, link: LinkIx, step: Step, packet: &Packet<()>) {
        let mut last = self.1.lock().unwrap();
        assert!(*last <= at, "time goes back");
        *last = at;
        let place = match step {
            Step::Queued => 0,
            Step::Sent => 1,
            Step::Arrived { .. } => 2,
            Step::Dropped(_) => return,
        };
        let mut orders = self.0.lock().unwrap();
        orders.entry((link, packet.dscp)).or_default()[place].push(packet.flow);
    }
}

#[test]
fn a_link_never_reorders_packets_of_one_class() {
    for seed in 0..SEEDS {
        let (topology, packets) = draw(seed, Kinds::All);
        let mut network = Network::new(&topology, seed);
        let orders = Orders::default();
        network.observe(Box::new(orders.clone()));
        run(&mut network, &packets);
        for ((link, _), [queued, sent, arrived]) in &*orders.0.lock().unwrap() {
            assert!(is_part_in_order(sent, queued), "seed {seed} {link:?} sent");
            assert!(is_part_in_order(arrived, sent), "seed {seed} {link:?} arrived");
        }
    }
}

/// Whether all of `part` are in `whole`, in the same order.
fn is_part_in_order(part: &[u32], whole: &[u32]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|one| rest.any(|other| other == one))
}
