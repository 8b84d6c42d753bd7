//! RACK and tail loss probes at work in a sender (RFC 8985).

use super::{Phase, Sender};
use crate::time::{Time, earliest};
use crate::transport::packet::{Range, Segment};

impl Sender {
    /// When something that is late will be lost, or a probe is due.
    pub(super) fn timely_deadline(&self) -> Option<Time> {
        if !self.config.rack_tlp {
            return None;
        }
        earliest(self.rack.due(), self.tail.due())
    }

    /// Both timers, when they have run out. A probe starts the time-out anew (RFC 8985 §7.3).
    pub(super) fn handle_timely(&mut self, now: Time) {
        if !self.config.rack_tlp {
            return;
        }
        if self.rack.due().is_some_and(|at| at <= now) {
            self.find_late(now);
            if self.phase == Phase::Open && self.board.lost() > 0 {
                self.enter_recovery(now);
            }
        }
        if self.tail.run_out(now) {
            self.burst_left = self.config.burst_max.unwrap_or(u32::MAX).max(1);
            self.restart_timer(now);
        }
    }

    /// Whether three blocks or duplicates make a loss: not where segments come out of order.
    pub(super) fn counts_blocks(&self) -> bool {
        !(self.config.rack_tlp && self.rack.is_reordered())
    }

    /// What RACK learns of an acknowledgement: `ack` was `una` before, and the highest block
    /// ended at `high`.
    pub(super) fn note_arrivals(
        &mut self,
        now: Time,
        segment: &Segment,
        (una, high): (u64, u64),
        is_twice: bool,
    ) {
        if !self.config.rack_tlp {
            return;
        }
        let (una_now, high_now) = (self.board.una(), self.board.known());
        let highest = [(high, high_now), (una, una_now)].into_iter().find(|(was, is)| is > was);
        let highest = highest.map(|(_, is)| is);
        self.rack.arrived(now, highest, segment.echo);
        let was_never_resent = !self.board.was_resent_behind(una);
        if was_never_resent && una_now > una && high > una {
            // The gap was filled, by nothing that was sent again.
            self.rack.note_reordering();
        }
        if is_twice {
            self.rack.widen(una_now, self.board.nxt());
        }
        self.rack.forget(una_now);
    }

    /// What is missing below what was sent a round trip and the reordering window ago is lost.
    pub(super) fn find_late(&mut self, now: Time) {
        if !self.config.rack_tlp {
            return;
        }
        if !self.board.has_doubtful() {
            return self.rack.rest();
        }
        let enough = u64::from(self.config.loss_threshold) * u64::from(self.config.mss);
        let is_sure = self.phase != Phase::Open || self.board.sacked() >= enough;
        let edge = self.rack.lost_below(now, self.rto.srtt(), is_sure);
        self.board.lose_below(edge);
        if !self.board.has_doubtful() {
            self.rack.rest();
        }
    }

    /// Sets the timer of the next probe, or stops it.
    pub(super) fn schedule_probe(&mut self, now: Time) {
        if !self.config.rack_tlp {
            return;
        }
        let flight = self.board.nxt() - self.board.una();
        let is_quiet = self.phase == Phase::Open
            && flight > 0
            && self.board.sacked() == 0
            && self.board.lost() == 0
            && self.rto.backoffs() == 0
            && !self.is_probing;
        let is_single = flight <= u64::from(self.config.mss);
        let resend = match self.timer {
            super::Timer::Resend(at) => Some(at),
            _ => None,
        };
        self.tail.schedule(now, is_quiet, self.rto.srtt(), is_single, resend);
    }

    /// The probe, when it is time for one: new bytes whatever the window says, if the peer lets them
    /// go, or else the last segment again (*TLP_send_probe*, RFC 8985 §7.3).
    pub(super) fn next_probe(
        &mut self,
        len_max: u64,
        cut: &impl Fn(u64) -> u64,
    ) -> Option<(Range, bool)> {
        if !self.tail.take_wanted() {
            return None;
        }
        let nxt = self.board.nxt();
        let most = len_max.min(cut(nxt).saturating_sub(nxt));
        let new = most.min(self.unsent()).min(self.edge.saturating_sub(nxt));
        let (range, is_resent) = if new > 0 {
            (Range { start: nxt, end: nxt + new }, false)
        } else {
            (self.last_segment(cut)?, true)
        };
        self.counts.probes += 1;
        self.tail.sent(range.end.max(nxt), is_resent);
        Some((range, is_resent))
    }

    /// Reacts to the loss that a probe has repaired (RFC 8985 §7.4).
    pub(super) fn note_probe_answer(
        &mut self,
        now: Time,
        segment: &Segment,
        twice: Option<Range>,
        is_plain: bool,
    ) {
        if self.config.rack_tlp
            && self.tail.has_repaired(segment.ack, twice, is_plain)
            && self.phase == Phase::Open
        {
            self.congestion.on_loss(now, self.board.nxt() - self.board.una());
            self.congestion.on_recovered(now);
        }
    }
}
