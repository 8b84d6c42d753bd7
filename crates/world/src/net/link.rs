//! One directed link: a queue, a wire, perhaps loss before or behind the queue.
//!
//! A first-in-first-out queue needs no event when a packet departs: what is decided at arrival
//! fixes when each packet departs and arrives, so they stand in a ring with both times, and only
//! the ring's head has an event, its arrival. Which of the ring still waits is told by the times.

use super::clock::Clock;
use super::loss::Dice;
use super::packet::Unit;
use super::queue::Gate;
use super::stats::{Cause, ClassStats, Count, LinkStats, Queued};
use crate::topology::Side;
use anabranch_proto::time::Time;
use std::collections::VecDeque;

/// A packet in the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flying {
    pub(crate) unit: Unit,
    departs: Time,
    pub(crate) arrives: Time,
    /// Whether loss behind the queue has been decided already, and how.
    fate: Option<bool>,
}

/// What became of a packet that came to a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// It waits, behind others.
    Behind,
    /// It is the first on the link, and arrives then.
    First(Time),
    /// It is gone.
    Dropped(Cause),
}

/// A directed link.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) clock: Clock,
    pub(crate) delay_ns: u64,
    pub(crate) mtu: u32,
    pub(crate) is_up: bool,
    pub(crate) dice: Option<Box<Dice>>,
    pub(crate) gate: Gate,
    /// Those that wait and those under way, in the order of travel.
    ring: VecDeque<Flying>,
    /// How many at the ring's head have departed, as far as was looked.
    departed: usize,
    /// The others.
    held: Count,
    /// By class; empty before the first packet.
    stats: Vec<ClassStats>,
}

impl Link {
    pub(crate) fn new(clock: Clock, delay_ns: u64, mtu: u32, gate: Gate) -> Link {
        Link {
            clock,
            delay_ns,
            mtu,
            is_up: true,
            dice: None,
            gate,
            ring: VecDeque::new(),
            departed: 0,
            held: Count::default(),
            stats: Vec::new(),
        }
    }

    /// A packet comes to the link.
    pub(crate) fn take(&mut self, now: Time, unit: Unit) -> Taken {
        self.class().offered += Count::one(unit.len);
        if let Err(cause) = self.admit(now, unit.len) {
            self.class().drop(cause, unit.len);
            return Taken::Dropped(cause);
        }
        self.held += Count::one(unit.len);
        let held = self.held;
        let class = self.class();
        class.peak = class.peak.max(held);
        let departs = self.clock.pass(now, unit.len);
        let arrives = self.arrival(departs, self.ring.back());
        self.ring.push_back(Flying { unit, departs, arrives, fate: None });
        if self.ring.len() == 1 { Taken::First(arrives) } else { Taken::Behind }
    }

    /// A link never reorders: after its delay has become shorter, who follows waits for those in
    /// front.
    fn arrival(&self, departs: Time, in_front: Option<&Flying>) -> Time {
        let arrives = Time(departs.0.saturating_add(self.delay_ns));
        in_front.map_or(arrives, |front| arrives.max(front.arrives))
    }

    fn admit(&mut self, now: Time, len: u32) -> Result<(), Cause> {
        if !self.is_up {
            return Err(Cause::Down);
        }
        if len > self.mtu {
            return Err(Cause::Mtu);
        }
        if self.is_lost(Side::Before) {
            return Err(Cause::LossBefore);
        }
        self.look(now);
        self.gate.admit(now, self.held, len, self.clock.free())
    }

    fn is_lost(&mut self, side: Side) -> bool {
        match &mut self.dice {
            Some(dice) if dice.side() == side => dice.is_lost(),
            _ => false,
        }
    }

    /// Finds who has departed by `now`.
    fn look(&mut self, now: Time) {
        while let Some(first) = self.ring.get(self.departed).filter(|first| first.departs <= now) {
            self.held -= Count::one(first.unit.len);
            self.departed += 1;
        }
    }

    /// When the first packet arrives, and its sequence.
    pub(crate) fn next_arrival(&self) -> Option<(Time, u64)> {
        self.ring.front().map(|first| (first.arrives, first.unit.serial))
    }

    /// The first packet arrives, or turns out to be lost behind the queue.
    pub(crate) fn land(&mut self) -> Option<Result<Unit, (Unit, Cause)>> {
        let Flying { unit, fate, .. } = self.ring.pop_front()?;
        match self.departed.checked_sub(1) {
            Some(departed) => self.departed = departed,
            None => self.held -= Count::one(unit.len),
        }
        if fate.unwrap_or_else(|| self.is_lost(Side::After)) {
            self.class().drop(Cause::LossAfter, unit.len);
            return Some(Err((unit, Cause::LossAfter)));
        }
        self.class().arrived += Count::one(unit.len);
        Some(Ok(unit))
    }

    fn class(&mut self) -> &mut ClassStats {
        if self.stats.is_empty() {
            self.stats.push(ClassStats::default());
        }
        &mut self.stats[0]
    }

    /// What was counted up to `now`.
    pub(crate) fn stats(&self, now: Time) -> LinkStats {
        let mut stats = LinkStats::new(&self.stats, 1);
        let under_way = self.ring.iter().take_while(|flying| flying.departs <= now);
        let under_way: Count = under_way.map(|flying| Count::one(flying.unit.len)).sum();
        let class = stats.class_mut(0);
        class.sent = class.arrived;
        class.sent += class.dropped(Cause::LossAfter);
        class.sent += class.dropped(Cause::Cut);
        class.sent += under_way;
        stats
    }

    /// What waits at `now`.
    pub(crate) fn queued(&mut self, now: Time) -> Queued {
        self.look(now);
        let mut queued = Queued::new(1);
        *queued.class_mut(0) = self.held;
        queued
    }
}
