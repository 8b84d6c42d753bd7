//! What waits for a wire, and who is dropped. Lengths count the packet in service.
//!
//! [`Gate`]s decide at arrival alone, so a link can tell at once when each packet that they let
//! in departs. A [`Queue`] is asked at each departure who is next.

mod buffer;
mod drop_tail;
mod priority;
mod push_out;
mod red;
mod xcp;

pub(crate) use buffer::Buffer;

use super::packet::{Carried, Store, Unit};
use super::stats::{Cause, Count};
use crate::topology::{ClassMap, Limit, QueueSpec};
use anabranch_proto::random::Rng;
use anabranch_proto::time::Time;
use priority::Priority;
use push_out::PushOut;
use red::Red;

/// A packet that is gone, and why.
pub(crate) type Gone = (Unit, Cause);

/// What a queue has to know of its link.
pub(crate) struct Place<'a> {
    /// Bytes per second.
    pub(crate) rate: u64,
    /// Bytes.
    pub(crate) mtu: u32,
    /// The link's generator for a purpose.
    pub(crate) rng: &'a dyn Fn(&str) -> Rng,
}

/// What decides at arrival whether a packet may wait.
#[derive(Debug)]
pub(crate) enum Gate {
    /// As long as there is space.
    DropTail(Limit),
    /// RED.
    Red(Box<Red>),
}

impl Gate {
    /// The gate of a queue that is first in, first out and decides at arrival alone.
    pub(crate) fn new(spec: &QueueSpec, place: &Place<'_>) -> Option<Gate> {
        match spec {
            QueueSpec::DropTail { limit } => Some(Gate::DropTail(*limit)),
            QueueSpec::Red(red) => Some(Gate::red(*red, place, "red")),
            QueueSpec::Priority { .. } | QueueSpec::PushOut { .. } | QueueSpec::Xcp(_) => None,
        }
    }

    fn red(spec: crate::topology::RedSpec, place: &Place<'_>, purpose: &str) -> Gate {
        Gate::Red(Box::new(Red::new(spec, place.rate, place.mtu, (place.rng)(purpose))))
    }

    /// Whether a packet of `len` bytes may join what is `held`. When nothing is, that has been
    /// so since `idle_since`.
    pub(crate) fn admit(
        &mut self,
        now: Time,
        held: Count,
        len: u32,
        idle_since: Time,
    ) -> Result<(), Cause> {
        match self {
            Gate::DropTail(limit) if drop_tail::fits(*limit, held, len) => Ok(()),
            Gate::DropTail(_) => Err(Cause::Full),
            Gate::Red(red) => red.admit(now, held, len, idle_since),
        }
    }

    pub(crate) fn set_rate(&mut self, rate: u64) {
        match self {
            Gate::DropTail(_) => {}
            Gate::Red(red) => red.set_rate(rate),
        }
    }
}

/// A queue that is asked at each departure.
#[derive(Debug)]
pub(crate) enum Queue {
    /// First in, first out.
    Buffer(Buffer),
    /// A buffer per class.
    Priority(Priority),
    /// One buffer for all classes.
    PushOut(PushOut),
}

impl Queue {
    /// The queue of `spec`; `class` tells the queues of one link apart.
    pub(crate) fn new(spec: &QueueSpec, place: &Place<'_>, class: &str) -> Queue {
        let buffer = |gate, router| Queue::Buffer(Buffer::new(gate, router));
        match spec {
            QueueSpec::DropTail { limit } => buffer(Gate::DropTail(*limit), None),
            QueueSpec::Red(red) => buffer(Gate::red(*red, place, &format!("red{class}")), None),
            QueueSpec::Xcp(spec) => {
                buffer(Gate::DropTail(spec.limit), Some(xcp::Router::new(*spec, place.rate)))
            }
            QueueSpec::PushOut { limit, classes, map } => {
                Queue::PushOut(PushOut::new(*limit, *classes, map))
            }
            QueueSpec::Priority { classes, map } => {
                let queue = |(number, spec)| Queue::new(spec, place, &format!("{class}.{number}"));
                let queues: Vec<Queue> = classes.iter().enumerate().map(queue).collect();
                match queues.is_empty() {
                    // Not to be had from a topology file; it holds nothing.
                    true => buffer(Gate::DropTail(Limit::Packets(0)), None),
                    false => Queue::Priority(Priority::new(queues, map)),
                }
            }
        }
    }

