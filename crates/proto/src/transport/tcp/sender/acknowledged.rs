//! What an acknowledgement changes: the board, the measured times, the phase, the window.

use super::{Doubt, Fin, Phase, Proportion, Sender};
use crate::time::{Duration, Time};
use crate::transport::Acked;
use crate::transport::packet::{Range, Segment};

impl Sender {
    /// The window that the peer shows, up to offset `edge`. It never shrinks here: a peer that
    /// takes back what it offered loses what is sent to it.
    pub fn on_edge(&mut self, edge: u64, window: u64) {
        self.peer_window_max = self.peer_window_max.max(window);
        self.edge = self.edge.max(edge);
    }

    /// An acknowledgement came. What it says of bytes that were never sent is ignored.
    pub fn on_ack(&mut self, now: Time, segment: &Segment) {
        if segment.ack > self.board.nxt() {
            return;
        }
        self.burst_left = self.config.burst_max.unwrap_or(u32::MAX);
        self.on_edge(segment.ack.saturating_add(segment.window), segment.window);
        let (una, flight) = (self.board.una(), self.board.pipe());
        let known = self.board.known();
        let was_limited = self.limited_at > una;
        let twice = note_twice(segment);
        let in_order = if segment.ack > una { self.board.advance(segment.ack) } else { 0 };
        let blocks = self.note_blocks(segment);
        let fin = segment.fin_acked && self.fin == Fin::Sent && segment.ack == self.limit;
        if fin {
            self.fin = Fin::Acked;
        }
        let advanced = segment.ack > una || fin;
        let news = in_order + blocks;
        let rtt = self.measure(now, segment, news > 0 || fin);
        if news > 0 {
            self.note_arrivals(now, segment, (una, known), twice.is_some());
        }
        self.note_probe();
        if advanced {
            self.rto.forget_back_off();
            self.duplicates = 0;
            self.restart_timer(now);
        } else if blocks > 0 {
            self.duplicates += 1;
        }
        let was_recovering = matches!(self.phase, Phase::Recovery { .. });
        self.undo_if_needless(now, segment, advanced, twice);
        self.leave_phase(now);
        let begins = self.find_losses(now, segment, blocks > 0);
        self.note_probe_answer(now, segment, twice, !advanced && segment.sack_len == 0);
        if let Some(proportion) = &mut self.proportion {
            let (pipe, window) = (self.board.pipe(), self.congestion.window());
            proportion.update(news, pipe, window, u64::from(self.config.mss));
        }
        if advanced || blocks > 0 {
            self.schedule_probe(now);
        }
        if news > 0 {
            self.congestion.on_ack(&Acked {
                now,
                bytes: news,
                rtt,
                srtt: self.rto.srtt(),
                flight,
                is_recovering: was_recovering || begins,
                is_limited: was_limited,
                feedback: segment.feedback,
            });
        }
    }

    /// A byte was sent into a closed window. The peer lives, however long that stays shut.
    fn note_probe(&mut self) {
        if !self.is_probing {
            return;
        }
        self.rto.forget_back_off();
        self.is_probing = self.edge < self.board.nxt();
        if !self.is_probing && self.board.una() < self.board.nxt() {
            // There was no place for the byte when it came.
            self.send_all_again();
        }
    }

    /// Gives whether a recovery begins.
    fn find_losses(&mut self, now: Time, segment: &Segment, is_news: bool) -> bool {
        if is_news && self.counts_blocks() {
            self.board.find_lost();
            if self.duplicates >= self.config.loss_threshold && self.phase == Phase::Open {
                self.board.lose_first();
            }
        }
        if let (Some(echo), true) = (segment.echo, self.config.finds_lost_resends) {
            self.board.find_lost_resends(echo, self.rto.srtt() / 4);
        }
        self.find_late(now);
        // What was lost behind the point of the last recovery was sent after it began, so it is a
        // reaction's worth of its own though it was resent already.
        let begins =
            self.phase == Phase::Open && (self.board.lost() > 0 || self.board.awaits_resent());
        if begins {
            self.enter_recovery(now);
        }
        begins
    }

    /// Reads the blocks above `ack`; gives the bytes that they are news of.
    fn note_blocks(&mut self, segment: &Segment) -> u64 {
        let mut news = 0;
        for block in segment.blocks() {
            news += self.board.sack(*block);
        }
        news
    }

    fn measure(&mut self, now: Time, segment: &Segment, is_news: bool) -> Option<Duration> {
        let echo = segment.echo.filter(|echo| is_news && *echo <= now)?;
        let rtt = now.since(echo);
        let out = self.board.nxt() - self.board.una();
        self.rto.sample(rtt, out.div_ceil(u64::from(self.config.mss)));
        self.rack.measured(rtt);
        Some(rtt)
    }

    /// Eifel detection (RFC 3522 §3.2) and its like by duplicates (RFC 3708).
    fn undo_if_needless(
        &mut self,
        now: Time,
        segment: &Segment,
        advanced: bool,
        twice: Option<Range>,
    ) {
        let Some(doubt) = &mut self.doubt else { return };
        // What was resent before this began says nothing of it.
        let twice = twice.filter(|twice| twice.end > doubt.from).map_or(0, |twice| twice.len());
        doubt.unconfirmed = doubt.unconfirmed.saturating_sub(twice);
        let arrived_before = match (doubt.since, segment.echo) {
            (Some(since), Some(echo)) if advanced => Some(echo < since),
            _ => None,
        };
        let all_twice = twice > 0 && doubt.since.is_some() && doubt.unconfirmed == 0;
        if arrived_before == Some(true) || all_twice {
            self.doubt = None;
            self.counts.undone += 1;
            self.board.unlose();
            if self.counts_blocks() {
                self.board.find_lost();
            }
            self.phase = Phase::Open;
            self.proportion = None;
            self.must_resend = false;
            self.congestion.on_spurious(now);
        } else if arrived_before == Some(false) {
            // The first one arrived because it was resent. Duplicates may still tell.
            doubt.since = Some(Time::ZERO);
        }
    }

    fn leave_phase(&mut self, now: Time) {
        match self.phase {
            Phase::Recovery { point } if self.board.una() >= point => {
                self.phase = Phase::Open;
                self.proportion = None;
                self.rack.recovered();
                self.congestion.on_recovered(now);
            }
            Phase::Loss { point } if self.board.una() >= point => self.phase = Phase::Open,
            _ => {}
        }
    }

    pub(super) fn enter_recovery(&mut self, now: Time) {
        self.phase = Phase::Recovery { point: self.board.nxt() };
        self.must_resend = self.board.lost() > 0;
        self.rescued = false;
        self.counts.recoveries += 1;
        // Of a first segment that was resent before this began, an early echo says nothing.
        let is_open_to_doubt = self.config.undoes && !self.board.awaits_resent();
        let doubt = Doubt { from: self.board.una(), since: None, unconfirmed: 0 };
        self.doubt = is_open_to_doubt.then_some(doubt);
        let flight = self.board.nxt() - self.board.una();
        self.proportion = self.config.proportional.then_some(Proportion {
            flight,
            delivered: 0,
            out: 0,
            budget: 0,
        });
        self.congestion.on_loss(now, flight);
    }
}

/// The range that a first block reports to have arrived twice (RFC 2883 §4).
fn note_twice(segment: &Segment) -> Option<Range> {
    let blocks = segment.blocks();
    let first = *blocks.first().filter(|first| first.start < first.end)?;
    let within = |outer: &Range| outer.start <= first.start && first.end <= outer.end;
    let is_twice = first.end <= segment.ack || blocks.get(1).is_some_and(within);
    is_twice.then_some(first)
}
