//! The simulator of flows against closed forms: delays and queues of plain UDP.

use super::wires::{BOTTLENECK, drop_tail, link, pair};
use anabranch_proto::time::{Duration, Time};
use anabranch_proto::transport::{Class, udp};
use anabranch_world::flows::{
    Arrivals, Config, FlowIx, FlowSpec, Flows, Group, GroupIx, Sizes, TransportSpec,
};
use anabranch_world::topology::{NodeIx, Topology};
use anabranch_world::units::{Rate, mbit, ms, s};

const SECOND: u64 = 1_000_000_000;

fn source(flows: &mut Flows, name: &str, pattern: udp::Pattern, rate: Rate) -> GroupIx {
    // 972 bytes of payload and 28 of headers make 1000 on the wire.
    let transport = TransportSpec::Udp(udp::Config {
        pattern,
        rate: rate.bytes(),
        payload: 972,
        class: Class::BEST_EFFORT,
    });
    flows.add_group(Group { name: name.into(), transport, is_sampled: false })
}

fn endless(from: u32, to: u32) -> FlowSpec {
    let (from, to) = (NodeIx(from), NodeIx(to));
    FlowSpec { from, to, start: Time::ZERO, stop: None, bytes: None }
}

#[test]
fn a_packet_alone_takes_each_links_delay_and_serialization() {
    let mut nodes = pair(mbit(8), ms(5), drop_tail(9)).nodes;
    nodes.push(nodes[0].clone());
    nodes[1].is_host = false;
    let links =
        vec![link(0, 1, mbit(8), ms(5), drop_tail(9)), link(1, 2, mbit(16), ms(20), drop_tail(9))];
    let mut flows =
        Flows::new(&Topology { nodes, links, ..Topology::default() }, Config::default());
    let group = source(&mut flows, "probe", udp::Pattern::Constant, mbit(1));
    let flow = flows.add(group, endless(0, 2));
    flows.run_until(Time(10 * SECOND));
    let sink = flows.records()[flow.0 as usize].sink;
    // 1 ms at 8 Mb/s and 0.5 ms at 16 Mb/s, 25 ms under way: each packet, since none waits.
    assert_eq!(sink.delay_mean(), Duration::from_micros(26_500));
    assert_eq!(sink.delay_max, Duration::from_micros(26_500));
    assert_eq!(sink.packets, (10 * SECOND - 26_500_000) / 8_000_000 + 1);
    assert_eq!(flows.records()[0].rtt_base, ms(25)); // there is no way back
}

#[test]
fn packets_that_come_too_fast_leave_at_the_links_rate_and_the_rest_is_dropped() {
    let mut flows = Flows::new(&pair(mbit(8), ms(5), drop_tail(10)), Config::default());
    let group = source(&mut flows, "flood", udp::Pattern::Constant, mbit(16));
    let flow = flows.add(group, endless(0, 1));
    flows.run_until(Time(20 * SECOND));
    let sink = flows.records()[flow.0 as usize].sink;
    // A full queue of 10 is 10 ms; a packet that comes at a full moment is not taken.
    assert!(sink.delay_max <= ms(15) && sink.delay_max > ms(14), "{sink:?}");
    assert!((flows.utilization(BOTTLENECK) - 1.0).abs() < 1e-3);
    let dropped = flows.network().stats(BOTTLENECK).dropped_all().packets;
    assert!(sink.lost().abs_diff(dropped) <= 20, "{sink:?} {dropped}");
    assert!((flows.goodput(FlowIx(0)) / 972_000.0 - 1.0).abs() < 1e-2);
}

#[test]
fn poisson_arrivals_of_equal_packets_wait_as_in_an_m_d_1_queue() {
    for (load, tolerance) in [(50, 0.02), (80, 0.04)] {
        let rate = mbit(80); // a packet takes 0.1 ms
        let mut flows = Flows::new(&pair(rate, ms(1), drop_tail(1_000_000)), Config::default());
        let group = source(&mut flows, "poisson", udp::Pattern::Poisson, rate.percent(load));
        let flow = flows.add(group, endless(0, 1));
        flows.run_until(Time(150 * SECOND));
        let sink = flows.records()[flow.0 as usize].sink;
        let wait = sink.delay_mean().as_secs_f64() - 0.0011;
        let load = load as f64 / 100.0;
        let expected = 0.0001 * load / (2.0 * (1.0 - load)); // Pollaczek-Khinchine
        eprintln!("M/D/1 at {load}: waits {:.4} of the formula", wait / expected);
        assert!((wait / expected - 1.0).abs() < tolerance, "{load}: {wait} for {expected}");
        assert!((flows.utilization(BOTTLENECK) - load).abs() < 0.01);
    }
}

#[test]
fn bursts_have_their_rate_while_on_and_their_mean_in_the_long_run() {
    let mut flows = Flows::new(&pair(mbit(1000), ms(1), drop_tail(100)), Config::default());
    let pattern = udp::Pattern::OnOff { on: ms(50), off: ms(50) };
    let group = source(&mut flows, "bursts", pattern, mbit(50));
    for _ in 0..20 {
        flows.add(group, endless(0, 1));
    }
    flows.run_until(Time(40 * SECOND));
    let mean = flows.goodput_of(group) / 0.972 / 20.0;
    assert!((mean / mbit(25).as_f64() - 1.0).abs() < 0.05, "{mean}");
}

#[test]
fn arrivals_have_their_rate_and_another_group_changes_nobodys_numbers() {
    let starts = |with_other: bool| {
        let mut flows = Flows::new(&pair(mbit(1000), ms(1), drop_tail(100)), Config::default());
        let arrivals = |rate| Arrivals {
            pairs: vec![(NodeIx(0), NodeIx(1)), (NodeIx(1), NodeIx(0))],
            rate,
            size: Sizes::new(25.0, 1.5),
            start: Time::ZERO + s(1),
            stop: Time::ZERO + s(41),
        };
        let mice = source(&mut flows, "mice", udp::Pattern::Constant, mbit(10));
        flows.add_arrivals(mice, arrivals(100.0));
        if with_other {
            let other = source(&mut flows, "other", udp::Pattern::Constant, mbit(10));
            flows.add_arrivals(other, arrivals(50.0));
        }
        flows.run_until(Time::ZERO + s(100));
        assert_eq!(flows.live_count(), 0);
        let of = |r: &anabranch_world::flows::Record| (r.start, r.from, r.stop);
        flows.records_of(mice).map(of).collect::<Vec<_>>()
    };
    let alone = starts(false);
    assert!(alone.len().abs_diff(4000) < 200, "{}", alone.len());
    assert!(alone.iter().all(|(start, ..)| (s(1)..s(41)).contains(&start.since(Time::ZERO))));
    assert!(
        alone.iter().filter(|(_, from, _)| from.0 == 0).count().abs_diff(alone.len() / 2) < 120
    );
    assert_eq!(alone, starts(true));
}
