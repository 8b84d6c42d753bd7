//! What has arrived over the LCM, and what is said of it (thesis §3.2.2, §3.2.3).
//!
//! There is no cumulative acknowledgement. A report covers a stretch of the virtual stream: what it
//! names has arrived, the gaps have not. Reports cycle through the window from `lseq`, the first
//! offset whose fate the sender does not know, to the last that arrived, so a lost report is made
//! good for by a later one. Every second report begins where the newest said last ended, so that
//! news need not wait for the cycle (the thesis only cycles).
//!
//! Most reports go at the low priority, one in `high_every` at the HCM's, so that a congested way
//! back cannot silence them (PLT-n-ACK).

use crate::time::{Duration, Time};
use crate::transport::packet::Range;
use crate::transport::plt::header::{BLOCKS_MAX, Credit, Low, Report};
use crate::transport::ranges::Ranges;

/// When and how reports go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Packets that one report is for. Default 1.
    pub every: u32,
    /// How long a report may wait for further packets. Default 10 ms.
    pub delay: Duration,
    /// One report in so many goes at the HCM's priority. Default 5 (thesis §3.3.1); 1 is all.
    pub high_every: u32,
    /// The most gaps that are remembered. A packet beyond is as if lost. Default 4,096.
    pub ranges_max: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config { every: 1, delay: Duration::from_millis(10), high_every: 5, ranges_max: 4_096 }
    }
}

/// See [the module](self).
#[derive(Debug)]
pub struct Receiver {
    config: Config,
    /// What arrived at or behind `unknown`.
    got: Ranges,
    /// `lseq`.
    unknown: u64,
    /// Where the cycle goes on.
    cursor: u64,
    /// Behind the last that was ever reported.
    told: u64,
    /// Packets without a report.
    waiting: u32,
    due: Option<Time>,
    echo: Option<Time>,
    /// Reports so far.
    count: u64,
}

impl Receiver {
    /// Nothing has arrived.
    pub fn new(config: Config) -> Receiver {
        Receiver {
            config,
            got: Ranges::default(),
            unknown: 0,
            cursor: 0,
            told: 0,
            waiting: 0,
            due: None,
            echo: None,
            count: 0,
        }
    }

    /// Whether a packet can be remembered.
    pub fn has_place(&self, low: &Low, len: u32) -> bool {
        let range = Range { start: low.seq, end: low.seq.saturating_add(u64::from(len)) };
        self.got.len() < self.config.ranges_max || self.got.touches(range)
    }

    /// A packet came; `is_taken` when its bytes have a place.
    pub fn on_data(&mut self, now: Time, low: &Low, len: u32, is_taken: bool) {
        let end = low.seq.saturating_add(u64::from(len));
        self.unknown = self.unknown.max(low.unknown.min(end));
        self.got.remove_below(self.unknown);
        if is_taken && end > self.unknown {
            self.got.insert(Range { start: low.seq.max(self.unknown), end });
        }
        self.waiting += 1;
        self.echo = Some(low.sent);
        let wait =
            if self.waiting < self.config.every { self.config.delay } else { Duration::ZERO };
        let due = now + wait;
        self.due = Some(self.due.map_or(due, |old| old.min(due)));
    }

    /// When a report goes.
    pub fn next_deadline(&self) -> Option<Time> {
        self.due
    }

    /// The report that goes now, and whether it goes at the HCM's priority.
    pub fn poll(&mut self, now: Time, credit: impl FnOnce() -> Credit) -> Option<(Report, bool)> {
        self.due.filter(|due| *due <= now)?;
        (self.due, self.waiting) = (None, 0);
        self.count += 1;
        let is_high = self.count.is_multiple_of(u64::from(self.config.high_every.max(1)));
        Some((self.report(credit()), is_high))
    }

