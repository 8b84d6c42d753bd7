//! CUBIC (RFC 9438): after a loss the window follows a cubic of the time since, flat where the loss
//! was and steep away from it, so that its growth does not depend on the round-trip time.
//!
//! Where a Reno of the same loss rate would be larger, it is as large as that one (§4.3). A loss
//! below the last one's window gives room to others (fast convergence, §4.7). Slow start ends by
//! HyStart, as in Linux.
//!
//! Deviation: slow start counts all bytes of an acknowledgement, as Linux does, and not two
//! segments at most.

use super::hystart::{HyStart, SlowStart};
use super::{Acked, CongestionControl, Start};
use crate::time::{Duration, Time};

/// What shapes the curve.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// C, segments per second³. Default 0.4 (§5). Raised, windows grow faster.
    pub c: f64,
    /// β: what a loss leaves of the window. Default 0.7 (§4.6).
    pub beta: f64,
    /// Whether a loss below the last one's window lowers the aim further (§4.7). Default yes.
    pub fast_convergence: bool,
    /// Whether it is never smaller than Reno would be (§4.3). Default yes.
    pub reno_friendly: bool,
    /// Whether Reno's share grows by a whole segment per round trip once it is back where the last
    /// loss was, as §4.3 has it and Linux does not. Default no: with random losses it takes a tenth
    /// more than the Reno that it is to be like.
    pub reno_speeds_up: bool,
    /// How slow start ends. Default HyStart, as in Linux.
    pub slow_start: SlowStart,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            c: 0.4,
            beta: 0.7,
            fast_convergence: true,
            reno_friendly: true,
            reno_speeds_up: false,
            slow_start: SlowStart::HyStart,
        }
    }
}

/// What a loss changes and an undo restores. Windows in segments.
#[derive(Clone, Copy, Debug)]
struct Curve {
    window: f64,
    ssthresh: f64,
    /// W_max: where the curve is flat.
    origin: f64,
    /// cwnd_prior: the window at the last loss.
    prior: f64,
    /// When congestion avoidance began.
    epoch: Option<Time>,
    /// K: seconds from then to the flat part.
    k: f64,
    /// W_est: what Reno would have.
    reno: f64,
}

/// See [the module](self).
#[derive(Clone, Debug)]
pub struct Cubic {
    config: Config,
    mss: f64,
    window_initial: f64,
    curve: Curve,
    before: Option<Curve>,
    hystart: HyStart,
    last_ack: Time,
}

impl Cubic {
    /// A window at its start, with the defaults.
    pub fn new(start: Start) -> Cubic {
        Cubic::with(Config::default(), start)
    }

    /// A window at its start.
    pub fn with(config: Config, start: Start) -> Cubic {
        let mss = f64::from(start.mss);
        let window = f64::from(start.window.max(1));
        Cubic {
            config,
            mss,
            window_initial: window,
            curve: Curve {
                window,
                ssthresh: start.ssthresh.map_or(f64::INFINITY, |bytes| bytes as f64 / mss),
                origin: 0.0,
                prior: 0.0,
                epoch: None,
                k: 0.0,
                reno: 0.0,
            },
            before: None,
            hystart: HyStart::new(config.slow_start),
            last_ack: Time::ZERO,
        }
    }

    fn bytes(&self, segments: f64) -> u64 {
        // Infinity becomes the largest number.
        (segments * self.mss) as u64
    }

    /// W_cubic (§4.2, figure 1), `seconds` after the epoch's start.
    fn at(&self, seconds: f64) -> f64 {
        let past = seconds - self.curve.k;
        self.config.c * past * past * past + self.curve.origin
    }

    /// §4.2: the curve's place is fixed by the first acknowledgement after a loss.
    fn begin_epoch(&mut self, now: Time) -> Time {
        let curve = &mut self.curve;
        let gap = (curve.origin - curve.window).max(0.0);
        curve.k = libm::cbrt(gap / self.config.c);
        curve.origin = curve.origin.max(curve.window);
        curve.reno = curve.window;
        *curve.epoch.insert(now)
    }

