use super::*;
use crate::topology::Limit;

const SPEC: XcpSpec = XcpSpec { limit: Limit::Packets(100), alpha: 0.4, beta: 0.226, shuffle: 0.1 };

/// 1 MB/s.
const RATE: u64 = 1_000_000;

fn header(window: f64, rtt_ms: u64, feedback: f64) -> XcpHeader {
    XcpHeader { window, rtt: Duration::from_millis(rtt_ms), feedback }
}

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

/// A router in which one interval of 100 ms begins now, at time zero.
fn router() -> Router {
    Router { interval: 0.1, decides: at(100), queue_decides: at(100), ..Router::new(SPEC, RATE) }
}

/// Feedback for a packet of 1,000 bytes that leaves at `ms`.
fn feedback(router: &mut Router, ms: u64, mut header: XcpHeader) -> f64 {
    router.depart(at(ms), 0, 1_000, Some(&mut header));
    header.feedback
}

#[test]
fn spare_bandwidth_is_given_out_by_rtt_squared_times_size_over_window() {
    let mut router = router();
    // 20 packets in 100 ms: 0.2 MB/s of 1 MB/s. Window 10,000 at 100 ms.
    for n in 0..20 {
        router.arrive(at(n * 5), 0, 1_000, Some(&mut header(10_000.0, 100, 1e9)));
    }
    // φ = 0.4 · 0.1 s · 0.8 MB/s = 32,000 B; nothing is shuffled, 2,000 < 32,000.
    // Σ rtt·s/cwnd = 20 · 0.1 · 0.1 = 0.2 s, so ξ_p = 320,000 / 0.2 and p = 1.6e6 · 0.01 · 0.1.
    let given = feedback(&mut router, 100, header(10_000.0, 100, 1e9));
    assert!((given - 1_600.0).abs() < 1e-6, "{given}");
    // 20 such packets carry all of φ.
    assert!((20.0 * given - 32_000.0).abs() < 1e-6);
}

#[test]
fn flows_of_other_windows_and_round_trips_get_the_same_addition_to_their_rates() {
    // In 100 ms a flow of 10 kB per 100 ms sends 10 packets, one of 80 kB per 200 ms sends 40.
    let mut router = router();
    let (a, b) = (header(10_000.0, 100, 1e9), header(80_000.0, 200, 1e9));
    (0..10).for_each(|n| router.arrive(at(n * 10), 0, 1_000, Some(&mut a.clone())));
    (0..40).for_each(|n| router.arrive(at(n * 2), 0, 1_000, Some(&mut b.clone())));
    let per_rate = |total: f64, rtt: f64| total / rtt;
    let a = per_rate(10.0 * feedback(&mut router, 100, a), 0.1);
    let b = per_rate(40.0 * feedback(&mut router, 100, b), 0.2);
    assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
}

#[test]
fn overload_and_a_standing_queue_are_taken_back_in_proportion_to_rate() {
    let mut router = router();
    // 150 packets in 100 ms: 1.5 MB/s of 1 MB/s. A queue of 10,000 that never empties.
    router.queue_least = 10_000.0;
    for n in 0..150 {
        router.arrive(Time(n * 666_666), 10_000, 1_000, Some(&mut header(50_000.0, 100, 1e9)));
    }
    // φ = -0.4 · 0.1 · 0.5e6 - 0.226 · 10,000 = -22,260; ξ_n = 222,600 / 150,000; n = ξ_n · rtt · s.
    let given = feedback(&mut router, 100, header(50_000.0, 100, 1e9));
    assert!((given + 148.4).abs() < 1e-6, "{given}");
    // A packet of twice the round trip gives twice as much: as many packets come per rate.
    let other = feedback(&mut router, 100, header(50_000.0, 200, 1e9));
    assert!((other - 2.0 * given).abs() < 1e-6, "{other}");
}

#[test]
fn at_balance_a_tenth_of_the_traffic_is_shuffled_from_large_to_small() {
    let mut router = router();
    // Exactly full: 90 packets of a flow at 0.9 MB/s, 10 of one at 0.1 MB/s.
    let (large, small) = (header(90_000.0, 100, 1e9), header(10_000.0, 100, 1e9));
    (0..90).for_each(|n| router.arrive(at(n), 0, 1_000, Some(&mut large.clone())));
    (0..10).for_each(|n| router.arrive(at(90 + n), 0, 1_000, Some(&mut small.clone())));
    let large = 90.0 * feedback(&mut router, 100, large);
    let small = 10.0 * feedback(&mut router, 100, small);
    // h = 10,000 B: each flow gets half of it, and gives by its rate.
    assert!((large - (5_000.0 - 9_000.0)).abs() < 1e-6, "{large}");
    assert!((small - (5_000.0 - 1_000.0)).abs() < 1e-6, "{small}");
}

#[test]
fn a_wish_below_the_feedback_is_kept_and_saves_the_pool() {
    let mut router = router();
    for n in 0..20 {
        router.arrive(at(n * 5), 0, 1_000, Some(&mut header(10_000.0, 100, 1e9)));
    }
    router.roll(at(100), 0);
    let before = router.gain_left;
    assert_eq!(feedback(&mut router, 100, header(10_000.0, 100, 400.0)), 400.0);
    assert!((before - router.gain_left - 4_000.0).abs() < 1e-6);
}

#[test]
fn feedback_stops_when_the_pool_is_empty() {
    let mut router = router();
    for n in 0..20 {
        router.arrive(at(n * 5), 0, 1_000, Some(&mut header(10_000.0, 100, 1e9)));
    }
    // Twice as many leave as were counted on.
    let given: Vec<f64> =
        (0..40).map(|_| feedback(&mut router, 100, header(10_000.0, 100, 1e9))).collect();
    assert!((given.iter().sum::<f64>() - 32_000.0).abs() < 1_600.1, "{given:?}");
    assert_eq!(given[39], 0.0);
}

#[test]
fn the_interval_becomes_the_mean_round_trip_over_flows() {
    let mut router = router();
    // Two flows at equal rates, 100 and 300 ms: as many packets of each.
    for n in 0..20 {
        router.arrive(at(n * 2), 0, 1_000, Some(&mut header(10_000.0, 100, 0.0)));
        router.arrive(at(n * 2), 0, 1_000, Some(&mut header(30_000.0, 300, 0.0)));
    }
    router.roll(at(100), 0);
    assert!((router.interval - 0.2).abs() < 1e-9, "{}", router.interval);
}

#[test]
fn a_packet_without_a_round_trip_time_keeps_its_wish_and_counts_as_traffic() {
    let mut router = router();
    for n in 0..50 {
        router.arrive(at(n * 2), 0, 1_000, Some(&mut header(1_000.0, 0, 7.0)));
    }
    assert_eq!(feedback(&mut router, 100, header(1_000.0, 0, 7.0)), 7.0);
    // 0.5 MB/s were used: φ/d = 0.4 · 0.5e6.
    assert!((router.gain_left - 200_000.0).abs() < 1e-6);
}

#[test]
fn higher_classes_take_their_share_of_the_capacity() {
    let mut router = router();
    (0..60).for_each(|_| router.yield_to(1_000));
    for n in 0..20 {
        router.arrive(at(n * 5), 0, 1_000, Some(&mut header(10_000.0, 100, 1e9)));
    }
    router.roll(at(100), 0);
    // 0.6 MB/s are taken, 0.2 used: φ/d = 0.4 · 0.2e6.
    assert!((router.gain_left - 80_000.0).abs() < 1e-6, "{}", router.gain_left);
}
