//! PLT-Shutdown: the receiver finds out that routers do not tell priorities apart, and silences the
//! LCM (thesis §3.2.4).
//!
//! Two detectors:
//!
//! - *Losses*, the thesis's: in a period the HCM lost packets, and the LCM lost more than networks
//!   typically do but not all. Random loss deceives it (thesis Fig. 3.17).
//! - *Order*, the default: with strict priority a packet of the HCM overtakes every packet of the
//!   LCM that waits at the bottleneck. So: an LCM packet was sent before an HCM packet, and still
//!   waited when that one can have come to the queue, and yet arrived first. With priorities this
//!   cannot be; without, it is so for every HCM packet while there is a queue. Random loss says
//!   nothing either way.
//!
//! ```text
//!  sent:     l    h                    l waited until a, h could be there at b < a:
//!  arrived:       b ........ a   h     in order all the same, so there is one queue for both
//! ```
//!
//! Both look at packets only, so clocks of the two ends need not agree: delays are compared with
//! the least delay seen. A path that becomes longer looks like a queue; that silences the LCM until
//! the next trial, which begins with a fresh view. After a shutdown there is a trial now and then.

use crate::time::{Duration, Time};
use crate::transport::packet::Range;

/// How the absence of priorities is found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Detector {
    /// Not at all.
    Never,
    /// By losses, as in the thesis.
    Losses {
        /// How often it looks. Not in the thesis; 1 s.
        period: Duration,
        /// What networks typically lose. Thesis: 0.05.
        threshold: f64,
    },
    /// By the order of arrival.
    Order {
        /// What an LCM packet must have waited, beyond twice the mean time between arrivals. 1 ms.
        margin: Duration,
        /// Observations that are enough, against a quarter as many to the contrary. 10.
        votes: u32,
    },
}

/// What shapes the shutdown.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// The detector. Default: by order.
    pub detector: Detector,
    /// The time to the first trial after a shutdown; it doubles with each. Default 60 s.
    pub retry: Duration,
    /// The longest time to a trial. Default 16 min.
    pub retry_max: Duration,
}

impl Config {
    /// The thesis's detector. It does not try again.
    pub fn as_in_thesis() -> Config {
        let never = Duration::from_secs(1 << 32);
        Config {
            detector: Detector::Losses { period: Duration::from_secs(1), threshold: 0.05 },
            retry: never,
            retry_max: never,
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        let detector = Detector::Order { margin: Duration::from_millis(1), votes: 10 };
        Config { detector, retry: Duration::from_secs(60), retry_max: Duration::from_secs(16 * 60) }
    }
}

/// See [the module](self).
#[derive(Clone, Debug)]
pub struct Shutdown {
    config: Config,
    losses: Losses,
    order: Order,
    /// The LCM is silent until then.
    off_until: Option<Time>,
    retry: Duration,
    /// Shutdowns so far, and the first.
    count: u32,
    first: Option<Time>,
}

impl Shutdown {
    /// Nothing was seen yet.
    pub fn new(config: Config) -> Shutdown {
        Shutdown {
            losses: Losses::default(),
            order: Order::default(),
            off_until: None,
            retry: config.retry,
            count: 0,
            first: None,
            config,
        }
    }

    /// Whether the LCM has to be silent.
    pub fn is_off(&self) -> bool {
        self.off_until.is_some()
    }

    /// Shutdowns so far, and when the first was.
    pub fn count(&self) -> (u32, Option<Time>) {
        (self.count, self.first)
    }

    /// When it wants to be called.
    pub fn next_deadline(&self) -> Option<Time> {
        self.off_until
    }

    /// The time has come for a trial, or an early call. Gives whether the LCM may speak again.
    pub fn handle_deadline(&mut self, now: Time) -> bool {
        if self.off_until.is_none_or(|until| now < until) {
            return false;
        }
        self.off_until = None;
        (self.losses, self.order) = (Losses::default(), Order::default());
        true
    }

