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
mod packet;
mod queue;
mod routing;
pub mod stats;

pub use packet::{Carried, Packet};
pub use stats::{Cause, ClassStats, Count, LinkStats, Queued};

use crate::topology::routes::Routes;
use crate::topology::{LinkIx, NodeIx, Topology};
use anabranch_proto::random;
use anabranch_proto::time::{Duration, Time};
use clock::Clock;
use due::{Agenda, Due, Kind};
use link::{Link, Taken};
use loss::Dice;
use packet::{Store, Unit};
use queue::Gate;
use routing::RouteTable;
use std::collections::BTreeMap;

/// The network. See [the module](self).
#[derive(Debug)]
pub struct Network<B> {
    links: Vec<Link>,
    routes: RouteTable,
    store: Store<B>,
    agenda: Agenda,
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
        Network {
            links: links(topology, seed),
            routes: RouteTable::new(Routes::new(topology)),
            store: Store::new(),
            agenda: Agenda::default(),
            sent: 0,
            done: Time::ZERO,
            seen: Time::ZERO,
            unroutable: 0,
            hops: 0,
        }
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
        let len = packet.len;
        let unit = Unit { serial: self.sent, slot: self.store.insert(packet), hop: start, len };
        self.sent += 1;
        let is_next = self.agenda.first().is_none_or(|first| first.at > now);
        match self.routes.link(start) {
            Some(link) if is_next => {
                self.done = now;
                self.forward(now, link, unit);
            }
            _ => self.agenda.push(Due::new(now, Kind::Entry, unit.serial, unit.slot)),
        }
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
            if let Some(slot) = self.carry_out(due)
                && let Some(packet) = self.store.remove(slot)
            {
                return Some((due.at, packet));
            }
        }
        self.seen = self.seen.max(now);
        None
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

    /// Carries out one event; returns the slot of a packet that is where it wanted to be.
    fn carry_out(&mut self, due: Due) -> Option<u32> {
        match due.kind() {
            Kind::Arrival => self.arrival(due.at, due.index),
            Kind::Entry => self.entry(due),
            Kind::Departure | Kind::Change => {
                self.agenda.pop();
                None
            }
        }
    }

    /// The first packet on a link's wire arrives.
    fn arrival(&mut self, now: Time, index: u32) -> Option<u32> {
        let link = &mut self.links[index as usize];
        let landed = link.land();
        let next = link.next_arrival();
        self.agenda
            .replace_first(next.map(|(at, serial)| Due::new(at, Kind::Arrival, serial, index)));
        match landed? {
            Ok(unit) => {
                self.hops += 1;
                let unit = Unit { hop: unit.hop + 1, ..unit };
                let Some(next) = self.routes.link(unit.hop) else { return Some(unit.slot) };
                self.forward(now, next, unit);
            }
            Err((unit, _)) => {
                self.store.remove(unit.slot);
            }
        }
        None
    }

    /// A packet that was sent ahead of the events enters.
    fn entry(&mut self, due: Due) -> Option<u32> {
        self.agenda.pop();
        let slot = due.index;
        let packet = self.store.get(slot)?;
        let len = packet.len;
        let start = self.routes.start(packet.from, packet.to)?;
        let Some(link) = self.routes.link(start) else { return Some(slot) };
        self.forward(due.at, link, Unit { serial: due.sequence(), slot, hop: start, len });
        None
    }

    /// A packet comes to a link.
    fn forward(&mut self, now: Time, index: u32, unit: Unit) {
        match self.links[index as usize].take(now, unit) {
            Taken::Behind => {}
            Taken::First(at) => {
                self.agenda.push(Due::new(at, Kind::Arrival, unit.serial, index));
            }
            Taken::Dropped(_) => {
                self.store.remove(unit.slot);
            }
        }
    }
}

/// The links of a topology, with their generators.
fn links(topology: &Topology, seed: u64) -> Vec<Link> {
    let mut names = Names::default();
    let link = |spec: &crate::topology::Link| {
        let name = names.next(topology, spec);
        let clock = Clock::new(spec.rate.bytes());
        let mut link = Link::new(clock, nanoseconds(spec.delay), spec.mtu, Gate::new(&spec.queue));
        let dice = |loss| Box::new(Dice::new(loss, random::stream(seed, &name, "loss")));
        link.dice = spec.loss.map(dice);
        link
    };
    topology.links.iter().map(link).collect()
}

/// Names of links: their ends, and a number from the second on that joins the same.
#[derive(Default)]
struct Names {
    seen: BTreeMap<(NodeIx, NodeIx), u32>,
}

impl Names {
    /// The name of the next link of a topology.
    fn next(&mut self, topology: &Topology, link: &crate::topology::Link) -> String {
        let node = |node: NodeIx| &topology.nodes[node.0 as usize].name;
        let number = self.seen.entry((link.from, link.to)).or_default();
        *number += 1;
        match *number {
            1 => format!("{}->{}", node(link.from), node(link.to)),
            number => format!("{}->{}#{number}", node(link.from), node(link.to)),
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
