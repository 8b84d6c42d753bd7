use super::*;
use crate::net::packet::{Packet, Store};
use crate::topology::{NodeIx, RedSpec, XcpSpec};
use anabranch_proto::random;

/// A queue, and packets named by their serials.
struct Bench {
    queue: Queue,
    store: Store<()>,
    gone: Vec<Gone>,
    sent: u64,
}

impl Bench {
    fn new(spec: &QueueSpec) -> Bench {
        let rng = |purpose: &str| random::stream(1, "a->b", purpose);
        let place = Place { rate: 1_500_000, mtu: 1_500, rng: &rng };
        Bench {
            queue: Queue::new(spec, &place, ""),
            store: Store::new(),
            gone: Vec::new(),
            sent: 0,
        }
    }

    /// Offers a packet of a class.
    fn offer(&mut self, dscp: u8, len: u32) -> u64 {
        let (from, to) = (NodeIx(0), NodeIx(1));
        let slot = self.store.insert(Packet { from, to, flow: 0, len, dscp, body: () });
        let unit = Unit { serial: self.sent, slot, hop: 0, len, class: 0 };
        self.sent += 1;
        self.queue.offer(Time::ZERO, unit, dscp, &mut self.store, &mut self.gone);
        unit.serial
    }

    /// Serves one packet, from its beginning to its end.
    fn serve(&mut self) -> Option<u64> {
        let unit = self.queue.next(Time::ZERO, &mut self.store)?;
        self.queue.done(Time::ZERO, unit, self.store.dscp(unit.slot));
        Some(unit.serial)
    }

    fn rest(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.serve()).collect()
    }

    fn gone(&mut self) -> Vec<(u64, Cause)> {
        self.gone.drain(..).map(|(unit, cause)| (unit.serial, cause)).collect()
    }
}

/// DSCP 0 is class 0, 4 is class 1, all others are the lowest.
fn map() -> ClassMap {
    ClassMap { entries: vec![(0, 0), (4, 1)], other: 2 }
}

const HIGH: u8 = 0;
const MIDDLE: u8 = 4;
const LOW: u8 = 1;

fn push_out(limit: Limit) -> Bench {
    Bench::new(&QueueSpec::PushOut { limit, classes: 3, map: map() })
}

#[test]
fn the_latest_of_the_lowest_class_is_pushed_out_first() {
    let mut bench = push_out(Limit::Packets(4));
    let middle = bench.offer(MIDDLE, 100);
    let low = [bench.offer(LOW, 100), bench.offer(LOW, 100)];
    let high = bench.offer(HIGH, 100);
    let next = bench.offer(HIGH, 100);
    assert_eq!(bench.gone(), [(low[1], Cause::PushedOut)]);
    let later = bench.offer(MIDDLE, 100);
    assert_eq!(bench.gone(), [(low[0], Cause::PushedOut)]);
    let last = bench.offer(HIGH, 100);
    assert_eq!(bench.gone(), [(later, Cause::PushedOut)]);
    assert_eq!(bench.rest(), [high, next, last, middle]);
    assert_eq!(bench.queue.held_all(), Count::default());
}

#[test]
fn who_finds_nobody_below_is_dropped() {
    let mut bench = push_out(Limit::Packets(2));
    bench.offer(MIDDLE, 100);
    bench.offer(MIDDLE, 100);
    let low = bench.offer(LOW, 100);
    let middle = bench.offer(MIDDLE, 100);
    assert_eq!(bench.gone(), [(low, Cause::Full), (middle, Cause::Full)]);
}

#[test]
fn the_packet_in_service_counts_and_is_not_pushed_out() {
    let mut bench = push_out(Limit::Packets(1));
    bench.offer(LOW, 100);
    let serving = bench.queue.next(Time::ZERO, &mut bench.store).unwrap();
    let high = bench.offer(HIGH, 100);
    assert_eq!(bench.gone(), [(high, Cause::Full)]);
    bench.queue.done(Time::ZERO, serving, LOW);
    bench.offer(HIGH, 100);
    assert_eq!(bench.gone(), []);
}

#[test]
fn a_long_packet_pushes_out_several_short_ones_or_none_when_that_is_not_enough() {
    let mut bench = push_out(Limit::Bytes(1_000));
    let low: Vec<u64> = (0..4).map(|_| bench.offer(LOW, 250)).collect();
    bench.offer(HIGH, 600);
    let out: Vec<_> = low[1..].iter().rev().map(|one| (*one, Cause::PushedOut)).collect();
    assert_eq!(bench.gone(), out);
    let high = bench.offer(HIGH, 600);
    assert_eq!(bench.gone(), [(high, Cause::Full)]);
}

#[test]
fn a_lower_class_is_served_only_when_nothing_higher_waits() {
    let tail = QueueSpec::DropTail { limit: Limit::Packets(2) };
    let spec = QueueSpec::Priority { classes: vec![tail.clone(), tail.clone(), tail], map: map() };
    let mut bench = Bench::new(&spec);
    let low = [bench.offer(LOW, 100), bench.offer(LOW, 100)];
    let middle = bench.offer(MIDDLE, 100);
    let high = bench.offer(HIGH, 100);
    assert_eq!(bench.serve(), Some(high));
    let again = bench.offer(HIGH, 100);
    assert_eq!(bench.serve(), Some(again));
    assert_eq!(bench.rest(), [middle, low[0], low[1]]);
}

#[test]
fn classes_with_buffers_of_their_own_do_not_take_each_others_space() {
    let tail = |packets| QueueSpec::DropTail { limit: Limit::Packets(packets) };
    let spec = QueueSpec::Priority { classes: vec![tail(1), tail(3)], map: map() };
    let mut bench = Bench::new(&spec);
    bench.offer(HIGH, 100);
    let high = bench.offer(HIGH, 100);
    assert_eq!(bench.gone(), [(high, Cause::Full)]);
    for _ in 0..3 {
        bench.offer(LOW, 100);
    }
    assert_eq!(bench.gone(), []);
    let counts = [bench.queue.held(0).packets, bench.queue.held(1).packets];
    assert_eq!(counts, [1, 3]);
}

#[test]
fn a_class_may_be_a_queue_of_any_kind() {
    let red = RedSpec {
        limit: Limit::Packets(50),
        min: 2.0,
        max: 4.0,
        probability_max: 0.5,
        weight: 1.0,
    };
    let xcp = XcpSpec { limit: Limit::Packets(9), alpha: 0.4, beta: 0.226, shuffle: 0.1 };
    let classes = vec![
        QueueSpec::Xcp(xcp),
        QueueSpec::PushOut { limit: Limit::Packets(5), classes: 3, map: map() },
        QueueSpec::Red(red),
    ];
    let mut bench = Bench::new(&QueueSpec::Priority { classes, map: map() });
    let drops = |bench: &mut Bench, dscp| {
        (0..30).for_each(|_| {
            bench.offer(dscp, 100);
        });
        bench.gone()
    };
    assert!(drops(&mut bench, HIGH).iter().all(|gone| gone.1 == Cause::Full));
    assert_eq!(drops(&mut bench, MIDDLE).len(), 25);
    // Above twice `max` all are dropped early, long before the limit.
    let early = drops(&mut bench, LOW);
    assert!(early.len() >= 20 && early.iter().all(|gone| gone.1 == Cause::Early), "{early:?}");
    let served = bench.rest().len();
    assert_eq!(served, 9 + 5 + 30 - early.len());
}
