//! The receiving half: what has arrived, what may come, and which acknowledgements are due.
//!
//! Acknowledgements by RFC 5681 §4.2: every second segment with data at the latest, others within
//! a delay, and at once when a segment is out of order, fills a gap, or came twice. Blocks by RFC
//! 2018 §4 with the range of the latest segment first, after the duplicate by RFC 2883 if there is
//! one. The window's edge never moves back, and forward only in steps worth telling (RFC 9293
//! §3.8.6.2.2).
//!
//! Bounded by the window: ranges out of order by twice the full segments that fit into it; a
//! segment that would exceed that is as if lost.

use crate::time::{Duration, Time};
use crate::transport::packet::{Range, SACK_BLOCKS_MAX, Segment};
use std::collections::VecDeque;

/// What shapes a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Payload bytes of the peer's full segment.
    pub mss: u32,
    /// The receive buffer, bytes: what may be on its way, out of order, or unread. Default 4 MiB.
    /// Raised, long fat pipes fill, and a slow reader keeps more.
    pub buffer: u64,
    /// Whether a window above 65,535 bytes can be told (RFC 7323 §2). Default yes.
    pub window_scaling: bool,
    /// How long an acknowledgement may wait for a second segment; none: no segment waits. Default
    /// 40 ms, as in Linux; RFC 1122 allows 500 ms and others take 200 ms.
    pub delayed_ack: Option<Duration>,
    /// Segments at the start that are acknowledged at once though acknowledgements are delayed, as
    /// Linux does. Default 0.
    pub quick_acks: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mss: 1448,
            buffer: 4 << 20,
            window_scaling: true,
            delayed_ack: Some(Duration::from_millis(40)),
            quick_acks: 0,
        }
    }
}