    /// How many classes it tells apart.
    pub(crate) fn classes(&self) -> usize {
        match self {
            Queue::Buffer(_) => 1,
            Queue::Priority(priority) => priority.classes(),
            Queue::PushOut(push_out) => push_out.classes(),
        }
    }

    /// The class of a DSCP.
    pub(crate) fn class(&self, dscp: u8) -> usize {
        match self {
            Queue::Buffer(_) => 0,
            Queue::Priority(priority) => priority.class(dscp),
            Queue::PushOut(push_out) => push_out.class(dscp),
        }
    }

    /// What a class holds, the packet in service included.
    pub(crate) fn held(&self, class: usize) -> Count {
        match self {
            Queue::Buffer(buffer) => buffer.held(),
            Queue::Priority(priority) => priority.held(class),
            Queue::PushOut(push_out) => push_out.held(class),
        }
    }

    /// What all classes hold.
    pub(crate) fn held_all(&self) -> Count {
        (0..self.classes()).map(|class| self.held(class)).sum()
    }

    /// A packet comes; it, or others in its place, may be `gone`.
    pub(crate) fn offer<B: Carried>(
        &mut self,
        now: Time,
        unit: Unit,
        dscp: u8,
        store: &mut Store<B>,
        gone: &mut Vec<Gone>,
    ) {
        match self {
            Queue::Buffer(buffer) => buffer.offer(now, unit, store, gone),
            Queue::Priority(priority) => priority.offer(now, unit, dscp, store, gone),
            Queue::PushOut(push_out) => push_out.offer(unit, dscp, gone),
        }
    }

    /// The next packet goes into service; it stays counted until it is [`Queue::done`].
    pub(crate) fn next<B: Carried>(&mut self, now: Time, store: &mut Store<B>) -> Option<Unit> {
        match self {
            Queue::Buffer(buffer) => buffer.next(now, store),
            Queue::Priority(priority) => priority.next(now, store),
            Queue::PushOut(push_out) => push_out.next(),
        }
    }

    /// A packet that was in service is out.
    pub(crate) fn done(&mut self, now: Time, unit: Unit, dscp: u8) {
        match self {
            Queue::Buffer(buffer) => buffer.done(now, unit),
            Queue::Priority(priority) => priority.done(now, unit, dscp),
            Queue::PushOut(push_out) => push_out.done(unit, dscp),
        }
    }

    /// The link's rate changes.
    pub(crate) fn set_rate(&mut self, rate: u64) {
        match self {
            Queue::Buffer(buffer) => buffer.set_rate(rate),
            Queue::Priority(priority) => {
                priority.queues().for_each(|queue| queue.set_rate(rate));
            }
            Queue::PushOut(_) => {}
        }
    }

    /// A class above this queue has sent a packet.
    fn yield_to(&mut self, len: u32) {
        match self {
            Queue::Buffer(buffer) => buffer.yield_to(len),
            Queue::Priority(priority) => priority.queues().for_each(|queue| queue.yield_to(len)),
            Queue::PushOut(_) => {}
        }
    }
}

/// From DSCP to class, as a table.
#[derive(Debug)]
struct Classes([u8; 64]);

impl Classes {
    /// Classes that `map` names and a queue of `classes` does not have are its lowest.
    fn new(map: &ClassMap, classes: usize) -> Classes {
        let lowest = classes.saturating_sub(1).min(u8::MAX.into()) as u8;
        let of = |dscp: u8| {
            let entry = map.entries.iter().find(|entry| entry.0 == dscp);
            entry.map_or(map.other, |entry| entry.1).min(lowest)
        };
        Classes(std::array::from_fn(|dscp| of(dscp as u8)))
    }

    fn of(&self, dscp: u8) -> usize {
        usize::from(self.0[usize::from(dscp & 63)])
    }
}

#[cfg(test)]
mod tests;
