//! The XCP router under senders that do just what it says: a window, changed by the feedback of
//! each packet (Katabi et al. 2002, §3.2). What their paper states of one bottleneck: full, no
//! drops, a small queue, fair within a few round trips.

use super::*;
use crate::topology::{NodeIx, XcpSpec};
use crate::units::Rate;
use anabranch_proto::time::Duration;
use anabranch_proto::transport::XcpHeader;

const LEN: u32 = 1_000;

/// Data on its way there, or its acknowledgement on its way back.
#[derive(Clone, Debug)]
struct Echo {
    is_ack: bool,
    sent: Time,
    header: XcpHeader,
}

impl Carried for Echo {
    fn xcp(&mut self) -> Option<&mut XcpHeader> {
        (!self.is_ack).then_some(&mut self.header)
    }
}

/// A sender without end, its window in bytes.
#[derive(Clone, Debug)]
struct Sender {
    window: f64,
    rtt: Duration,
    out: u32,
    /// Bytes acknowledged since they were last looked at.
    acked: f64,
}

/// Senders on the left of two routers, with receivers on the right; 45 Mb/s between.
struct Bench {
    network: Network<Echo>,
    senders: Vec<Sender>,
    now: Time,
}

const RATE: Rate = mbit(45);
const BOTTLENECK: LinkIx = LinkIx(0);

impl Bench {
    /// A sender per round-trip time, in milliseconds; the queue holds 80 ms of packets.
    fn new(rtts_ms: &[u64]) -> Bench {
        let node = |name: String, is_host| Node { name, is_host };
        let mut nodes = vec![node("left".into(), false), node("right".into(), false)];
        let limit = Limit::Packets((RATE.bytes() * 80 / 1_000) as u32 / LEN);
        let xcp = XcpSpec { limit, alpha: 0.4, beta: 0.226, shuffle: 0.1 };
        let mut links = Vec::new();
        let mut join = |a: u32, b: u32, rate, delay, queue: QueueSpec| {
            for (from, to) in [(a, b), (b, a)] {
                let (from, to, queue) = (NodeIx(from), NodeIx(to), queue.clone());
                let label = String::new();
                links.push(Spec { from, to, rate, delay, loss: None, mtu: 1_500, queue, label });
            }
        };
        join(0, 1, RATE, Duration::ZERO, QueueSpec::Xcp(xcp));
        for (flow, rtt) in rtts_ms.iter().enumerate() {
            let flow = flow as u32;
            join(2 + 2 * flow, 0, mbit(1_000), ms(rtt / 4), packets(10_000));
            join(3 + 2 * flow, 1, mbit(1_000), ms(rtt / 4), packets(10_000));
            nodes.extend([node(format!("l{flow}"), true), node(format!("r{flow}"), true)]);
        }
        let network = Network::new(&Topology { nodes, links, ..Topology::default() }, 1);
        let sender = Sender { window: LEN.into(), rtt: Duration::ZERO, out: 0, acked: 0.0 };
        Bench { network, senders: vec![sender; rtts_ms.len()], now: Time::ZERO }
    }

    /// Fills a sender's window.
    fn fill(&mut self, flow: u32) {
        let sender = &mut self.senders[flow as usize];
        while f64::from((sender.out + 1) * LEN) <= sender.window {
            sender.out += 1;
            let wish = if sender.rtt.is_zero() { 0.0 } else { f64::MAX };
            let header = XcpHeader { window: sender.window, rtt: sender.rtt, feedback: wish };
            let body = Echo { is_ack: false, sent: self.now, header };
            let (from, to) = (NodeIx(2 + 2 * flow), NodeIx(3 + 2 * flow));
            self.network.send(self.now, Packet { from, to, flow, len: LEN, dscp: 0, body });
        }
    }

    /// Runs until `ms`, and returns the senders' rates since the last look, in shares of the
    /// bottleneck's.
    fn run(&mut self, ms: u64) -> Vec<f64> {
        let (began, until) = (self.now, Time(ms * 1_000_000));
        while let Some((now, packet)) = self.network.poll(until) {
            self.now = now;
            let Packet { from, to, flow, body, .. } = packet;
            if body.is_ack {
                let sender = &mut self.senders[flow as usize];
                sender.out -= 1;
                sender.acked += f64::from(LEN);
                sender.rtt = now.since(body.sent);
                sender.window = (sender.window + body.header.feedback).max(LEN.into());
                self.fill(flow);
            } else {
                let body = Echo { is_ack: true, ..body };
                self.network.send(now, Packet { from: to, to: from, flow, len: 40, dscp: 0, body });
            }
        }
        self.now = until;
        let whole = RATE.as_f64() * until.since(began).as_secs_f64();
        let acked = |sender: &mut Sender| std::mem::take(&mut sender.acked) / whole;
        self.senders.iter_mut().map(acked).collect()
    }

    fn drops(&self) -> u64 {
        self.network.stats(BOTTLENECK).dropped_all().packets
    }
}

#[test]
fn flows_that_start_one_after_another_share_a_full_link_without_a_drop() {
    let mut bench = Bench::new(&[80; 4]);
    for flow in 0..4 {
        bench.fill(flow);
        let from = u64::from(flow) * 4_000;
        bench.run(from + 3_000);
        // The last second before the next comes: full, and equal shares.
        let shares = bench.run(from + 4_000);
        let sum: f64 = shares.iter().sum();
        assert!(sum > 0.97, "{flow}: {shares:?}");
        for share in &shares[..=flow as usize] {
            assert!((share * f64::from(flow + 1) - 1.0).abs() < 0.05, "{flow}: {shares:?}");
        }
    }
    assert_eq!(bench.drops(), 0);
    // The bandwidth-delay product is 450 packets. The first flow's one packet is told to take α
    // of it, 180 packets, and sends them in one burst; later the queue is all but empty.
    let peak = bench.network.stats(BOTTLENECK).classes()[0].peak.packets;
    assert!((170..200).contains(&peak), "{peak}");
    let mut queued = Vec::new();
    for step in 1..=100 {
        bench.run(16_000 + step * 10);
        queued.push(bench.network.queued(bench.now, BOTTLENECK).all().packets);
    }
    assert!(queued.iter().sum::<u64>() < 100 * 20, "{queued:?}");
}

#[test]
fn flows_of_other_round_trips_have_the_same_share() {
    let mut bench = Bench::new(&[40, 80, 160, 240]);
    (0..4).for_each(|flow| bench.fill(flow));
    bench.run(15_000);
    let shares = bench.run(20_000);
    assert!(shares.iter().sum::<f64>() > 0.97, "{shares:?}");
    for share in &shares {
        assert!((share * 4.0 - 1.0).abs() < 0.1, "{shares:?}");
    }
    assert_eq!(bench.drops(), 0);
}

#[test]
fn a_link_that_becomes_slower_and_faster_is_full_again_after_a_few_round_trips() {
    let mut bench = Bench::new(&[80; 3]);
    (0..3).for_each(|flow| bench.fill(flow));
    bench.run(4_000);
    bench.network.change(Time(4_000_000_000), BOTTLENECK, Changed::Rate(mbit(20)));
    bench.run(6_000);
    let slow: f64 = bench.run(7_000).iter().sum();
    assert!((slow / (20.0 / 45.0) - 1.0).abs() < 0.03, "{slow}");
    bench.network.change(Time(7_000_000_000), BOTTLENECK, Changed::Rate(RATE));
    bench.run(9_000);
    let fast: f64 = bench.run(10_000).iter().sum();
    assert!(fast > 0.97, "{fast}");
}
