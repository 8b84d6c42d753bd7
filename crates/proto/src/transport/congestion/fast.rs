//! FAST: a congestion control that listens to queueing delay (Jin, Wei, Low, INFOCOM 2004; Wei,
//! Jin, Low, Hegde, ToN 2006, here cited as `[FAST]`).
//!
//! A flow tries to keep `alpha` packets of its own in the queues of its path, no more and no fewer.
//! With the least round-trip time it has seen, `base`, and the average one, `rtt`, it has
//! `w · (1 - base / rtt)` packets queued; so its window goes a share `gamma` of the way to
//! `w · base / rtt + alpha`, and at most doubles ([FAST, eq. 5]). At the fixed point exactly `alpha`
//! packets wait. All flows of a bottleneck with the same `alpha` have the same rate, whatever their
//! round-trip times, as long as the buffer takes the `n · alpha` packets of `n` flows; the thesis
//! says 2nα for a good convergence (thesis §3.3.1).
//!
//! - *Average*: a sample has the weight `min(3 / w, 1/4)` ([FAST §III-A]).
//! - *Pace*: the window changes over two round trips: an update in the first, spread over its
//!   acknowledgements when it grows, and frozen in the second, so that `rtt` has seen the new window
//!   before the next update ([FAST §III-B]; the ns-2 module does so too).
//! - *MI* (multiplicative increase, an option): while the queueing delay is below a threshold the
//!   window grows by what is acknowledged, so that it doubles per round trip. The threshold is that
//!   of the ns-2 module, 0.75 ms. Without MI the window doubles every other round trip until the
//!   step is `gamma · alpha`, and grows linearly from there.
//! - *Loss* halves the window, as in NewReno; a time-out leaves one segment.
//!
//! Deviations: no slow start besides these two, as in the ns-2 module (the thesis sees flows
//! without MI take a round trip more, §3.3.5). A sender that does not use its window does not
//! enlarge it. `base` never forgets: a path that becomes longer looks like a queue.

use super::{Acked, CongestionControl, Start};
use crate::time::{Duration, Time};

/// The parameters of FAST.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Packets that a flow keeps in the path's queues. Default: 100, the thesis's value. Raised:
    /// quicker to converge, and longer queues.
    pub alpha: f64,
    /// How far an update goes towards its target, above 0 to 1. Default: 0.5, the ns-2 module's.
    /// Raised: quicker, less stable.
    pub gamma: f64,
    /// Queueing delay below which the window grows multiplicatively; `None`: never. Default: none.
    pub increase_below: Option<Duration>,
}

/// The ns-2 module's threshold of multiplicative increase.
pub const INCREASE_BELOW: Duration = Duration::from_micros(750);

impl Default for Config {
    fn default() -> Config {
        Config { alpha: 100.0, gamma: 0.5, increase_below: None }
    }
}

impl Config {
    /// FAST-MI with the ns-2 module's threshold.
    pub fn with_increase() -> Config {
        Config { increase_below: Some(INCREASE_BELOW), ..Config::default() }
    }
}

/// Where in its two round trips an update is.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    /// The window grows to `target` until `until`.
    Update { target: f64, until: Time },
    /// The window stays as it is until then.
    Frozen { until: Time },
}

/// What is undone when a loss was none.
#[derive(Clone, Copy, Debug)]
struct Before {
    window: f64,
    ssthresh: u64,
}

/// FAST's window. See [the module](self).
#[derive(Debug)]
pub struct Fast {
    config: Config,
    /// Bytes of a segment.
    segment: f64,
    /// The window in bytes.
    window: f64,
    /// Half of the window at the last loss; nothing here depends on it.
    ssthresh: u64,
    /// The least round-trip time, seconds; infinite before the first sample.
    base: f64,
    /// The average round-trip time, seconds.
    rtt: f64,
    phase: Phase,
    before: Option<Before>,
}

impl Fast {
    /// A control that begins as `start` says.
    pub fn new(config: Config, start: Start) -> Fast {
        let segment = f64::from(start.mss.max(1));
        Fast {
            config,
            segment,
            window: (start.bytes() as f64).max(segment),
            ssthresh: start.ssthresh.unwrap_or(u64::MAX),
            base: f64::INFINITY,
            rtt: 0.0,
            phase: Phase::Frozen { until: Time::ZERO },
            before: None,
        }
    }

