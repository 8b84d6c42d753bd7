//! Pairs of endpoints over a path in virtual time.

mod validation;

use super::*;
use crate::transport::Failure;
use crate::transport::congestion::{NewReno, Start};
use crate::transport::testing::{Fate, Path, Way};

use crate::random::{RngExt, stream};
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

fn end(config: Config) -> Endpoint {
    let start = Start { mss: config.sending.mss, ..Start::default() };
    Endpoint::new(config, Box::new(NewReno::new(start)))
}

fn path(config: Config, there: Way, back: Way) -> Path<Endpoint> {
    Path::new([end(config), end(config)], [there, back])
}

/// 10 Mb/s, 20 ms each way, a queue of 50 kB.
fn way() -> Way {
    Way::new(Some(10_000_000), 20 * MS, 50_000)
}

fn send(path: &mut Path<Endpoint>, bytes: u64) {
    path.ends[0].write(bytes);
    path.ends[0].finish();
    path.ends[0].open(path.now);
    path.drain(0);
}

#[test]
fn a_bulk_transfer_fills_the_pipe_and_ends_on_both_sides() {
    let mut path = path(Config::default(), way(), way());
    send(&mut path, 10_000_000);
    path.run(100.0);
    let done = path.told(0, Event::Delivered).unwrap().as_secs_f64();
    let ideal = 10_000_000.0 * 8.0 / 10e6 * 1500.0 / 1448.0;
    assert!(done > ideal && done < 1.1 * ideal, "{done} s, ideally {ideal} s");
    assert_eq!(path.read[1], 10_000_000);
    assert!(path.told(1, Event::Finished).is_some());
    assert_eq!(path.ends[0].probe().timeouts, 0);
}

#[test]
fn as_in_ns_2_packets_have_headers_of_40_bytes_and_each_is_acknowledged() {
    let mut path = path(Config::as_in_ns2(1_000), way(), way());
    path.logs = true;
    send(&mut path, 100_000);
    path.run(10.0);
    let data = path.log.iter().filter(|packet| packet.1 == 0);
    assert!(data.clone().all(|packet| packet.2.len() == 1_040));
    assert_eq!(data.count(), 100);
    assert_eq!(path.log.iter().filter(|packet| packet.1 == 1 && packet.2.len() == 40).count(), 100);
}

#[test]
fn a_lost_segment_is_resent_once_and_without_a_time_out() {
    let mut lossy = way().faulty(|n, _| if n == 100 { Fate::IsDropped } else { Fate::Passes });
    lossy.queue = 2_000_000;
    let mut path = path(Config::default(), lossy, way());
    send(&mut path, 1_000_000);
    path.run(100.0);
    let probe = path.ends[0].probe();
    assert_eq!(
        (path.read[1], probe.resent, probe.recoveries, probe.timeouts),
        (1_000_000, 1448, 1, 0)
    );
}

#[test]
fn without_a_handshake_data_goes_at_once() {
    let config = Config { handshake: false, ..Config::default() };
    let mut path = path(config, way(), way());
    path.logs = true;
    send(&mut path, 10_000);
    path.run(10.0);
    assert_eq!((path.log[0].0, path.log[0].2.payload_len), (Time::ZERO, 1448));
    let arrival = Time::ZERO + Duration::from_micros(20_000 + 1_200);
    assert_eq!(path.told(1, Event::Connected), Some(arrival));
    assert_eq!(path.read[1], 10_000);
}

#[test]
fn a_handshake_takes_one_round_trip_before_data() {
    let mut path = path(Config::default(), way(), way());
    path.logs = true;
    send(&mut path, 10_000);
    path.run(10.0);
    let first = path.log.iter().find(|packet| packet.2.payload_len > 0).unwrap();
    assert!(first.0 >= Time::ZERO + 40 * MS && first.0 < Time::ZERO + 41 * MS, "{:?}", first.0);
    assert_eq!(path.told(0, Event::Connected), Some(first.0));
}

#[test]
fn lost_syns_are_repeated_and_a_silent_peer_is_given_up() {
    let lossy = |until: u64| {
        way().faulty(move |n, _| if n < until { Fate::IsDropped } else { Fate::Passes })
    };
    let mut slow = path(Config::default(), lossy(2), lossy(1));
    send(&mut slow, 10_000);
    slow.run(60.0);
    assert_eq!(slow.read[1], 10_000);
    let mut silent = path(Config::default(), lossy(u64::MAX), way());
    send(&mut silent, 10_000);
    silent.run(600.0);
    assert!(silent.told(0, Event::Failed(Failure::TimedOut)).is_some());
    assert_eq!(silent.ends[0].next_deadline(), None);
}