    /// A data packet of the HCM came; `range` is its virtual place. Gives whether that shuts the
    /// LCM down.
    pub fn on_high(&mut self, now: Time, sent: Time, range: Range) -> bool {
        match self.config.detector {
            Detector::Never => false,
            Detector::Losses { .. } => {
                self.losses.high.note(range);
                self.judge_losses(now)
            }
            Detector::Order { margin, votes } => {
                self.order.on_high(now, sent, margin);
                let is_clear = self.order.against >= votes
                    && u64::from(self.order.against) > 4 * u64::from(self.order.for_it);
                is_clear && self.shut(now)
            }
        }
    }

    /// A data packet of the LCM came.
    pub fn on_low(&mut self, now: Time, sent: Time, range: Range) -> bool {
        match self.config.detector {
            Detector::Never => false,
            Detector::Losses { .. } => {
                self.losses.low.note(range);
                self.judge_losses(now)
            }
            Detector::Order { margin, .. } => {
                self.order.on_low(now, sent, margin);
                false
            }
        }
    }

    fn judge_losses(&mut self, now: Time) -> bool {
        let Detector::Losses { period, threshold } = self.config.detector else { return false };
        let since = *self.losses.since.get_or_insert(now);
        if now < since + period {
            return false;
        }
        let (high, low) = (self.losses.high.take(), self.losses.low.take());
        self.losses.since = Some(now);
        high > 0.0 && low > threshold && low < 1.0 && self.shut(now)
    }

    fn shut(&mut self, now: Time) -> bool {
        if self.is_off() {
            return false;
        }
        self.off_until = Some(now + self.retry);
        self.retry = (self.retry * 2).min(self.config.retry_max.max(self.config.retry));
        self.count += 1;
        self.first.get_or_insert(now);
        true
    }
}

/// The losses of both sub-flows in a period.
#[derive(Clone, Debug, Default)]
struct Losses {
    since: Option<Time>,
    high: Gaps,
    low: Gaps,
}

/// What is missing of a virtual stream. Bytes.
#[derive(Clone, Debug, Default)]
struct Gaps {
    /// Behind the last that arrived.
    end: u64,
    /// By how much that grew in the period.
    expected: u64,
    missing: u64,
}

impl Gaps {
    fn note(&mut self, range: Range) {
        if range.end <= self.end {
            return;
        }
        self.missing += range.start.saturating_sub(self.end);
        self.expected += range.end - self.end;
        self.end = range.end;
    }

    /// The share that was missing; a new period begins.
    fn take(&mut self) -> f64 {
        let share = self.missing as f64 / self.expected.max(1) as f64;
        (self.missing, self.expected) = (0, 0);
        share
    }
}

/// Who arrived before whom.
#[derive(Clone, Debug)]
struct Order {
    /// The least of arrival less sending, nanoseconds; clocks may differ.
    base: i64,
    /// The last LCM packet: sent, arrived.
    low: Option<(Time, Time)>,
    /// When the latest HCM packet that arrived was sent.
    high: Time,
    /// Mean time between arrivals of the LCM, nanoseconds.
    spacing: u64,
    /// Observations that there are priorities, and that there are none; halved every second.
    for_it: u32,
    against: u32,
    halved: Time,
}

impl Default for Order {
    fn default() -> Order {
        Order {
            base: i64::MAX,
            low: None,
            high: Time::ZERO,
            spacing: 0,
            for_it: 0,
            against: 0,
            halved: Time::ZERO,
        }
    }
}

impl Order {
    fn note_delay(&mut self, now: Time, sent: Time) {
        self.base = self.base.min(signed(now) - signed(sent));
        if now >= self.halved + Duration::from_secs(1) {
            self.halved = now;
            self.for_it /= 2;
            self.against /= 2;
        }
    }

    fn margin(&self, margin: Duration) -> i64 {
        let margin = u64::try_from(margin.as_nanos()).unwrap_or(u64::MAX / 4);
        (margin + 2 * self.spacing).min(1 << 40) as i64
    }

    fn on_high(&mut self, now: Time, sent: Time, margin: Duration) {
        self.note_delay(now, sent);
        self.high = self.high.max(sent);
        let Some((low_sent, low_arrived)) = self.low else { return };
        // When this packet can have come to the queue, as if seen at the far end.
        let there = signed(sent).saturating_add(self.base);
        if low_sent < sent && signed(low_arrived) > there.saturating_add(self.margin(margin)) {
            self.against = self.against.saturating_add(1);
        }
    }

