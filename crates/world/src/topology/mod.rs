//! What a network is made of: hosts, routers, and directed links with a rate, a delay, a queue and
//! perhaps loss; and how the links change in the course of a run. The simulator and the emulator
//! read the same description.

pub mod build;
pub mod check;
pub mod file;
pub mod generate;
pub mod routes;

pub use file::{SpecError, TopologyError, TopologySpec};
pub use routes::Routes;

use crate::units::Rate;
use anabranch_proto::time::{Duration, Time};

/// A node's number: its place in [`Topology::nodes`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeIx(pub u32);

/// A directed link's number: its place in [`Topology::links`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkIx(pub u32);

/// A network.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Topology {
    /// Hosts and routers.
    pub nodes: Vec<Node>,
    /// Directed links.
    pub links: Vec<Link>,
    /// What changes when; in the order of time.
    pub changes: Vec<Change>,
    /// The congestion control of hosts that run under the emulator; the kernel's default if not
    /// given.
    pub congestion: Option<String>,
}

impl Topology {
    /// The hosts, in the order of their numbers.
    pub fn hosts(&self) -> impl Iterator<Item = NodeIx> + '_ {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter(|(_, node)| node.is_host).map(|(ix, _)| NodeIx(ix as u32))
    }

    /// The node of this name.
    pub fn find(&self, name: &str) -> Option<NodeIx> {
        self.nodes.iter().position(|node| node.name == name).map(|ix| NodeIx(ix as u32))
    }

    /// The links from one node to another; there may be several.
    pub fn links_between(&self, from: NodeIx, to: NodeIx) -> impl Iterator<Item = LinkIx> + '_ {
        let links = self.links.iter().enumerate();
        links
            .filter(move |(_, link)| link.from == from && link.to == to)
            .map(|(ix, _)| LinkIx(ix as u32))
    }
}

/// A host or a router.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Its name, unique in the topology.
    pub name: String,
    /// Whether programs run on it; a router only forwards.
    pub is_host: bool,
}

/// One direction of a link: a queue, then the wire.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Where it begins; the queue is there.
    pub from: NodeIx,
    /// Where it ends.
    pub to: NodeIx,
    /// What it carries.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// Random loss.
    pub loss: Option<Loss>,
    /// The largest packet in bytes, headers included.
    pub mtu: u32,
    /// What waits for the wire.
    pub queue: QueueSpec,
    /// What kind of link it is (`access`, `core`, `transit-stub`, …), for selecting and reporting.
    pub label: String,
}

/// Random loss on a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Loss {
    /// How it strikes.
    pub model: LossModel,
    /// Where: before the queue, so that it costs none of the link's rate, or behind it.
    pub side: Side,
}

/// Side of a link's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// A packet is lost before it is queued.
    Before,
    /// A packet is lost after it has been sent.
    After,
}

/// How random loss strikes. Probabilities are from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LossModel {
    /// Each packet alike.
    Independent {
        /// Of losing a packet.
        probability: f64,
    },
    /// In bursts: a two-state chain that moves once per packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Of going from good to bad.
        to_bad: f64,
        /// Of going from bad to good.
        to_good: f64,
        /// Of losing a packet while good.
        loss_good: f64,
        /// Of losing a packet while bad.
        loss_bad: f64,
    },
}

/// How much a queue holds; the packet in service counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// So many bytes.
    Bytes(u64),
    /// So many packets.
    Packets(u32),
}

/// What waits for a wire, and what is dropped.
#[derive(Clone, PartialEq, Debug)]
pub enum QueueSpec {
    /// First in, first out; who comes when it is full is dropped.
    DropTail {
        /// How much it holds.
        limit: Limit,
    },
    /// Random early detection (Floyd, Jacobson 1993), gentle.
    Red(RedSpec),
    /// Strict priority with a buffer per class, each of any kind.
    Priority {
        /// The classes' queues, the highest first: two or three.
        classes: Vec<QueueSpec>,
        /// Which packet belongs where.
        map: ClassMap,
    },
    /// Strict priority with one buffer: an arriving packet pushes out the latest of the lowest
    /// class below its own.
    PushOut {
        /// How much all classes hold together.
        limit: Limit,
        /// How many classes there are: two or three.
        classes: u8,
        /// Which packet belongs where.
        map: ClassMap,
    },
    /// An XCP router's queue (Katabi et al. 2002).
    Xcp(XcpSpec),
}

/// From DSCP to class, 0 the highest: the first entry that matches, or else `other`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassMap {
    /// (DSCP, class).
    pub entries: Vec<(u8, u8)>,
    /// The class of all others.
    pub other: u8,
}

/// RED's parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedSpec {
    /// How much it holds at most.
    pub limit: Limit,
    /// Average length below which nothing is dropped, in the limit's unit.
    pub min: f64,
    /// Average length at which `probability_max` is reached; it rises to 1 at twice as much.
    pub max: f64,
    /// Probability of a drop at `max`.
    pub probability_max: f64,
    /// Weight of a new sample in the average.
    pub weight: f64,
}

/// XCP's parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct XcpSpec {
    /// How much it holds at most.
    pub limit: Limit,
    /// Efficiency controller's gain on spare bandwidth. Paper: 0.4.
    pub alpha: f64,
    /// Efficiency controller's gain on the persistent queue. Paper: 0.226.
    pub beta: f64,
    /// Share of traffic that is shuffled. Paper: 0.1.
    pub shuffle: f64,
}

/// Something about a link changes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// When.
    pub at: Time,
    /// Which link.
    pub link: LinkIx,
    /// What.
    pub to: Changed,
}

/// What a link changes to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Changed {
    /// Another rate.
    Rate(Rate),
    /// Another delay.
    Delay(Duration),
    /// Another loss, or none.
    Loss(Option<Loss>),
    /// Everything that comes, waits or is under way on it is lost.
    Down,
    /// It carries again.
    Up,
}
