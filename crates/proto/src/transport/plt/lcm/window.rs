//! The LCM's congestion window: per epoch of one round trip it grows by a share of what arrived
//! while the loss rate is below a threshold, and shrinks by a factor otherwise (thesis §3.2.2).
//!
//! ```text
//! cwnd = cwnd + α·n   if P < µ        n: bytes that arrived in the epoch
//!        β·cwnd       otherwise       P: moving average of lost / (lost + arrived)
//! ```
//!
//! A time-out, with the HCM filling the pipe, cuts by γ; below one packet the LCM only probes. The
//! thesis calls γ greater than β and gives it as 0.75 (< 0.95): it is the deeper cut.
//!
//! What the thesis leaves open, and what is done here:
//! - *Unknown bandwidth*: without one the initial window is a number of packets, and until the first
//!   epoch with losses above the threshold, or a time-out, it grows by what arrives: it doubles.
//! - *An answered probe* gives two packets and starts the doubling again.
//! - *Growth* is for a window that was used: an epoch in which the LCM had nothing to send, or was
//!   not let, does not enlarge it.
//! - *Cuts* by time-outs, and by the HCM being held back, come once per round trip at most.

use crate::time::{Duration, Time};

/// The LCM's parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// α: what an epoch below the threshold adds, as a share of what arrived. Default 0.2.
    pub alpha: f64,
    /// β: what an epoch above the threshold leaves. Default 0.95.
    pub beta: f64,
    /// γ: what a time-out leaves. Default 0.75.
    pub gamma: f64,
    /// What is left when the HCM is held back by the outstanding window. Default 0.95. Not in the
    /// thesis.
    pub held: f64,
    /// Weight of the newest epoch in the loss rate. Default 0.5. Raised: quicker, and noisier. Not
    /// in the thesis.
    pub weight: f64,
    /// The least window after a cutback of the HCM, as a share of its slow-start threshold. Default
    /// 1: what the HCM has just given up.
    pub restart: f64,
    /// Whether the window doubles until losses begin, at the start and after a probe. Default yes.
    pub doubles: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            alpha: 0.2,
            beta: 0.95,
            gamma: 0.75,
            held: 0.95,
            weight: 0.5,
            restart: 1.0,
            doubles: true,
        }
    }
}

/// An epoch that is over.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Epoch {
    /// Packets that the receiver responded to.
    pub responded: u32,
    /// Of them, lost.
    pub lost: u32,
}

/// See [the module](self). Bytes.
#[derive(Clone, Debug)]
pub struct Window {
    config: Config,
    mss: f64,
    bytes: f64,
    /// P; none before the first epoch.
    loss: Option<f64>,
    is_doubling: bool,
    /// The epoch began then; none: with the next response.
    since: Option<Time>,
    arrived_bytes: u64,
    arrived: u32,
    lost: u32,
    was_limited: bool,
    /// The window grew when the last epoch ended: what that brings is not seen yet.
    has_grown: bool,
    /// No further cut before then.
    spared_until: Time,
}

impl Window {
    /// A window of `initial` bytes at its start.
    pub fn new(config: Config, mss: u32, initial: u64) -> Window {
        Window {
            mss: f64::from(mss.max(1)),
            bytes: initial as f64,
            loss: None,
            is_doubling: config.doubles,
            since: None,
            arrived_bytes: 0,
            arrived: 0,
            lost: 0,
            was_limited: false,
            has_grown: false,
            spared_until: Time::ZERO,
            config,
        }
    }

    /// The window, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Whether it is below one packet: only probes go.
    pub fn is_starved(&self) -> bool {
        self.bytes < self.mss
    }

    /// P: the loss rate, averaged over epochs.
    pub fn loss(&self) -> f64 {
        self.loss.unwrap_or(0.0)
    }

    /// The window kept something back.
    pub fn note_limited(&mut self) {
        self.was_limited = true;
    }

    /// A packet arrived, the receiver says.
    pub fn on_arrived(&mut self, bytes: u64) {
        self.arrived += 1;
        self.arrived_bytes += bytes;
        if self.is_doubling && self.was_limited {
            self.bytes += bytes as f64;
        }
    }

    /// A packet did not arrive, the receiver says.
    pub fn on_lost(&mut self) {
        self.lost += 1;
    }

    /// The receiver responded: ends the epoch when it has lasted for `rtt`. The window is `most` at
    /// most.
    pub fn on_response(&mut self, now: Time, rtt: Duration, mu: f64, most: u64) -> Option<Epoch> {
        let since = *self.since.get_or_insert(now);
        let responded = self.arrived + self.lost;
        if responded == 0 || now < since + rtt {
            return None;
        }
        let epoch = Epoch { responded, lost: self.lost };
        self.end_epoch(epoch, mu, most);
        self.since = Some(now);
        (self.arrived, self.lost, self.arrived_bytes) = (0, 0, 0);
        self.was_limited = false;
        Some(epoch)
    }

    fn end_epoch(&mut self, epoch: Epoch, mu: f64, most: u64) {
        let rate = f64::from(epoch.lost) / f64::from(epoch.responded);
        let before = self.loss.unwrap_or(rate);
        let loss = before + self.config.weight * (rate - before);
        self.loss = Some(loss);
        if loss >= mu {
            self.bytes *= self.config.beta;
            self.is_doubling = false;
        } else if self.was_limited && !self.is_doubling && !std::mem::take(&mut self.has_grown) {
            self.bytes += self.config.alpha * self.arrived_bytes as f64;
            self.has_grown = true;
        }
        self.bytes = self.bytes.min((most as f64).max(self.mss));
    }

