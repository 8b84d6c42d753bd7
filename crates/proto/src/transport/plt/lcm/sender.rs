//! The LCM's packets on their way, and what became of each (thesis §3.2.2).
//!
//! A packet is *open* until a report names it, or its gap, or it times out. A gap counts as a loss
//! when enough packets sent after it have arrived; the thesis takes a gap at its word (a threshold
//! of zero), which a network that reorders makes expensive.
//!
//! A *copy* is a packet with bytes that the HCM is responsible for: a probe, or bytes that the whole
//! stream waits for. Nobody has to send it again when it is lost.
//!
//! Bounded by the congestion window, and so by the receiver's: one entry per packet.

use super::pacer::{self, Pacer};
use super::tuner::{self, Tuner};
use super::window::{self, Window};
use crate::time::{Duration, Time, earliest};
use crate::transport::packet::Range;
use crate::transport::plt::header::Report;
use crate::transport::ranges::Ranges;
use std::collections::VecDeque;

/// The window at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Initial {
    /// A tenth of this bandwidth-delay product, bytes (thesis §3.3.1).
    Bdp(u64),
    /// So many packets, for a path that is not known; the window doubles until losses begin.
    Packets(u32),
}

/// What shapes the LCM's sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// The window at the start. Default 32 packets.
    pub initial: Initial,
    /// How the window moves.
    pub window: window::Config,
    /// The loss rate that is aimed at.
    pub tuner: tuner::Config,
    /// Burst control.
    pub pacer: pacer::Config,
    /// The time-out in round-trip times. Default 3.25: "a little larger" than three (thesis
    /// §3.3.1).
    pub timeout_rtts: f64,
    /// The time between probes in round-trip times. Default 1. Not in the thesis.
    pub probe_rtts: f64,
    /// Packets sent after a gap that must have arrived before it is a loss. Default 3; the thesis:
    /// none.
    pub reordering: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            initial: Initial::Packets(32),
            window: window::Config::default(),
            tuner: tuner::Config::default(),
            pacer: pacer::Config::default(),
            timeout_rtts: 3.25,
            probe_rtts: 1.0,
            reordering: 3,
        }
    }
}

/// Probes that may be on their way together.
const PROBES_MAX: u64 = 4;

impl Config {
    fn initial_bytes(&self, mss: u32) -> u64 {
        match self.initial {
            Initial::Bdp(bytes) => (bytes / 10).max(u64::from(mss)),
            Initial::Packets(packets) => u64::from(packets.max(1)) * u64::from(mss),
        }
    }
}

/// What the LCM counts. Bytes, unless said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Sent, whatever for.
    pub sent: u64,
    /// Of it, copies of what the HCM is responsible for.
    pub copies: u64,
    /// Taken for lost, by reports or time-outs.
    pub lost: u64,
    /// Time-outs that cut the window; a number.
    pub timeouts: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    Known,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    virt: u64,
    actual: u64,
    len: u32,
    state: State,
    is_copy: bool,
    at: Time,
}

impl Sent {
    fn end(&self) -> u64 {
        self.virt + u64::from(self.len)
    }

    fn range(&self) -> Range {
        Range { start: self.actual, end: self.actual + u64::from(self.len) }
    }
}

/// See [the module](self).
#[derive(Debug)]
pub struct Sender {
    config: Config,
    mss: u32,
    window: Window,
    tuner: Tuner,
    pacer: Pacer,
    /// In the order of sending; the first is open.
    flying: VecDeque<Sent>,
    /// The next virtual offset.
    next: u64,
    /// Behind the last virtual byte that arrived.
    high: u64,
    /// Bytes open.
    flight: u64,
    /// Smoothed round-trip time of its own packets.
    srtt: Option<Duration>,
    /// The next probe goes then.
    probe_at: Time,
    /// The pacer lets the next packet go then.
    paced_until: Option<Time>,
    is_off: bool,
    counts: Counts,
}

impl Sender {
    /// Nothing is on its way.
    pub fn new(config: Config, mss: u32) -> Sender {
        let mut window = config.window;
        // A known path needs no search.
        window.doubles &= matches!(config.initial, Initial::Packets(_));
        let window = Window::new(window, mss, config.initial_bytes(mss));
        Sender {
            mss,
            window,
            tuner: Tuner::new(config.tuner),
            pacer: Pacer::new(config.pacer, mss),
            flying: VecDeque::new(),
            next: 0,
            high: 0,
            flight: 0,
            srtt: None,
            probe_at: Time::ZERO,
            paced_until: None,
            is_off: false,
            counts: Counts::default(),
            config,
        }
    }

