//! A set of bytes, as sorted ranges with gaps between.

use super::packet::Range;
use std::collections::VecDeque;

/// See [the module](self).
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    ranges: VecDeque<Range>,
    bytes: u64,
}

impl Ranges {
    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The first range.
    pub fn first(&self) -> Option<Range> {
        self.ranges.front().copied()
    }

    /// The last range.
    pub fn last(&self) -> Option<Range> {
        self.ranges.back().copied()
    }

    /// The ranges, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &Range> {
        self.ranges.iter()
    }

    /// The ranges that end behind `offset`, sorted.
    pub fn behind(&self, offset: u64) -> impl Iterator<Item = &Range> {
        let at = self.ranges.partition_point(|range| range.end <= offset);
        self.ranges.range(at..)
    }

    /// Whether a range would be joined to one that is there, so that the set gets no longer.
    pub fn touches(&self, range: Range) -> bool {
        let at = self.ranges.partition_point(|old| old.end < range.start);
        self.ranges.get(at).is_some_and(|old| old.start <= range.end)
    }

    /// Adds a range; gives how many of its bytes were not there.
    pub fn insert(&mut self, range: Range) -> u64 {
        if range.is_empty() {
            return 0;
        }
        // The first that touches it or lies behind it.
        let at = match self.ranges.back() {
            Some(last) if last.end < range.start => self.ranges.len(),
            _ => self.ranges.partition_point(|old| old.end < range.start),
        };
        let Some(&old) = self.ranges.get(at).filter(|old| old.start <= range.end) else {
            self.ranges.insert(at, range);
            self.bytes += range.len();
            return range.len();
        };
        let mut joined = Range { start: range.start.min(old.start), end: range.end.max(old.end) };
        let (mut to, mut had) = (at + 1, old.len());
        while let Some(next) = self.ranges.get(to).filter(|next| next.start <= joined.end) {
            joined.end = joined.end.max(next.end);
            had += next.len();
            to += 1;
        }
        self.ranges[at] = joined;
        if to > at + 1 {
            self.ranges.drain(at + 1..to);
        }
        let news = joined.len() - had;
        self.bytes += news;
        news
    }

    /// Takes out all before `offset`; gives how many bytes that were.
    pub fn remove_below(&mut self, offset: u64) -> u64 {
        let before = self.bytes;
        while let Some(first) = self.ranges.front_mut().filter(|first| first.start < offset) {
            self.bytes -= first.end.min(offset) - first.start;
            first.start = first.end.min(offset);
            if first.is_empty() {
                self.ranges.pop_front();
            }
        }
        before - self.bytes
    }

    /// Takes out the first bytes, at most so many, as far as they are in one range.
    pub fn pop(&mut self, bytes_max: u64) -> Option<Range> {
        let first = self.first()?;
        let taken = Range { end: first.end.min(first.start + bytes_max.max(1)), ..first };
        self.remove_below(taken.end);
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(start: u64, end: u64) -> Range {
        Range { start, end }
    }

    #[test]
    fn neighbours_are_joined_and_the_first_are_taken() {
        let mut set = Ranges::default();
        assert_eq!(set.insert(range(10, 20)), 10);
        assert_eq!(set.insert(range(30, 40)), 10);
        assert!(set.touches(range(20, 22)) && !set.touches(range(22, 25)));
        assert_eq!(set.insert(range(15, 30)), 10);
        assert_eq!((set.len(), set.bytes(), set.last()), (1, 30, Some(range(10, 40))));
        assert_eq!(set.pop(12), Some(range(10, 22)));
        assert_eq!(set.remove_below(30), 8);
        assert_eq!(set.behind(29).copied().collect::<Vec<_>>(), [range(30, 40)]);
        assert_eq!((set.pop(99), set.pop(99)), (Some(range(30, 40)), None));
    }

    proptest! {
        #[test]
        fn it_holds_the_bytes_that_a_bitmap_holds(
            acts in proptest::collection::vec((0_u64..80, 0_u64..15, 0_u8..8), 1..60)
        ) {
            let (mut set, mut map) = (Ranges::default(), [false; 100]);
            for (start, len, act) in acts {
                let end = start + len;
                if act == 0 {
                    let gone = (0..start as usize).filter(|at| map[*at]).count() as u64;
                    prop_assert_eq!(set.remove_below(start), gone);
                    map[..start as usize].fill(false);
                } else {
                    let news = (start..end).filter(|at| !map[*at as usize]).count() as u64;
                    prop_assert_eq!(set.insert(range(start, end)), news);
                    map[start as usize..end as usize].fill(true);
                }
                prop_assert_eq!(set.bytes(), map.iter().filter(|is| **is).count() as u64);
                let held = |at: u64| set.iter().any(|range| range.start <= at && at < range.end);
                prop_assert!((0..100).all(|at| held(at) == map[at as usize]));
                let gaps = set.iter().zip(set.iter().skip(1)).all(|(a, b)| a.end < b.start);
                prop_assert!(gaps);
            }
        }
    }
}
