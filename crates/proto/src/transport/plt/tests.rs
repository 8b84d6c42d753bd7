//! Pairs of endpoints over a path in virtual time. The path knows no priorities: what they bring
//! is for the simulator's tests (`world/tests/flows/plt.rs`).

use super::*;
use crate::random::{RngExt, stream};
use crate::transport::congestion::{Cubic, NewReno, Start};
use crate::transport::testing::{Fate, Path, Way};
use proptest::prelude::*;

mod lies;

const MS: Duration = Duration::from_millis(1);

/// Without a detector: in this path it would rightly shut the LCM down.
fn config() -> Config {
    let mut config = Config::default();
    config.shutdown.detector = shutdown::Detector::Never;
    config
}

fn end(config: Config) -> Endpoint {
    let start = Start { mss: config.mss(), ..Start::default() };
    Endpoint::new(config, Box::new(NewReno::new(start)))
}

fn path(config: Config, there: Way, back: Way) -> Path<Endpoint> {
    Path::new([end(config), end(config)], [there, back])
}

/// 20 Mb/s, 20 ms each way, a queue of 50 kB.
fn way() -> Way {
    Way::new(Some(20_000_000), 20 * MS, 50_000)
}

/// Without a bound but the delay.
fn wide() -> Way {
    Way::new(None, 20 * MS, u64::MAX)
}

fn send(path: &mut Path<Endpoint>, bytes: u64) {
    path.ends[0].write(bytes);
    path.ends[0].finish();
    path.ends[0].open(path.now);
    path.drain(0);
}

/// Runs, with a look at the invariants, until the source knows that all has arrived.
fn run(path: &mut Path<Endpoint>, seconds: f64) -> Option<f64> {
    let until = Time::from_secs_f64(seconds);
    let mut steps = 0_u32;
    while path.step(until) {
        steps += 1;
        if steps.is_multiple_of(64) {
            path.ends[0].check_invariants();
        }
        if path.told(0, Event::Delivered).is_some() && path.told(1, Event::Finished).is_some() {
            break;
        }
    }
    path.ends[0].check_invariants();
    path.told(0, Event::Delivered).map(Time::as_secs_f64)
}

fn is_low(packet: &Packet) -> bool {
    matches!(packet.body, Body::Plt(Header::Low(_)))
}

/// Drops data packets of the LCM by their number.
fn low_lost(mut is_lost: impl FnMut(u64) -> bool + 'static) -> impl FnMut(u64, &Packet) -> Fate {
    let mut count = 0;
    move |_, packet| {
        count += u64::from(is_low(packet));
        if is_low(packet) && is_lost(count) { Fate::IsDropped } else { Fate::Passes }
    }
}

#[test]
fn one_stream_goes_over_both_sub_flows_each_in_its_class() {
    let mut path = path(config(), wide(), wide());
    path.logs = true;
    send(&mut path, 3_000_000);
    run(&mut path, 10.0).unwrap();
    assert_eq!(path.read[1], 3_000_000);
    let data = |class| {
        let of = |entry: &&(Time, usize, Packet)| entry.1 == 0 && entry.2.class == class;
        path.log.iter().filter(of).map(|entry| u64::from(entry.2.payload_len)).sum::<u64>()
    };
    let (high, low) = (data(Class::BEST_EFFORT), data(Class::LOWER_EFFORT));
    assert_eq!(high + low, 3_000_000, "nothing was sent twice");
    assert!(high > 300_000 && low > 300_000, "{high} {low}");
    assert!(
        path.log
            .iter()
            .all(|entry| is_low(&entry.2) || entry.1 == 1 || entry.2.class == Class::BEST_EFFORT)
    );
}

#[test]
fn it_is_faster_than_its_hcm_alone() {
    let mut plt = path(config(), wide(), wide());
    send(&mut plt, 1_500_000);
    let took = run(&mut plt, 10.0).unwrap();
    let tcp = || {
        let start = Start { mss: 1436, ..Start::default() };
        tcp::Endpoint::new(config().hcm, Box::new(NewReno::new(start)))
    };
    let mut tcp = Path::new([tcp(), tcp()], [wide(), wide()]);
    tcp.ends[0].write(1_500_000);
    tcp.ends[0].finish();
    tcp.ends[0].open(Time::ZERO);
    tcp.drain(0);
    tcp.run(10.0);
    let alone = tcp.told(0, Event::Delivered).unwrap().as_secs_f64();
    assert!(took < alone - 0.03, "{took} {alone}");
}