impl Config {
    /// The window that it begins with, bytes.
    pub fn window(&self) -> u64 {
        if self.window_scaling { self.buffer } else { self.buffer.min(65_535) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    No,
    At(Time),
    Now,
}

/// See [the module](self).
#[derive(Debug)]
pub struct Receiver {
    config: Config,
    /// All before it has arrived.
    next: u64,
    /// The application took all before it.
    read: u64,
    /// The window's edge as told last.
    edge: u64,
    /// What arrived out of order, sorted, with gaps between.
    ranges: VecDeque<Range>,
    /// An offset in each of the ranges that changed last, the latest first.
    recent: [u64; SACK_BLOCKS_MAX],
    recent_len: u8,
    twice: Option<Range>,
    /// The stream's length, when its end was seen.
    length: Option<u64>,
    due: Due,
    /// Segments with data that wait for their acknowledgement.
    waiting: u32,
    quick_left: u32,
    echo: Option<Time>,
    feedback: Option<f64>,
}

impl Receiver {
    /// Nothing has arrived.
    pub fn new(config: Config) -> Receiver {
        Receiver {
            next: 0,
            read: 0,
            edge: config.window(),
            ranges: VecDeque::new(),
            recent: [0; SACK_BLOCKS_MAX],
            recent_len: 0,
            twice: None,
            length: None,
            due: Due::No,
            waiting: 0,
            quick_left: config.quick_acks,
            echo: None,
            feedback: None,
            config,
        }
    }

    /// Bytes that arrived in order and were not read.
    pub fn readable(&self) -> u64 {
        self.next - self.read
    }

    /// The window that it begins with.
    pub fn window_at_start(&self) -> u64 {
        self.config.window()
    }

    /// Whether `seq` may come next, loss allowed for.
    pub fn is_in_window(&self, seq: u64) -> bool {
        (self.next..=self.edge + 1).contains(&seq)
    }

    /// All before it has arrived.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether the stream has ended and all of it arrived.
    pub fn is_finished(&self) -> bool {
        self.length == Some(self.next)
    }

    /// When an acknowledgement is due at the latest.
    pub fn next_deadline(&self) -> Option<Time> {
        match self.due {
            Due::At(at) => Some(at),
            Due::No | Due::Now => None,
        }
    }

    /// The deadline came, or an early call.
    pub fn handle_deadline(&mut self, now: Time) {
        if self.next_deadline().is_some_and(|at| at <= now) {
            self.due = Due::Now;
        }
    }

    /// Whether an acknowledgement is due now.
    pub fn is_due(&self) -> bool {
        self.due == Due::Now
    }

    /// An acknowledgement has to go now, for the sake of the set-up.
    pub fn acknowledge(&mut self, echo: Time) {
        self.due = Due::Now;
        self.echo.get_or_insert(echo);
    }

    /// An acknowledgement has to go now, for what it carries besides.
    pub fn announce(&mut self) {
        self.due = Due::Now;
    }

    /// The application takes up to `bytes_max`; gives how many.
    pub fn read(&mut self, bytes_max: u64) -> u64 {
        let bytes = bytes_max.min(self.readable());
        self.read += bytes;
        // An update goes by itself when the peer may be out of window, or after a quarter of it.
        let (gain, left) = (self.edge_next() - self.edge, self.edge - self.next);
        let is_short = left < 2 * u64::from(self.config.mss) && gain > 0;
        if is_short || gain >= self.config.window() / 4 {
            self.due = Due::Now;
        }
        bytes
    }

    /// The edge that can be told now.
    fn edge_next(&self) -> u64 {
        let open = self.config.buffer - self.readable();
        let open = if self.config.window_scaling { open } else { open.min(65_535) };
        let edge = self.next + open;
        let step = u64::from(self.config.mss).min(self.config.buffer / 2);
        if edge >= self.edge + step { edge } else { self.edge }
    }

    /// A segment with data, the stream's end, or neither came. Gives the bytes by which what is
    /// readable grew.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, len: u32, fed: Option<f64>) -> u64 {
        let end = segment.seq.saturating_add(u64::from(len));
        let before = self.next;
        if let Some(fed) = fed {
            self.feedback = Some(self.feedback.unwrap_or(0.0) + fed);
        }
        if segment.fin && self.length.is_none() && end <= self.edge && end >= self.known_end() {
            self.length = Some(end);
        }
        if len == 0 && !segment.fin {
            return 0;
        }
        let stop = end.min(self.edge).min(self.length.unwrap_or(u64::MAX));
        let fits = Range { start: segment.seq, end: stop };
        let in_order = self.take(fits, end);
        self.schedule(now, segment, in_order && !segment.fin);
        self.next - before
    }

    /// Behind the last byte that arrived.
    fn known_end(&self) -> u64 {
        self.ranges.back().map_or(self.next, |last| last.end)
    }

    /// Notes the bytes of `range`, what fits of a segment that ends at `end`. Gives whether the
    /// segment was just the next one.
    fn take(&mut self, range: Range, end: u64) -> bool {
        if range.end <= self.next {
            let is_twice = range.start < range.end;
            self.twice = if is_twice { Some(range) } else { self.twice };
            return false;
        }
        if range.start >= range.end {
            return false;
        }
        if range.start <= self.next && self.ranges.is_empty() {
            let is_next = range.start == self.next && range.end == end;
            self.next = range.end;
            return is_next;
        }
        let range = Range { start: range.start.max(self.next), ..range };
        self.insert(range);
        if let Some(first) = self.ranges.front().copied().filter(|first| first.start == self.next) {
            self.next = first.end;
            self.ranges.pop_front();
        }
        false
    }

    /// Adds a range out of order to the others.
    fn insert(&mut self, range: Range) {
        // The first that touches it or lies behind it.
        let at = match self.ranges.back() {
            Some(last) if last.end < range.start => self.ranges.len(),
            _ => self.ranges.partition_point(|old| old.end < range.start),
        };
        let Some(&old) = self.ranges.get(at).filter(|old| old.start <= range.end) else {
            if self.ranges.len() as u64 > 2 * (self.config.buffer / u64::from(self.config.mss)) {
                return;
            }
            self.ranges.insert(at, range);
            self.remember(range.start);
            return;
        };
        if old.start <= range.start && range.end <= old.end {
            self.twice = Some(range);
            self.remember(range.start);
            return;
        }
        let mut to = at + 1;
        let mut end = range.end.max(old.end);
        while let Some(next) = self.ranges.get(to).filter(|next| next.start <= range.end) {
            end = end.max(next.end);
            to += 1;
        }
        self.ranges[at] = Range { start: old.start.min(range.start), end };
        match to - at {
            1 => {}
            2 => drop(self.ranges.remove(at + 1)),
            _ => drop(self.ranges.drain(at + 1..to)),
        }
        self.remember(range.start);
    }

    /// The range around `offset` changed last.
    fn remember(&mut self, offset: u64) {
        let len = usize::from(self.recent_len);
        if len > 0 && self.range_at(self.recent[0]) == self.range_at(offset) {
            self.recent[0] = offset;
            return;
        }
        self.recent.copy_within(0..SACK_BLOCKS_MAX - 1, 1);
        self.recent[0] = offset;
        self.recent_len = (len + 1).min(SACK_BLOCKS_MAX) as u8;
    }

    fn range_at(&self, offset: u64) -> Option<Range> {
        let last = self.ranges.back()?;
        if last.start <= offset {
            return (offset < last.end).then_some(*last);
        }
        let at = self.ranges.partition_point(|range| range.end <= offset);
        self.ranges.get(at).filter(|range| range.start <= offset).copied()
    }

    /// When the acknowledgement of this segment goes.
    fn schedule(&mut self, now: Time, segment: &Segment, can_wait: bool) {
        self.waiting += 1;
        // What waits longest is measured; what makes an acknowledgement go is measured (RFC 7323
        // §4.3, and its echo out of order tells of the segment itself).
        if self.waiting == 1 || !can_wait {
            self.echo = Some(segment.sent);
        }
        let is_quick = self.quick_left > 0;
        self.quick_left = self.quick_left.saturating_sub(1);
        self.due = match (self.config.delayed_ack, self.due) {
            (Some(delay), Due::No)
                if can_wait && self.waiting < 2 && !is_quick && self.ranges.is_empty() =>
            {
                Due::At(now + delay)
            }
            _ => Due::Now,
        };
    }

    /// Bytes of options that [`Receiver::fill`] will need for blocks.
    pub fn blocks_len(&self) -> u32 {
        blocks_len(usize::from(self.twice.is_some()) + self.ranges.len())
    }

    /// Writes the acknowledgement into a segment that goes now, whose options may take
    /// `options_max` bytes. Nothing is due after it, unless the blocks do not fit: then they go
    /// with an acknowledgement of their own.
    pub fn fill(&mut self, segment: &mut Segment, options_max: u32) {
        self.edge = self.edge_next();
        segment.has_ack = true;
        segment.ack = self.next;
        segment.window = self.edge - self.next;
        segment.fin_acked = self.is_finished();
        if self.blocks_len() > options_max {
            return;
        }
        segment.echo = self.echo.take();
        segment.feedback = self.feedback.take();
        self.due = Due::No;
        self.waiting = 0;
        let twice = self.twice.take();
        if twice.is_some() || !self.ranges.is_empty() {
            self.fill_blocks(twice, segment);
        } else {
            self.recent_len = 0;
        }
    }

    fn fill_blocks(&mut self, twice: Option<Range>, segment: &mut Segment) {
        let mut len = 0;
        if let Some(twice) = twice {
            segment.sack[0] = twice;
            len = 1;
        }
        let first = len;
        for recent in 0..usize::from(self.recent_len) {
            if len == SACK_BLOCKS_MAX {
                break;
            }
            let Some(range) = self.range_at(self.recent[recent]) else { continue };
            if !segment.sack[first..len].contains(&range) {
                segment.sack[len] = range;
                len += 1;
            }
        }
        segment.sack_len = len as u8;
    }
}

/// Bytes of the option with so many blocks, padded (RFC 2018 §3).
pub fn blocks_len(blocks: usize) -> u32 {
    match blocks.min(SACK_BLOCKS_MAX) as u32 {
        0 => 0,
        blocks => 4 + 8 * blocks,
    }
}

#[cfg(test)]
mod tests;
