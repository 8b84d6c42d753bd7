//! µ, the loss rate that the LCM bears: the thesis proposes to adapt it to the loss that is there
//! anyway, and does not do it (thesis §3.2.2).
//!
//! Loss that comes from the LCM itself must not raise the threshold, or the LCM would press until
//! nothing arrives. The two are told apart by delay: what is lost while the LCM's packets hardly
//! waited was not lost to a queue. From the epochs in which they hardly waited comes an estimate of
//! the loss that is there anyway, and µ is the default above it:
//!
//! ```text
//! µ = min(µ_max, µ_0 + r)        r: average loss of quiet epochs, forgotten slowly without any
//! ```
//!
//! Every cut of the window makes quiet epochs, so the estimate follows in both directions.

use crate::time::{Duration, Time};

/// How µ is chosen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// µ_0: with no other loss. Default 0.05 (thesis §3.3.1).
    pub mu: f64,
    /// µ_max; none: µ is µ_0 always, as in the thesis. Default 0.25.
    pub mu_max: Option<f64>,
    /// Packets that make a sample. Default 50.
    pub sample: u32,
    /// Weight of a sample. Default 0.25.
    pub weight: f64,
    /// An epoch is quiet when its packets waited less than this share of the most that they
    /// waited lately. Default 0.3.
    pub quiet: f64,
    /// Without a quiet epoch the estimate halves in this time. Default 10 s.
    pub half_life: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mu: 0.05,
            mu_max: Some(0.25),
            sample: 50,
            weight: 0.25,
            quiet: 0.3,
            half_life: Duration::from_secs(10),
        }
    }
}

/// See [the module](self).
#[derive(Clone, Debug)]
pub struct Tuner {
    config: Config,
    /// r, as it was at `at`.
    random: f64,
    at: Time,
    /// Packets of quiet epochs that are not a sample yet.
    responded: u32,
    lost: u32,
    waits: Waits,
}

impl Tuner {
    /// Nothing is known yet.
    pub fn new(config: Config) -> Tuner {
        Tuner {
            config,
            random: 0.0,
            at: Time::ZERO,
            responded: 0,
            lost: 0,
            waits: Waits::default(),
        }
    }

    /// µ now.
    pub fn mu(&self) -> f64 {
        let mu = self.config.mu;
        self.config.mu_max.map_or(mu, |max| (mu + self.random).min(max.max(mu)))
    }

    /// A packet of the LCM took so long, there and back.
    pub fn on_delay(&mut self, rtt: Duration) {
        self.waits.note(rtt);
    }

    /// An epoch is over, with so many packets responded to and of them lost.
    pub fn on_epoch(&mut self, now: Time, responded: u32, lost: u32) {
        if self.config.mu_max.is_none() {
            return;
        }
        let is_quiet = self.waits.end_epoch(self.config.quiet);
        if is_quiet {
            self.responded = self.responded.saturating_add(responded);
            self.lost = self.lost.saturating_add(lost);
        }
        if self.responded < self.config.sample.max(1) {
            self.forget(now);
            return;
        }
        let rate = f64::from(self.lost) / f64::from(self.responded);
        self.random += self.config.weight * (rate - self.random);
        self.at = now;
        (self.responded, self.lost) = (0, 0);
    }

    fn forget(&mut self, now: Time) {
        let halves =
            now.since(self.at).as_secs_f64() / self.config.half_life.as_secs_f64().max(0.001);
        if halves >= 1.0 {
            self.random /= 2.0;
            self.at = now;
        }
    }
}

/// How long packets waited, from round-trip times. Nanoseconds.
#[derive(Clone, Debug)]
struct Waits {
    /// The least ever.
    base: u64,
    /// The most lately: it decays towards what is measured.
    peak: u64,
    sum: u64,
    count: u64,
}

/// A queue shorter than this says nothing.
const WAIT_MIN: u64 = 1_000_000;

impl Default for Waits {
    fn default() -> Waits {
        Waits { base: u64::MAX, peak: 0, sum: 0, count: 0 }
    }
}

impl Waits {
    fn note(&mut self, rtt: Duration) {
        let rtt = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX).min(1 << 50);
        self.base = self.base.min(rtt);
        self.sum += rtt - self.base;
        self.count += 1;
        self.peak = self.peak.max(rtt - self.base);
    }

    /// Gives whether packets hardly waited in the epoch.
    fn end_epoch(&mut self, quiet: f64) -> bool {
        let mean = self.sum / self.count.max(1);
        let is_known = self.count > 0;
        let is_quiet = is_known && (mean < WAIT_MIN || (mean as f64) < quiet * self.peak as f64);
        self.peak -= self.peak / 64;
        (self.sum, self.count) = (0, 0);
        is_quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// `epochs` of 100 packets each, of which so many are lost, which waited so long.
    fn run(tuner: &mut Tuner, from: u64, epochs: u64, lost: u32, wait: Duration) {
        for epoch in from..from + epochs {
            tuner.on_delay(100 * MS + wait);
            tuner.on_epoch(Time(epoch * 100_000_000), 100, lost);
        }
    }

    #[test]
    fn loss_without_a_queue_raises_the_threshold_above_it_and_it_falls_again() {
        let mut tuner = Tuner::new(Config::default());
        run(&mut tuner, 0, 1, 0, Duration::ZERO);
        assert_eq!(tuner.mu(), 0.05);
        run(&mut tuner, 1, 40, 10, Duration::ZERO);
        assert!((tuner.mu() - 0.15).abs() < 0.001, "{}", tuner.mu());
        run(&mut tuner, 41, 40, 0, Duration::ZERO);
        assert!((tuner.mu() - 0.05).abs() < 0.001, "{}", tuner.mu());
    }

    #[test]
    fn loss_behind_a_queue_does_not_raise_it() {
        let mut tuner = Tuner::new(Config::default());
        run(&mut tuner, 0, 1, 0, Duration::ZERO);
        run(&mut tuner, 1, 400, 20, 15 * MS);
        assert!(tuner.mu() < 0.051, "{}", tuner.mu());
    }

    #[test]
    fn it_has_a_bound_and_without_one_does_not_move() {
        let mut tuner = Tuner::new(Config::default());
        run(&mut tuner, 0, 100, 60, Duration::ZERO);
        assert_eq!(tuner.mu(), 0.25);
        let mut fixed = Tuner::new(Config { mu_max: None, ..Config::default() });
        run(&mut fixed, 0, 100, 60, Duration::ZERO);
        assert_eq!(fixed.mu(), 0.05);
    }

    #[test]
    fn without_quiet_epochs_it_is_forgotten() {
        let mut tuner = Tuner::new(Config::default());
        run(&mut tuner, 0, 40, 10, Duration::ZERO);
        run(&mut tuner, 40, 1_000, 10, 50 * MS);
        assert!(tuner.mu() < 0.052, "{}", tuner.mu());
    }
}
