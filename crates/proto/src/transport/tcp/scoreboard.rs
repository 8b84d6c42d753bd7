//! What is known of the bytes on their way (RFC 6675).
//!
//! Between the first byte that is not acknowledged (`una`) and the last that was sent (`nxt`), a
//! byte is *out*, *selectively acknowledged*, *lost*, or *resent*. The board keeps the bytes that
//! are not selectively acknowledged as sorted runs of one state, and nothing for each packet:
//!
//! ```text
//! una                        known                nxt
//!  |-----|#####|-----|########|--------------------|      # acknowledged selectively: no run
//!   Lost        Out             out, without a run        - a run
//! ```
//!
//! - *IsLost* (§4) is the same answer for all bytes of a run, and grows towards `una`. So what is
//!   newly lost is found from the right end: three gaps to look at, whatever the window.
//! - *Pipe* (§4) is a difference of counters.
//! - A block of SACK costs a binary search over the runs, and the runs that it removes.
//!
//! Deviation: a segment that rule 3 of *NextSeg* resends before it is lost counts once in the pipe,
//! not twice. Addition: with [`Scoreboard::find_lost_resends`] a resent segment can be lost again
//! (as in RFC 8985); without it that takes a time-out, as in RFC 6675.
//!
//! The number of runs is bounded by twice the segments in flight plus [`RUNS_SPARE`], whatever the
//! blocks say.

use crate::time::{Duration, Time};
use crate::transport::packet::Range;
use std::collections::VecDeque;

/// Runs that are allowed beyond twice the full segments in flight: segments can be shorter.
pub const RUNS_SPARE: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Out,
    Lost,
    Resent,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    start: u64,
    end: u64,
    state: State,
}

impl Run {
    fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// A retransmission whose fate is open.
#[derive(Clone, Copy, Debug)]
struct Resend {
    start: u64,
    end: u64,
    sent: Time,
}

/// See [the module](self).
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    mss: u32,
    /// *DupThresh*.
    threshold: u32,
    una: u64,
    nxt: u64,
    /// Behind the highest byte that a run or a block covers.
    known: u64,
    runs: VecDeque<Run>,
    sacked: u64,
    lost: u64,
    /// Runs that end here or before have been judged lost or not: the edge of *IsLost*.
    judged: u64,
    /// No run that is lost starts before it.
    lost_from: u64,
    /// *HighRxt*: behind the highest byte resent.
    resent_to: u64,
    /// In the order sent; empty unless lost retransmissions are looked for.
    resends: VecDeque<Resend>,
}

impl Scoreboard {
    /// A board for a stream of segments of at most `mss` bytes, which takes `threshold` (3) blocks
    /// or more than `threshold - 1` segments above a byte for its loss.
    pub fn new(mss: u32, threshold: u32) -> Scoreboard {
        Scoreboard { mss: mss.max(1), threshold: threshold.max(1), ..Scoreboard::default() }
    }

    /// The first byte that is not acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// Behind the last byte sent.
    pub fn nxt(&self) -> u64 {
        self.nxt
    }

    /// *Pipe*: bytes sent that neither arrived nor are lost, as far as is known.
    pub fn pipe(&self) -> u64 {
        self.nxt - self.una - self.sacked - self.lost
    }

    /// Bytes acknowledged selectively.
    pub fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Bytes lost and not yet resent.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether the first byte that is not acknowledged was resent.
    pub fn awaits_resent(&self) -> bool {
        self.una < self.resent_to
    }

    /// Behind the highest byte of which anything is known.
    pub fn known(&self) -> u64 {
        self.known.max(self.una)
    }

    /// Whether anything behind `offset` was resent.
    pub fn was_resent_behind(&self, offset: u64) -> bool {
        offset < self.resent_to
    }

    /// Whether anything is missing below the highest block that is neither lost nor resent.
    pub fn has_doubtful(&self) -> bool {
        self.runs.back().is_some_and(|run| run.state == State::Out)
    }

    /// `bytes` were sent for the first time.
    pub fn sent(&mut self, bytes: u64) {
        self.nxt += bytes;
    }