#[test]
fn a_reset_tells_the_other_end_even_when_it_is_lost() {
    let lossy = way().faulty(|_, packet| match &packet.body {
        Body::Tcp(segment) if segment.rst && segment.sent < Time::ZERO + 500 * MS => {
            Fate::IsDropped
        }
        _ => Fate::Passes,
    });
    let mut path = path(Config::default(), way(), lossy);
    send(&mut path, 10_000_000);
    path.run(0.4);
    path.ends[1].abort(path.now);
    path.drain(1);
    path.run(30.0);
    assert!(path.told(0, Event::Failed(Failure::Reset)).is_some());
    assert_eq!(path.told(1, Event::Failed(Failure::Reset)), None);
}

#[test]
fn a_slow_reader_holds_the_sender_back_and_loses_nothing() {
    let receiving = receiver::Config { buffer: 20_000, ..receiver::Config::default() };
    let mut path = path(Config { receiving, ..Config::default() }, way(), way());
    path.reads[1] = false;
    send(&mut path, 200_000);
    let mut seconds = 0.0;
    while path.read[1] < 200_000 {
        assert!(path.ends[1].readable() <= 20_000 && seconds < 300.0);
        seconds += 0.5;
        path.run(seconds);
        path.read[1] += path.ends[1].read(7_000);
        path.drain(1);
    }
    path.run(seconds + 10.0);
    assert_eq!(path.ends[0].probe().timeouts, 0);
    assert!(path.told(1, Event::Finished).is_some());
}

#[test]
fn a_lost_window_update_is_made_up_for_even_when_the_window_is_only_narrow() {
    // The buffer holds two segments, so a window of 104 bytes is told and then the update.
    let lossy = way().faulty(|n, _| if n % 2 == 1 { Fate::IsDropped } else { Fate::Passes });
    let receiving = receiver::Config { buffer: 3_000, ..receiver::Config::default() };
    let mut path = path(Config { receiving, ..Config::default() }, way(), lossy);
    send(&mut path, 20_000);
    path.run(100.0);
    assert_eq!(path.read[1], 20_000);
}

#[test]
fn both_directions_carry_at_once() {
    let mut path = path(Config::default(), way(), way());
    path.ends[1].write(2_000_000);
    path.ends[1].finish();
    send(&mut path, 3_000_000);
    path.run(60.0);
    assert_eq!(path.read, [2_000_000, 3_000_000]);
    for end in 0..2 {
        assert!(path.told(end, Event::Finished).is_some());
        assert!(path.told(end, Event::Delivered).is_some());
        assert_eq!(path.ends[end].next_deadline(), None);
    }
}

#[test]
fn no_packet_is_longer_than_the_mtu_when_both_directions_lose() {
    let lossy = |name: &str| {
        let mut rng = stream(7, name, "loss");
        way().faulty(move |_, packet| match packet.len() > 1_500 || rng.random_bool(0.03) {
            true => Fate::IsDropped,
            false => Fate::Passes,
        })
    };
    let (there, back) = (lossy("there"), lossy("back"));
    let mut path = path(Config::default(), there, back);
    path.logs = true;
    path.ends[1].write(1_000_000);
    path.ends[1].finish();
    send(&mut path, 1_000_000);
    path.run(60.0);
    assert_eq!(path.read, [1_000_000; 2]);
    assert_eq!(path.log.iter().map(|packet| packet.2.len()).max(), Some(1_500));
}

#[test]
fn an_empty_stream_ends_too() {
    let mut path = path(Config::default(), way(), way());
    send(&mut path, 0);
    path.run(10.0);
    assert!(path.told(1, Event::Finished).is_some());
    assert_eq!(path.ends[0].next_deadline(), None);
}

#[test]
fn reordering_alone_costs_no_window_in_the_end() {
    let held = way().faulty(|n, _| match n {
        50 | 51 => Fate::IsHeld(30 * MS),
        _ => Fate::Passes,
    });
    let mut path = path(Config::default(), held, way());
    send(&mut path, 150_000);
    path.run(30.0);
    let end = &path.ends[0];
    assert_eq!(end.sender().counts().recoveries, end.sender().counts().undone);
    assert!(end.sender().counts().undone > 0);
    assert_eq!(end.probe().ssthresh, u64::MAX);
}

