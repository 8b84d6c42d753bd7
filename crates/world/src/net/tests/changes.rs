//! Links that change: times to the nanosecond, for a ring and for departures by events.

use super::*;
use crate::topology::{Change, Loss, LossModel, RedSpec, Side};
use crate::units::Rate;

/// A line of two hosts on which `changes` happen, by ring and by events.
fn both(changes: &[(u64, Changed)]) -> [Network<()>; 2] {
    let mut topology = line(2, &packets(100));
    let change = |&(at_us, to)| Change { at: Time(at_us * 1_000), link: LinkIx(0), to };
    topology.changes = changes.iter().map(change).collect();
    let spec = crate::topology::XcpSpec {
        limit: Limit::Packets(100),
        alpha: 0.4,
        beta: 0.226,
        shuffle: 0.1,
    };
    let ring = Network::new(&topology, 1);
    topology.links[0].queue = QueueSpec::Xcp(spec);
    [ring, Network::new(&topology, 1)]
}

/// Three packets of 1,500 bytes at time zero; 1 ms each, 5 ms of delay, unless changed.
fn three(network: &mut Network<()>) -> Vec<(f64, u32)> {
    let topology = line(2, &packets(100));
    for flow in 0..3 {
        network.send(Time::ZERO, packet(&topology, flow, 1_500));
    }
    deliveries(network)
}

#[test]
fn a_slower_rate_stretches_what_is_left_of_the_packet_in_service() {
    for mut network in both(&[(1_500, Changed::Rate(mbit(3)))]) {
        // Half of the second is through; the other half takes 2 ms, the third 4 ms.
        assert_eq!(three(&mut network), [(6.0, 0), (8.5, 1), (12.5, 2)]);
    }
}

#[test]
fn two_changes_within_one_packet_add_up() {
    let changes = [(250, Changed::Rate(mbit(6))), (750, Changed::Rate(mbit(24)))];
    for mut network in both(&changes) {
        // A quarter, a quarter, and the other half in a quarter of a millisecond.
        assert_eq!(three(&mut network), [(6.0, 0), (6.5, 1), (7.0, 2)]);
    }
}

#[test]
fn a_change_of_rate_to_and_fro_loses_no_nanosecond() {
    let odd = Changed::Rate(Rate::bytes_per_sec(1_234_567));
    let back = Changed::Rate(mbit(12));
    for mut network in both(&[(100, odd), (100, back)]) {
        assert_eq!(three(&mut network), [(6.0, 0), (7.0, 1), (8.0, 2)]);
    }
}

#[test]
fn a_new_delay_is_for_those_that_depart_later_and_none_overtakes() {
    for mut network in both(&[(1_500, Changed::Delay(ms(1)))]) {
        // The first is under way. The second would arrive at 3 ms, the third at 4.
        assert_eq!(three(&mut network), [(6.0, 0), (6.0, 1), (6.0, 2)]);
    }
    for mut network in both(&[(1_500, Changed::Delay(ms(9)))]) {
        assert_eq!(three(&mut network), [(6.0, 0), (11.0, 1), (12.0, 2)]);
    }
}

#[test]
fn going_down_loses_what_waits_and_what_is_under_way_and_tells_them_apart() {
    for mut network in both(&[(1_500, Changed::Down), (4_000, Changed::Up)]) {
        let topology = line(2, &packets(100));
        assert_eq!(three(&mut network), []);
        let stats = network.stats(LinkIx(0));
        assert_eq!(stats.dropped(Cause::Cut).packets, 1);
        assert_eq!(stats.dropped(Cause::Down).packets, 2);
        assert_eq!(network.under_way(), 0);
        network.send(Time(5_000_000), packet(&topology, 3, 1_500));
        assert_eq!(deliveries(&mut network), [(11.0, 3)]);
    }
}

#[test]
fn what_comes_while_a_link_is_down_is_lost_and_after_it_is_up_all_is_as_new() {
    for mut network in both(&[(0, Changed::Down), (2_000, Changed::Up)]) {
        let topology = line(2, &packets(100));
        for (flow, at_ms) in [(0, 0), (1, 1), (2, 2), (3, 2)] {
            network.send(Time(at_ms * 1_000_000), packet(&topology, flow, 1_500));
        }
        assert_eq!(deliveries(&mut network), [(8.0, 2), (9.0, 3)]);
        assert_eq!(network.stats(LinkIx(0)).dropped(Cause::Down).packets, 2);
    }
}

#[test]
fn a_change_of_loss_strikes_those_that_depart_after_it() {
    let always = LossModel::Independent { probability: 1.0 };
    let loss = Some(Loss { model: always, side: Side::After });
    for mut network in both(&[(1_500, Changed::Loss(loss)), (2_500, Changed::Loss(None))]) {
        // The first has departed, the second departs at 2 ms, the third at 3.
        assert_eq!(three(&mut network), [(6.0, 0), (8.0, 2)]);
        assert_eq!(network.stats(LinkIx(0)).dropped(Cause::LossAfter).packets, 1);
    }
}

#[test]
fn a_change_by_call_is_carried_out_in_its_turn() {
    for mut network in both(&[]) {
        let topology = line(2, &packets(100));
        for flow in 0..3 {
            network.send(Time::ZERO, packet(&topology, flow, 1_500));
        }
        // Nothing was polled: the second change is given before the first.
        network.change(Time(7_500_000), LinkIx(0), Changed::Delay(ms(50)));
        network.change(Time(1_500_000), LinkIx(0), Changed::Rate(mbit(3)));
        assert_eq!(deliveries(&mut network), [(6.0, 0), (8.5, 1), (12.5, 2)]);
        network.send(Time(20_000_000), packet(&topology, 4, 1_500));
        assert_eq!(deliveries(&mut network), [(74.0, 4)]);
    }
}

#[test]
fn red_on_a_link_keeps_a_shorter_queue_than_drop_tail() {
    let spec = RedSpec {
        limit: Limit::Packets(100),
        min: 5.0,
        max: 15.0,
        probability_max: 0.1,
        weight: 0.02,
    };
    let topology = line(2, &QueueSpec::Red(spec));
    let mut network = Network::new(&topology, 1);
    // 20% more than the link carries, for two seconds.
    for n in 0..2_400 {
        let at = Time(n * 833_333);
        while network.poll(at).is_some() {}
        network.send(at, packet(&topology, n as u32, 1_500));
    }
    let stats = network.stats(LinkIx(0));
    let early = stats.dropped(Cause::Early).packets as f64 / stats.offered().packets as f64;
    // What is too much, a sixth, is dropped early; the queue never fills.
    assert!((early - 1.0 / 6.0).abs() < 0.02, "{early}");
    assert_eq!(stats.dropped(Cause::Full).packets, 0);
    assert!(stats.classes()[0].peak.packets < 60, "{:?}", stats.classes()[0].peak);
}