    /// All before `ack` arrived. Gives the bytes that this is news of. `ack` must lie within
    /// `una..=nxt`.
    pub fn advance(&mut self, ack: u64) -> u64 {
        let mut news = ack.saturating_sub(self.known.max(self.una));
        while let Some(run) = self.runs.front_mut().filter(|run| run.start < ack) {
            let part = Run { end: run.end.min(ack), ..*run };
            run.start = part.end;
            if run.start == run.end {
                self.runs.pop_front();
            }
            self.uncount(part);
            news += part.len();
        }
        // A peer that never echoes must not make them pile up.
        while self.resends.front().is_some_and(|resend| resend.end <= ack) {
            self.resends.pop_front();
        }
        self.sacked -= (ack - self.una) - news;
        self.una = ack;
        self.known = self.known.max(ack);
        news
    }

    /// A block of SACK. Gives the bytes that it is news of: none for a block that reaches beyond
    /// what was sent, or below what is acknowledged.
    pub fn sack(&mut self, block: Range) -> u64 {
        if block.start >= block.end || block.start < self.una || block.end > self.nxt {
            return 0;
        }
        let known = self.known;
        let mut news = 0;
        if block.end > known {
            let from = block.start.max(known);
            if from > known {
                if self.is_full() {
                    return 0;
                }
                self.runs.push_back(Run { start: known, end: from, state: State::Out });
            }
            self.known = block.end;
            news = block.end - from;
        }
        if block.start < known {
            news += self.cut(Range { start: block.start, end: block.end.min(known) });
        }
        self.sacked += news;
        news
    }

    /// Takes `block` out of the runs.
    fn cut(&mut self, block: Range) -> u64 {
        let mut at = self.run_behind(block.start);
        let Some(&first) = self.runs.get(at).filter(|run| run.start < block.end) else {
            return 0;
        };
        let mut news = 0;
        if first.start < block.start {
            if first.end > block.end {
                return self.split(at, block);
            }
            self.runs[at].end = block.start;
            self.uncount(Run { start: block.start, ..first });
            news += first.end - block.start;
            at += 1;
        }
        let mut to = at;
        while let Some(&run) = self.runs.get(to).filter(|run| run.end <= block.end) {
            self.uncount(run);
            news += run.len();
            to += 1;
        }
        if let Some(&run) = self.runs.get(to).filter(|run| run.start < block.end) {
            self.runs[to].start = block.end;
            self.uncount(Run { end: block.end, ..run });
            news += block.end - run.start;
        }
        match to - at {
            0 => {}
            1 => drop(self.runs.remove(at)),
            _ => drop(self.runs.drain(at..to)),
        }
        news
    }

    /// Takes `block` out of the middle of a run.
    fn split(&mut self, at: usize, block: Range) -> u64 {
        if self.is_full() {
            return 0;
        }
        let whole = self.runs[at];
        self.runs[at].end = block.start;
        self.runs.insert(at + 1, Run { start: block.end, ..whole });
        self.uncount(Run { start: block.start, end: block.end, ..whole });
        block.end - block.start
    }

    /// *Update* and *IsLost* (§4): finds what is lost by the blocks known now; gives its bytes.
    pub fn find_lost(&mut self) -> u64 {
        let (mut blocks, mut bytes, mut right) = (0, 0, self.known);
        let enough = u64::from(self.threshold - 1) * u64::from(self.mss);
        for at in (0..self.runs.len()).rev() {
            let run = self.runs[at];
            if run.end <= self.judged {
                return 0;
            }
            let gap = right - run.end;
            bytes += gap;
            blocks += u32::from(gap > 0);
            if blocks >= self.threshold || bytes > enough {
                return self.lose_to(at);
            }
            right = run.start;
        }
        0
    }

    /// The runs up to index `last` are lost.
    fn lose_to(&mut self, last: usize) -> u64 {
        let mut news = 0;
        for at in (0..=last).rev() {
            let run = &mut self.runs[at];
            if run.end <= self.judged {
                break;
            }
            if run.state == State::Out {
                run.state = State::Lost;
                news += run.len();
                self.lost_from = self.lost_from.min(run.start);
            }
        }
        self.judged = self.runs[last].end;
        self.lost += news;
        news
    }

