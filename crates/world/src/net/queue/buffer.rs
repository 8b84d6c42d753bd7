//! A first-in-first-out buffer that is served at departures: drop-tail, RED or XCP.

use super::{Gate, Gone, xcp};
use crate::net::packet::{Carried, Store, Unit};
use crate::net::stats::Count;
use anabranch_proto::time::Time;
use std::collections::VecDeque;

/// The buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    gate: Gate,
    router: Option<Box<xcp::Router>>,
    waiting: VecDeque<Unit>,
    waiting_bytes: u64,
    /// What waits and the packet in service.
    held: Count,
    /// When it became empty.
    idle_since: Time,
}

impl Buffer {
    pub(crate) fn new(gate: Gate, router: Option<xcp::Router>) -> Buffer {
        Buffer {
            gate,
            router: router.map(Box::new),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            held: Count::default(),
            idle_since: Time::ZERO,
        }
    }

    pub(crate) fn held(&self) -> Count {
        self.held
    }

    pub(crate) fn offer<B: Carried>(
        &mut self,
        now: Time,
        unit: Unit,
        store: &mut Store<B>,
        gone: &mut Vec<Gone>,
    ) {
        if let Some(router) = &mut self.router {
            router.arrive(now, self.waiting_bytes, unit.len, store.xcp(unit.slot));
        }
        match self.gate.admit(now, self.held, unit.len, self.idle_since) {
            Ok(()) => self.append(unit),
            Err(cause) => gone.push((unit, cause)),
        }
    }

    /// Takes a packet that was admitted.
    fn append(&mut self, unit: Unit) {
        self.waiting.push_back(unit);
        self.waiting_bytes += u64::from(unit.len);
        self.held += Count::one(unit.len);
    }

    /// What a ring held that is served at departures from now on: the packet in service, and
    /// those behind it.
    pub(crate) fn resume(
        &mut self,
        idle_since: Time,
        serving: Option<Unit>,
        waiting: impl Iterator<Item = Unit>,
    ) {
        self.idle_since = idle_since;
        self.held = serving.map_or(Count::default(), |unit| Count::one(unit.len));
        waiting.for_each(|unit| self.append(unit));
    }

    pub(crate) fn next<B: Carried>(&mut self, now: Time, store: &mut Store<B>) -> Option<Unit> {
        let unit = self.waiting.pop_front()?;
        if let Some(router) = &mut self.router {
            router.depart(now, self.waiting_bytes, unit.len, store.xcp(unit.slot));
        }
        self.waiting_bytes -= u64::from(unit.len);
        Some(unit)
    }

    pub(crate) fn done(&mut self, now: Time, unit: Unit) {
        self.held -= Count::one(unit.len);
        if self.held.packets == 0 {
            self.idle_since = now;
        }
    }

    pub(crate) fn set_rate(&mut self, rate: u64) {
        self.gate.set_rate(rate);
        if let Some(router) = &mut self.router {
            router.set_rate(rate);
        }
    }

    /// A higher class has sent a packet.
    pub(crate) fn yield_to(&mut self, len: u32) {
        if let Some(router) = &mut self.router {
            router.yield_to(len);
        }
    }
}
