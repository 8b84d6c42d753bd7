use super::*;
use crate::topology::{Limit, Link as Spec, Node, NodeIx, QueueSpec};
use crate::units::{mbit, ms};

/// Hosts and routers `n0`, `n1`, … in a row, joined by 12 Mb/s, 5 ms: 1,500 bytes take 1 ms.
pub(super) fn line(nodes: u32, queue: &QueueSpec) -> Topology {
    let node = |n| Node { name: format!("n{n}"), is_host: n == 0 || n + 1 == nodes };
    let link = |n: u32| Spec {
        from: NodeIx(n),
        to: NodeIx(n + 1),
        rate: mbit(12),
        delay: ms(5),
        loss: None,
        mtu: 1_500,
        queue: queue.clone(),
        label: String::new(),
    };
    Topology {
        nodes: (0..nodes).map(node).collect(),
        links: (0..nodes - 1).map(link).collect(),
        ..Topology::default()
    }
}

pub(super) fn packets(limit: u32) -> QueueSpec {
    QueueSpec::DropTail { limit: Limit::Packets(limit) }
}

pub(super) fn packet(topology: &Topology, flow: u32, len: u32) -> Packet<()> {
    let to = NodeIx(topology.nodes.len() as u32 - 1);
    Packet { from: NodeIx(0), to, flow, len, dscp: 0, body: () }
}

/// (milliseconds, flow) of all deliveries.
pub(super) fn deliveries(network: &mut Network<()>) -> Vec<(f64, u32)> {
    let mut all = Vec::new();
    while let Some((at, packet)) = network.poll(Time::FAR) {
        all.push((at.as_secs_f64() * 1e3, packet.flow));
    }
    all
}

#[test]
fn store_and_forward_adds_up_as_on_paper() {
    let topology = line(4, &packets(10));
    let mut network = Network::new(&topology, 1);
    network.send(Time::ZERO, packet(&topology, 0, 1_500));
    network.send(Time::ZERO, packet(&topology, 1, 750));
    network.send(Time::ZERO, packet(&topology, 2, 1_500));
    // Three links: each 5 ms and the packet's own time; on the first they wait for one another,
    // and the third for the second, which leaves half a millisecond per hop of space.
    assert_eq!(deliveries(&mut network), [(18.0, 0), (18.5, 1), (19.5, 2)]);
    assert_eq!((network.hops(), network.under_way()), (9, 0));
}

#[test]
fn a_full_queue_drops_who_comes_and_counts_the_packet_in_service() {
    let topology = line(2, &packets(3));
    let mut network = Network::new(&topology, 1);
    for flow in 0..5 {
        network.send(Time::ZERO, packet(&topology, flow, 1_500));
    }
    assert_eq!(
        network.queued(Time(1_000_000), LinkIx(0)).all(),
        Count { packets: 2, bytes: 3_000 }
    );
    network.send(Time(1_000_000), packet(&topology, 5, 1_500));
    assert_eq!(deliveries(&mut network), [(6.0, 0), (7.0, 1), (8.0, 2), (9.0, 5)]);
    let stats = network.stats(LinkIx(0));
    assert_eq!(stats.offered().packets, 6);
    assert_eq!(stats.dropped(Cause::Full), Count { packets: 2, bytes: 3_000 });
    assert_eq!((stats.sent().packets, stats.arrived().packets), (4, 4));
    assert_eq!(stats.classes()[0].peak, Count { packets: 3, bytes: 4_500 });
}

#[test]
fn a_limit_in_bytes_takes_a_short_packet_where_a_long_one_is_dropped() {
    let topology = line(2, &QueueSpec::DropTail { limit: Limit::Bytes(3_500) });
    let mut network = Network::new(&topology, 1);
    for (flow, len) in [(0, 1_500), (1, 1_500), (2, 501), (3, 500)] {
        network.send(Time::ZERO, packet(&topology, flow, len));
    }
    let flows: Vec<u32> = deliveries(&mut network).iter().map(|(_, flow)| *flow).collect();
    assert_eq!(flows, [0, 1, 3]);
}

#[test]
fn a_packet_larger_than_the_mtu_is_dropped_and_counted() {
    let topology = line(2, &packets(3));
    let mut network = Network::new(&topology, 1);
    network.send(Time::ZERO, packet(&topology, 0, 1_501));
    assert_eq!(deliveries(&mut network), []);
    assert_eq!(network.stats(LinkIx(0)).dropped(Cause::Mtu).packets, 1);
}

#[test]
fn sent_counts_what_has_left_and_arrived_what_is_there() {
    let topology = line(2, &packets(3));
    let mut network = Network::new(&topology, 1);
    network.send(Time::ZERO, packet(&topology, 0, 1_500));
    network.send(Time::ZERO, packet(&topology, 1, 1_500));
    for (at_us, sent, arrived) in [(999, 0, 0), (1_000, 1, 0), (5_999, 2, 0), (6_000, 2, 1)] {
        network.poll(Time(at_us * 1_000));
        let stats = network.stats(LinkIx(0));
        assert_eq!((stats.sent().packets, stats.arrived().packets), (sent, arrived), "{at_us}");
    }
}

#[test]
fn a_packet_sent_ahead_of_the_events_enters_in_its_turn() {
    let topology = line(3, &packets(3));
    let mut network = Network::new(&topology, 1);
    network.send(Time::ZERO, packet(&topology, 0, 1_500));
    // The first arrives at the middle after 6 ms; nothing has been polled yet.
    network.send(Time(20_000_000), packet(&topology, 1, 1_500));
    network.send(Time(7_000_000), packet(&topology, 2, 1_500));
    assert_eq!(network.next_event(), Some(Time(6_000_000)));
    assert_eq!(deliveries(&mut network), [(12.0, 0), (19.0, 2), (32.0, 1)]);
}

#[test]
fn a_packet_to_oneself_is_delivered_and_one_without_a_way_is_counted() {
    let mut topology = line(2, &packets(3));
    topology.nodes.push(Node { name: "island".into(), is_host: true });
    let mut network = Network::new(&topology, 1);
    network.send(Time(5), Packet { to: NodeIx(0), ..packet(&topology, 7, 100) });
    network.send(Time(5), packet(&topology, 8, 100));
    let (at, packet) = network.poll(Time(5)).unwrap();
    assert_eq!((at, packet.flow), (Time(5), 7));
    assert_eq!((network.unroutable(), network.under_way()), (1, 0));
}

#[test]
fn loss_strikes_before_or_behind_the_queue_and_is_told_apart() {
    use crate::topology::{Loss, LossModel, Side};
    for (side, cause, sent) in
        [(Side::Before, Cause::LossBefore, 0), (Side::After, Cause::LossAfter, 3)]
    {
        let mut topology = line(2, &packets(3));
        let model = LossModel::Independent { probability: 1.0 };
        topology.links[0].loss = Some(Loss { model, side });
        let mut network = Network::new(&topology, 1);
        for flow in 0..3 {
            network.send(Time::ZERO, packet(&topology, flow, 1_500));
        }
        assert_eq!(deliveries(&mut network), []);
        let stats = network.stats(LinkIx(0));
        assert_eq!((stats.dropped(cause).packets, stats.sent().packets), (3, sent));
        assert_eq!(network.under_way(), 0);
    }
}

mod changes;
mod whole;
mod xcp;