    /// The congestion window.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// µ now.
    pub fn mu(&self) -> f64 {
        self.tuner.mu()
    }

    /// Bytes that are on their way, as far as is known.
    pub fn flight(&self) -> u64 {
        self.flight
    }

    /// What it counts.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// `lseq`: the first virtual offset whose fate is not known.
    pub fn unknown(&self) -> u64 {
        self.flying.front().map_or(self.next, |first| first.virt)
    }

    /// Behind the last virtual byte that was sent.
    pub fn sent_to(&self) -> u64 {
        self.next
    }

    /// Whether the peer has silenced it.
    pub fn is_off(&self) -> bool {
        self.is_off
    }

    /// The peer silences it, or lets it speak again.
    pub fn set_off(&mut self, is_off: bool) {
        if self.is_off && !is_off {
            self.window.restart(self.config.initial_bytes(self.mss));
        }
        self.is_off = is_off;
        if is_off {
            self.paced_until = None;
        }
    }

    /// The round-trip time of the flow: the HCM's, or its own before the HCM has one.
    fn rtt(&self, hcm: Duration) -> Duration {
        if hcm.is_zero() { self.srtt.unwrap_or_default() } else { hcm }
    }

    fn timeout(&self, hcm: Duration) -> Duration {
        let rtt = self.rtt(hcm);
        // Before any sample: as TCP (RFC 6298 §2.1).
        if rtt.is_zero() { Duration::from_secs(1) } else { rtt.mul_f64(self.config.timeout_rtts) }
    }

    /// When something is to be done.
    pub fn next_deadline(&self, hcm: Duration) -> Option<Time> {
        let timeout = self.flying.front().map(|first| first.at + self.timeout(hcm));
        earliest(timeout, self.paced_until)
    }

    // ---- sending ----

    /// Whether a packet of `len` bytes may go now: a probe, when the window is below one packet.
    pub fn may_send(&mut self, now: Time, len: u64, hcm: Duration) -> bool {
        if self.is_off {
            return false;
        }
        if self.window.is_starved() {
            let has_room = self.flight < PROBES_MAX * u64::from(self.mss);
            let may = has_room && now >= self.probe_at;
            self.paced_until = (has_room && !may).then_some(self.probe_at);
            return may;
        }
        if self.flight + len > self.window.bytes() {
            self.window.note_limited();
            self.paced_until = None;
            return false;
        }
        let (window, rtt) = (self.window.bytes(), self.rtt(hcm));
        let may = self.pacer.allows(now, len, window, rtt);
        self.paced_until = (!may).then(|| self.pacer.ready(len, window, rtt));
        if !may {
            self.window.note_limited();
        }
        may
    }

    /// There is nothing to send.
    pub fn is_idle(&mut self) {
        self.paced_until = None;
    }

    /// A packet goes; gives its virtual offset.
    pub fn send(&mut self, now: Time, actual: Range, is_copy: bool, hcm: Duration) -> u64 {
        let len = actual.len() as u32;
        let virt = self.next;
        let (state, actual) = (State::Open, actual.start);
        self.flying.push_back(Sent { virt, actual, len, state, is_copy, at: now });
        self.next += u64::from(len);
        self.flight += u64::from(len);
        self.counts.sent += u64::from(len);
        self.counts.copies += if is_copy { u64::from(len) } else { 0 };
        self.pacer.spend(u64::from(len));
        let rtt = self.rtt(hcm).max(Duration::from_millis(1));
        self.probe_at = now + rtt.mul_f64(self.config.probe_rtts);
        virt
    }

    // ---- what became of packets ----

    /// A report came. What is lost is added to `lost`; the window is `most` at most. What a report
    /// says of bytes that were never sent is ignored, with the whole report.
    pub fn on_report(
        &mut self,
        now: Time,
        report: &Report,
        hcm: Duration,
        most: u64,
        lost: &mut Ranges,
    ) {
        if report.to > self.next || !report.is_sound() {
            return;
        }
        self.high = self.high.max(report.blocks().last().map_or(0, |last| last.end));
        if self.note(report, lost) {
            self.measure(now, report.echo);
        }
        self.forget_known();
        let rtt = self.rtt(hcm);
        if let Some(epoch) = self.window.on_response(now, rtt, self.tuner.mu(), most) {
            self.tuner.on_epoch(now, epoch.responded, epoch.lost);
        }
    }

