//! Whole distributions with the star, whose times have closed forms, and with faults.

use anabranch_proto::overlay::System;
use anabranch_proto::time::{Duration, Time};
use anabranch_world::sim::{Fault, HostId, Overhead, Quantum};
use anabranch_world::story::{End, Story};
use anabranch_world::units::{Size, kbit, mbit, ms, s};

const EACH_QUANTUM: [Quantum; 3] =
    [Quantum::Exact, Quantum::Adaptive, Quantum::Every(Duration::from_millis(5))];

fn star(quantum: Quantum) -> Story {
    Story::new(7, System::Star)
        .file(1.mb(), 64.kib())
        .hosts(2)
        .up(mbit(8))
        .down(mbit(80))
        .delay(ms(30))
        .configure(|config| config.quantum = quantum)
}

fn secs(end: &End, host: &str) -> f64 {
    end.completion(host).expect("the host is complete").as_secs_f64()
}

#[test]
fn one_receiver_takes_four_round_trips_and_the_frames_at_the_slower_rate() {
    for quantum in EACH_QUANTUM {
        let end = star(quantum).run_until_complete(s(60)).unwrap();
        let out = end.traffic("source");
        // 16 blocks of 4 fragments: a head of 16 bytes each, and 4 bytes per fragment; the rest
        // are pings and pongs.
        assert_eq!(out.payload_out, 1.mb());
        assert!((16 * 16 + 62 * 4..16 * 16 + 62 * 4 + 48).contains(&out.control_out));
        let frames = (out.payload_out + out.control_out) as f64 / 1e6;
        // Set-up is three round trips at the receiver; its request and the last fragment travel
        // half a one each; the request waits for a ping, both at 1 MB/s.
        let expected = 4.0 * 0.060 + frames + 50e-6;
        let late = secs(&end, "r1") - expected;
        assert!((-1e-4..=5.1e-3).contains(&late), "{quantum:?}: {late}");
        if quantum == Quantum::Exact {
            assert!(late.abs() < 1e-4, "{late}");
        }
    }
}

#[test]
fn n_receivers_of_a_star_take_n_times_as_long() {
    for quantum in EACH_QUANTUM {
        let end = star(quantum).hosts(9).run_until_complete(s(60)).unwrap();
        for number in 1..=8 {
            let ratio = (secs(&end, &format!("r{number}")) - 0.24) / 8.0;
            // Who is linked first has the uplink to itself until the next boundary.
            assert!((0.995..1.005).contains(&ratio), "{quantum:?} r{number}: {ratio}");
        }
        let last = end.completion_last().as_secs_f64() - 0.24;
        assert!((8.0..8.03).contains(&last), "{quantum:?}: {last}");
        assert_eq!(end.traffic_sum().payload_in, 8.mb());
    }
}

#[test]
fn receivers_with_unequal_links_get_max_min_fair_rates() {
    // 9 Mb/s for three, one of which takes only 1: 1, 4, 4.
    for quantum in EACH_QUANTUM {
        let story = star(quantum).file(4.mb(), 16.kib()).hosts(4);
        let story = story.rates("source", mbit(9), mbit(9)).rates("r1", mbit(9), mbit(1));
        let end = story.run_for(s(6)).unwrap();
        let rate =
            |host: &str| end.meter(host).payload_in.rate_at(Time::from_secs_f64(4.5)) / 125e3;
        for (host, expected) in [("r1", 1.0), ("r2", 4.0), ("r3", 4.0)] {
            let off = rate(host) / expected;
            assert!((0.95..1.05).contains(&off), "{quantum:?} {host}: {} Mb/s", rate(host));
        }
    }
}

#[test]
fn a_path_rate_binds_where_hosts_do_not() {
    let mut story = star(Quantum::Adaptive);
    story.at(s(0)).path_rate("source", "r1", mbit(2));
    let end = story.run_until_complete(s(60)).unwrap();
    assert!((4.2..4.3).contains(&secs(&end, "r1")), "{}", secs(&end, "r1"));
}

#[test]
fn no_host_ever_sends_more_than_its_rate_allows() {
    let story = Story::new(3, System::BulletPrime).file(4.mb(), 16.kib()).hosts(12).up(mbit(4));
    let end = story.down(mbit(6)).run_until_complete(s(120)).unwrap();
    for host in end.sim().hosts() {
        let (spec, meter) = (end.sim().spec(host), end.sim().meter(host));
        // A parcel counts when its last byte leaves: what each link has under way may spill over.
        let spill = 25 * 17_000;
        for second in 1..=end.sim().now().as_secs_f64() as u64 {
            let at = Time::from_secs_f64(second as f64);
            assert!(meter.payload_out.bytes_until(at) <= second * spec.up.bytes());
            assert!(meter.payload_in.bytes_until(at) <= second * spec.down.bytes());
            assert!(meter.payload_out.rate_at(at) <= spec.up.as_f64() + spill as f64);
        }
    }
}