#[test]
fn the_hcm_brings_over_what_the_lcm_loses() {
    let mut path = path(config(), wide().faulty(low_lost(|n| n % 10 == 0)), wide());
    path.logs = true;
    send(&mut path, 2_000_000);
    run(&mut path, 20.0).unwrap();
    let probe = path.ends[0].probe();
    assert_eq!((path.read[1], probe.recoveries, probe.timeouts), (2_000_000, 0, 0));
    assert!(probe.low_lost > 0 && probe.resent >= probe.low_lost, "{probe:?}");
}

#[test]
fn a_dead_low_class_leaves_a_tcp_that_completes() {
    let mut path = path(config(), way().faulty(low_lost(|_| true)), way());
    send(&mut path, 4_000_000);
    let took = run(&mut path, 60.0).unwrap();
    let ideal = 4_000_000.0 * 8.0 / 20e6;
    assert!(path.read[1] == 4_000_000 && took < 1.6 * ideal, "{took} s, ideally {ideal} s");
    assert!(path.ends[0].lcm().counts().timeouts > 5);
}

#[test]
fn a_starved_lcm_comes_back_when_the_way_is_free() {
    // The window keeps the HCM from ever losing anything.
    let mut config = Config { buffer: Buffer::Fixed(150_000), ..config() };
    config.lcm.window.held = 0.75;
    let mut path = path(config, wide(), wide());
    let until = Time::from_secs_f64(3.0);
    path.ways[0] = wide().faulty(move |_, packet| match &packet.body {
        Body::Plt(Header::Low(low)) if low.sent < until => Fate::IsDropped,
        _ => Fate::Passes,
    });
    path.ways[0].rate = Some(20_000_000);
    path.ways[0].queue = 500_000;
    path.ends[0].write(1 << 40);
    path.ends[0].open(Time::ZERO);
    path.drain(0);
    path.run(3.0);
    assert!(path.ends[0].lcm().window().is_starved());
    path.run(3.5);
    assert!(!path.ends[0].lcm().window().is_starved());
}

#[test]
fn the_lcm_resends_by_itself_when_the_hcm_is_far_too_small() {
    for (resends, least, most) in [(true, 1, u64::MAX), (false, 0, 0)] {
        let lossy = wide().faulty(low_lost(|n| (100..200).contains(&n)));
        let hcm = crate::transport::tcp::Config::default();
        let mut config = Config { resends, copies: false, ..config() };
        config.hcm.sending = crate::transport::tcp::sender::Config { mss: 1436, ..hcm.sending };
        config.lcm.initial = lcm::sender::Initial::Packets(300);
        let mut path = path(config, lossy, wide());
        path.logs = true;
        send(&mut path, 1_500_000);
        run(&mut path, 20.0).unwrap();
        let mut seen = crate::transport::ranges::Ranges::default();
        let mut again = 0;
        for (.., packet) in path.log.iter().filter(|entry| entry.1 == 0) {
            let Body::Plt(Header::Low(low)) = &packet.body else { continue };
            let end = low.actual + u64::from(packet.payload_len);
            let news = seen.insert(Range { start: low.actual, end });
            again += u64::from(packet.payload_len) - news;
        }
        assert!((least..=most).contains(&again), "resends {resends}: {again}");
    }
}

#[test]
fn plt_short_has_a_middle_class_in_slow_start() {
    let mut path = path(config().short(), wide(), wide());
    path.logs = true;
    send(&mut path, 500_000);
    run(&mut path, 10.0).unwrap();
    let low: Vec<_> = path.log.iter().filter(|entry| is_low(&entry.2)).collect();
    assert!(low.iter().all(|entry| entry.2.class == Class::MIDDLE) && !low.is_empty());
}

#[test]
fn one_lcm_acknowledgement_in_n_is_at_the_high_priority() {
    let mut path = path(config().n_ack(4), wide(), wide());
    path.logs = true;
    send(&mut path, 2_000_000);
    run(&mut path, 10.0).unwrap();
    let reports =
        path.log.iter().filter(|entry| matches!(entry.2.body, Body::Plt(Header::Report(_))));
    let high = reports.clone().filter(|entry| entry.2.class == Class::BEST_EFFORT).count();
    assert_eq!(high, reports.count() / 4);
}

#[test]
fn the_outstanding_bytes_stay_within_the_receive_window() {
    let config = Config { buffer: Buffer::Fixed(60_000), ..config() };
    let mut path = path(config, wide(), wide());
    path.ends[0].write(2_000_000);
    path.ends[0].finish();
    path.ends[0].open(Time::ZERO);
    path.drain(0);
    while path.step(Time::from_secs_f64(30.0)) {
        let stream = path.ends[0].stream();
        assert!(stream.nxt() - stream.una() <= 60_000);
    }
    assert_eq!(path.read[1], 2_000_000);
}

