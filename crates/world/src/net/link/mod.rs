//! One directed link: a queue, a wire, perhaps loss before or behind the queue.
//!
//! A queue that is first in, first out and decides at arrival needs no event when a packet
//! departs: what is decided fixes when each packet departs and arrives, so all stand in a ring
//! with both times, and only the ring's head has an event, its arrival. Who of the ring still
//! waits is told by the times. Other queues are served at departures, which are events; then the
//! ring has only what is under way. Both ways do the same at the same times.

mod change;
mod served;

use super::clock::Clock;
use super::due::{Agenda, Due, Kind};
use super::loss::Dice;
use super::packet::{Carried, Store, Unit};
use super::queue::{Gate, Gone};
use super::stats::{CLASSES_MAX, Cause, ClassStats, Count, LinkStats, Queued};
use crate::prefetch::prefetch;
use crate::topology::Side;
use anabranch_proto::time::Time;
pub(crate) use served::Served;
use std::collections::VecDeque;

/// A packet in the ring.
#[derive(Clone, Copy, Debug)]
struct Flying {
    unit: Unit,
    departs: Time,
    arrives: Time,
    /// Whether it is lost behind the queue, where that has been decided already.
    is_lost: Option<bool>,
}

/// Who is next on the wire.
#[derive(Debug)]
pub(crate) enum Path {
    /// Decided at arrival.
    Ring(Gate),
    /// Decided at departures.
    Served(Box<Served>),
}

/// A directed link.
#[derive(Debug)]
pub(crate) struct Link {
    index: u32,
    clock: Clock,
    delay_ns: u64,
    mtu: u32,
    is_up: bool,
    dice: Option<Box<Dice>>,
    path: Path,
    /// In the order of travel: those under way, and those that wait if the path is a ring.
    ring: VecDeque<Flying>,
    /// How many at the ring's head have departed, as far as was looked.
    departed: usize,
    /// The others of the ring.
    held: Count,
    /// By class; empty before the first packet.
    stats: Vec<ClassStats>,
}

/// What links of one network share.
pub(crate) struct Shared<'a, B> {
    pub(crate) agenda: &'a mut Agenda,
    pub(crate) store: &'a mut Store<B>,
    /// Packets that are gone; the caller takes them out of the store.
    pub(crate) gone: &'a mut Vec<Gone>,
}

impl Link {
    pub(crate) fn new(index: u32, clock: Clock, delay_ns: u64, mtu: u32, path: Path) -> Link {
        Link {
            index,
            clock,
            delay_ns,
            mtu,
            is_up: true,
            dice: None,
            path,
            ring: VecDeque::new(),
            departed: 0,
            held: Count::default(),
            stats: Vec::new(),
        }
    }

    /// With random loss.
    pub(crate) fn with_dice(self, dice: Option<Dice>) -> Link {
        Link { dice: dice.map(Box::new), ..self }
    }

    /// A packet comes to the link.
    pub(crate) fn take<B: Carried>(
        &mut self,
        now: Time,
        mut unit: Unit,
        shared: &mut Shared<'_, B>,
    ) {
        unit.class = self.class_of(unit, shared.store);
        self.count(unit.class).offered += Count::one(unit.len);
        let outcome = self.admit(now, unit.len).and_then(|()| match &mut self.path {
            Path::Ring(gate) => gate.admit(now, self.held, unit.len, self.clock.free()),
            Path::Served(_) => Ok(()),
        });
        match outcome {
            Err(cause) => self.lose(unit, cause, shared.gone),
            Ok(()) if matches!(self.path, Path::Ring(_)) => {
                self.append(now, unit, shared.agenda);
            }
            Ok(()) => self.take_served(now, unit, shared),
        }
    }

    /// What is alike for all queues.
    fn admit(&mut self, now: Time, len: u32) -> Result<(), Cause> {
        if !self.is_up {
            return Err(Cause::Down);
        }
        if len > self.mtu {
            return Err(Cause::Mtu);
        }
        if self.roll(Side::Before) {
            return Err(Cause::LossBefore);
        }
        self.look(now);
        Ok(())
    }

    /// Whether random loss at a side strikes now.
    fn roll(&mut self, side: Side) -> bool {
        self.dice.as_mut().is_some_and(|dice| dice.is_lost(side))
    }

    /// Finds who of the ring has departed by `now`.
    fn look(&mut self, now: Time) {
        while let Some(first) = self.ring.get(self.departed).filter(|first| first.departs <= now) {
            self.held -= Count::one(first.unit.len);
            self.departed += 1;
        }
    }