    fn report(&mut self, credit: Credit) -> Report {
        let last = self.got.last().map_or(self.unknown, |last| last.end);
        let is_news = self.count.is_multiple_of(2) && last > self.told;
        let from = if is_news { self.told } else { self.cursor }.max(self.unknown);
        let (mut blocks, mut len, mut to) = ([Range::default(); BLOCKS_MAX], 0, from);
        for range in self.got.behind(from).take(BLOCKS_MAX) {
            to = range.end;
            blocks[len] = Range { start: range.start.max(from), end: to };
            len += 1;
        }
        if !is_news {
            self.cursor = if to >= last { self.unknown } else { to };
        }
        self.told = self.told.max(to);
        Report { from, to, blocks, blocks_len: len as u8, echo: self.echo.take(), credit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn low(seq: u64, unknown: u64) -> Low {
        Low { seq, actual: seq, unknown, end: None, is_full: false, sent: Time(seq) }
    }

    fn receiver(config: Config) -> Receiver {
        Receiver::new(config)
    }

    /// From, to, blocks.
    type Said = (u64, u64, Vec<(u64, u64)>);

    fn said(receiver: &mut Receiver) -> Option<Said> {
        let (report, _) = receiver.poll(Time::ZERO, Credit::default)?;
        assert!(report.is_sound());
        let blocks = report.blocks().iter().map(|block| (block.start, block.end)).collect();
        Some((report.from, report.to, blocks))
    }

    /// Packets of ten bytes with these numbers come.
    fn arrive(receiver: &mut Receiver, numbers: &[u64], unknown: u64) {
        for number in numbers {
            receiver.on_data(Time::ZERO, &low(number * 10, unknown), 10, true);
        }
    }

    #[test]
    fn every_packet_has_a_report_that_names_what_arrived_and_by_its_gaps_what_did_not() {
        let mut receiver = receiver(Config::default());
        arrive(&mut receiver, &[0], 0);
        assert_eq!(said(&mut receiver), Some((0, 10, vec![(0, 10)])));
        assert_eq!(said(&mut receiver), None);
        arrive(&mut receiver, &[2], 0);
        assert_eq!(said(&mut receiver), Some((10, 30, vec![(20, 30)])));
    }

    #[test]
    fn reports_cycle_through_the_window_and_follow_lseq() {
        let mut receiver = receiver(Config::default());
        arrive(&mut receiver, &[1, 3, 5, 7, 9], 0);
        assert_eq!(said(&mut receiver), Some((0, 60, vec![(10, 20), (30, 40), (50, 60)])));
        // News first, then the cycle goes on where it was.
        arrive(&mut receiver, &[11], 0);
        assert_eq!(said(&mut receiver), Some((60, 120, vec![(70, 80), (90, 100), (110, 120)])));
        arrive(&mut receiver, &[12], 0);
        assert_eq!(said(&mut receiver), Some((60, 130, vec![(70, 80), (90, 100), (110, 130)])));
        arrive(&mut receiver, &[], 0);
        arrive(&mut receiver, &[13], 40);
        said(&mut receiver);
        arrive(&mut receiver, &[14], 40);
        assert_eq!(said(&mut receiver), Some((40, 100, vec![(50, 60), (70, 80), (90, 100)])));
    }

    #[test]
    fn reports_can_wait_for_several_packets_but_not_for_long() {
        let config = Config { every: 3, ..Config::default() };
        let mut receiver = receiver(config);
        arrive(&mut receiver, &[0, 1], 0);
        assert_eq!(receiver.next_deadline(), Some(Time::ZERO + config.delay));
        assert_eq!(said(&mut receiver), None);
        arrive(&mut receiver, &[2], 0);
        assert_eq!(said(&mut receiver), Some((0, 30, vec![(0, 30)])));
    }

    #[test]
    fn one_report_in_five_goes_at_the_high_priority() {
        let mut receiver = receiver(Config::default());
        let mut high = 0;
        for number in 0..50 {
            arrive(&mut receiver, &[number], 0);
            high += u32::from(receiver.poll(Time::ZERO, Credit::default).unwrap().1);
        }
        assert_eq!(high, 10);
    }

    #[test]
    fn a_packet_without_a_place_is_reported_missing() {
        let mut receiver = receiver(Config { ranges_max: 2, ..Config::default() });
        arrive(&mut receiver, &[1, 3], 0);
        assert!(!receiver.has_place(&low(50, 0), 10) && receiver.has_place(&low(40, 0), 10));
        receiver.on_data(Time::ZERO, &low(20, 0), 10, false);
        assert_eq!(said(&mut receiver), Some((0, 40, vec![(10, 20), (30, 40)])));
    }

    #[test]
    fn an_lseq_beyond_what_was_sent_forgets_no_more_than_has_come() {
        let mut receiver = receiver(Config::default());
        arrive(&mut receiver, &[0, 1], u64::MAX);
        arrive(&mut receiver, &[2], 0);
        assert_eq!(said(&mut receiver), Some((20, 30, vec![(20, 30)])));
    }
}
