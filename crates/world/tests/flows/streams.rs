//! Simulated TCP, FAST and XCP against what their formulas and papers say.

use super::wires::{BOTTLENECK, drop_tail, dumbbell, ends, loss, pair};
use anabranch_proto::time::{Duration, Time};
use anabranch_proto::transport::congestion::{Choice, fast};
use anabranch_proto::transport::formula::{Path, padhye};
use anabranch_world::flows::{
    Arrivals, Bulk, Config, FlowIx, Flows, Group, GroupIx, Sizes, TcpSpec, TransportSpec, jain,
};
use anabranch_world::topology::{Limit, NodeIx, QueueSpec, Topology, XcpSpec};
use anabranch_world::units::{mbit, ms, s};

const SECOND: u64 = 1_000_000_000;

/// The thesis's packets: 1000 bytes of payload and 40 of headers.
fn tcp(congestion: Choice) -> TcpSpec {
    TcpSpec { congestion, ..TcpSpec::ns2() }
}

fn group(flows: &mut Flows, name: &str, spec: TcpSpec) -> GroupIx {
    let transport = TransportSpec::Tcp(spec);
    flows.add_group(Group { name: name.into(), transport, is_sampled: false })
}

fn run(topology: &Topology, warm_up: u64, seed: u64) -> Flows {
    let warm_up = Time(warm_up * SECOND);
    Flows::new(topology, Config { seed, warm_up, ..Config::default() })
}

fn endless(count: u32, stagger: Duration) -> Bulk {
    let pairs = (0..count).map(ends).collect();
    Bulk { count, pairs, start: Time::ZERO, stagger, stop: None, bytes: None }
}

