//! From the HCM's virtual stream to the actual one: pieces that follow each other in the virtual
//! stream, from the first byte that is not acknowledged.

use crate::transport::packet::Range;
use std::collections::VecDeque;

/// Virtual bytes that are actual bytes in one run.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Its first virtual offset.
    virt: u64,
    /// Its bytes of the actual stream.
    actual: Range,
}

/// See [the module](self).
#[derive(Clone, Debug, Default)]
pub struct SequenceMap {
    pieces: VecDeque<Piece>,
    /// Behind the last virtual offset.
    end: u64,
}

impl SequenceMap {
    /// The next virtual bytes are these actual ones.
    pub fn push(&mut self, actual: Range) {
        match self.pieces.back_mut() {
            Some(last) if last.actual.end == actual.start => last.actual.end = actual.end,
            _ => self.pieces.push_back(Piece { virt: self.end, actual }),
        }
        self.end += actual.len();
    }

    /// The virtual bytes before `una` are acknowledged: they are forgotten.
    pub fn advance(&mut self, una: u64) {
        while let Some(first) = self.pieces.front_mut().filter(|first| first.virt < una) {
            let step = (una - first.virt).min(first.actual.len());
            first.virt += step;
            first.actual.start += step;
            if first.actual.is_empty() {
                self.pieces.pop_front();
            } else {
                return;
            }
        }
    }

    /// The actual bytes from virtual offset `virt` on that lie in one run; none when it is not
    /// mapped.
    pub fn actual(&self, virt: u64) -> Option<Range> {
        let at = self.pieces.partition_point(|piece| piece.virt <= virt).checked_sub(1)?;
        let piece = self.pieces[at];
        let start = piece.actual.start + (virt - piece.virt);
        (start < piece.actual.end).then_some(Range { start, end: piece.actual.end })
    }

    /// Where a segment that begins at `virt` must end at the latest.
    pub fn cut(&self, virt: u64) -> u64 {
        self.actual(virt).map_or(u64::MAX, |run| virt + run.len())
    }

    /// How many runs it knows.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The actual bytes that are mapped, in virtual order.
    pub fn runs(&self) -> impl Iterator<Item = Range> {
        self.pieces.iter().map(|piece| piece.actual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> Range {
        Range { start, end }
    }

    #[test]
    fn virtual_bytes_are_found_in_the_actual_stream_until_they_are_acknowledged() {
        let mut map = SequenceMap::default();
        for (start, end) in [(0, 10), (10, 20), (50, 60), (20, 25)] {
            map.push(range(start, end));
        }
        assert_eq!(map.len(), 3, "runs that follow each other are one");
        assert_eq!(map.actual(5), Some(range(5, 20)));
        assert_eq!(map.actual(20), Some(range(50, 60)));
        assert_eq!(map.actual(32), Some(range(22, 25)));
        assert_eq!(map.actual(35), None);
        assert_eq!((map.cut(19), map.cut(20)), (20, 30), "no segment spans two runs");
        map.advance(25);
        assert_eq!((map.actual(24), map.actual(27)), (None, Some(range(57, 60))));
        map.advance(35);
        assert!(map.is_empty());
        map.push(range(60, 70));
        assert_eq!(map.actual(35), Some(range(60, 70)));
    }
}