    fn on_low(&mut self, now: Time, sent: Time, margin: Duration) {
        self.note_delay(now, sent);
        if let Some((_, before)) = self.low {
            let gap = now.since(before).as_nanos().min(1 << 40) as u64;
            self.spacing = self.spacing - self.spacing / 16 + gap / 16;
        }
        self.low = Some((sent, now));
        // An HCM packet that was sent later has passed it.
        if signed(self.high) - signed(sent) > self.margin(margin) {
            self.for_it = self.for_it.saturating_add(1);
        }
    }
}

fn signed(time: Time) -> i64 {
    time.0.min(i64::MAX as u64 / 4) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time(us * 1_000)
    }

    fn range(start: u64, end: u64) -> Range {
        Range { start, end }
    }

    /// Packets of the LCM every 0.1 ms, of the HCM every 1 ms, over a path of 10 ms with a queue of
    /// 5 ms; with priorities the HCM does not wait. Gives when the LCM is shut down, µs.
    fn run(config: Config, has_priorities: bool, base: i64) -> Option<u64> {
        let mut shutdown = Shutdown::new(config);
        let shifted = |us: u64| at((us as i64 + base) as u64);
        for tick in 0..30_000_u64 {
            let now = tick * 100;
            let arrived = shifted(now);
            // The first packets find no queue.
            let wait = (now / 4).min(5_000);
            if now > 10_000 + wait {
                let sent = now - 10_000 - wait;
                shutdown.on_low(arrived, at(sent), range(tick, tick + 1));
            }
            let wait = if has_priorities { 0 } else { wait };
            if now > 10_000 + wait && tick.is_multiple_of(10) {
                let sent = now - 10_000 - wait;
                if shutdown.on_high(arrived, at(sent + 50), range(tick, tick + 1)) {
                    return Some(now);
                }
            }
        }
        None
    }

    #[test]
    fn one_queue_for_both_is_found_by_the_order_and_two_are_not_taken_for_one() {
        let found = run(Config::default(), false, 0).unwrap();
        assert!(found < 60_000, "{found} µs");
        assert_eq!(run(Config::default(), true, 0), None);
    }

    #[test]
    fn the_clocks_of_the_two_ends_need_not_agree() {
        assert!(run(Config::default(), false, 7_000_000_000).is_some());
        assert_eq!(run(Config::default(), true, 7_000_000_000), None);
    }

    fn lossy(high_lost: bool, low_lost: u64) -> bool {
        let mut shutdown = Shutdown::new(Config::as_in_thesis());
        shutdown.on_high(at(0), at(0), range(0, 10));
        let second = if high_lost { range(20, 30) } else { range(10, 20) };
        shutdown.on_high(at(1), at(1), second);
        shutdown.on_low(at(2), at(2), range(0, 1_000 - low_lost * 10));
        shutdown.on_low(at(1_000_001), at(3), range(1_000, 1_010))
    }

    #[test]
    fn by_losses_it_takes_a_loss_of_the_hcm_and_more_than_the_threshold_of_the_lcm() {
        assert!(lossy(true, 10));
        assert!(!lossy(true, 5), "no more than networks lose");
        assert!(!lossy(false, 10), "the HCM lost nothing");
    }

    #[test]
    fn after_a_shutdown_there_are_trials_further_and_further_apart() {
        let mut shutdown = Shutdown::new(Config::default());
        assert!(shutdown.shut(Time::ZERO) && shutdown.is_off());
        assert!(!shutdown.shut(Time::ZERO), "it is shut already");
        assert!(!shutdown.handle_deadline(Time::ZERO + Duration::from_secs(59)));
        let trial = Time::ZERO + Duration::from_secs(60);
        assert!(shutdown.handle_deadline(trial) && !shutdown.is_off());
        assert!(shutdown.shut(trial));
        assert_eq!(shutdown.next_deadline(), Some(trial + Duration::from_secs(120)));
        assert_eq!(shutdown.count(), (2, Some(Time::ZERO)));
    }

    #[test]
    fn without_a_detector_nothing_shuts() {
        let config = Config { detector: Detector::Never, ..Config::default() };
        assert_eq!(run(config, false, 0), None);
    }
}