fn goodputs(flows: &Flows, group: GroupIx) -> Vec<f64> {
    let of = |(n, _): (usize, _)| flows.goodput(FlowIx(n as u32));
    flows.records().iter().enumerate().filter(|(_, r)| r.group == group).map(of).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn xcp_queue() -> QueueSpec {
    QueueSpec::Xcp(XcpSpec {
        limit: Limit::Packets(100_000),
        alpha: 0.4,
        beta: 0.226,
        shuffle: 0.1,
    })
}

/// Mean of the packets that wait at the bottleneck, from `from` on.
fn mean_queue(flows: &Flows, from: Time) -> f64 {
    let queue: Vec<f64> = flows
        .link_samples()
        .iter()
        .filter(|sample| sample.at >= from)
        .map(|sample| sample.packets as f64)
        .collect();
    queue.iter().sum::<f64>() / queue.len() as f64
}

fn drops(flows: &Flows) -> u64 {
    flows.network().stats(BOTTLENECK).dropped_all().packets
}

#[test]
fn a_transfer_alone_takes_the_round_trips_of_slow_start_and_its_last_packets_serialization() {
    // 1040 bytes take 1 ms, an acknowledgement of 40 takes 38.5 us; 50 ms each way.
    let rate = anabranch_world::units::Rate::bytes_per_sec(1_040_000);
    let mut flows = run(&pair(rate, ms(50), drop_tail(100)), 0, 1);
    let group = group(&mut flows, "one", tcp(Choice::NewReno));
    let bulk =
        Bulk { bytes: Some(6_000), pairs: vec![(NodeIx(0), NodeIx(1))], ..endless(1, ms(0)) };
    flows.add_bulk(group, &bulk);
    flows.run_until(Time(2 * SECOND));
    let record = flows.records()[0];
    // Two segments, and a round trip later four, in one row from the first's acknowledgement on.
    let ack = 40 * 1_000_000 / 1_040; // ns
    let first_acked = 1_000_000 + 50_000_000 + ack + 50_000_000;
    let arrived = first_acked + 4_000_000 + 50_000_000;
    let got = record.arrived.unwrap().0;
    assert!(got.abs_diff(arrived) <= 2, "{got} for {arrived}");
    assert!(record.acknowledged.unwrap().0.abs_diff(arrived + ack + 50_000_000) <= 3);
    assert_eq!((record.delivered, record.rtt_base), (6_000, ms(100)));
    assert_eq!(flows.live_count(), 0);
}

#[test]
fn newreno_over_random_loss_has_the_throughput_of_the_padhye_formula() {
    for (p, seconds) in [(1e-4, 900), (1e-3, 400), (5e-3, 200), (2e-2, 200)] {
        let mut topology = pair(mbit(1000), ms(50), drop_tail(100_000));
        topology.links[0].loss = loss(p);
        let rates = (1..=5).map(|seed| {
            let mut flows = run(&topology, 20, seed);
            let group = group(&mut flows, "reno", tcp(Choice::NewReno));
            let pairs = vec![(NodeIx(0), NodeIx(1))];
            flows.add_bulk(group, &Bulk { pairs, ..endless(1, ms(0)) });
            flows.run_until(Time(seconds * SECOND));
            flows.goodput_of(group) / 1_000.0
        });
        let path = Path { mss: 1.0, rtt: ms(100), loss: p, per_ack: 1.0 };
        let (measured, expected) = (median(rates.collect()), padhye(&path, ms(200)));
        eprintln!("newreno {p}: {measured:.0} packets/s, Padhye {expected:.0}");
        assert!((measured / expected - 1.0).abs() < 0.1, "{p}: {measured} for {expected}");
    }
}

#[test]
fn xcp_fills_the_link_without_a_drop_and_shares_it_within_tens_of_round_trips() {
    let delays = [ms(40); 10];
    let topology = dumbbell(mbit(100), &delays, &xcp_queue());
    let mut flows = run(&topology, 4, 1);
    let xcp = tcp(Choice::named("xcp").unwrap());
    let (first, second) = (group(&mut flows, "first", xcp), group(&mut flows, "second", xcp));
    flows.add_bulk(first, &endless(5, ms(0)));
    let pairs = (5..10).map(ends).collect();
    flows.add_bulk(second, &Bulk { pairs, start: Time(12 * SECOND), ..endless(5, ms(0)) });
    flows.run_until(Time(12 * SECOND));
    // The warm-up was 50 round trips.
    assert!(flows.utilization(BOTTLENECK) > 0.97, "{}", flows.utilization(BOTTLENECK));
    let fair = jain(goodputs(&flows, first));
    eprintln!("xcp, 5 flows: utilization {:.4}, Jain {fair:.4}", flows.utilization(BOTTLENECK));
    assert!(fair > 0.99, "{fair}");
    // 50 round trips after five more have joined, and 50 more to count.
    let before: Vec<u64> = at(&mut flows, 16);
    let after: Vec<u64> = at(&mut flows, 20);
    let rates = before.iter().zip(&after).map(|(before, after)| (after - before) as f64);
    let fair = jain(rates);
    eprintln!("xcp, 5 more: utilization {:.4}, Jain {fair:.4}", flows.utilization(BOTTLENECK));
    assert!(fair > 0.99, "{fair}");
    assert!(flows.utilization(BOTTLENECK) > 0.97);
    let all = (0..topology.links.len()).map(|n| anabranch_world::topology::LinkIx(n as u32));
    let dropped: u64 = all.map(|link| flows.network().stats(link).dropped_all().packets).sum();
    assert_eq!(dropped, 0);
}

/// What each flow has delivered by `second`.
fn at(flows: &mut Flows, second: u64) -> Vec<u64> {
    flows.run_until(Time(second * SECOND));
    flows.records().iter().map(|record| record.delivered).collect()
}

#[test]
fn xcp_gives_flows_of_different_round_trips_the_same_rate() {
    let delays: Vec<Duration> = (1..=5).map(|n| ms(10 * n)).collect();
    let mut flows = run(&dumbbell(mbit(100), &delays, &xcp_queue()), 10, 1);
    let group = group(&mut flows, "xcp", tcp(Choice::named("xcp").unwrap()));
    flows.add_bulk(group, &endless(5, ms(0)));
    flows.run_until(Time(20 * SECOND));
    let fair = jain(goodputs(&flows, group));
    eprintln!("xcp, 20 to 100 ms: Jain {fair:.4}");
    assert!(fair > 0.98 && drops(&flows) == 0, "{fair}: {:?}", goodputs(&flows, group));
}

#[test]
fn fast_keeps_alpha_packets_per_flow_in_the_queue_of_a_full_link() {
    for (count, config) in [
        (1, fast::Config::default()),
        (4, fast::Config::default()),
        (4, fast::Config::with_increase()),
    ] {
        let delays = vec![ms(20); count as usize];
        let topology = dumbbell(mbit(100), &delays, &drop_tail(2 * count * 100));
        let warm_up = Time(15 * SECOND);
        let (sample, links) = (Some(ms(10)), vec![BOTTLENECK]);
        let mut flows = Flows::new(&topology, Config { seed: 1, warm_up, sample, links });
        let group = group(&mut flows, "fast", tcp(Choice::Fast(config)));
        flows.add_bulk(group, &endless(count, ms(1)));
        flows.run_until(Time(25 * SECOND));
        let queue = mean_queue(&flows, warm_up) / f64::from(count);
        eprintln!("fast {count} {config:?}: {queue:.1} packets per flow");
        assert!((queue - 100.0).abs() < 10.0, "{count}: {queue} packets per flow");
        assert!(flows.utilization(BOTTLENECK) > 0.999);
        assert!(jain(goodputs(&flows, group)) > 0.98);
        assert_eq!(drops(&flows), 0);
    }
}

#[test]
fn fast_shares_by_alpha_and_not_by_round_trip_time() {
    let delays = [ms(10), ms(40)];
    let mut flows = run(&dumbbell(mbit(100), &delays, &drop_tail(1000)), 30, 1);
    let group = group(&mut flows, "fast", tcp(Choice::named("fast").unwrap()));
    flows.add_bulk(group, &endless(2, ms(0)));
    flows.run_until(Time(40 * SECOND));
    let fair = jain(goodputs(&flows, group));
    eprintln!("fast, 20 and 80 ms: Jain {fair:.4}");
    assert!(fair > 0.98, "{:?}", goodputs(&flows, group));
}

#[test]
fn cubic_is_newreno_on_short_paths_and_fills_long_ones_that_newreno_does_not() {
    let goodput = |name: &str, delay: Duration, p: f64| {
        let mut topology = pair(mbit(100), delay, drop_tail(200));
        topology.links[0].loss = loss(p);
        let rates = (1..=3).map(|seed| {
            let mut flows = run(&topology, 30, seed);
            let group = group(&mut flows, name, tcp(Choice::named(name).unwrap()));
            let pairs = vec![(NodeIx(0), NodeIx(1))];
            flows.add_bulk(group, &Bulk { pairs, ..endless(1, ms(0)) });
            flows.run_until(Time(150 * SECOND));
            flows.goodput_of(group)
        });
        median(rates.collect())
    };
    let ratio = goodput("cubic", ms(5), 5e-3) / goodput("newreno", ms(5), 5e-3);
    eprintln!("cubic / newreno at 10 ms: {ratio:.3}");
    assert!((0.8..1.3).contains(&ratio), "{ratio}");
    let ratio = goodput("cubic", ms(100), 2e-4) / goodput("newreno", ms(100), 2e-4);
    eprintln!("cubic / newreno at 200 ms: {ratio:.3}");
    assert!(ratio > 1.5, "{ratio}");
}

#[test]
fn mice_all_complete_and_the_same_seed_gives_the_same_run() {
    let mice = |seed| {
        let mut flows = run(&dumbbell(mbit(50), &[ms(20); 4], &drop_tail(250)), 0, seed);
        let bulk = group(&mut flows, "elephants", tcp(Choice::NewReno));
        flows.add_bulk(bulk, &Bulk { stop: Some(Time(8 * SECOND)), ..endless(2, ms(100)) });
        let mice = group(&mut flows, "mice", TcpSpec::default());
        flows.add_arrivals(
            mice,
            Arrivals {
                pairs: (0..4).map(ends).collect(),
                rate: 100.0,
                size: Sizes::new(25.0, 1.5),
                start: Time::ZERO,
                stop: Time(10 * SECOND),
            },
        );
        flows.run_until(Time::ZERO + s(60));
        assert_eq!(flows.live_count(), 0);
        flows.records().to_vec()
    };
    let records = mice(1);
    assert_eq!(records, mice(1));
    assert_ne!(records, mice(2));
    let (elephants, mice) = records.split_at(2);
    for record in elephants {
        assert!(record.delivered > 3_000_000 && record.arrived.is_none(), "{record:?}");
    }
    assert!(mice.len().abs_diff(1000) < 120, "{}", mice.len());
    for record in mice {
        assert_eq!(Some(record.delivered), record.bytes);
        // The set-up, and the data's way.
        assert!(record.completion_rtts().unwrap() > 1.5, "{record:?}");
        assert!(record.acknowledged >= record.arrived);
    }
}
