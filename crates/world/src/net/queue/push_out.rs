//! Strict priority over one shared buffer. An arriving packet that finds it full pushes out the
//! latest packet of the lowest class below its own; when nothing waits there it is dropped. So a
//! high class sees a buffer that it has for itself, and its packets are served first. The packet
//! in service is never pushed out.

use super::{Classes, Gone, drop_tail};
use crate::net::packet::Unit;
use crate::net::stats::{Cause, Count};
use crate::topology::{ClassMap, Limit};
use std::collections::VecDeque;

/// The shared buffer.
#[derive(Debug)]
pub(crate) struct PushOut {
    limit: Limit,
    map: Classes,
    lanes: Vec<Lane>,
    /// All that is held, the packet in service included.
    held: Count,
}

/// One class of it.
#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<Unit>,
    waiting_bytes: u64,
    held: Count,
}

impl PushOut {
    pub(crate) fn new(limit: Limit, classes: u8, map: &ClassMap) -> PushOut {
        let classes = usize::from(classes.max(1));
        let lanes = (0..classes).map(|_| Lane::default()).collect();
        PushOut { limit, map: Classes::new(map, classes), lanes, held: Count::default() }
    }

    pub(crate) fn classes(&self) -> usize {
        self.lanes.len()
    }

    pub(crate) fn class(&self, dscp: u8) -> usize {
        self.map.of(dscp)
    }

    pub(crate) fn held(&self, class: usize) -> Count {
        self.lanes[class].held
    }

    pub(crate) fn offer(&mut self, unit: Unit, dscp: u8, gone: &mut Vec<Gone>) {
        let class = self.map.of(dscp);
        if !drop_tail::fits(self.limit, self.held_at_least(class), unit.len) {
            gone.push((unit, Cause::Full));
            return;
        }
        while !drop_tail::fits(self.limit, self.held, unit.len) {
            let Some(victim) = self.push_out(class) else { break };
            gone.push((victim, Cause::PushedOut));
        }
        let count = Count::one(unit.len);
        let lane = &mut self.lanes[class];
        lane.held += count;
        lane.waiting_bytes += count.bytes;
        lane.waiting.push_back(unit);
        self.held += count;
    }

    /// What would be held if all that `class` may push out were gone.
    fn held_at_least(&self, class: usize) -> Count {
        let mut held = self.held;
        for lane in &self.lanes[class + 1..] {
            held -= Count { packets: lane.waiting.len() as u64, bytes: lane.waiting_bytes };
        }
        held
    }

    /// Takes the latest packet of the lowest class below `class`.
    fn push_out(&mut self, class: usize) -> Option<Unit> {
        let lane =
            self.lanes[class + 1..].iter_mut().rev().find(|lane| !lane.waiting.is_empty())?;
        let victim = lane.waiting.pop_back()?;
        let count = Count::one(victim.len);
        lane.held -= count;
        lane.waiting_bytes -= count.bytes;
        self.held -= count;
        Some(victim)
    }

    /// The first of the highest class that waits goes into service.
    pub(crate) fn next(&mut self) -> Option<Unit> {
        let lane = self.lanes.iter_mut().find(|lane| !lane.waiting.is_empty())?;
        let unit = lane.waiting.pop_front()?;
        lane.waiting_bytes -= u64::from(unit.len);
        Some(unit)
    }

    /// A packet that was in service is out of the buffer.
    pub(crate) fn done(&mut self, unit: Unit, dscp: u8) {
        self.lanes[self.map.of(dscp)].held -= Count::one(unit.len);
        self.held -= Count::one(unit.len);
    }
}