#[test]
fn a_slow_reader_holds_both_sub_flows_back_and_loses_nothing() {
    let config = Config { buffer: Buffer::Fixed(40_000), ..config() };
    let mut path = path(config, wide(), wide());
    path.reads[1] = false;
    send(&mut path, 400_000);
    let mut seconds = 0.0;
    while path.read[1] < 400_000 {
        assert!(path.ends[1].readable() <= 40_000 && seconds < 300.0);
        seconds += 0.5;
        path.run(seconds);
        path.read[1] += path.ends[1].read(9_000);
        path.drain(1);
    }
    path.run(seconds + 5.0);
    assert!(path.told(0, Event::Delivered).is_some());
}

#[test]
fn a_lost_window_update_is_asked_for() {
    let config = Config { buffer: Buffer::Fixed(20_000), ..config() };
    let mut path = path(config, wide(), wide());
    path.reads[1] = false;
    send(&mut path, 100_000);
    path.run(2.0);
    let loses = path.ways[1].count;
    path.ways[1] = wide().faulty(move |n, _| if n == 0 { Fate::IsDropped } else { Fate::Passes });
    assert!(loses > 0 && path.ends[1].readable() == 20_000);
    path.reads[1] = true;
    path.read[1] += path.ends[1].read(u64::MAX);
    path.drain(1);
    assert!(run(&mut path, 30.0).is_some());
}

#[test]
fn a_reader_that_never_reads_keeps_the_connection_alive_by_answering() {
    let config = Config { buffer: Buffer::Fixed(20_000), ..config() };
    let mut path = path(config, wide(), wide());
    path.reads[1] = false;
    send(&mut path, 100_000);
    path.run(4_000.0);
    assert!(path.events.iter().all(|(.., event)| !matches!(event, Event::Failed(_))));
    path.reads[1] = true;
    path.read[1] += path.ends[1].read(u64::MAX);
    path.drain(1);
    assert!(run(&mut path, 5_000.0).is_some());
}

#[test]
fn a_peer_that_vanishes_is_given_up_and_a_reset_tells_the_other_end() {
    let gone = wide().faulty(|n, _| if n > 50 { Fate::IsDropped } else { Fate::Passes });
    let mut silent = path(config(), gone, wide());
    send(&mut silent, 10_000_000);
    silent.run(3_600.0);
    assert!(silent.told(0, Event::Failed(Failure::TimedOut)).is_some());
    assert_eq!(silent.ends[0].next_deadline(), None);
    let mut path = path(config(), way(), way());
    send(&mut path, 10_000_000);
    path.run(0.5);
    path.ends[1].abort(path.now);
    path.drain(1);
    path.run(2.0);
    assert!(path.told(0, Event::Failed(Failure::Reset)).is_some());
}

#[test]
fn both_directions_carry_streams_at_once() {
    let mut path = path(config(), way(), way());
    path.ends[1].write(700_000);
    path.ends[1].finish();
    send(&mut path, 900_000);
    path.run(20.0);
    assert_eq!(path.read, [700_000, 900_000]);
    assert!(path.told(1, Event::Delivered).is_some() && path.told(0, Event::Finished).is_some());
}

#[test]
fn an_end_that_comes_late_and_an_empty_stream_are_told() {
    let mut path = path(config(), wide(), wide());
    path.ends[0].write(10_000);
    path.ends[0].open(Time::ZERO);
    path.drain(0);
    path.run(2.0);
    assert_eq!((path.read[1], path.told(1, Event::Finished)), (10_000, None));
    path.ends[0].finish();
    path.drain(0);
    path.run(4.0);
    assert!(path.told(1, Event::Finished).is_some());
    let mut empty = self::path(config(), wide(), wide());
    send(&mut empty, 0);
    empty.run(2.0);
    assert!(empty.told(1, Event::Finished).is_some());
}

#[test]
fn without_a_set_up_data_of_both_goes_at_once() {
    let mut config = config();
    config.hcm.handshake = false;
    let mut path = path(config, wide(), wide());
    send(&mut path, 25_000);
    let took = run(&mut path, 5.0).unwrap();
    assert!(took < 0.065, "{took}");
}

