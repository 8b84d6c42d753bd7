//! The receiver's view of the actual stream: what has arrived over either sub-flow, and the
//! receive window (thesis §3.2.3).
//!
//! The window tunes itself: the buffer doubles when a packet says that it was the last that the
//! window let go, or when what is missing holds up half of it. It does not when the application is
//! what is slow. So it does not limit a sender for longer than a round trip until it has reached its
//! most, and a short or slow stream never has a large one.

use super::header::Credit;
use crate::transport::packet::Range;
use crate::transport::ranges::Ranges;

/// How large the receive buffer is, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffer {
    /// So large, always.
    Fixed(u64),
    /// It begins with `initial` and doubles when it is about to limit the sender, up to `max`.
    Auto {
        /// At the start.
        initial: u64,
        /// At most. A stream that is stuck may hold so much.
        max: u64,
    },
}

impl Buffer {
    /// At the start.
    pub fn initial(self) -> u64 {
        match self {
            Buffer::Fixed(bytes) => bytes,
            Buffer::Auto { initial, max } => initial.min(max),
        }
    }

    /// At most.
    pub fn max(self) -> u64 {
        match self {
            Buffer::Fixed(bytes) => bytes,
            Buffer::Auto { initial, max } => initial.max(max),
        }
    }
}

/// See [the module](self).
#[derive(Debug)]
pub struct Assembly {
    buffer: Buffer,
    mss: u64,
    /// Bytes that may have arrived and not been read, now.
    limit: u64,
    /// All before it has arrived.
    next: u64,
    /// The application took all before it.
    read: u64,
    /// The edge as it was told last.
    edge: u64,
    /// What arrived out of order.
    ranges: Ranges,
    /// The stream's length, when it is known.
    length: Option<u64>,
    /// What was sent before the sender knew of the last doubling ends before it.
    doubled: u64,
}

/// Ranges out of order that are kept beyond twice the full packets of the buffer.
const RANGES_SPARE: u64 = 64;

impl Assembly {
    /// Nothing has arrived; packets have `mss` bytes.
    pub fn new(buffer: Buffer, mss: u32) -> Assembly {
        let limit = buffer.initial();
        Assembly {
            buffer,
            mss: u64::from(mss.max(1)),
            limit,
            next: 0,
            read: 0,
            edge: limit,
            ranges: Ranges::default(),
            length: None,
            doubled: 0,
        }
    }

    /// Bytes that arrived in order and were not read.
    pub fn readable(&self) -> u64 {
        self.next - self.read
    }

    /// All before it has arrived.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The buffer, bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether the stream's end is known and all of it has arrived.
    pub fn is_finished(&self) -> bool {
        self.length == Some(self.next)
    }

    /// Takes the bytes of a packet, with which the window `is_full`; gives whether they have a place.
    /// A packet that has none is as if lost.
    pub fn take(&mut self, range: Range, is_full: bool) -> bool {
        let stop = self.edge.min(self.length.unwrap_or(u64::MAX));
        if range.end > stop {
            return false;
        }
        if range.end > self.next {
            let range = Range { start: range.start.max(self.next), ..range };
            let many = 2 * (self.limit / self.mss) + RANGES_SPARE;
            let is_next = range.start == self.next;
            if self.ranges.len() as u64 >= many && !is_next && !self.ranges.touches(range) {
                return false;
            }
            self.insert(range);
        }
        self.tune(range.end, is_full);
        true
    }

    fn insert(&mut self, range: Range) {
        if range.start == self.next
            && self.ranges.first().is_none_or(|first| first.start > range.end)
        {
            self.next = range.end;
            return;
        }
        self.ranges.insert(range);
        if let Some(first) = self.ranges.first().filter(|first| first.start == self.next) {
            self.next = first.end;
            self.ranges.remove_below(first.end);
        }
    }

    /// Bytes as far as `end` have arrived.
    fn tune(&mut self, end: u64, is_full: bool) {
        let holds_up = end.saturating_sub(self.next) > self.limit / 2;
        let limits = is_full && self.readable() < self.limit / 2;
        if (holds_up || limits) && end > self.doubled && self.limit < self.buffer.max() {
            self.doubled = self.edge;
            self.limit = self.limit.saturating_mul(2).min(self.buffer.max());
        }
    }

    /// The stream ends at `end`, the sender says. An end that cannot be is ignored.
    pub fn note_end(&mut self, end: u64) {
        let known = self.ranges.last().map_or(self.next, |last| last.end);
        if self.length.is_none() && end >= known {
            self.length = Some(end);
        }
    }

