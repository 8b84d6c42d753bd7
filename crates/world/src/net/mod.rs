//! The packet-level network: hosts and routers joined by directed links with rates, delays,
//! queues and loss, in virtual time for simulators and in real time for the emulator.
//!
//! A user sends packets at hosts and polls for deliveries:
//!
//! ```
//! use anabranch_proto::time::Time;
//! use anabranch_world::net::{Network, Packet};
//! use anabranch_world::topology::{Limit, Link, Node, NodeIx, QueueSpec, Topology};
//! use anabranch_world::units::{mbit, ms};
//!
//! let host = |name: &str| Node { name: name.into(), is_host: true };
//! let link = Link {
//!     from: NodeIx(0),
//!     to: NodeIx(1),
//!     rate: mbit(12),
//!     delay: ms(5),
//!     loss: None,
//!     mtu: 1_500,
//!     queue: QueueSpec::DropTail { limit: Limit::Packets(10) },
//!     label: String::new(),
//! };
//! let topology =
//!     Topology { nodes: vec![host("a"), host("b")], links: vec![link], ..Topology::default() };
//! let mut network = Network::new(&topology, 1);
//! let (from, to) = (NodeIx(0), NodeIx(1));
//! network.send(Time::ZERO, Packet { from, to, flow: 0, len: 1_500, dscp: 0, body: () });
//! // 1 ms on the wire, 5 ms under way.
//! assert_eq!(network.next_event(), Some(Time(6_000_000)));
//! assert_eq!(network.poll(Time(6_000_000)).unwrap().0, Time(6_000_000));
//! ```
//!
//! **Order.** Everything happens by (time, kind, packet): at one time departures come first, then
//! changes of links, then arrivals, those of packets that were sent earlier first, then packets
//! that enter. Same topology, seed and calls: same run.
//!
//! **Time of calls.** [`Network::send`] and [`Network::change`] may name a time that lies behind
//! events which have not been polled, as it happens in real time: these are carried out first, in
//! their order, by the next [`Network::poll`]. A time before what has been carried out counts as
//! the time of the last thing that was.

mod clock;
mod due;
mod link;
mod loss;
mod names;
pub mod observe;
mod packet;
pub mod pcap;
mod queue;
mod routing;
mod schedule;
pub mod stats;
pub mod trace;

pub use observe::{Observer, Step};
pub use packet::{Carried, Packet};
pub use stats::{Cause, ClassStats, Count, LinkStats, Queued};

use crate::prefetch::prefetch;
use crate::topology::routes::Routes;
use crate::topology::{Change, Changed, LinkIx, NodeIx, Topology};
use anabranch_proto::random;
use anabranch_proto::time::{Duration, Time};
use clock::Clock;
use due::{Agenda, Due, Kind};
use link::{Link, Path, Served, Shared};
use loss::Dice;
use names::Names;
use observe::Observers;
use packet::{Store, Unit};
use queue::{Gate, Gone, Place, Queue};
use routing::RouteTable;
use schedule::Schedule;

/// The network. See [the module](self).
#[derive(Debug)]
pub struct Network<B> {
    seed: u64,
    names: Names,
    links: Vec<Link>,
    routes: RouteTable,
    schedule: Schedule,
    store: Store<B>,
    agenda: Agenda,
    observers: Observers<B>,
    /// Packets that have just been dropped; empty between calls.
    gone: Vec<Gone>,
    /// Packets sent so far.
    sent: u64,
    /// The time of the last thing that was carried out.
    done: Time,
    /// The latest time that was given to a call: statistics are as of then.
    seen: Time,
    /// Packets that had no way to go.
    unroutable: u64,
    /// Packets that arrived at the end of a link.
    hops: u64,
}

impl<B: Carried> Network<B> {
    /// The network of `topology`, whose chance comes from `seed` and the links' names.
    pub fn new(topology: &Topology, seed: u64) -> Network<B> {
        let names = Names::new(topology);
        let mut network = Network {
            seed,
            links: links(topology, seed, &names),
            names,
            routes: RouteTable::new(Routes::new(topology)),
            schedule: Schedule::new(&topology.changes),
            store: Store::new(),
            agenda: Agenda::default(),
            observers: Observers::default(),
            gone: Vec::new(),
            sent: 0,
            done: Time::ZERO,
            seen: Time::ZERO,
            unroutable: 0,
            hops: 0,
        };
        network.schedule.announce(&mut network.agenda);
        network
    }