    fn avoid(&mut self, acked: &Acked, segments: f64) {
        let epoch = self.curve.epoch.unwrap_or_else(|| self.begin_epoch(acked.now));
        let seconds = acked.now.since(epoch).as_secs_f64();
        let window = self.curve.window;
        let beta = self.config.beta;
        let is_back = self.config.reno_speeds_up && self.curve.reno >= self.curve.prior;
        let alpha = if is_back { 1.0 } else { 3.0 * (1.0 - beta) / (1.0 + beta) };
        self.curve.reno += alpha * segments / window;
        if self.config.reno_friendly && self.at(seconds) < self.curve.reno {
            self.curve.window = window.max(self.curve.reno);
            return;
        }
        let target = self.at(seconds + acked.srtt.as_secs_f64()).clamp(window, 1.5 * window);
        self.curve.window = (window + (target - window) / window * segments).min(target);
    }

    /// §4.6 and §4.7.
    fn reduce(&mut self, flight: u64) {
        self.before = Some(self.curve);
        let curve = &mut self.curve;
        let shrinks = self.config.fast_convergence && curve.window < curve.origin;
        let share = if shrinks { (1.0 + self.config.beta) / 2.0 } else { 1.0 };
        curve.origin = curve.window * share;
        curve.prior = curve.window;
        let flight = (flight as f64 / self.mss).min(curve.window);
        curve.ssthresh = (flight * self.config.beta).max(2.0);
        curve.epoch = None;
    }
}