    /// The packets of this flow that wait in queues, by its own estimate.
    pub fn queued(&self) -> f64 {
        if self.rtt == 0.0 {
            return 0.0;
        }
        self.window / self.segment * (1.0 - self.base / self.rtt)
    }

    fn measure(&mut self, sample: Duration) {
        let sample = sample.as_secs_f64();
        self.base = self.base.min(sample);
        if self.rtt == 0.0 {
            self.rtt = sample;
            return;
        }
        let weight = (3.0 * self.segment / self.window).min(0.25);
        self.rtt += weight * (sample - self.rtt);
    }

    /// [FAST, eq. 5], in bytes.
    fn target(&self) -> f64 {
        let Config { alpha, gamma, .. } = self.config;
        let aim = self.window * (self.base / self.rtt) + alpha * self.segment;
        let next = (1.0 - gamma) * self.window + gamma * aim;
        next.min(2.0 * self.window).max(2.0 * self.segment)
    }

    fn round(&self) -> Duration {
        Duration::from_nanos((self.rtt * 1e9) as u64)
    }

    fn update(&mut self, acked: &Acked) {
        match self.phase {
            Phase::Update { until, .. } if acked.now >= until => {
                self.phase = Phase::Frozen { until: acked.now + self.round() };
            }
            Phase::Frozen { until } if acked.now >= until => self.begin_update(acked),
            Phase::Frozen { .. } => {}
            Phase::Update { target, .. } => self.approach(target, acked),
        }
    }

    fn begin_update(&mut self, acked: &Acked) {
        let target = self.target();
        self.phase = Phase::Update { target, until: acked.now + self.round() };
        if target > self.window {
            self.approach(target, acked);
        } else {
            self.window = target;
        }
    }

    /// Each acknowledged byte brings its share, so that a window of them brings all; a small window
    /// may double with its first acknowledgements.
    fn approach(&mut self, target: f64, acked: &Acked) {
        if !acked.is_limited || target <= self.window {
            return;
        }
        self.window = (self.window + acked.bytes as f64).min(target);
    }

    fn is_multiplicative(&self) -> bool {
        let queueing = self.rtt - self.base;
        self.config.increase_below.is_some_and(|limit| queueing < limit.as_secs_f64())
    }

    fn halve(&mut self) -> f64 {
        self.before = Some(Before { window: self.window, ssthresh: self.ssthresh });
        let half = (self.window / 2.0).max(2.0 * self.segment);
        self.ssthresh = half as u64;
        half
    }
}

impl CongestionControl for Fast {
    fn name(&self) -> &'static str {
        match self.config.increase_below {
            Some(_) => "fast-mi",
            None => "fast",
        }
    }

    fn window(&self) -> u64 {
        self.window as u64
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    fn on_ack(&mut self, acked: &Acked) {
        if let Some(sample) = acked.rtt {
            self.measure(sample);
        }
        if self.rtt == 0.0 {
            return;
        }
        if acked.is_recovering {
            // The window of the loss stays until it is repaired; the acknowledgement that ends the
            // repair comes behind `on_recovered`, which has frozen it for a round trip more.
            if let Phase::Update { .. } = self.phase {
                self.phase = Phase::Frozen { until: acked.now };
            }
        } else if self.is_multiplicative() {
            if acked.is_limited {
                self.window += acked.bytes as f64;
            }
            self.phase = Phase::Frozen { until: acked.now };
        } else {
            self.update(acked);
        }
    }

    fn on_loss(&mut self, _now: Time, _flight: u64) {
        self.window = self.halve();
    }

    fn on_recovered(&mut self, now: Time) {
        // The average still has the queue of before the loss in it.
        self.phase = Phase::Frozen { until: now + self.round() };
    }

    fn on_timeout(&mut self, now: Time, _flight: u64) {
        self.halve();
        self.window = self.segment;
        self.phase = Phase::Frozen { until: now };
    }

    fn on_spurious(&mut self, now: Time) {
        if let Some(before) = self.before.take() {
            self.window = self.window.max(before.window);
            self.ssthresh = before.ssthresh;
            self.phase = Phase::Frozen { until: now };
        }
    }
}

#[cfg(test)]
mod tests;
