//! What is due: events by (time, kind, sequence). The sequence is the packet's: of two packets
//! that arrive at one time, the one that was sent earlier goes first. So the order depends on the
//! packets alone, not on how the links keep them.

use anabranch_proto::time::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// What can be due, in the order in which things of one time are carried out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// The packet in service at a link is on the wire.
    Departure,
    /// A link changes.
    Change,
    /// The first packet on a link's wire arrives.
    Arrival,
    /// A packet that was sent ahead of the events enters.
    Entry,
}

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Due {
    pub(crate) at: Time,
    rank: u64,
    /// The link; the slot of an entering packet.
    pub(crate) index: u32,
}

/// Bits of a rank that are the sequence.
const SEQUENCE_BITS: u32 = 62;

impl Due {
    pub(crate) fn new(at: Time, kind: Kind, sequence: u64, index: u32) -> Due {
        Due { at, rank: (kind as u64) << SEQUENCE_BITS | sequence, index }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.rank >> SEQUENCE_BITS {
            0 => Kind::Departure,
            1 => Kind::Change,
            2 => Kind::Arrival,
            _ => Kind::Entry,
        }
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.rank & ((1 << SEQUENCE_BITS) - 1)
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> Ordering {
        // The heap gives its greatest: the earliest must be greatest.
        let key = |due: &Due| u128::from(due.at.0) << 64 | u128::from(due.rank);
        key(other).cmp(&key(self)).then(other.index.cmp(&self.index))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// All that is due.
#[derive(Default, Debug)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Due>,
}

impl Agenda {
    pub(crate) fn first(&self) -> Option<&Due> {
        self.heap.peek()
    }

    /// The link of an arrival near the front: of 0, the first, 1 and 2, 3 to 6 and so on each comes
    /// before some that are later in this order.
    pub(crate) fn link_near(&self, place: usize) -> Option<u32> {
        let due = self.heap.as_slice().get(place).filter(|due| due.kind() == Kind::Arrival)?;
        Some(due.index)
    }

    pub(crate) fn push(&mut self, due: Due) {
        self.heap.push(due);
    }

    pub(crate) fn pop(&mut self) -> Option<Due> {
        self.heap.pop()
    }

    /// The first event is over, and `next` comes of it, if anything: cheaper than pop and push.
    pub(crate) fn replace_first(&mut self, next: Option<Due>) {
        let Some(mut first) = self.heap.peek_mut() else { return };
        match next {
            Some(next) => *first = next,
            None => {
                PeekMut::pop(first);
            }
        }
    }

    /// Takes out what a link has in it; linear, for changes of links only.
    pub(crate) fn forget(&mut self, link: u32) {
        self.heap.retain(|due| {
            due.index != link || !matches!(due.kind(), Kind::Departure | Kind::Arrival)
        });
    }

    /// Takes out the entry of the schedule of changes.
    pub(crate) fn forget_change(&mut self) {
        self.heap.retain(|due| due.kind() != Kind::Change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_kind_then_sequence() {
        let mut agenda = Agenda::default();
        let all = [
            Due::new(Time(5), Kind::Departure, 9, 0),
            Due::new(Time(5), Kind::Change, 1, 0),
            Due::new(Time(5), Kind::Arrival, 2, 7),
            Due::new(Time(5), Kind::Arrival, 3, 1),
            Due::new(Time(5), Kind::Entry, 0, 0),
            Due::new(Time(6), Kind::Departure, 0, 0),
        ];
        for index in [3, 1, 5, 0, 4, 2] {
            agenda.push(all[index]);
        }
        let order: Vec<Due> = std::iter::from_fn(|| agenda.pop()).collect();
        assert_eq!(order, all);
        assert_eq!((order[1].kind(), order[1].sequence()), (Kind::Change, 1));
        assert_eq!((order[4].kind(), order[4].sequence()), (Kind::Entry, 0));
    }

    #[test]
    fn the_first_can_be_replaced_and_a_link_forgotten() {
        let mut agenda = Agenda::default();
        for link in 0..4 {
            agenda.push(Due::new(Time(link.into()), Kind::Arrival, 0, link));
        }
        agenda.push(Due::new(Time(9), Kind::Entry, 0, 2));
        agenda.replace_first(Some(Due::new(Time(7), Kind::Arrival, 5, 0)));
        agenda.replace_first(None);
        agenda.forget(2);
        let order: Vec<u32> = std::iter::from_fn(|| agenda.pop()).map(|due| due.index).collect();
        assert_eq!(order, [3, 0, 2]);
    }
}
