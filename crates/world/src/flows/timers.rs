//! What the hosts' ends want to be called for, by (time, sequence).

use super::spec::FlowIx;
use anabranch_proto::time::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What can be due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// A flow begins.
    Start(FlowIx),
    /// A flow is given up.
    Stop(FlowIx),
    /// A flow's source may have something to do.
    Source(FlowIx),
    /// A flow's sink may have something to do.
    Sink(FlowIx),
    /// An arrival process makes its next flow.
    Arrival(u32),
    /// The warm-up is over.
    WarmUp,
    /// Flows and links are sampled.
    Sample,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    at: Time,
    sequence: u64,
    due: Due,
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        // The heap gives its greatest: the earliest must be greatest.
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One heap for all. An entry is never taken out early: an end remembers the time of its earliest
/// entry and forgets the others when they come up, so that a deadline that moves back with every
/// acknowledgement costs nothing until it is reached.
#[derive(Default, Debug)]
pub(super) struct Timers {
    heap: BinaryHeap<Entry>,
    sequence: u64,
}

impl Timers {
    pub(super) fn push(&mut self, at: Time, due: Due) {
        self.sequence += 1;
        self.heap.push(Entry { at, sequence: self.sequence, due });
    }

    /// When the first entry is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Takes out the first entry, if it is due by `limit`.
    pub(super) fn pop_until(&mut self, limit: Time) -> Option<(Time, Due)> {
        if self.heap.peek()?.at > limit {
            return None;
        }
        self.heap.pop().map(|entry| (entry.at, entry.due))
    }
}

/// The earliest entry of an end; `Time::FAR` when it has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Armed(Time);

impl Armed {
    pub(super) const NOT: Armed = Armed(Time::FAR);

    /// Makes sure that an entry comes up at `deadline` or before.
    pub(super) fn arm(&mut self, deadline: Option<Time>, due: Due, timers: &mut Timers) {
        if let Some(deadline) = deadline.filter(|deadline| *deadline < self.0) {
            self.0 = deadline;
            timers.push(deadline, due);
        }
    }

    /// An entry came up; whether it was the earliest, and not one that has been passed by.
    pub(super) fn came_up(&mut self, at: Time) -> bool {
        let is_earliest = at == self.0;
        if is_earliest {
            self.0 = Time::FAR;
        }
        is_earliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_moves_back_makes_no_second_entry() {
        let mut timers = Timers::default();
        let mut armed = Armed::NOT;
        let due = Due::Source(FlowIx(1));
        for deadline in 10..1000 {
            armed.arm(Some(Time(deadline)), due, &mut timers);
        }
        assert_eq!(timers.heap.len(), 1);
        assert_eq!(timers.pop_until(Time::FAR), Some((Time(10), due)));
        assert!(armed.came_up(Time(10)));
        armed.arm(Some(Time(999)), due, &mut timers);
        assert_eq!(timers.next(), Some(Time(999)));
    }

    #[test]
    fn a_deadline_that_moves_forward_passes_the_old_entry_by() {
        let mut timers = Timers::default();
        let mut armed = Armed::NOT;
        let due = Due::Sink(FlowIx(1));
        armed.arm(Some(Time(20)), due, &mut timers);
        armed.arm(Some(Time(10)), due, &mut timers);
        assert!(armed.came_up(timers.pop_until(Time::FAR).unwrap().0));
        assert!(!armed.came_up(timers.pop_until(Time::FAR).unwrap().0));
        assert_eq!(timers.pop_until(Time::FAR), None);
    }
}
