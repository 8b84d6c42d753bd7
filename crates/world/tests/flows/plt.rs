//! PLT in networks with and without priorities.

use super::wires::{BOTTLENECK, dumbbell, ends, loss};
use anabranch_proto::time::Time;
use anabranch_proto::transport::congestion::Choice;
use anabranch_proto::transport::plt::shutdown::{self, Detector};
use anabranch_proto::transport::plt::{Buffer, Config as Plt};
use anabranch_world::flows::{
    Arrivals, Bulk, Config, Flows, Group, GroupIx, PltSpec, Sizes, TcpSpec, TransportSpec,
};
use anabranch_world::topology::{ClassMap, Limit, QueueSpec, Topology};
use anabranch_world::units::{mbit, ms};

const SECOND: u64 = 1_000_000_000;
/// 40 Mb/s, 40 ms: 200 kB.
const BDP: u64 = 200_000;

/// The two forms of strict priority, with so many bytes, and none.
fn queues(bytes: u64) -> [QueueSpec; 3] {
    let map = ClassMap { entries: vec![(1, 1)], other: 0 };
    let limit = Limit::Bytes(bytes);
    let tail = QueueSpec::DropTail { limit };
    [
        QueueSpec::PushOut { limit, classes: 2, map: map.clone() },
        QueueSpec::Priority { classes: vec![tail.clone(); 2], map },
        tail,
    ]
}

fn topology(queue: &QueueSpec, probability: f64) -> Topology {
    let mut topology = dumbbell(mbit(40), &[ms(20); 4], queue);
    topology.links[BOTTLENECK.0 as usize].loss = loss(probability).filter(|_| probability > 0.0);
    topology
}

fn add(flows: &mut Flows, name: &str, transport: TransportSpec, pairs: &[u32]) -> GroupIx {
    add_at(flows, name, transport, pairs, Time::ZERO)
}

fn add_at(
    flows: &mut Flows,
    name: &str,
    transport: TransportSpec,
    pairs: &[u32],
    start: Time,
) -> GroupIx {
    let group = flows.add_group(Group { name: name.into(), transport, is_sampled: true });
    let pairs: Vec<_> = pairs.iter().map(|pair| ends(*pair)).collect();
    let count = pairs.len() as u32;
    let stagger = ms(30);
    flows.add_bulk(group, &Bulk { count, pairs, start, stagger, stop: None, bytes: None });
    group
}

fn plt() -> TransportSpec {
    TransportSpec::Plt(PltSpec::default())
}

fn newreno() -> TransportSpec {
    let mut spec = TcpSpec::default();
    spec.config.sending.mss = Plt::default().mss();
    TransportSpec::Tcp(spec)
}

/// Goodput of one flow, as a share of what can arrive of the bottleneck's payload.
fn alone(spec: TransportSpec, queue: &QueueSpec, probability: f64) -> f64 {
    let config = Config { seed: 1, warm_up: Time(4 * SECOND), ..Config::default() };
    let mut flows = Flows::new(&topology(queue, probability), config);
    let group = add(&mut flows, "plt", spec, &[0]);
    flows.run_until(Time(24 * SECOND));
    flows.goodput_of(group) / (5e6 * 1436.0 / 1500.0 * (1.0 - probability))
}

#[test]
fn one_flow_fills_a_lossy_pipe_under_both_forms_of_priority() {
    for queue in &queues(30_000)[..2] {
        for probability in [0.0, 0.001, 0.03, 0.1] {
            let share = alone(plt(), queue, probability);
            assert!(share > 0.94, "{probability}: {share} {queue:?}");
        }
        let tcp = alone(newreno(), queue, 0.03);
        assert!(tcp < 0.3, "{tcp}");
    }
}

#[test]
fn any_congestion_control_serves_as_hcm() {
    let [queue, ..] = queues(30_000);
    for congestion in [Choice::Cubic, Choice::Fast(Default::default())] {
        let spec = PltSpec { congestion, ..PltSpec::default() };
        let share = alone(TransportSpec::Plt(spec), &queue, 0.01);
        assert!(share > 0.96, "{congestion:?}: {share}");
    }
}

/// Without the tuner a loss above µ leaves little more than the HCM (thesis §3.2.2).
#[test]
fn a_threshold_that_does_not_move_gives_up_above_it() {
    let [queue, ..] = queues(30_000);
    let mut fixed = PltSpec::default();
    fixed.config.lcm.tuner.mu_max = None;
    let share = alone(TransportSpec::Plt(fixed), &queue, 0.1);
    assert!(share < 0.3, "{share}");
}

#[test]
fn a_receive_window_of_one_bandwidth_delay_product_limits_and_six_do_not() {
    let [queue, ..] = queues(30_000);
    let of = |bdps: u64| {
        let config = Plt { buffer: Buffer::Fixed(bdps * BDP), ..Plt::default() };
        alone(TransportSpec::Plt(PltSpec { config, ..PltSpec::default() }), &queue, 0.01)
    };
    let (one, three, six) = (of(1), of(3), of(6));
    assert!(one < 0.6 && one < three && three < six && six > 0.95, "{one} {three} {six}");
}

