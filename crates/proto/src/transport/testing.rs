//! A path between two endpoints in virtual time, for tests: rate, delay, a queue, and faults by the
//! number of the packet.

use super::packet::Packet;
use super::{Event, Transport};
use crate::time::{Duration, Time};
use std::collections::BTreeMap;

/// What happens to a packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Fate {
    Passes,
    IsDropped,
    /// Comes later by so much, so that others pass it.
    IsHeld(Duration),
    IsDoubled,
}

type Fates = Box<dyn FnMut(u64, &Packet) -> Fate>;

/// One direction.
pub(crate) struct Way {
    /// Bits per second; none: no serialisation.
    pub(crate) rate: Option<u64>,
    pub(crate) delay: Duration,
    /// Bytes that wait and are sent, at most.
    pub(crate) queue: u64,
    /// What happens to packet `n` of this direction.
    pub(crate) fate: Fates,
    free: Time,
    pub(crate) count: u64,
    pub(crate) queue_peak: Duration,
}

impl Way {
    pub(crate) fn new(rate: Option<u64>, delay: Duration, queue: u64) -> Way {
        let fate = Box::new(|_, _: &Packet| Fate::Passes);
        Way { rate, delay, queue, fate, free: Time::ZERO, count: 0, queue_peak: Duration::ZERO }
    }

    pub(crate) fn faulty(mut self, fate: impl FnMut(u64, &Packet) -> Fate + 'static) -> Way {
        self.fate = Box::new(fate);
        self
    }

    /// When a packet that enters now arrives; none when the queue is full.
    fn arrival(&mut self, now: Time, len: u32) -> Option<Time> {
        let Some(rate) = self.rate else { return Some(now + self.delay) };
        let wait = self.free.since(now);
        let waiting = wait.as_nanos() * u128::from(rate) / 8_000_000_000;
        if waiting + u128::from(len) > u128::from(self.queue) {
            return None;
        }
        self.queue_peak = self.queue_peak.max(wait);
        let nanos = u64::from(len) * 8_000_000_000 / rate;
        self.free = self.free.max(now) + Duration::from_nanos(nanos);
        Some(self.free + self.delay)
    }
}

/// Two endpoints, 0 and 1, and what is between them.
pub(crate) struct Path<T> {
    pub(crate) now: Time,
    pub(crate) ends: [T; 2],
    /// From 0 to 1, and back.
    pub(crate) ways: [Way; 2],
    /// Whether each end reads what comes at once.
    pub(crate) reads: [bool; 2],
    /// Bytes each end has read.
    pub(crate) read: [u64; 2],
    pub(crate) events: Vec<(Time, usize, Event)>,
    /// Packets sent by 0 and by 1, for a look.
    pub(crate) log: Vec<(Time, usize, Packet)>,
    pub(crate) logs: bool,
    flying: BTreeMap<(Time, u64), (usize, Packet)>,
    serial: u64,
}

impl<T: Transport> Path<T> {
    pub(crate) fn new(ends: [T; 2], ways: [Way; 2]) -> Path<T> {
        Path {
            now: Time::ZERO,
            ends,
            ways,
            reads: [true, true],
            read: [0, 0],
            events: Vec::new(),
            log: Vec::new(),
            logs: false,
            flying: BTreeMap::new(),
            serial: 0,
        }
    }

    /// Puts a packet on its way to `to`, as if its peer had sent it.
    pub(crate) fn send(&mut self, to: usize, packet: Packet) {
        let way = &mut self.ways[1 - to];
        let number = way.count;
        way.count += 1;
        let fate = (way.fate)(number, &packet);
        let Some(at) = way.arrival(self.now, packet.len()) else { return };
        let (at, copies) = match fate {
            Fate::Passes => (at, 1),
            Fate::IsDropped => return,
            Fate::IsHeld(by) => (at + by, 1),
            Fate::IsDoubled => (at, 2),
        };
        for _ in 0..copies {
            self.serial += 1;
            self.flying.insert((at, self.serial), (to, packet.clone()));
        }
    }

    /// Carries out what an end has to send and to tell.
    pub(crate) fn drain(&mut self, end: usize) {
        loop {
            let mut is_idle = true;
            while let Some(packet) = self.ends[end].poll_transmit(self.now) {
                is_idle = false;
                if self.logs {
                    self.log.push((self.now, end, packet.clone()));
                }
                self.send(1 - end, packet);
            }
            while let Some(event) = self.ends[end].poll_event() {
                is_idle = false;
                if event == Event::Readable && self.reads[end] {
                    self.read[end] += self.ends[end].read(u64::MAX);
                } else {
                    self.events.push((self.now, end, event));
                }
            }
            if is_idle {
                return;
            }
        }
    }

    fn next(&self) -> Option<Time> {
        let packet = self.flying.keys().next().map(|(at, _)| *at);
        let deadlines = self.ends.iter().filter_map(Transport::next_deadline);
        deadlines.chain(packet).min()
    }

    /// Does the next thing, if it is not after `until`. Gives whether there was one.
    pub(crate) fn step(&mut self, until: Time) -> bool {
        let Some(at) = self.next().filter(|at| *at <= until) else { return false };
        self.now = self.now.max(at);
        if let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= at) {
            let (to, packet) = entry.remove();
            self.ends[to].handle(self.now, packet);
            self.drain(to);
            return true;
        }
        for end in 0..2 {
            if self.ends[end].next_deadline().is_some_and(|due| due <= self.now) {
                self.ends[end].handle_deadline(self.now);
                self.drain(end);
            }
        }
        true
    }

    /// Runs until the time has come or nothing is left to happen.
    pub(crate) fn run(&mut self, seconds: f64) {
        let until = Time::from_secs_f64(seconds);
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    /// When an end told something, first.
    pub(crate) fn told(&self, end: usize, event: Event) -> Option<Time> {
        self.events.iter().find(|(_, by, what)| *by == end && *what == event).map(|(at, ..)| *at)
    }
}
