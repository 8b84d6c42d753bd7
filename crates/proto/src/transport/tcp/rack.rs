//! RACK: losses found by time (RFC 8985 §6).
//!
//! When a segment has arrived, all that was sent before it should have arrived too, give or take the
//! *reordering window*. So one arrival tells of every gap below it, where RFC 6675 waits for three: what
//! thin flows, short windows and the last segments of a burst need.
//!
//! Segments that were sent once are in one order by offset and by time, so the times are a queue
//! by offset, and what is lost is all that is missing below one offset. What was resent is
//! watched by the [board](super::scoreboard).
//!
//! Deviations: the least round-trip time is that of the whole connection, not of the last minutes.
//! An echoed timestamp says which copy arrived, so none is ignored as ambiguous (§6.2 step 2).

use crate::time::{Duration, Time};
use std::collections::VecDeque;

/// Bytes up to `end` were sent for the first time at `at`.
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    at: Time,
    /// In several segments.
    is_many: bool,
}

/// Recoveries for which a widened window lasts (§6.2 step 4).
const PERSISTS: u32 = 16;

/// See [the module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Rack {
    sent: VecDeque<Sent>,
    /// *RACK.xmit_ts*: when the latest sent of those that arrived was sent.
    latest: Time,
    /// *RACK.end_seq*: behind it.
    end: u64,
    /// *RACK.rtt*: what it took.
    rtt: Duration,
    min_rtt: Option<Duration>,
    /// *RACK.reordering_seen*.
    is_reordered: bool,
    /// *RACK.reo_wnd_mult* less one: quarters of the least round-trip time that were added.
    widened: u32,
    /// *RACK.reo_wnd_persist*.
    persists: u32,
    /// *RACK.dsack_round*: what was sent before has had its say.
    round: u64,
    /// When a segment that is late now will be lost.
    due: Option<Time>,
}

impl Rack {
    /// Bytes up to `end` go out for the first time.
    pub(super) fn sent(&mut self, now: Time, end: u64) {
        match self.sent.back_mut() {
            Some(last) if last.at == now => (last.end, last.is_many) = (end, true),
            _ => self.sent.push_back(Sent { end, at: now, is_many: false }),
        }
    }

    /// All before `una` arrived.
    pub(super) fn forget(&mut self, una: u64) {
        while self.sent.front().is_some_and(|sent| sent.end <= una) {
            self.sent.pop_front();
        }
    }

