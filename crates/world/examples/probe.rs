//! Prints how a Bullet′ transfer goes, second by second; parameters from the environment.
use anabranch_proto::overlay::System;
use anabranch_proto::overlay::bullet_prime::{BulletPrime, Config, InFront};
use anabranch_proto::time::*;
use anabranch_world::*;
fn env(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}
fn main() {
    let n = env("N", 100.0) as usize;
    let size = env("SIZE", 1e8) as u64;
    let block = env("BLOCK", 65536.0) as u64;
    let rate = units::Rate::bits_per_sec((env("RATE", 6.0) * 1e6) as u64);
    let seeds = env("SEEDS", 1.0) as u64;
    let verbose = env("V", 1.0) > 0.0;
    for seed in 1..=seeds {
        let mut sim = story::Story::new(seed, System::BulletPrime)
            .members(|setup| {
                let mut c = Config::default();
                c.peers_initial = env("PEERS", c.peers_initial as f64) as usize;
                c.peers_min = env("PMIN", c.peers_min as f64) as usize;
                c.peers_max = env("PMAX", c.peers_max as f64) as usize;
                c.peers_adapt = env("ADAPT", 1.0) > 0.0;
                if env("K", 1.0) == 0.0 {
                    c.in_front = InFront::Receiver;
                }
                c.tree.root_children_max = env("FAN", c.tree.root_children_max as f64) as usize;
                c.outstanding_initial = env("OUT", c.outstanding_initial as f64) as u32;
                c.outstanding_adapt = env("OADAPT", 1.0) > 0.0;
                Box::new(BulletPrime::new(setup, c))
            })
            .file(size, block)
            .hosts(n)
            .up(rate)
            .down(rate)
            .delay(Duration::from_secs_f64(env("RTT", 0.05) / 2.0))
            .build();
        let mut t = Time::ZERO;
        let step = Duration::from_secs_f64(env("STEP", 10.0));
        let mut last_up = vec![0u64; n];
        loop {
            t += step;
            let done = sim.run(t, sim::Sim::is_complete).unwrap();
            if verbose {
                let mut held: Vec<u32> =
                    sim.hosts().skip(1).map(|h| sim.holdings(h).held().count()).collect();
                held.sort();
                let ups: Vec<u64> = sim.hosts().map(|h| sim.meter(h).total.payload_out).collect();
                let cap = rate_bytes(&env("RATE", 6.0)) * step.as_secs_f64();
                let mut util: Vec<f64> =
                    ups.iter().zip(&last_up).map(|(a, b)| (a - b) as f64 / cap).collect();
                let src = util[0];
                let mean = util[1..].iter().sum::<f64>() / (n - 1) as f64;
                util[1..].sort_by(|a, b| a.total_cmp(b));
                let stats: Vec<_> = sim.hosts().skip(1).map(|h| sim.stats(h)).collect();
                let s = stats.iter().map(|s| s.senders_now).sum::<u32>() as f64 / (n - 1) as f64;
                let r = stats.iter().map(|s| s.receivers_now).sum::<u32>() as f64 / (n - 1) as f64;
                println!(
                    "t {:6.1} src {:6.1} blk held {:?} util src {:.3} mean {:.3} min {:.3} med {:.3} senders {s:.1} recv {r:.1}",
                    t.as_secs_f64(),
                    ups[0] as f64 / block as f64,
                    (held[0], held[n / 10], held[n / 2], held[n - 2]),
                    src,
                    mean,
                    util[1],
                    util[n / 2]
                );
                last_up = ups;
            }
            if done {
                break;
            }
        }
        let b = size as f64 / rate_bytes(&env("RATE", 6.0));
        let d = sim.completions();
        let q = |s: f64| d[(((n - 1) as f64 * s).ceil() as usize).max(1) - 1].at.as_secs_f64() / b;
        let mut again = [0; 4];
        let mut req = 0;
        let mut all = meter::Traffic::default();
        for h in sim.hosts() {
            let s = sim.stats(h);
            all = all.plus(sim.meter(h).total);
            req += s.requests;
            again[0] += s.rerequests_lost;
            again[1] += s.rerequests_slow;
            again[2] += s.rerequests_bad;
            again[3] += s.rerequests_endgame;
        }
        println!(
            "seed {seed} p10 {:.4} median {:.4} p90 {:.4} last {:.4} source {:.4}F again {again:?} of {req} dup {:.3}% control {:.3}%",
            q(0.1),
            q(0.5),
            q(0.9),
            q(1.0),
            d[((n - 1) as f64 * 0.9).ceil() as usize - 1].source_out as f64 / size as f64,
            100.0 * all.duplicate_in as f64 / all.payload_in as f64,
            100.0 * all.control_out as f64 / (all.control_out + all.payload_out) as f64
        );
    }
}
fn rate_bytes(mbit: &f64) -> f64 {
    mbit * 1e6 / 8.0
}