    /// A packet was not responded to for too long. Gives whether that cut the window.
    pub fn on_timeout(&mut self, now: Time, rtt: Duration) -> bool {
        self.cut(now, rtt, self.config.gamma)
    }

    /// The HCM could send more, and the outstanding window does not let it (thesis §3.2.2).
    pub fn on_held(&mut self, now: Time, rtt: Duration) {
        self.cut(now, rtt, self.config.held);
    }

    fn cut(&mut self, now: Time, rtt: Duration, factor: f64) -> bool {
        let is_due = now >= self.spared_until;
        if is_due {
            self.bytes *= factor;
            self.is_doubling = false;
            self.spared_until = now + rtt;
        }
        is_due
    }

    /// The HCM cut its window back to `ssthresh`: a share of that is free now (thesis §3.2.2, which
    /// only wakes a starved LCM).
    pub fn on_cutback(&mut self, ssthresh: u64) {
        let free = self.config.restart * ssthresh as f64;
        if self.bytes < free {
            self.bytes = free.max(self.mss);
            self.loss = None;
            self.is_doubling = false;
        }
    }

    /// A probe was answered.
    pub fn on_probe_arrived(&mut self) {
        if self.is_starved() {
            self.bytes = 2.0 * self.mss;
            self.loss = None;
            self.is_doubling = self.config.doubles;
        }
    }

    /// Nothing is known any more: back to `initial` bytes.
    pub fn restart(&mut self, initial: u64) {
        *self = Window::new(self.config, self.mss as u32, initial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// An epoch of 100 ms in which so many packets of 10 bytes arrived and were lost.
    fn epoch(window: &mut Window, begin: u64, arrived: u32, lost: u32) {
        window.on_response(at(begin), 100 * MS, 0.05, u64::MAX);
        window.note_limited();
        (0..arrived).for_each(|_| window.on_arrived(10));
        (0..lost).for_each(|_| window.on_lost());
        assert!(window.on_response(at(begin + 99), 100 * MS, 0.05, u64::MAX).is_none());
        assert!(window.on_response(at(begin + 100), 100 * MS, 0.05, u64::MAX).is_some());
    }

    fn window(initial: u64) -> Window {
        Window::new(Config { weight: 0.5, doubles: false, ..Config::default() }, 10, initial)
    }

    #[test]
    fn an_epoch_below_the_threshold_adds_a_fifth_of_what_arrived() {
        let mut window = window(1_000);
        epoch(&mut window, 0, 96, 4);
        assert_eq!((window.bytes(), window.loss()), (1_000 + 192, 0.04));
    }

    #[test]
    fn an_epoch_at_the_threshold_or_above_takes_a_twentieth() {
        let mut window = window(1_000);
        epoch(&mut window, 0, 95, 5);
        assert_eq!(window.bytes(), 950);
        epoch(&mut window, 100, 0, 95);
        assert_eq!(window.bytes(), 902);
    }

    #[test]
    fn the_loss_rate_is_a_moving_average() {
        let mut window = Window::new(Config { weight: 0.25, ..Config::default() }, 10, 1_000);
        epoch(&mut window, 0, 100, 0);
        epoch(&mut window, 100, 84, 16);
        assert_eq!(window.loss(), 0.04);
        epoch(&mut window, 200, 0, 100);
        assert!((window.loss() - 0.28).abs() < 1e-9);
    }

    #[test]
    fn it_doubles_until_the_first_loss_above_the_threshold() {
        let config = Config { weight: 0.5, ..Config::default() };
        let mut window = Window::new(config, 10, 100);
        epoch(&mut window, 0, 10, 0);
        assert_eq!(window.bytes(), 200);
        epoch(&mut window, 100, 18, 2);
        // What arrived before the epoch was over counted: 380.
        assert_eq!(window.bytes(), 361);
        epoch(&mut window, 200, 20, 0);
        assert_eq!(window.bytes(), 401);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow_and_none_exceeds_its_most() {
        let mut window = window(1_000);
        window.on_response(at(0), 100 * MS, 0.05, u64::MAX);
        window.on_arrived(500);
        window.on_response(at(100), 100 * MS, 0.05, u64::MAX);
        assert_eq!(window.bytes(), 1_000);
        window.on_arrived(10);
        window.on_response(at(200), 100 * MS, 0.05, 700);
        assert_eq!(window.bytes(), 700);
    }

    #[test]
    fn a_time_out_takes_a_quarter_once_per_round_trip() {
        let mut window = window(1_000);
        assert!(window.on_timeout(at(0), 100 * MS));
        assert!(!window.on_timeout(at(99), 100 * MS));
        assert_eq!(window.bytes(), 750);
        window.on_held(at(100), 100 * MS);
        assert_eq!(window.bytes(), 712);
    }

    #[test]
    fn a_cutback_of_the_hcm_gives_the_window_what_the_hcm_gave_up_and_never_less_than_it_had() {
        let mut starved = window(9);
        assert!(starved.is_starved());
        starved.on_cutback(1_000);
        assert_eq!(starved.bytes(), 1_000);
        starved.on_cutback(500);
        assert_eq!(starved.bytes(), 1_000);
    }

    #[test]
    fn an_answered_probe_gives_a_starved_window_two_packets() {
        let mut starved = window(9);
        starved.on_probe_arrived();
        assert_eq!(starved.bytes(), 20);
        starved.on_probe_arrived();
        assert_eq!(starved.bytes(), 20);
    }
}