    /// A round-trip time was measured.
    pub(super) fn measured(&mut self, rtt: Duration) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
    }

    /// An acknowledgement brought news: all up to `end` or what is just before it, if that is known,
    /// and a segment sent at `echo` set it off. Called before [`Rack::forget`] (§6.2 step 2).
    pub(super) fn arrived(&mut self, now: Time, end: Option<u64>, echo: Option<Time>) {
        let end = end.unwrap_or(0);
        // What arrives in order is at the front.
        let place = match self.sent.iter().take(4).position(|sent| sent.end >= end) {
            Some(place) => place,
            None => self.sent.partition_point(|sent| sent.end < end),
        };
        let first = self.sent.get(place).filter(|_| end > 0).map(|sent| sent.at);
        // If it was resent and that arrived, the echo is later.
        let Some(at) = first.max(echo).filter(|at| *at <= now) else { return };
        if at > self.latest || (at == self.latest && end > self.end) {
            (self.latest, self.end, self.rtt) = (at, end, now.since(at));
        }
    }

    /// What was sent once arrived behind what was sent later (§6.2 step 3).
    pub(super) fn note_reordering(&mut self) {
        self.is_reordered = true;
    }

    /// Whether segments come out of order here.
    pub(super) fn is_reordered(&self) -> bool {
        self.is_reordered
    }

    /// Something was resent in vain: the window widens, once per round trip (§6.2 step 4). Bytes up
    /// to `una` arrived, up to `nxt` were sent.
    pub(super) fn widen(&mut self, una: u64, nxt: u64) {
        if una >= self.round {
            (self.round, self.persists) = (nxt, PERSISTS);
            self.widened = self.widened.saturating_add(1);
        }
    }

    /// A recovery is over.
    pub(super) fn recovered(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.widened = 0;
        }
    }

    /// *RACK_update_reo_wnd* (§6.2 step 4). `is_sure`: in recovery, or as much above a gap as would
    /// make it a loss without all this.
    fn window(&self, srtt: Duration, is_sure: bool) -> Duration {
        if is_sure && !self.is_reordered {
            return Duration::ZERO;
        }
        let quarter = self.min_rtt.unwrap_or(srtt) / 4;
        quarter.saturating_mul(self.widened.saturating_add(1)).min(srtt)
    }

    /// *RACK_detect_loss* (§6.2 step 5): what did not arrive below the offset is lost. For what is late
    /// and not lost yet, [`Rack::due`] says when it will be.
    pub(super) fn lost_below(&mut self, now: Time, srtt: Duration, is_sure: bool) -> u64 {
        let patience = self.rtt + self.window(srtt, is_sure);
        // At the same time several were sent, or just the one that arrived.
        let before = self.sent.partition_point(|sent| {
            sent.at < self.latest || (sent.at == self.latest && sent.is_many)
        });
        let lost = self.sent.partition_point(|sent| sent.at + patience <= now).min(before);
        let last = before.checked_sub(1).filter(|_| lost < before);
        self.due = last.and_then(|last| self.sent.get(last)).map(|sent| sent.at + patience);
        let end = |place: usize| self.sent.get(place).map_or(0, |sent| sent.end);
        let Some(last) = lost.checked_sub(1) else { return 0 };
        if self.sent.get(last).is_some_and(|sent| sent.at < self.latest) {
            return end(last);
        }
        // Of what was sent at the same time only what lies before it.
        end(last).min(self.end.max(last.checked_sub(1).map_or(0, end)))
    }

    /// Nothing is late.
    pub(super) fn rest(&mut self) {
        self.due = None;
    }

    /// When something that is late will be lost.
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// Ten segments of ten bytes, one per millisecond from 0; round-trip times of 100 ms.
    fn sent() -> Rack {
        let mut rack = Rack::default();
        (0..10).for_each(|place| rack.sent(at(place), (place + 1) * 10));
        rack.measured(100 * MS);
        rack
    }

    #[test]
    fn what_was_sent_before_an_arrival_is_lost_a_reordering_window_later() {
        let mut rack = sent();
        rack.arrived(at(105), Some(60), Some(at(5)));
        // 0 to 4 were sent before; each gets a round trip and a quarter of the least one.
        assert_eq!(rack.lost_below(at(105), 100 * MS, false), 0);
        assert_eq!(rack.due(), Some(at(4 + 100 + 25)));
        assert_eq!(rack.lost_below(at(126), 100 * MS, false), 20);
        assert_eq!(rack.lost_below(at(129), 100 * MS, false), 50);
        assert_eq!(rack.due(), None);
    }

    #[test]
    fn in_recovery_the_window_is_zero_until_reordering_was_seen() {
        let mut rack = sent();
        rack.arrived(at(105), Some(60), Some(at(5)));
        assert_eq!(rack.lost_below(at(105), 100 * MS, true), 50);
        rack.note_reordering();
        assert_eq!(rack.lost_below(at(105), 100 * MS, true), 0);
    }

    #[test]
    fn a_needless_resend_widens_the_window_once_per_round_trip_and_for_16_recoveries() {
        let mut rack = sent();
        let window = |rack: &Rack| rack.window(100 * MS, false);
        rack.widen(0, 100);
        rack.widen(50, 100);
        assert_eq!(window(&rack), 50 * MS);
        (0..5).for_each(|round| rack.widen(100 * (round + 1), 100 * (round + 2)));
        assert_eq!(window(&rack), 100 * MS, "never more than a round trip");
        (0..15).for_each(|_| rack.recovered());
        assert_eq!(window(&rack), 100 * MS);
        rack.recovered();
        assert_eq!(window(&rack), 25 * MS);
    }

    #[test]
    fn the_echo_of_a_later_copy_counts_and_an_echo_from_the_future_does_not() {
        let mut rack = sent();
        rack.arrived(at(300), Some(100), Some(at(200)));
        assert_eq!((rack.latest, rack.rtt), (at(200), 100 * MS));
        rack.arrived(at(310), Some(100), Some(at(400)));
        assert_eq!(rack.latest, at(200));
    }

    #[test]
    fn times_are_kept_for_what_is_on_its_way_only() {
        let mut rack = sent();
        rack.forget(95);
        assert_eq!(rack.sent.len(), 1);
        rack.forget(100);
        assert!(rack.sent.is_empty());
    }
}