    /// Goes through the packets that a report covers; gives whether there was news.
    fn note(&mut self, report: &Report, lost: &mut Ranges) -> bool {
        let at = self.flying.partition_point(|sent| sent.virt < report.from);
        let high = self.flying.partition_point(|sent| sent.end() <= self.high);
        let (mut blocks, mut is_news) = (report.blocks().iter().peekable(), false);
        for at in at..self.flying.len() {
            let sent = self.flying[at];
            if sent.end() > report.to {
                break;
            }
            while blocks.next_if(|block| block.end <= sent.virt).is_some() {}
            let has_come = blocks
                .peek()
                .is_some_and(|block| block.start <= sent.virt && sent.end() <= block.end);
            let is_lost = !has_come && at + 1 + self.config.reordering as usize <= high;
            if sent.state == State::Open && (has_come || is_lost) {
                is_news = true;
                self.know(at, has_come, lost);
            }
        }
        is_news
    }

    fn know(&mut self, at: usize, has_come: bool, lost: &mut Ranges) {
        let sent = &mut self.flying[at];
        sent.state = State::Known;
        let (len, is_copy, range) = (u64::from(sent.len), sent.is_copy, sent.range());
        self.flight -= len;
        if has_come {
            self.window.on_arrived(len);
            if self.window.is_starved() {
                self.window.on_probe_arrived();
            }
            return;
        }
        self.window.on_lost();
        self.counts.lost += len;
        if !is_copy {
            lost.insert(range);
        }
    }

    fn forget_known(&mut self) {
        while self.flying.front().is_some_and(|first| first.state == State::Known) {
            self.flying.pop_front();
        }
    }

    fn measure(&mut self, now: Time, echo: Option<Time>) {
        let Some(echo) = echo.filter(|echo| *echo <= now) else { return };
        let rtt = now.since(echo);
        self.tuner.on_delay(rtt);
        self.srtt = Some(self.srtt.map_or(rtt, |srtt| srtt - srtt / 8 + rtt / 8));
    }

    /// Packets that nobody responded to for too long are lost, except those before `una`, of which
    /// the actual stream says that they arrived.
    pub fn expire(&mut self, now: Time, hcm: Duration, una: u64, lost: &mut Ranges) {
        let timeout = self.timeout(hcm);
        let mut is_cut = false;
        while let Some(first) = self.flying.front().filter(|first| first.at + timeout <= now) {
            let (len, range, is_copy) = (u64::from(first.len), first.range(), first.is_copy);
            self.flying.pop_front();
            self.flight -= len;
            if !is_copy && range.end > una {
                lost.insert(Range { start: range.start.max(una), ..range });
            }
            if range.end > una || is_copy {
                self.counts.lost += len;
                is_cut = true;
            }
            self.forget_known();
        }
        if is_cut && self.window.on_timeout(now, self.rtt(hcm)) {
            self.counts.timeouts += 1;
        }
    }

    /// The HCM has cut its window back to `ssthresh`.
    pub fn on_cutback(&mut self, ssthresh: u64) {
        self.window.on_cutback(ssthresh);
    }

    /// The HCM is held back by the outstanding window.
    pub fn on_held(&mut self, now: Time, hcm: Duration) {
        self.window.on_held(now, self.rtt(hcm));
    }

    /// Panics when the counters do not fit the packets. For tests.
    pub fn check_invariants(&self) {
        let open = self.flying.iter().filter(|sent| sent.state == State::Open);
        assert_eq!(self.flight, open.map(|sent| u64::from(sent.len)).sum::<u64>());
        assert!(self.flying.front().is_none_or(|first| first.state == State::Open));
        assert!(self.high <= self.next);
    }

    /// The actual bytes that it is responsible for. For tests.
    pub fn responsible(&self) -> impl Iterator<Item = Range> {
        let open = self.flying.iter().filter(|sent| sent.state == State::Open && !sent.is_copy);
        open.map(Sent::range)
    }
}

#[cfg(test)]
mod tests;
