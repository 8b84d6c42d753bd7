//! Topologies for tests of flows, each drawn above its function.

use anabranch_proto::time::Duration;
use anabranch_world::topology::{
    Limit, Link, LinkIx, Loss, LossModel, Node, NodeIx, QueueSpec, Side, Topology,
};
use anabranch_world::units::Rate;

/// The forward link of the bottleneck, in each of these topologies.
pub(crate) const BOTTLENECK: LinkIx = LinkIx(0);

pub(crate) fn drop_tail(packets: u32) -> QueueSpec {
    QueueSpec::DropTail { limit: Limit::Packets(packets) }
}

pub(crate) fn link(from: u32, to: u32, rate: Rate, delay: Duration, queue: QueueSpec) -> Link {
    let (from, to) = (NodeIx(from), NodeIx(to));
    Link { from, to, rate, delay, loss: None, mtu: 9000, queue, label: String::new() }
}

/// Loss behind the queue, each packet alike.
pub(crate) fn loss(probability: f64) -> Option<Loss> {
    Some(Loss { model: LossModel::Independent { probability }, side: Side::After })
}

fn node(name: String, is_host: bool) -> Node {
    Node { name, is_host }
}

/// ```text
/// host 0 ==== host 1
/// ```
/// The way back has the same rate and delay, and no end of room.
pub(crate) fn pair(rate: Rate, delay: Duration, queue: QueueSpec) -> Topology {
    Topology {
        nodes: (0..2).map(|n| node(format!("h{n}"), true)).collect(),
        links: vec![link(0, 1, rate, delay, queue), link(1, 0, rate, delay, drop_tail(1_000_000))],
        ..Topology::default()
    }
}

/// ```text
/// host 2 ---.                       .--- host 3
/// host 4 --- router 0 ==== router 1 ---- host 5
/// …                                      …
/// ```
/// `delays[n]` is the one-way delay of pair n, of which the bottleneck has 1 ms; access links are
/// ten times as fast and never full. Pair n sends from host 2 + 2n to host 3 + 2n.
pub(crate) fn dumbbell(rate: Rate, delays: &[Duration], queue: &QueueSpec) -> Topology {
    let access = Rate::bytes_per_sec(rate.bytes() * 10);
    let middle = Duration::from_millis(1);
    let mut nodes = vec![node("r0".into(), false), node("r1".into(), false)];
    let mut links =
        vec![link(0, 1, rate, middle, queue.clone()), link(1, 0, rate, middle, queue.clone())];
    for (n, delay) in delays.iter().enumerate() {
        let (from, to) = (2 + 2 * n as u32, 3 + 2 * n as u32);
        nodes.push(node(format!("s{n}"), true));
        nodes.push(node(format!("d{n}"), true));
        let edge = (*delay - middle) / 2;
        for (a, b) in [(from, 0), (0, from), (1, to), (to, 1)] {
            links.push(link(a, b, access, edge, access_queue(queue)));
        }
    }
    Topology { nodes, links, ..Topology::default() }
}

/// An XCP bottleneck wants XCP everywhere.
fn access_queue(queue: &QueueSpec) -> QueueSpec {
    match queue {
        QueueSpec::Xcp(_) => queue.clone(),
        _ => drop_tail(1_000_000),
    }
}

/// The hosts of pair n of a dumbbell.
pub(crate) fn ends(n: u32) -> (NodeIx, NodeIx) {
    (NodeIx(2 + 2 * n), NodeIx(3 + 2 * n))
}
