//! What a link counts, per class of its queue.
//!
//! Every packet that comes to a link is offered, and then
//! `offered = sent + dropped before the wire + queued`, and
//! `sent = arrived + dropped behind the queue + under way`.

use std::ops::{AddAssign, Sub, SubAssign};

/// The most classes that a queue has.
pub const CLASSES_MAX: usize = 3;

/// Packets, and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// How many.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

impl Count {
    /// One packet.
    pub(crate) fn one(len: u32) -> Count {
        Count { packets: 1, bytes: u64::from(len) }
    }

    /// The larger of each.
    pub(crate) fn max(self, other: Count) -> Count {
        Count { packets: self.packets.max(other.packets), bytes: self.bytes.max(other.bytes) }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl SubAssign for Count {
    fn sub_assign(&mut self, other: Count) {
        self.packets -= other.packets;
        self.bytes -= other.bytes;
    }
}

impl Sub for Count {
    type Output = Count;
    fn sub(mut self, other: Count) -> Count {
        self -= other;
        self
    }
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Count>>(counts: I) -> Count {
        counts.fold(Count::default(), |mut sum, count| {
            sum += count;
            sum
        })
    }
}

/// Why a packet is gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cause {
    /// The queue was full.
    Full,
    /// RED dropped it early.
    Early,
    /// A packet of a higher class took its place.
    PushedOut,
    /// Random loss before the queue.
    LossBefore,
    /// It came to a link that was down, or waited when the link went down.
    Down,
    /// It is larger than the link's MTU.
    Mtu,
    /// Random loss behind the queue: it has used the link.
    LossAfter,
    /// It was under way when the link went down.
    Cut,
}

impl Cause {
    /// All of them; those that strike before a packet is sent come first.
    pub const ALL: [Cause; 8] = [
        Cause::Full,
        Cause::Early,
        Cause::PushedOut,
        Cause::LossBefore,
        Cause::Down,
        Cause::Mtu,
        Cause::LossAfter,
        Cause::Cut,
    ];

    /// Its name in traces and tables.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Full => "full",
            Cause::Early => "early",
            Cause::PushedOut => "pushed-out",
            Cause::LossBefore => "loss-before",
            Cause::Down => "down",
            Cause::Mtu => "mtu",
            Cause::LossAfter => "loss-after",
            Cause::Cut => "cut",
        }
    }

    /// Whether a packet that is dropped so has used the link's rate.
    pub fn was_sent(self) -> bool {
        matches!(self, Cause::LossAfter | Cause::Cut)
    }
}

/// What was counted of one class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClassStats {
    /// Came to the link.
    pub offered: Count,
    /// Is on the wire, or was.
    pub sent: Count,
    /// Reached the link's end.
    pub arrived: Count,
    /// The most that waited at once, the packet in service included.
    pub peak: Count,
    dropped: [Count; Cause::ALL.len()],
}

impl ClassStats {
    /// Dropped for one cause.
    pub fn dropped(&self, cause: Cause) -> Count {
        self.dropped[cause as usize]
    }

    /// Dropped for any cause.
    pub fn dropped_all(&self) -> Count {
        self.dropped.iter().copied().sum()
    }

    pub(crate) fn drop(&mut self, cause: Cause, len: u32) {
        self.dropped[cause as usize] += Count::one(len);
    }
}

/// What was counted of a link. A queue without classes is one class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkStats {
    classes: [ClassStats; CLASSES_MAX],
    len: u8,
}

impl LinkStats {
    pub(crate) fn new(counted: &[ClassStats], classes: usize) -> LinkStats {
        let mut stats = LinkStats { len: classes as u8, ..LinkStats::default() };
        stats.classes[..counted.len()].copy_from_slice(counted);
        stats
    }

    pub(crate) fn class_mut(&mut self, class: usize) -> &mut ClassStats {
        &mut self.classes[class]
    }

    /// The classes, the highest first.
    pub fn classes(&self) -> &[ClassStats] {
        &self.classes[..usize::from(self.len)]
    }

    /// Of all classes: came to the link.
    pub fn offered(&self) -> Count {
        self.classes().iter().map(|class| class.offered).sum()
    }

    /// Of all classes: is on the wire, or was.
    pub fn sent(&self) -> Count {
        self.classes().iter().map(|class| class.sent).sum()
    }

    /// Of all classes: reached the link's end.
    pub fn arrived(&self) -> Count {
        self.classes().iter().map(|class| class.arrived).sum()
    }

    /// Of all classes: dropped for one cause.
    pub fn dropped(&self, cause: Cause) -> Count {
        self.classes().iter().map(|class| class.dropped(cause)).sum()
    }

    /// Of all classes: dropped for any cause.
    pub fn dropped_all(&self) -> Count {
        self.classes().iter().map(ClassStats::dropped_all).sum()
    }
}

/// What waits at a link now, the packet in service included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Queued {
    classes: [Count; CLASSES_MAX],
    len: u8,
}

impl Queued {
    pub(crate) fn new(classes: usize) -> Queued {
        Queued { classes: [Count::default(); CLASSES_MAX], len: classes as u8 }
    }

    pub(crate) fn class_mut(&mut self, class: usize) -> &mut Count {
        &mut self.classes[class]
    }

    /// By class, the highest first.
    pub fn classes(&self) -> &[Count] {
        &self.classes[..usize::from(self.len)]
    }

    /// Of all classes.
    pub fn all(&self) -> Count {
        self.classes().iter().copied().sum()
    }
}