#[test]
fn a_path_that_changes_in_the_midst_costs_no_byte() {
    let mut path = path(config(), way(), way());
    send(&mut path, 20_000_000);
    path.run(1.0);
    path.ways[0] = Way::new(Some(8_000_000), 60 * MS, 30_000);
    path.run(3.0);
    path.ways[0] = Way::new(Some(40_000_000), 5 * MS, 100_000);
    assert!(run(&mut path, 60.0).is_some());
    assert_eq!(path.read[1], 20_000_000);
}

#[test]
fn the_shutdown_silences_the_lcm_in_a_path_without_priorities_and_tries_again() {
    let mut config = Config::default();
    config.shutdown.retry = Duration::from_secs(2);
    let mut path = path(config, way(), way());
    path.ends[0].write(1 << 40);
    path.ends[0].open(Time::ZERO);
    path.drain(0);
    path.run(1.5);
    assert!(path.ends[0].lcm().is_off(), "{:?}", path.ends[1].shutdown());
    let (count, first) = path.ends[1].shutdown().count();
    assert_eq!(count, 1);
    let sent = path.ends[0].lcm().counts().sent;
    path.run(first.unwrap().as_secs_f64() + 2.0);
    assert_eq!(path.ends[0].lcm().counts().sent, sent);
    path.run(20.0);
    assert!(path.ends[0].lcm().counts().sent > sent, "a trial");
    assert!(path.ends[1].shutdown().count().0 > 1);
}

#[test]
fn a_scavenger_has_two_packets_of_its_hcm_on_their_way_at_most() {
    let mut path = path(config().scavenger(), way().faulty(low_lost(|n| n % 7 == 0)), way());
    path.ends[0].write(5_000_000);
    path.ends[0].finish();
    path.ends[0].open(Time::ZERO);
    path.drain(0);
    while path.step(Time::from_secs_f64(60.0)) {
        let board = path.ends[0].hcm().sender().board();
        assert!(board.nxt() - board.una() <= 2 * 1436);
    }
    assert_eq!(path.read[1], 5_000_000);
}

/// A fault mix: probabilities of loss, delay and doubling, from a seed.
fn faults(
    seed: u64,
    name: &str,
    loss: f64,
    late: f64,
    twice: f64,
) -> impl FnMut(u64, &Packet) -> Fate {
    let mut rng = stream(seed, name, "faults");
    move |_, _| {
        let drawn: f64 = rng.random();
        if drawn < loss {
            Fate::IsDropped
        } else if drawn < loss + late {
            Fate::IsHeld(MS * rng.random_range(1..80))
        } else if drawn < loss + late + twice {
            Fate::IsDoubled
        } else {
            Fate::Passes
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Exact delivery over any fault mix: the bytes out are the bytes in, once, or a clean error.
    #[test]
    fn the_bytes_out_are_the_bytes_in(
        seed in any::<u64>(),
        (loss, late, twice) in (0.0..0.25, 0.0..0.2, 0.0..0.1),
        (loss_back, late_back) in (0.0..0.25, 0.0..0.2),
        bytes in 0_u64..400_000,
        buffer in prop_oneof![Just(Buffer::Fixed(8_000)), Just(Buffer::Fixed(100_000)),
            Just(Config::default().buffer)],
        (handshake, rate, cubic, mode) in (any::<bool>(), any::<bool>(), any::<bool>(), 0_u8..4),
    ) {
        let mut config = Config { buffer, ..config() };
        config.hcm.handshake = handshake;
        let config = match mode {
            0 => config,
            1 => config.scavenger(),
            2 => Config { shutdown: shutdown::Config::default(), ..config.short() },
            _ => Config { copies: false, resends: false, ..config.n_ack(1) },
        };
        let base = || if rate { way() } else { wide() };
        let there = base().faulty(faults(seed, "there", loss, late, twice));
        let back = base().faulty(faults(seed, "back", loss_back, late_back, twice));
        let end = || {
            let start = Start { mss: config.mss(), ..Start::default() };
            match cubic {
                true => Endpoint::new(config, Box::new(Cubic::new(start))),
                false => Endpoint::new(config, Box::new(NewReno::new(start))),
            }
        };
        let mut path = Path::new([end(), end()], [there, back]);
        send(&mut path, bytes);
        let done = run(&mut path, 3_000.0);
        let failed = path.events.iter().any(|(.., event)| matches!(event, Event::Failed(_)));
        prop_assert!(done.is_some() || failed, "neither done nor failed");
        if !failed {
            prop_assert_eq!(path.read[1], bytes);
        }
        prop_assert!(path.read[1] <= bytes);
    }
}