    /// Lays a packet that was let in behind the ring.
    fn append(&mut self, now: Time, unit: Unit, agenda: &mut Agenda) {
        self.held += Count::one(unit.len);
        let held = self.held;
        let class = self.count(unit.class);
        class.peak = class.peak.max(held);
        let departs = self.clock.pass(now, unit.len);
        self.lay(unit, departs, agenda);
    }

    /// Puts a packet behind the ring; the first of a ring has an event.
    ///
    /// A link never reorders: after its delay has become shorter, who follows waits for those in
    /// front.
    fn lay(&mut self, unit: Unit, departs: Time, agenda: &mut Agenda) {
        let mut arrives = Time(departs.0.saturating_add(self.delay_ns));
        match self.ring.back() {
            Some(front) => arrives = arrives.max(front.arrives),
            None => agenda.push(Due::new(arrives, Kind::Arrival, unit.serial, self.index)),
        }
        self.ring.push_back(Flying { unit, departs, arrives, is_lost: None });
    }

    /// The first of the ring arrives, unless it was lost behind the queue.
    pub(crate) fn land(&mut self) -> Option<Result<Unit, Gone>> {
        let Flying { unit, is_lost, .. } = self.ring.pop_front()?;
        match self.departed.checked_sub(1) {
            Some(departed) => self.departed = departed,
            None => self.held -= Count::one(unit.len),
        }
        if is_lost.unwrap_or_else(|| self.roll(Side::After)) {
            self.count(unit.class).drop(Cause::LossAfter, unit.len);
            return Some(Err((unit, Cause::LossAfter)));
        }
        self.count(unit.class).arrived += Count::one(unit.len);
        Some(Ok(unit))
    }

    /// Asks for the memory of the ring's first and of the counters ahead of time; the link itself must be
    /// there by now.
    pub(crate) fn look_in(&self) {
        self.ring.front().into_iter().for_each(prefetch);
        self.stats.first().into_iter().for_each(prefetch);
    }

    /// The ring's first.
    pub(crate) fn first(&self) -> Option<Unit> {
        self.ring.front().map(|first| first.unit)
    }

    /// The event of the ring's first.
    pub(crate) fn next_arrival(&self) -> Option<Due> {
        let first = self.ring.front()?;
        Some(Due::new(first.arrives, Kind::Arrival, first.unit.serial, self.index))
    }

    fn class_of<B: Carried>(&self, unit: Unit, store: &Store<B>) -> u8 {
        match &self.path {
            Path::Ring(_) => 0,
            Path::Served(served) => {
                served.queue.class(store.dscp(unit.slot)).min(CLASSES_MAX - 1) as u8
            }
        }
    }

    fn classes(&self) -> usize {
        match &self.path {
            Path::Ring(_) => 1,
            Path::Served(served) => served.queue.classes().min(CLASSES_MAX),
        }
    }

    /// A packet is gone before it was on the wire, or on it.
    fn lose(&mut self, unit: Unit, cause: Cause, gone: &mut Vec<Gone>) {
        self.count(unit.class).drop(cause, unit.len);
        gone.push((unit, cause));
    }

    fn count(&mut self, class: u8) -> &mut ClassStats {
        if self.stats.is_empty() {
            self.stats.resize(self.classes(), ClassStats::default());
        }
        &mut self.stats[usize::from(class)]
    }

    /// What was counted up to `now`.
    pub(crate) fn stats(&self, now: Time) -> LinkStats {
        let mut stats = LinkStats::new(&self.stats, self.classes());
        for class in 0..self.classes() {
            let class = stats.class_mut(class);
            class.sent = class.arrived;
            class.sent += class.dropped(Cause::LossAfter);
            class.sent += class.dropped(Cause::Cut);
        }
        for flying in self.ring.iter().take_while(|flying| flying.departs <= now) {
            stats.class_mut(flying.unit.class.into()).sent += Count::one(flying.unit.len);
        }
        stats
    }

    /// What waits at `now`.
    pub(crate) fn queued(&mut self, now: Time) -> Queued {
        self.look(now);
        let mut queued = Queued::new(self.classes());
        for class in 0..self.classes() {
            *queued.class_mut(class) = match &self.path {
                Path::Ring(_) => self.held,
                Path::Served(served) => served.queue.held(class),
            };
        }
        queued
    }
}
