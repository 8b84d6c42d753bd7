//! Goodput against closed forms, and a committed table of it.

use super::*;
use crate::transport::CongestionControl;
use crate::transport::congestion::Cubic;
use crate::transport::formula::{self, padhye_full};
use std::fmt::Write as _;

type Make = fn(Start) -> Box<dyn CongestionControl>;

fn newreno(start: Start) -> Box<dyn CongestionControl> {
    Box::new(NewReno::new(start))
}

fn cubic(start: Start) -> Box<dyn CongestionControl> {
    Box::new(Cubic::new(start))
}

/// Seconds that are not counted, for the first slow start.
const WARM_UP: f64 = 20.0;

/// What a bulk connection does in `seconds` over a path that loses `loss` of its data packets.
struct Run {
    /// Bytes read per second.
    goodput: f64,
    probe: Probe,
}

fn run(make: Make, config: Config, ways: [Way; 2], loss: f64, seconds: f64, seed: u64) -> Run {
    let mut rng = stream(seed, "path", "loss");
    let [there, back] = ways;
    let there = there.faulty(move |_, _| match rng.random_bool(loss) {
        true => Fate::IsDropped,
        false => Fate::Passes,
    });
    let start = Start { mss: config.sending.mss, ..Start::default() };
    let ends = [0, 1].map(|_| Endpoint::new(config, make(start)));
    let mut path = Path::new(ends, [there, back]);
    path.ends[0].write(u64::MAX);
    path.ends[0].open(Time::ZERO);
    path.drain(0);
    path.run(WARM_UP);
    let before = path.read[1];
    path.run(WARM_UP + seconds);
    Run { goodput: (path.read[1] - before) as f64 / seconds, probe: path.ends[0].probe() }
}

/// 20 ms each way without a bottleneck.
fn free() -> [Way; 2] {
    [0, 1].map(|_| Way::new(None, 20 * MS, u64::MAX))
}

fn config() -> Config {
    let mut config = Config::default();
    config.receiving.buffer = 1 << 24;
    config
}

/// Goodput as a ratio to Padhye's full model for a Reno, in `padhye.txt`. Bytes are counted, so
/// delayed acknowledgements do not slow the window's growth: b is 1.
#[test]
fn over_random_loss_both_get_what_padhye_says_a_reno_gets() {
    let mut table = String::from("loss    newreno  cubic\n");
    for (loss, seconds) in
        [(1e-4, 500.0), (1e-3, 300.0), (3e-3, 300.0), (0.01, 300.0), (0.03, 300.0), (0.1, 300.0)]
    {
        let rtt = Duration::from_millis(40);
        let path = formula::Path { mss: 1448.0, rtt, loss, per_ack: 1.0 };
        let model = padhye_full(&path, 240 * MS, 1e9);
        let ratios = [newreno as Make, cubic].map(|make| {
            // The model's Reno finds losses by three duplicates or a time-out.
            let mut config = config();
            config.sending.rack_tlp = false;
            let run = run(make, config, free(), loss, seconds, 1);
            run.goodput / model
        });
        // Beyond, the model knows time-outs that selective acknowledgements spare.
        if loss <= 0.01 {
            assert!((ratios[0] - 1.0).abs() < 0.1 && (ratios[1] - 1.0).abs() < 0.15, "{ratios:?}");
        }
        writeln!(table, "{loss:6} {:8.3} {:6.3}", ratios[0], ratios[1]).unwrap();
    }
    assert!(table == include_str!("padhye.txt"), "it is now:\n{table}");
}

#[test]
fn what_is_resent_is_what_was_lost() {
    for loss in [0.001, 0.01, 0.1] {
        let run = run(newreno, config(), free(), loss, 100.0, 3);
        let sent = (run.probe.sent + run.probe.resent) as f64;
        let ratio = run.probe.resent as f64 / sent / loss;
        assert!((0.85..1.15).contains(&ratio), "{ratio} times the loss of {loss}");
    }
}

/// Goodput as a share of what 10 Mb/s carry in payload, over 60 s after the first 20, 20 ms each way. It stands in
/// `goodput.txt`, so that a change of any rule shows what it does.
#[test]
fn the_table_of_goodput_over_loss_and_buffer_is_the_committed_one() {
    let mut table = String::from("control  buffer/BDP  loss    share  recoveries  time-outs\n");
    for (name, make) in [("newreno", newreno as Make), ("cubic", cubic)] {
        for buffer in [0.1, 0.3, 1.0] {
            for loss in [0.0, 1e-4, 1e-3, 1e-2] {
                let rate = 10e6;
                let queue = (rate / 8.0 * 0.04 * buffer) as u64 + 1_500;
                let there = Way::new(Some(rate as u64), 20 * MS, queue);
                let [_, back] = free();
                let Run { goodput, probe } = run(make, config(), [there, back], loss, 60.0, 2);
                let share = goodput * 8.0 / rate * 1_500.0 / 1_448.0;
                writeln!(
                    table,
                    "{name:8} {buffer:10} {loss:6} {share:7.3} {:11} {:10}",
                    probe.recoveries, probe.timeouts
                )
                .unwrap();
            }
        }
    }
    assert!(table == include_str!("goodput.txt"), "it is now:\n{table}");
}

/// Times of short transfers one after the other over a path that loses 3%, 20 ms each way.
fn short_transfers(rack_tlp: bool) -> (f64, u64) {
    let (mut seconds, mut timeouts) = (0.0, 0);
    for seed in 0..300 {
        let mut rng = stream(seed, "path", "short");
        let [there, back] = free();
        let there = there.faulty(move |_, _| match rng.random_bool(0.03) {
            true => Fate::IsDropped,
            false => Fate::Passes,
        });
        let mut config = config();
        config.sending.rack_tlp = rack_tlp;
        let start = Start { mss: config.sending.mss, ..Start::default() };
        let ends = [0, 1].map(|_| Endpoint::new(config, cubic(start)));
        let mut path = Path::new(ends, [there, back]);
        path.ends[0].write(15_000);
        path.ends[0].open(Time::ZERO);
        path.drain(0);
        while path.read[1] < 15_000 {
            seconds += 0.005;
            path.run((path.now + 5 * MS).as_secs_f64());
            assert!(path.now < Time::from_secs_f64(60.0), "seed {seed} never ends");
        }
        timeouts += path.ends[0].probe().timeouts;
    }
    (seconds / 300.0, timeouts)
}

#[test]
fn short_transfers_over_loss_end_sooner_with_rack_tlp_and_with_few_time_outs() {
    let (with, without) = (short_transfers(true), short_transfers(false));
    assert!(
        with.0 < 0.95 * without.0,
        "mean seconds {} and {}, time-outs {} and {}",
        with.0,
        without.0,
        with.1,
        without.1
    );
    assert!(with.1 * 3 < without.1, "time-outs {} and {}", with.1, without.1);
}