    /// The application takes up to `bytes_max`; gives how many, and whether the sender has to know.
    pub fn read(&mut self, bytes_max: u64) -> (u64, bool) {
        let bytes = bytes_max.min(self.readable());
        self.read += bytes;
        let gain = self.edge_next() - self.edge;
        let is_short = self.edge - self.next < 2 * self.mss && gain > 0;
        (bytes, is_short || gain >= self.limit / 4)
    }

    fn edge_next(&self) -> u64 {
        let edge = self.read + self.limit;
        // Only steps that are worth telling (RFC 9293 §3.8.6.2.2).
        let step = self.mss.min(self.limit / 2);
        if edge >= self.edge + step { edge } else { self.edge }
    }

    /// What an acknowledgement that goes now says.
    pub fn credit(&mut self, is_low_off: bool) -> Credit {
        self.edge = self.edge_next();
        Credit { ack: self.next, window: self.edge - self.next, is_low_off }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> Range {
        Range { start, end }
    }

    #[test]
    fn bytes_of_both_sub_flows_make_one_stream() {
        let mut assembly = Assembly::new(Buffer::Fixed(1_000), 10);
        assert!(assembly.take(range(20, 30), false) && assembly.take(range(40, 50), false));
        assert_eq!(assembly.readable(), 0);
        assert!(assembly.take(range(0, 20), false));
        assert_eq!(assembly.readable(), 30);
        assert!(assembly.take(range(25, 40), false), "a copy is no harm");
        assert_eq!((assembly.next(), assembly.read(45).0, assembly.readable()), (50, 45, 5));
        assembly.note_end(50);
        assert!(assembly.is_finished());
    }

    #[test]
    fn what_lies_behind_the_edge_or_the_end_has_no_place() {
        let mut assembly = Assembly::new(Buffer::Fixed(100), 10);
        assert!(!assembly.take(range(95, 105), false));
        assert!(assembly.take(range(50, 60), false));
        assembly.note_end(55);
        assert!(assembly.take(range(90, 100), false), "an end before what has arrived is a lie");
        assembly.note_end(100);
        assembly.note_end(200);
        assert!(assembly.take(range(0, 50), false) && assembly.take(range(60, 90), false));
        assert!(assembly.is_finished());
    }

    #[test]
    fn the_window_closes_with_what_is_unread_and_opens_by_whole_packets() {
        let mut assembly = Assembly::new(Buffer::Fixed(100), 10);
        assert!(assembly.take(range(0, 100), false));
        assert_eq!(assembly.credit(false), Credit { ack: 100, window: 0, is_low_off: false });
        assert_eq!(assembly.read(5), (5, false), "too little to tell");
        assert_eq!(assembly.read(10), (10, true));
        assert_eq!(assembly.credit(true), Credit { ack: 100, window: 15, is_low_off: true });
    }

    #[test]
    fn a_buffer_doubles_when_it_limits_and_stops_at_its_most() {
        let mut assembly = Assembly::new(Buffer::Auto { initial: 100, max: 300 }, 10);
        let mut arrive = |start, end, is_full| {
            assert!(assembly.take(range(start, end), is_full));
            assembly.read(u64::MAX);
            (assembly.limit(), assembly.credit(false).window)
        };
        assert_eq!(arrive(0, 90, false), (100, 100));
        assert_eq!(arrive(90, 100, true), (200, 200));
        assert_eq!(arrive(100, 110, true), (200, 200), "sent before the last doubling was known");
        assert_eq!(arrive(110, 200, true), (300, 300));
        assert_eq!(arrive(200, 500, true), (300, 300));
    }

    #[test]
    fn a_buffer_doubles_when_what_is_missing_holds_half_of_it_up() {
        let mut assembly = Assembly::new(Buffer::Auto { initial: 100, max: 300 }, 10);
        assert!(assembly.take(range(40, 50), false));
        assert_eq!(assembly.limit(), 100);
        assert!(assembly.take(range(50, 60), false));
        assert_eq!((assembly.limit(), assembly.credit(false).window), (200, 200));
    }

    #[test]
    fn a_slow_reader_does_not_enlarge_the_buffer() {
        let mut assembly = Assembly::new(Buffer::Auto { initial: 100, max: 300 }, 10);
        assert!(assembly.take(range(0, 100), true));
        assert_eq!(assembly.limit(), 100);
    }

    #[test]
    fn scattered_bytes_are_kept_up_to_a_bound() {
        let mut assembly = Assembly::new(Buffer::Fixed(10_000), 1_000);
        let kept =
            (0..4_999).filter(|at| assembly.take(range(2 * at + 1, 2 * at + 2), false)).count();
        assert_eq!(kept as u64, 2 * 10 + RANGES_SPARE);
        assert!(assembly.take(range(0, 1), false), "what comes in order always has a place");
    }
}
