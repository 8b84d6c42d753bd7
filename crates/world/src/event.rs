//! The event queue, ordered by (time, sequence), and the hash that names a run.

use crate::prefetch::prefetch;
use anabranch_proto::time::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

/// What can be due. Ends and flows share numbers: `2 · link + side`, the flow being the one that
/// leaves that end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// The parcel in service on `flow` is sent, unless `turn` is over.
    Served { flow: u32, turn: u32 },
    /// The next `frames` frames of `flow` arrive.
    Deliver { flow: u32, frames: u32 },
    /// The fluid wire's rates are made anew.
    Boundary,
    /// The TCP endpoint at `end` may have something to do.
    TcpDue { end: u32 },
    /// The session at `end` may have something to do.
    SessionDue { end: u32 },
    /// The member of `host` may have something to do.
    MemberDue { host: u32 },
    /// The hello that completes the set-up arrives at `end`.
    Hello { end: u32 },
    /// Dial number `dial` is over without success.
    DialFailed { dial: u32 },
    /// The pipe breaks as `end` sees it.
    Break { end: u32 },
    /// Entry `index` of the script is due.
    Script { index: u32 },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Due {
    time: Time,
    sequence: u64,
    event: Event,
}

impl Due {
    /// Where it comes among all: time and sequence as one number, which compares fast.
    fn place(&self) -> u128 {
        (u128::from(self.time.0) << 64) | u128::from(self.sequence)
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> Ordering {
        // The heap gives its greatest: the earliest must be greatest.
        other.place().cmp(&self.place())
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Events by time, then in the order in which they were added.
///
/// A calendar: later events lie unsorted in the bucket of time that they fall into, in a ring for the
/// next second or so and in a map beyond it. When its turn comes a bucket is sorted once. So an
/// event is moved twice, whatever the number of timers, and what comes next can be [looked
/// at](Queue::ahead) before it is due. Events added to the bucket under way go through a small heap.
#[derive(Debug)]
pub(crate) struct Queue {
    /// The bucket under way, last first.
    current: Vec<Due>,
    /// What was added to it, or to the time before it, since it began.
    near: BinaryHeap<Due>,
    /// Buckets from `bucket` on, at their number modulo `RING`.
    ring: Vec<Vec<Due>>,
    /// Events in the ring.
    ringed: usize,
    /// Events behind the ring's end when they were added, by bucket.
    far: BTreeMap<u64, Vec<Due>>,
    /// The first bucket that has not begun.
    bucket: u64,
    /// Emptied buckets, to be filled again.
    spare: Vec<Vec<Due>>,
    len: usize,
    sequence: u64,
}

/// A bucket spans 2^20 ns, about 1 ms.
const BUCKET_SHIFT: u32 = 20;
/// Places behind a bucket's end: the next line of memory but one.
const BEHIND: usize = 3;
/// Buckets in the ring: about a second.
const RING: u64 = 1024;
const SPARE_MAX: usize = 64;

impl Default for Queue {
    fn default() -> Queue {
        Queue {
            current: Vec::new(),
            near: BinaryHeap::new(),
            ring: std::iter::repeat_with(Vec::new).take(RING as usize).collect(),
            ringed: 0,
            far: BTreeMap::new(),
            bucket: 0,
            spare: Vec::new(),
            len: 0,
            sequence: 0,
        }
    }
}

impl Queue {
    pub(crate) fn push(&mut self, time: Time, event: Event) {
        let sequence = self.reserve();
        self.push_at(time, sequence, event);
    }

    /// A place in the order, for an event that is added later.
    pub(crate) fn reserve(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Adds an event at a place that was [reserved](Queue::reserve). Its time must not have gone by.
    pub(crate) fn push_at(&mut self, time: Time, sequence: u64, event: Event) {
        self.len += 1;
        let due = Due { time, sequence, event };
        let bucket = time.0 >> BUCKET_SHIFT;
        if bucket < self.bucket {
            return self.near.push(due);
        }
        let spare = &mut self.spare;
        let events = if bucket - self.bucket < RING {
            self.ringed += 1;
            let events = &mut self.ring[(bucket % RING) as usize];
            if events.capacity() == 0 {
                *events = spare.pop().unwrap_or_default();
            }
            events
        } else {
            self.far.entry(bucket).or_insert_with(|| spare.pop().unwrap_or_default())
        };
        events.push(due);
        // The line behind is written soon: the queue's end moves on through cold memory.
        if let Some(behind) = events.spare_capacity_mut().get(BEHIND) {
            prefetch(behind);
        }
    }

    pub(crate) fn pop_until(&mut self, limit: Time) -> Option<(Time, Event)> {
        if self.next()? > limit {
            return None;
        }
        self.len -= 1;
        let due = if self.is_near_first() { self.near.pop() } else { self.current.pop() };
        due.map(|due| (due.time, due.event))
    }

    /// When the next event is due.
    pub(crate) fn next(&mut self) -> Option<Time> {
        if self.current.is_empty() && self.near.is_empty() {
            self.begin_bucket();
        }
        let due = if self.is_near_first() { self.near.peek() } else { self.current.last() };
        due.map(|due| due.time)
    }

    /// The event that is `steps` behind the next one of those that were known when the bucket under
    /// way began; `None` behind its end.
    pub(crate) fn ahead(&self, steps: usize) -> Option<Event> {
        let place = self.current.len().checked_sub(steps + 1)?;
        Some(self.current[place].event)
    }

    fn is_near_first(&self) -> bool {
        match (self.near.peek(), self.current.last()) {
            (Some(near), Some(current)) => near > current,
            (near, _) => near.is_some(),
        }
    }

    /// Begins the next bucket that has events.
    fn begin_bucket(&mut self) {
        let has_events = |bucket: &u64| !self.ring[(bucket % RING) as usize].is_empty();
        let buckets = if self.ringed > 0 { RING } else { 0 };
        let ringed = (self.bucket..self.bucket + buckets).find(has_events);
        let far = self.far.first_key_value().map(|(&bucket, _)| bucket);
        let Some(bucket) = ringed.into_iter().chain(far).min() else { return };
        self.bucket = bucket + 1;
        let emptied = std::mem::take(&mut self.current);
        if ringed == Some(bucket) {
            self.current = std::mem::take(&mut self.ring[(bucket % RING) as usize]);
            self.ringed -= self.current.len();
        }
        self.recycle(emptied);
        if let Some(mut events) = self.far.remove(&bucket) {
            self.current.append(&mut events);
            self.recycle(events);
        }
        // Last first, so the next is at the end.
        self.current.sort_unstable_by_key(|due| Reverse(due.place()));
    }

    fn recycle(&mut self, events: Vec<Due>) {
        if events.capacity() > 0 && self.spare.len() < SPARE_MAX {
            self.spare.push(events);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// A running 64-bit hash over everything that happens: two runs with the same hash did the same.
/// Not for hostile input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TraceHash(u64);

impl TraceHash {
    pub(crate) fn new(seed: u64) -> TraceHash {
        let mut hash = TraceHash(0x243f_6a88_85a3_08d3);
        hash.add(seed);
        hash
    }

    /// Takes in a number: multiply by an odd constant, fold the high half down.
    pub(crate) fn add(&mut self, word: u64) {
        let mixed = u128::from(self.0 ^ word) * u128::from(0x9e37_79b9_7f4a_7c15_u64 | 1);
        self.0 = (mixed as u64) ^ ((mixed >> 64) as u64).rotate_left(17) ^ 0x1319_8a2e_0370_7344;
    }

    /// Takes in bytes and their number.
    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) {
        self.add(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    /// The hash so far.
    pub fn value(self) -> u64 {
        self.0
    }
}

impl std::fmt::Debug for TraceHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_proto::time::Duration;

    #[test]
    fn events_come_by_time_and_within_a_time_in_the_order_they_were_added() {
        let mut queue = Queue::default();
        for (time, index) in [(5, 0), (1, 1), (5, 2), (1, 3), (0, 4)] {
            queue.push(Time(time), Event::Script { index });
        }
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop_until(Time(5)))
            .map(|(_, event)| match event {
                Event::Script { index } => index,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(order, [4, 1, 3, 0, 2]);
    }

    #[test]
    fn events_of_many_buckets_come_in_order_also_when_earlier_ones_are_added_between() {
        let mut queue = Queue::default();
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 30
        };
        for index in 0..2_000 {
            queue.push(Time(draw()), Event::Script { index });
        }
        let (mut last, mut popped) = (Time::ZERO, 0);
        while let Some((time, _)) = queue.pop_until(Time::FAR) {
            assert!(time >= last, "{time:?} after {last:?}");
            (last, popped) = (time, popped + 1);
            if popped < 1_000 {
                // Some fall into the bucket that is being emptied, some far behind it.
                queue.push(time + Duration::from_nanos(draw() >> (popped % 30)), Event::Boundary);
            }
        }
        assert_eq!((popped, queue.len()), (2_999, 0));
    }

    #[test]
    fn the_trace_hash_tells_order_and_length_apart() {
        let of = |parts: &[&[u8]]| {
            let mut hash = TraceHash::new(1);
            parts.iter().for_each(|part| hash.add_bytes(part));
            hash
        };
        assert_eq!(of(&[b"ab", b"c"]), of(&[b"ab", b"c"]));
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"c", b"ab"]));
        assert_ne!(of(&[b"a"]), of(&[b"a\0"]));
        assert_ne!(TraceHash::new(1), TraceHash::new(2));
    }
}
