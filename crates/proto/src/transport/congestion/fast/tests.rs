use super::*;

const SEGMENT: u32 = 1000;

fn start(window: u32) -> Start {
    Start { mss: SEGMENT, window, ssthresh: None }
}

/// A path in fluid: `capacity` packets per second, `base` seconds, an endless buffer that only this
/// flow fills. Feeds `rounds` round trips of acknowledgements, each of one packet.
struct Path {
    fast: Fast,
    capacity: f64,
    base: f64,
    now: f64,
}

impl Path {
    fn new(config: Config, capacity: f64, base: f64) -> Path {
        Path { fast: Fast::new(config, start(2)), capacity, base, now: 0.0 }
    }

    fn packets(&self) -> f64 {
        self.fast.window / f64::from(SEGMENT)
    }

    fn ack(&mut self, is_recovering: bool) {
        let rtt = self.base.max(self.packets() / self.capacity);
        self.now += rtt / self.packets();
        self.fast.on_ack(&Acked {
            now: Time::from_secs_f64(self.now),
            bytes: u64::from(SEGMENT),
            rtt: Some(Duration::from_secs_f64(rtt)),
            srtt: Duration::from_secs_f64(rtt),
            flight: self.fast.window(),
            is_recovering,
            is_limited: true,
            feedback: None,
        });
    }

    fn rounds(&mut self, rounds: u32) {
        for _ in 0..rounds {
            for _ in 0..(self.packets() as u32).max(1) {
                self.ack(false);
            }
        }
    }
}

#[test]
fn the_fixed_point_has_alpha_packets_in_the_queue() {
    for (alpha, capacity, base) in [(100.0, 31_250.0, 0.08), (20.0, 5_000.0, 0.02)] {
        let mut path = Path::new(Config { alpha, ..Config::default() }, capacity, base);
        path.rounds(300);
        let queue = path.packets() - capacity * base;
        assert!((queue - alpha).abs() < 1.0, "{queue} of {alpha}");
        assert!((path.fast.queued() - alpha).abs() < 1.0);
    }
}

#[test]
fn without_a_queue_the_window_doubles_every_other_round_trip_and_then_grows_by_gamma_alpha() {
    let mut path = Path::new(Config::default(), 1e9, 0.1);
    let mut windows = Vec::new();
    for _ in 0..24 {
        path.rounds(1);
        windows.push(path.packets());
    }
    for pair in windows.windows(3).skip(1) {
        assert!(pair[2] <= 2.0 * pair[0] + 1.0, "{windows:?}");
    }
    let steps = (windows[23] - windows[19]) / 50.0;
    assert!((steps - 2.0).abs() < 0.1, "{windows:?}");
}

#[test]
fn multiplicative_increase_doubles_each_round_trip_until_the_queue_shows() {
    let mut path = Path::new(Config::with_increase(), 31_250.0, 0.08);
    path.rounds(8);
    assert!((path.packets() - 512.0).abs() < 2.0, "{}", path.packets());
    path.rounds(60);
    let queue = path.packets() - 2500.0;
    assert!((queue - 100.0).abs() < 2.0, "{queue}");
    assert_eq!(path.fast.name(), "fast-mi");
}

#[test]
fn a_window_that_is_too_large_comes_down_to_the_fixed_point() {
    let mut path = Path::new(Config::default(), 31_250.0, 0.08);
    path.rounds(2); // the base is known
    path.fast.window = 8_000_000.0;
    path.rounds(100);
    assert!((path.packets() - 2600.0).abs() < 2.0, "{}", path.packets());
}

#[test]
fn a_loss_halves_the_window_which_stays_while_it_is_repaired() {
    let mut path = Path::new(Config::default(), 31_250.0, 0.08);
    path.rounds(300);
    let before = path.fast.window();
    path.fast.on_loss(Time::from_secs_f64(path.now), before);
    assert!(path.fast.window().abs_diff(before / 2) <= 1);
    for _ in 0..1000 {
        path.ack(true);
    }
    assert!(path.fast.window().abs_diff(before / 2) <= 1);
    path.fast.on_spurious(Time::from_secs_f64(path.now));
    assert_eq!(path.fast.window(), before);
}

#[test]
fn a_time_out_leaves_one_segment_from_which_the_window_comes_back() {
    let mut path = Path::new(Config::default(), 31_250.0, 0.08);
    path.rounds(300);
    path.fast.on_timeout(Time::from_secs_f64(path.now), path.fast.window());
    assert_eq!(path.fast.window(), u64::from(SEGMENT));
    path.rounds(300);
    assert!((path.packets() - 2600.0).abs() < 2.0, "{}", path.packets());
}

#[test]
fn a_sender_that_does_not_use_its_window_does_not_enlarge_it() {
    let mut fast = Fast::new(Config::with_increase(), start(10));
    for n in 1..1000 {
        fast.on_ack(&Acked {
            now: Time(n * 1_000_000),
            bytes: 1000,
            rtt: Some(Duration::from_millis(10)),
            srtt: Duration::from_millis(10),
            flight: 1000,
            is_recovering: false,
            is_limited: false,
            feedback: None,
        });
    }
    assert_eq!(fast.window(), 10_000);
}