#[test]
fn the_quantum_hardly_changes_when_a_mesh_is_done() {
    let last = |quantum| {
        let story = Story::new(5, System::BulletPrime).file(3.mb(), 16.kib()).hosts(16);
        let story = story.up(mbit(6)).down(mbit(6)).delay(ms(25));
        let story = story.configure(|config| (config.quantum, config.check) = (quantum, false));
        story.run_until_complete(s(120)).unwrap().completion_last().as_secs_f64()
    };
    let exact = last(Quantum::Exact);
    let coarse = last(Quantum::Adaptive);
    assert!((0.93..1.07).contains(&(coarse / exact)), "{coarse} s against {exact} s");
}

#[test]
fn lower_layers_take_their_share_when_they_are_counted() {
    let plain = star(Quantum::Exact).run_until_complete(s(60)).unwrap();
    let counted = star(Quantum::Exact)
        .configure(|config| config.overhead = Overhead::TlsTcp)
        .run_until_complete(s(60))
        .unwrap();
    let share = (secs(&counted, "r1") - 0.24) / (secs(&plain, "r1") - 0.24);
    // A fragment and its heads fill two TLS records and twelve segments: 524 bytes more, 3.2%.
    assert!((1.031..1.033).contains(&share), "{share}");
    assert!(counted.traffic("source").overhead_out > 28_000);
    assert_eq!(plain.traffic("source").overhead_out, 0);
}

#[test]
fn the_same_seed_does_the_same_and_another_does_not() {
    let hash = |seed| {
        let mut story = Story::new(seed, System::BulletPrime).file(1.mb(), 16.kib()).hosts(8);
        story.at(s(1)).kill("r3");
        story.at(s(2)).restart("r3");
        story.run_until_complete(s(120)).unwrap().trace_hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn a_receiver_that_crashes_comes_back_with_what_it_held() {
    let mut story = star(Quantum::Adaptive).file(4.mb(), 64.kib());
    story.at(s(2)).crash("r1");
    story.at(s(5)).restart("r1");
    let end = story.run_until_complete(s(60)).unwrap();
    let again = end.traffic("r1").payload_in - 4.mb();
    assert!(again < 64.kib(), "only the block under way is fetched again: {again}");
    assert_eq!(end.traffic("r1").duplicate_in, 0);
    assert!((7.0..7.6).contains(&secs(&end, "r1")), "{}", secs(&end, "r1"));
}

#[test]
fn a_receiver_that_resumes_fetches_only_what_it_lacks() {
    let story = star(Quantum::Adaptive).holds("r1", 0..10);
    let end = story.run_until_complete(s(60)).unwrap();
    assert_eq!(end.traffic("r1").payload_in, 1.mb() - 10 * 64.kib());
}

#[test]
fn corrupt_blocks_are_not_stored_and_the_sender_is_blamed() {
    let mut story = star(Quantum::Adaptive).corrupt("source");
    story.at(s(4)).fault(Fault::Corrupt(HostId(0), false));
    let end = story.run_until_complete(s(60)).unwrap();
    assert!(end.stats("r1").corrupt > 0);
    assert!(end.completion("r1").unwrap() > Time::from_secs_f64(4.0));
    assert!(end.traffic("r1").payload_in > 1.mb());
}

#[test]
fn a_partition_holds_up_only_those_inside_it() {
    let mut story = star(Quantum::Adaptive).hosts(5).file(1.mb(), 16.kib());
    story.at(s(1)).partition(&["r1", "r2"]);
    story.at(s(30)).heal_all();
    let end = story.run_until_complete(s(90)).unwrap();
    end.assert_all_complete();
    assert!(secs(&end, "r3") < 6.0 && secs(&end, "r4") < 6.0);
    assert!(secs(&end, "r1") > 30.0 && secs(&end, "r2") > 30.0);
}

#[test]
fn a_host_that_slows_down_takes_longer_from_then_on() {
    let mut story = star(Quantum::Adaptive);
    story.at(ms(740)).rates("source", kbit(800), mbit(8));
    let end = story.run_until_complete(s(60)).unwrap();
    // Half a megabyte at 1 MB/s by then (less 0.21 s before the first byte), the rest at 0.1.
    assert!((5.2..6.0).contains(&secs(&end, "r1")), "{}", secs(&end, "r1"));
}

#[test]
fn the_source_hears_the_outcome_of_everyone() {
    let story = star(Quantum::Adaptive).hosts(4).starts("r3", s(10));
    let end = story.run_until_complete(s(60)).unwrap().linger(s(1)).unwrap();
    let outcomes = end.outcomes();
    assert_eq!(outcomes.len(), 3);
    assert!(outcomes.iter().all(|outcome| outcome.bytes_from_source == 1.mb()));
    let late = end.sim().info(end.sim().host("r3").unwrap()).id;
    let outcome = outcomes.iter().find(|outcome| outcome.peer == late).unwrap();
    assert!((1_200..1_500).contains(&outcome.elapsed_ms), "{}", outcome.elapsed_ms);
}

#[test]
fn a_story_that_does_not_end_says_who_waits() {
    let mut story = star(Quantum::Adaptive).hosts(3).file(8.mb(), 16.kib());
    story.at(s(1)).kill("source");
    let error = story.run_until_complete(s(5)).err().unwrap().to_string();
    assert!(error.starts_with("not complete at 5.000000s: r1 (Up) holds "), "{error}");
}