#[test]
fn a_full_window_lost_in_the_midst_costs_one_recovery_and_no_time_out() {
    // Every third of 90 packets.
    let lossy = way().faulty(|n, _| match n {
        100..190 if n % 3 == 0 => Fate::IsDropped,
        _ => Fate::Passes,
    });
    let mut path = path(Config::default(), lossy, way());
    path.ways[0].queue = 1_000_000;
    send(&mut path, 600_000);
    path.run(30.0);
    let probe = path.ends[0].probe();
    assert_eq!(path.read[1], 600_000);
    assert_eq!((probe.timeouts, probe.recoveries, probe.resent), (0, 1, 30 * 1448));
}

/// A peer that says what it likes, and random packets.
fn lie(rng: &mut crate::random::Rng, end: &Endpoint) -> Segment {
    let (una, nxt) = (end.sender().board().una(), end.sender().board().nxt());
    let mut near = |base: u64| match rng.random_range(0..6) {
        0 => rng.random(),
        1 => base.wrapping_sub(rng.random_range(0..5_000)),
        2 => u64::MAX - rng.random_range(0..3),
        _ => base.wrapping_add(rng.random_range(0..20_000)),
    };
    let sack = [0; 3].map(|_| crate::transport::packet::Range { start: near(una), end: near(una) });
    Segment {
        seq: near(end.receiver().next()),
        ack: near(una).min(near(nxt)),
        window: near(0),
        sack,
        echo: Some(Time(near(1_000_000))),
        sent: Time(near(1_000_000)),
        has_ack: rng.random_range(0..8) > 0,
        syn: rng.random_range(0..50) == 0,
        fin: rng.random_range(0..50) == 0,
        fin_acked: rng.random_range(0..8) == 0,
        sack_len: rng.random_range(0..5),
        rst: false,
        feedback: Some(f64::NAN),
    }
}

proptest! {
    #[test]
    fn whatever_the_path_does_the_bytes_arrive_or_the_connection_fails(
        seed: u64, bytes in 1..400_000u64, loss in 0..40u32, other in 0..30u32,
        handshake: bool, delayed: bool, limited: bool, watched: bool, proportional: bool,
        buffer in 3_000..200_000u64,
    ) {
        let faults = |name| {
            let mut rng = stream(seed, name, "faults");
            move |_: u64, _: &Packet| match rng.random_range(0..100u32) {
                n if n < loss => Fate::IsDropped,
                n if n < loss + other => match rng.random_range(0..2) {
                    0 => Fate::IsDoubled,
                    _ => Fate::IsHeld(Duration::from_micros(rng.random_range(0..200_000))),
                },
                _ => Fate::Passes,
            }
        };
        let mut config = Config { handshake, ..Config::default() };
        config.sending.limited_transmit = limited;
        config.sending.finds_lost_resends = watched;
        config.sending.proportional = proportional;
        config.receiving.buffer = buffer;
        config.receiving.delayed_ack = delayed.then_some(40 * MS);
        let ways = [way().faulty(faults("there")), way().faulty(faults("back"))];
        let mut path = Path::new([end(config), end(config)], ways);
        send(&mut path, bytes);
        let mut steps = 0u64;
        while path.step(Time::FAR) {
            path.ends[0].sender().board().check_invariants();
            prop_assert!(path.ends[0].sender().board().pipe() <= path.ends[0].sender().board().nxt());
            steps += 1;
            prop_assert!(steps < 200_000, "it never ends: {:?}", path.ends);
        }
        let failed = |end| path.told(end, Event::Failed(Failure::TimedOut)).is_some();
        if !failed(0) {
            prop_assert_eq!(path.read[1], bytes);
            prop_assert!(path.told(1, Event::Finished).is_some());
            prop_assert!(path.told(0, Event::Delivered).is_some());
        }
        prop_assert!(path.read[1] <= bytes);
        if loss < 25 {
            prop_assert!(!failed(0), "given up too early");
        }
    }

    #[test]
    fn liars_neither_stop_an_endpoint_nor_make_it_grow(seed: u64, handshake: bool) {
        let mut rng = stream(seed, "liar", "lies");
        let mut end = end(Config { handshake, ..Config::default() });
        end.write(10_000_000);
        end.open(Time::ZERO);
        let mut now = Time::ZERO;
        for _ in 0..2_000 {
            now += Duration::from_micros(rng.random_range(0..100_000));
            let segment = lie(&mut rng, &end);
            let payload_len = rng.random_range(0..3_000);
            let body = Body::Tcp(segment);
            let packet = Packet { class: Class::default(), header_len: 52, payload_len, xcp: None, body };
            end.handle(now, packet);
            end.handle_deadline(now);
            for _ in 0..100 {
                let Some(_) = end.poll_transmit(now) else { break };
            }
            while end.poll_event().is_some() {}
            end.sender().board().check_invariants();
            prop_assert!(end.readable() <= receiver::Config::default().buffer);
        }
    }
}