/// What two TCP flows have beside `other`, and beside two more TCP flows: the sum over runs that
/// begin differently, since in one run a drop-tail queue can favour some flows to its end.
fn beside(other: TransportSpec, queue: &QueueSpec) -> (f64, f64) {
    let run = |other, late: u64| {
        let config = Config { seed: 1, warm_up: Time(10 * SECOND), ..Config::default() };
        let mut flows = Flows::new(&topology(queue, 0.0), config);
        let tcp = add(&mut flows, "tcp", newreno(), &[0, 1]);
        add_at(&mut flows, "other", other, &[2, 3], Time(late * 173_000_000));
        flows.run_until(Time(60 * SECOND));
        flows.goodput_of(tcp)
    };
    let sum = |other| (0..6).map(|late| run(other, late)).sum();
    (sum(other), sum(newreno()))
}

#[test]
fn tcp_beside_plt_keeps_what_it_has_beside_tcp() {
    for queue in queues(30_000).iter().take(2).chain(queues(200_000).iter().take(2)) {
        let (with, without) = beside(plt(), queue);
        assert!(with > 0.95 * without, "{with} {without} {queue:?}");
    }
}

#[test]
fn a_scavenger_leaves_tcp_nearly_all_that_it_has_alone() {
    for queue in &queues(200_000)[..2] {
        let config = Plt::default().scavenger();
        let spec = TransportSpec::Plt(PltSpec { config, ..PltSpec::default() });
        let run = |beside: bool| {
            let config = Config { seed: 1, warm_up: Time(10 * SECOND), ..Config::default() };
            let mut flows = Flows::new(&topology(queue, 0.0), config);
            let tcp = add(&mut flows, "tcp", newreno(), &[0, 1]);
            if beside {
                add(&mut flows, "scavenger", spec, &[2]);
            }
            flows.run_until(Time(40 * SECOND));
            flows.goodput_of(tcp)
        };
        let (with, alone) = (run(true), run(false));
        assert!(with > 0.99 * alone, "{with} {alone}");
        let idle = self::alone(spec, queue, 0.0);
        assert!(idle > 0.9, "{idle}");
    }
}

/// When the LCM is first silenced, seconds.
fn silenced(detector: shutdown::Config, queue: &QueueSpec, probability: f64) -> Option<f64> {
    let config = Plt { shutdown: detector, ..Plt::default() };
    let mut flows = Flows::new(&topology(queue, probability), Config::default());
    let spec = PltSpec { config, ..PltSpec::default() };
    add(&mut flows, "plt", TransportSpec::Plt(spec), &[0]);
    flows.run_until(Time(60 * SECOND));
    flows.records()[0].source.low_off_at.map(Time::as_secs_f64)
}

#[test]
fn without_priorities_the_lcm_is_silenced_within_seconds_and_with_them_never() {
    let [shared, per_class, fifo] = queues(60_000);
    for probability in [0.0, 0.001, 0.01, 0.1] {
        let found = silenced(shutdown::Config::default(), &fifo, probability);
        assert!(found.is_some_and(|at| at < 10.0), "{probability}: {found:?}");
        for queue in [&shared, &per_class] {
            let found = silenced(shutdown::Config::default(), queue, probability);
            assert_eq!(found, None, "{probability} {queue:?}");
        }
    }
}

/// Thesis Fig. 3.17: random loss deceives the detector by losses.
#[test]
fn the_detector_by_losses_takes_random_loss_for_a_missing_priority() {
    let [shared, _, fifo] = queues(60_000);
    let losses = shutdown::Config::as_in_thesis();
    assert!(matches!(losses.detector, Detector::Losses { .. }));
    assert!(silenced(losses, &fifo, 0.0).is_some());
    assert!(silenced(losses, &shared, 0.1).is_some());
}

/// Thesis §3.3.5: short flows need a round trip or two.
#[test]
fn mice_finish_sooner_than_over_tcp() {
    let [queue, ..] = queues(200_000);
    let mean = |spec: TransportSpec| {
        let mut flows = Flows::new(&topology(&queue, 0.0), Config::default());
        let group =
            flows.add_group(Group { name: "mice".into(), transport: spec, is_sampled: false });
        flows.add_arrivals(
            group,
            Arrivals {
                pairs: (0..4).map(ends).collect(),
                rate: 20.0,
                size: Sizes::new(25.0, 1.5),
                start: Time::ZERO,
                stop: Time(20 * SECOND),
            },
        );
        flows.run_until(Time(40 * SECOND));
        let took: Vec<f64> = flows
            .records_of(group)
            .filter_map(|record| Some(record.completion()?.as_secs_f64()))
            .collect();
        assert_eq!(took.len(), flows.records().len(), "all have finished");
        took.iter().sum::<f64>() / took.len() as f64
    };
    let (plt, tcp) = (mean(plt()), mean(newreno()));
    assert!(plt < 0.8 * tcp, "{plt} {tcp}");
}
