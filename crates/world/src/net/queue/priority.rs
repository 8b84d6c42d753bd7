//! Strict priority with a buffer per class: the highest class that has a packet is served next; a
//! packet in service is finished first. Each class's buffer is a queue of any kind.

use super::{Classes, Gone, Queue};
use crate::net::packet::{Carried, Store, Unit};
use crate::net::stats::Count;
use crate::topology::ClassMap;
use anabranch_proto::time::Time;

/// The classes' queues, the highest first.
#[derive(Debug)]
pub(crate) struct Priority {
    map: Classes,
    queues: Vec<Queue>,
}

impl Priority {
    /// `queues` must not be empty.
    pub(crate) fn new(queues: Vec<Queue>, map: &ClassMap) -> Priority {
        Priority { map: Classes::new(map, queues.len()), queues }
    }

    pub(crate) fn classes(&self) -> usize {
        self.queues.len()
    }

    pub(crate) fn class(&self, dscp: u8) -> usize {
        self.map.of(dscp)
    }

    pub(crate) fn held(&self, class: usize) -> Count {
        self.queues[class].held_all()
    }

    pub(crate) fn offer<B: Carried>(
        &mut self,
        now: Time,
        unit: Unit,
        dscp: u8,
        store: &mut Store<B>,
        gone: &mut Vec<Gone>,
    ) {
        self.queues[self.map.of(dscp)].offer(now, unit, dscp, store, gone);
    }

    pub(crate) fn next<B: Carried>(&mut self, now: Time, store: &mut Store<B>) -> Option<Unit> {
        let next = |(class, queue): (usize, &mut Queue)| Some((class, queue.next(now, store)?));
        let (class, unit) = self.queues.iter_mut().enumerate().find_map(next)?;
        for lower in &mut self.queues[class + 1..] {
            lower.yield_to(unit.len);
        }
        Some(unit)
    }

    pub(crate) fn done(&mut self, now: Time, unit: Unit, dscp: u8) {
        self.queues[self.map.of(dscp)].done(now, unit, dscp);
    }

    pub(crate) fn queues(&mut self) -> impl Iterator<Item = &mut Queue> {
        self.queues.iter_mut()
    }
}