impl CongestionControl for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn window(&self) -> u64 {
        self.bytes(self.curve.window).max(self.mss as u64)
    }

    fn ssthresh(&self) -> u64 {
        self.bytes(self.curve.ssthresh)
    }

    fn on_ack(&mut self, acked: &Acked) {
        let since = acked.now.since(self.last_ack);
        self.last_ack = acked.now;
        if acked.is_recovering {
            return;
        }
        if !acked.is_limited {
            // Time in which the window was not used does not count (§5.8).
            self.curve.epoch = self.curve.epoch.map(|epoch| epoch + since);
            return;
        }
        let segments = acked.bytes as f64 / self.mss;
        let window = self.curve.window;
        if window >= self.curve.ssthresh {
            self.avoid(acked, segments);
            return;
        }
        match self.hystart.on_ack(acked, segments, window) {
            Some(grown) => {
                self.curve.window = (window + grown).min(self.curve.ssthresh.max(window))
            }
            None => self.curve.ssthresh = window,
        }
    }

    fn on_loss(&mut self, _now: Time, flight: u64) {
        self.reduce(flight);
        self.curve.window = self.curve.ssthresh;
    }

    fn on_recovered(&mut self, _now: Time) {}

    fn on_timeout(&mut self, _now: Time, flight: u64) {
        self.reduce(flight);
        self.curve.window = 1.0;
        // §4.8: congestion avoidance after it starts on the flat part.
        self.curve.origin = 0.0;
        self.hystart.restart();
    }

    fn on_spurious(&mut self, _now: Time) {
        // §4.9.
        if let Some(before) = self.before.take() {
            let window = self.curve.window.max(before.window);
            self.curve = Curve { window, ..before };
        }
    }

    fn on_idle(&mut self, _now: Time, idle: Duration) {
        self.curve.window = self.curve.window.min(self.window_initial);
        self.curve.epoch = self.curve.epoch.map(|epoch| epoch + idle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;
    const RTT: f64 = 0.1;

    fn control(config: Config, window: u32) -> Cubic {
        let start = Start { mss: MSS as u32, window, ssthresh: Some(0) };
        Cubic::with(config, start)
    }

    fn acked(at: f64, bytes: u64) -> Acked {
        Acked {
            now: Time::from_secs_f64(at),
            bytes,
            rtt: None,
            srtt: Duration::from_secs_f64(RTT),
            flight: 0,
            is_recovering: false,
            is_limited: true,
            feedback: None,
        }
    }

    /// A full window acknowledged every round trip for `seconds`, segment by segment.
    fn run(cubic: &mut Cubic, from: f64, seconds: f64) -> f64 {
        let mut at = from;
        while at < from + seconds {
            let segments = cubic.window() / MSS;
            for _ in 0..segments {
                at += RTT / segments as f64;
                cubic.on_ack(&acked(at, MSS));
            }
        }
        cubic.window() as f64 / MSS as f64
    }

    #[test]
    fn after_k_seconds_the_window_is_back_where_the_loss_was() {
        let mut cubic = control(Config { reno_friendly: false, ..Config::default() }, 1_000);
        cubic.on_loss(Time::ZERO, 1_000 * MSS);
        assert_eq!(cubic.window(), 700 * MSS);
        // K = cbrt(300 / 0.4) = 9.09 s, and the curve is at 1000 + 0.4 (t - K)³.
        let half = run(&mut cubic, 0.0, 4.0);
        let expected = 1_000.0 - 0.4 * (9.086f64 - 4.0 - RTT).powi(3);
        assert!((half - expected).abs() < 4.0, "{half} {expected}");
        let back = run(&mut cubic, 4.0, 5.1);
        assert!((back - 1_000.0).abs() < 1.5, "{back}");
    }

    #[test]
    fn a_small_window_grows_as_reno_does_with_the_same_mean() {
        let mut cubic = control(Config::default(), 20);
        cubic.on_loss(Time::ZERO, 20 * MSS);
        // α = 3 * 0.3 / 1.7 = 0.53 segments per round trip, from 14.
        let window = run(&mut cubic, 0.0, 0.6);
        assert!((window - (14.0 + 6.0 * 0.53)).abs() < 0.6, "{window}");
    }

    #[test]
    fn a_loss_below_the_last_one_lowers_the_aim_by_fast_convergence() {
        for (fast_convergence, origin) in [(true, 595.0), (false, 700.0)] {
            let mut cubic = control(Config { fast_convergence, ..Config::default() }, 1_000);
            cubic.on_loss(Time::ZERO, 1_000 * MSS);
            cubic.on_loss(Time::ZERO, 1_000 * MSS);
            assert!((cubic.curve.origin - origin).abs() < 0.01, "{}", cubic.curve.origin);
        }
    }

    #[test]
    fn a_time_out_leaves_one_segment_and_a_flat_curve_after_slow_start() {
        let mut cubic = control(Config::default(), 100);
        cubic.on_timeout(Time::ZERO, 100 * MSS);
        assert_eq!((cubic.window(), cubic.ssthresh()), (MSS, 70 * MSS));
        let mut at = 0.0;
        while cubic.window() < cubic.ssthresh() {
            at += 0.001;
            cubic.on_ack(&acked(at, MSS));
        }
        cubic.on_ack(&acked(at, MSS));
        assert_eq!(cubic.curve.k, 0.0);
    }

    #[test]
    fn a_needless_reaction_is_taken_back_with_its_curve() {
        let mut cubic = control(Config::default(), 1_000);
        cubic.on_loss(Time::ZERO, 1_000 * MSS);
        run(&mut cubic, 0.0, 2.0);
        let origin = cubic.curve.origin;
        cubic.on_loss(Time::ZERO, 1_000 * MSS);
        cubic.on_spurious(Time::ZERO);
        assert_eq!(cubic.curve.origin, origin);
        assert!(cubic.window() > 700 * MSS && cubic.curve.epoch.is_some());
    }

    #[test]
    fn time_in_which_the_window_was_not_used_does_not_count() {
        let mut cubic = control(Config { reno_friendly: false, ..Config::default() }, 1_000);
        cubic.on_loss(Time::ZERO, 1_000 * MSS);
        cubic.on_ack(&acked(0.1, MSS));
        for tenth in 2..100 {
            cubic.on_ack(&Acked { is_limited: false, ..acked(f64::from(tenth) / 10.0, MSS) });
        }
        let window = run(&mut cubic, 9.9, 0.1);
        assert!(window < 720.0, "{window}");
    }
}