    /// A packet enters at host `from`. To itself it is delivered at once, without a link; where
    /// there is no way it is gone and counted.
    pub fn send(&mut self, now: Time, packet: Packet<B>) {
        let Some(start) = self.routes.start(packet.from, packet.to) else {
            self.unroutable += 1;
            return;
        };
        let now = now.max(self.done);
        self.seen = self.seen.max(now);
        let serial = self.sent;
        self.sent += 1;
        let unit = Unit { serial, hop: start, len: packet.len, class: 0, slot: 0 };
        let unit = Unit { slot: self.store.insert(packet), ..unit };
        match self.routes.link(start) {
            Some(link) if self.is_next(now) => {
                self.done = now;
                self.forward(now, link, unit);
            }
            _ => self.agenda.push(Due::new(now, Kind::Entry, serial, unit.slot)),
        }
    }

    /// Changes a link, as the topology's schedule does.
    ///
    /// # Panics
    /// When there is no such link.
    pub fn change(&mut self, now: Time, link: LinkIx, to: Changed) {
        assert!((link.0 as usize) < self.links.len(), "{link:?} is not a link of this network");
        let now = now.max(self.done);
        self.seen = self.seen.max(now);
        if self.is_next(now) {
            self.done = now;
            self.change_now(now, link, to);
        } else {
            self.schedule.insert(Change { at: now, link, to }, &mut self.agenda);
        }
    }

    /// Whether nothing is due up to `now`.
    fn is_next(&self, now: Time) -> bool {
        self.agenda.first().is_none_or(|first| first.at > now)
    }

    /// Finds a way now and not when it is first used, as real time wants it. The first way from a
    /// host takes the longest. True when there is one.
    pub fn find_route(&mut self, from: NodeIx, to: NodeIx) -> bool {
        self.routes.start(from, to).is_some()
    }

    /// When something is due next.
    pub fn next_event(&self) -> Option<Time> {
        self.agenda.first().map(|due| due.at)
    }

    /// Carries out events in order up to `now`, inclusive, and returns at the next delivery, with
    /// its time; `None` when nothing more is due by `now`.
    pub fn poll(&mut self, now: Time) -> Option<(Time, Packet<B>)> {
        while let Some(&due) = self.agenda.first().filter(|due| due.at <= now) {
            self.done = due.at;
            self.seen = self.seen.max(due.at);
            self.look_ahead();
            if let Some(slot) = self.carry_out(due)
                && let Some(packet) = self.store.remove(slot)
            {
                return Some((due.at, packet));
            }
        }
        self.seen = self.seen.max(now);
        None
    }

    /// Asks for the memory that the next events need, a step more for those that come sooner: many
    /// links do not fit any cache.
    fn look_ahead(&self) {
        let link = |place| self.agenda.link_near(place).map(|link| &self.links[link as usize]);
        (7..15).filter_map(link).for_each(prefetch);
        (3..7).filter_map(link).for_each(Link::look_in);
        for unit in (1..3).filter_map(link).filter_map(Link::first) {
            self.store.look_at(unit.slot);
            self.routes.look_at(unit.hop + 1);
        }
    }

    /// What was counted at a link, up to the latest time that was polled or sent at.
    ///
    /// # Panics
    /// When there is no such link.
    pub fn stats(&self, link: LinkIx) -> LinkStats {
        self.links[link.0 as usize].stats(self.seen)
    }

    /// What waits at a link at `now`, the packet in service included.
    ///
    /// # Panics
    /// When there is no such link.
    pub fn queued(&mut self, now: Time, link: LinkIx) -> Queued {
        self.links[link.0 as usize].queued(now.max(self.done))
    }

    /// From now on `observer` sees what happens at the links that it wants. Their departures
    /// become events, which changes nothing but the speed.
    pub fn observe(&mut self, observer: Box<dyn Observer<B>>) {
        let mut shared =
            Shared { agenda: &mut self.agenda, store: &mut self.store, gone: &mut self.gone };
        for (index, link) in self.links.iter_mut().enumerate() {
            if observer.wants(LinkIx(index as u32)) {
                link.serve_by_events(self.done, &mut shared);
            }
        }
        self.observers.add(observer);
    }

    /// Ends observing: every observer writes what it still has. The first failure is returned.
    pub fn finish_observers(&mut self) -> std::io::Result<()> {
        self.observers.finish()
    }

    /// A link's name: its ends, as in `a->b`, and a number from the second on that joins them.
    ///
    /// # Panics
    /// When there is no such link.
    pub fn link_name(&self, link: LinkIx) -> String {
        self.names.of(link)
    }

    /// Packets that are on their way.
    pub fn under_way(&self) -> usize {
        self.store.len()
    }

    /// Packets that were sent where there is no way.
    pub fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// Packets that reached the end of a link, one for each link they passed.
    pub fn hops(&self) -> u64 {
        self.hops
    }