    /// What is missing below `offset` and was not resent is lost. Gives its bytes.
    pub fn lose_below(&mut self, offset: u64) -> u64 {
        let mut news = 0;
        for at in self.run_behind(self.judged)..self.runs.len() {
            let run = self.runs[at];
            if run.start >= offset {
                break;
            }
            if run.state == State::Out {
                let end = run.end.min(offset);
                if end < run.end {
                    if self.is_full() {
                        break;
                    }
                    self.runs.insert(at + 1, Run { start: end, ..run });
                }
                self.runs[at] = Run { end, state: State::Lost, ..run };
                news += end - run.start;
                self.lost_from = self.lost_from.min(run.start);
                self.judged = end;
            }
        }
        self.lost += news;
        news
    }

    /// The first segment is lost, by duplicate acknowledgements alone. Gives its bytes.
    pub fn lose_first(&mut self) -> u64 {
        let Some(&first) = self.runs.front() else { return 0 };
        if first.state != State::Out {
            return 0;
        }
        let end = first.end.min(first.start + u64::from(self.mss));
        self.runs[0].state = State::Lost;
        if end < first.end {
            self.runs[0].end = end;
            self.runs.insert(1, Run { start: end, ..first });
        }
        self.lost += end - first.start;
        self.lost_from = first.start;
        end - first.start
    }

    /// A time-out: all that is not acknowledged is lost. When the receiver acknowledges less than
    /// it had said, what it said is forgotten (RFC 2018 §8).
    pub fn lose_all(&mut self) {
        if self.has_reneged() {
            self.runs.clear();
            self.sacked = 0;
            self.known = self.una;
        }
        if self.known < self.nxt {
            self.runs.push_back(Run { start: self.known, end: self.nxt, state: State::Lost });
        }
        self.known = self.nxt;
        self.runs.iter_mut().for_each(|run| run.state = State::Lost);
        self.join_runs();
        self.lost = self.nxt - self.una - self.sacked;
        self.lost_from = self.una;
        self.judged = self.nxt;
        self.resent_to = self.una;
        self.resends.clear();
    }

    /// Nothing is lost after all, except by the blocks known now. What was resent is on its way
    /// all the same.
    pub fn unlose(&mut self) {
        for run in self.runs.iter_mut().filter(|run| run.state == State::Lost) {
            run.state = State::Out;
        }
        self.join_runs();
        self.lost = 0;
        self.judged = self.una;
        self.resent_to = self.una;
        self.lost_from = self.known;
    }

    /// Whether the byte at `una` had been acknowledged selectively.
    fn has_reneged(&self) -> bool {
        self.sacked > 0 && self.runs.front().is_none_or(|run| run.start > self.una)
    }

    /// Joins neighbours of one state.
    fn join_runs(&mut self) {
        let mut kept = 0;
        for at in 1..self.runs.len() {
            let run = self.runs[at];
            let last = &mut self.runs[kept];
            if last.end == run.start && last.state == run.state {
                last.end = run.end;
            } else {
                kept += 1;
                self.runs[kept] = run;
            }
        }
        self.runs.truncate(kept + 1);
    }

    /// *NextSeg* rule 1 (§4): the first segment that is lost and was not resent. It counts as
    /// resent at `now`, and is watched when `is_watched`; it ends at `cut(start)` at the latest.
    pub fn resend_lost(
        &mut self,
        now: Time,
        is_watched: bool,
        cut: &impl Fn(u64) -> u64,
    ) -> Option<Range> {
        if self.lost == 0 {
            return None;
        }
        let from = self.run_behind(self.lost_from);
        let at = from + self.runs.range(from..).position(|run| run.state == State::Lost)?;
        let range = self.resend(at, now, is_watched, cut);
        self.lost_from = range.end;
        self.lost -= range.len();
        Some(range)
    }

    /// *NextSeg* rule 3: the first segment below the highest block that was not resent, though it
    /// is not lost.
    pub fn resend_doubtful(
        &mut self,
        now: Time,
        is_watched: bool,
        cut: &impl Fn(u64) -> u64,
    ) -> Option<Range> {
        let at = self.run_behind(self.judged.max(self.resent_to));
        // The tail behind the highest block is not below a block.
        self.runs.get(at).filter(|run| run.state == State::Out && run.end < self.known)?;
        Some(self.resend(at, now, is_watched, cut))
    }

    /// *NextSeg* rule 4: the last segment that is not acknowledged. Only the caller knows that it
    /// was resent.
    pub fn last_segment(&self) -> Option<Range> {
        let mss = u64::from(self.mss);
        let end = if self.known < self.nxt { self.nxt } else { self.runs.back()?.end };
        let start =
            if self.known < self.nxt { self.known.max(self.una) } else { self.runs.back()?.start };
        Some(Range { start: start.max(end.saturating_sub(mss)), end })
    }

    /// The first segment of the run at `at` is resent.
    fn resend(
        &mut self,
        at: usize,
        now: Time,
        is_watched: bool,
        cut: &impl Fn(u64) -> u64,
    ) -> Range {
        let run = self.runs[at];
        let most = cut(run.start).max(run.start + 1);
        let end = run.end.min(run.start + u64::from(self.mss)).min(most);
        let part = Run { end, state: State::Resent, ..run };
        let joins = at.checked_sub(1).is_some_and(|before| {
            let before = self.runs[before];
            before.end == run.start && before.state == State::Resent
        });
        match (joins, end == run.end) {
            (true, true) => {
                self.runs[at - 1].end = end;
                self.runs.remove(at);
            }
            (true, false) => {
                self.runs[at - 1].end = end;
                self.runs[at].start = end;
            }
            (false, true) => self.runs[at] = part,
            (false, false) => {
                self.runs[at].start = end;
                self.runs.insert(at, part);
            }
        }
        self.resent_to = self.resent_to.max(end);
        if is_watched {
            self.resends.push_back(Resend { start: run.start, end, sent: now });
        }
        Range { start: run.start, end }
    }

    /// A segment sent at `echo` arrived: what was resent more than `slack` before it and did not
    /// arrive is lost again. Gives its bytes.
    pub fn find_lost_resends(&mut self, echo: Time, slack: Duration) -> u64 {
        let mut news = 0;
        while let Some(&resend) = self.resends.front().filter(|resend| resend.sent + slack < echo) {
            self.resends.pop_front();
            news += self.lose_resend(resend);
        }
        self.lost += news;
        news
    }

    fn lose_resend(&mut self, resend: Resend) -> u64 {
        let mut news = 0;
        let mut at = self.run_behind(resend.start);
        while let Some(&run) = self.runs.get(at).filter(|run| run.start < resend.end) {
            let (start, end) = (run.start.max(resend.start), run.end.min(resend.end));
            at += 1;
            if run.state != State::Resent
                || (self.is_full() && (start, end) != (run.start, run.end))
            {
                continue;
            }
            self.runs[at - 1] = Run { start, end, state: State::Lost };
            if run.start < start {
                self.runs.insert(at - 1, Run { end: start, ..run });
                at += 1;
            }
            if end < run.end {
                self.runs.insert(at, Run { start: end, ..run });
                at += 1;
            }
            news += end - start;
            self.lost_from = self.lost_from.min(start);
        }
        news
    }

    /// The index of the first run that ends behind `offset`.
    fn run_behind(&self, offset: u64) -> usize {
        // What is asked for lies at an end of the board most of the time.
        if self.runs.front().is_none_or(|run| run.end > offset) {
            return 0;
        }
        if self.runs.back().is_none_or(|run| run.end <= offset) {
            return self.runs.len();
        }
        self.runs.partition_point(|run| run.end <= offset)
    }

    fn is_full(&self) -> bool {
        let segments = (self.nxt - self.una) / u64::from(self.mss);
        self.runs.len() as u64 >= 2 * segments + RUNS_SPARE as u64
    }

    fn uncount(&mut self, part: Run) {
        if part.state == State::Lost {
            self.lost -= part.len();
        }
    }

    /// Panics when the counters do not fit the runs. For tests.
    pub fn check_invariants(&self) {
        assert!(self.una <= self.known && self.known <= self.nxt, "{self:?}");
        let (mut right, mut lost, mut holes) = (self.una, 0, 0);
        for run in &self.runs {
            assert!(right <= run.start && run.start < run.end && run.end <= self.known, "{self:?}");
            right = run.end;
            holes += run.len();
            if run.state == State::Lost {
                lost += run.len();
                assert!(self.lost_from <= run.start, "a lost run hides: {self:?}");
            }
        }
        assert_eq!(self.lost, lost, "{self:?}");
        assert_eq!(self.sacked, self.known - self.una - holes, "{self:?}");
    }
}

#[cfg(test)]
mod tests;