    /// Carries out one event, the agenda's first; returns the slot of a packet that is where it
    /// wanted to be.
    fn carry_out(&mut self, due: Due) -> Option<u32> {
        match due.kind() {
            Kind::Arrival => self.arrival(due.at, due.index),
            Kind::Departure => {
                self.departure(due.at, due.index);
                None
            }
            Kind::Entry => self.entry(due),
            Kind::Change => {
                self.agenda.pop();
                if let Some(change) = self.schedule.take() {
                    self.change_now(due.at, change.link, change.to);
                }
                self.schedule.announce(&mut self.agenda);
                None
            }
        }
    }

    /// The first packet on a link's wire arrives.
    fn arrival(&mut self, now: Time, index: u32) -> Option<u32> {
        let link = &mut self.links[index as usize];
        let landed = link.land();
        self.agenda.replace_first(link.next_arrival());
        match landed? {
            Ok(unit) => {
                self.hops += 1;
                let unit = Unit { hop: unit.hop + 1, ..unit };
                let next = self.routes.link(unit.hop);
                let step = Step::Arrived { is_last: next.is_none() };
                self.observers.see(now, index, step, &self.store, unit);
                let Some(next) = next else { return Some(unit.slot) };
                self.forward(now, next, unit);
            }
            Err(gone) => {
                self.gone.push(gone);
                self.bury(now, index);
            }
        }
        None
    }

    /// The packet in service at a link is on the wire.
    fn departure(&mut self, now: Time, index: u32) {
        let mut shared =
            Shared { agenda: &mut self.agenda, store: &mut self.store, gone: &mut self.gone };
        if let Some(unit) = self.links[index as usize].depart(now, &mut shared) {
            self.observers.see(now, index, Step::Sent, &self.store, unit);
        }
    }

    /// A packet that was sent ahead of the events enters.
    fn entry(&mut self, due: Due) -> Option<u32> {
        self.agenda.pop();
        let slot = due.index;
        let packet = self.store.get(slot)?;
        let len = packet.len;
        let start = self.routes.start(packet.from, packet.to)?;
        let Some(link) = self.routes.link(start) else { return Some(slot) };
        let unit = Unit { serial: due.sequence(), slot, hop: start, len, class: 0 };
        self.forward(due.at, link, unit);
        None
    }

    /// A packet comes to a link.
    fn forward(&mut self, now: Time, index: u32, unit: Unit) {
        let mut shared =
            Shared { agenda: &mut self.agenda, store: &mut self.store, gone: &mut self.gone };
        self.links[index as usize].take(now, unit, &mut shared);
        if self.observers.is_empty() && self.gone.is_empty() {
            return;
        }
        let is_in = !self.gone.iter().any(|gone| gone.0.serial == unit.serial);
        self.bury(now, index);
        if is_in {
            self.observers.see(now, index, Step::Queued, &self.store, unit);
        }
    }

    fn change_now(&mut self, now: Time, link: LinkIx, to: Changed) {
        let rng = || random::stream(self.seed, &self.names.of(link), "loss");
        let mut shared =
            Shared { agenda: &mut self.agenda, store: &mut self.store, gone: &mut self.gone };
        self.links[link.0 as usize].change(now, to, rng, &mut shared);
        self.bury(now, link.0);
        self.observers.changed(now, link, to);
    }

    /// Takes the packets that are gone out of the store.
    fn bury(&mut self, now: Time, index: u32) {
        for (unit, cause) in self.gone.drain(..) {
            self.observers.see(now, index, Step::Dropped(cause), &self.store, unit);
            self.store.remove(unit.slot);
        }
    }
}

/// The links of a topology, with their generators.
fn links(topology: &Topology, seed: u64, names: &Names) -> Vec<Link> {
    let link = |(index, spec): (usize, &crate::topology::Link)| {
        let rng = |purpose: &str| random::stream(seed, &names.of(LinkIx(index as u32)), purpose);
        let clock = Clock::new(spec.rate.bytes());
        let place = Place { rate: clock.rate(), mtu: spec.mtu, rng: &rng };
        let path = match Gate::new(&spec.queue, &place) {
            Some(gate) => Path::Ring(gate),
            None => Path::Served(Box::new(Served::new(Queue::new(&spec.queue, &place, "")))),
        };
        Link::new(index as u32, clock, nanoseconds(spec.delay), spec.mtu, path)
            .with_dice(spec.loss.map(|loss| Dice::new(loss, rng("loss"))))
    };
    topology.links.iter().enumerate().map(link).collect()
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
