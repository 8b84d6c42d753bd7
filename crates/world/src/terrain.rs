//! A topology as the fluid and latency wires see it.
//!
//! - What a host can send and receive is what its access links carry, summed over them.
//! - A path's delay is the sum of its links' propagation delays.
//! - A path carries at most what its slowest inner link does, and with [`Tcp`] at most what one
//!   TCP connection gets over the path's loss and round trip (Padhye et al. 1998).
//!
//! **Limits.** A link within the network that several paths share is not shared here: each path
//! may fill it (packets over `net` model that, and queues and their delay). Where every inner
//! link is private, as in a star, a mesh or a measured matrix, nothing is lost by this. A link
//! that is down cuts every pair whose path crosses it, in both directions, as TCP would see it.

use crate::sim::HostSpec;
use crate::topology::check::{Problem, check};
use crate::topology::{Change, Changed, LinkIx, Loss, LossModel, NodeIx, Routes, Topology};
use crate::units::Rate;
use anabranch_proto::time::{Duration, Time};
use anabranch_proto::transport::formula;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What caps a path beside its links: one TCP connection at the path's loss.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tcp {
    /// Bytes of headers in each packet: the segment is the path's MTU less this. Default 40.
    pub header: u32,
    /// Segments that one acknowledgement covers. Default 2, delayed acknowledgements.
    pub per_ack: f64,
    /// Retransmission time-out in round trips. Default 4 (RFC 5348 §4.3).
    pub rto: u32,
}

impl Default for Tcp {
    fn default() -> Tcp {
        Tcp { header: 40, per_ack: 2.0, rto: 4 }
    }
}

/// A topology under a simulation. See [the module](self).
#[derive(Clone, Debug)]
pub struct Terrain {
    /// The members as the topology describes them; the first is the source. May be changed before
    /// the run, but for their number, names and rates.
    pub hosts: Vec<HostSpec>,
    nodes: Vec<NodeIx>,
    /// Links by the member whose access they are: (leaving it, reaching it).
    access: Vec<(Vec<u32>, Vec<u32>)>,
    links: Vec<State>,
    changes: Vec<Change>,
    tcp: Option<Tcp>,
    downs: u32,
    cache: RefCell<Cache>,
}

/// A member's access links, out and in.
pub(crate) type Port = (LinkIx, LinkIx);

/// A link as it is now.
#[derive(Clone, Copy, Debug)]
struct State {
    rate: Rate,
    delay: Duration,
    /// The chance that a packet passes.
    pass: f64,
    mtu: u32,
    is_down: bool,
}

#[derive(Clone, Debug)]
struct Cache {
    routes: Routes,
    paths: BTreeMap<(u32, u32), Path>,
    rows: Option<Rows>,
}

/// What a pair's path adds up to.
#[derive(Clone, Debug)]
struct Path {
    links: Box<[LinkIx]>,
    delay: Duration,
    /// Of its inner links.
    rate: f64,
    pass: f64,
    mtu: u32,
    is_down: bool,
}

impl Terrain {
    /// `members` of a topology; the first is the source.
    ///
    /// # Errors
    ///
    /// What is wrong with the topology, or a member that is no host, or is there twice.
    pub fn new(topology: &Topology, members: &[NodeIx]) -> Result<Terrain, Problem> {
        check_members(topology, members)?;
        let named = |node: &NodeIx| (topology.nodes[node.0 as usize].name.clone(), *node);
        Terrain::places(topology, &members.iter().map(named).collect::<Vec<_>>())
    }

    /// Members with names of their own at hosts of a topology; the first is the source. Several may
    /// be at one host if they are never there at the same time: each has all of the host's links.
    ///
    /// # Errors
    ///
    /// What is wrong with the topology.
    pub fn places(topology: &Topology, places: &[(String, NodeIx)]) -> Result<Terrain, Problem> {
        check(topology)?;
        let mut by_node: BTreeMap<NodeIx, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
        for (ix, link) in topology.links.iter().enumerate() {
            by_node.entry(link.from).or_default().0.push(ix as u32);
            by_node.entry(link.to).or_default().1.push(ix as u32);
        }
        let links_of =
            |(_, node): &(String, NodeIx)| by_node.get(node).cloned().unwrap_or_default();
        let access: Vec<(Vec<u32>, Vec<u32>)> = places.iter().map(links_of).collect();
        let state = |link: &crate::topology::Link| State {
            rate: link.rate,
            delay: link.delay,
            pass: 1.0 - mean_loss(link.loss),
            mtu: link.mtu,
            is_down: false,
        };
        let links: Vec<State> = topology.links.iter().map(state).collect();
        let host = |(member, (name, _)): (usize, &(String, NodeIx))| {
            let (up, down) = (sum(&links, &access[member].0), sum(&links, &access[member].1));
            match member {
                0 => HostSpec::source(name, up, down),
                _ => HostSpec::receiver(name, up, down),
            }
        };
        let routes = Routes::new(topology);
        Ok(Terrain {
            hosts: places.iter().enumerate().map(host).collect(),
            nodes: places.iter().map(|(_, node)| *node).collect(),
            access,
            changes: topology.changes.clone(),
            tcp: None,
            downs: 0,
            links,
            cache: RefCell::new(Cache { routes, paths: BTreeMap::new(), rows: None }),
        })
    }

    /// With every path capped at what one TCP connection gets.
    pub fn tcp(mut self, tcp: Tcp) -> Terrain {
        self.tcp = Some(tcp);
        self
    }

    /// The members' nodes, and for each its access links, out and in, where it has one of each.
    pub(crate) fn ports(&self) -> (&[NodeIx], Vec<Option<Port>>) {
        let port = |links: &(Vec<u32>, Vec<u32>)| match (&links.0[..], &links.1[..]) {
            (&[out], &[into]) => Some((LinkIx(out), LinkIx(into))),
            _ => None,
        };
        (&self.nodes, self.access.iter().map(port).collect())
    }

    /// For the latency wire: only delays are kept, to a tenth of a microsecond, and shared by
    /// hosts at one router, so that thousands of hosts fit in tens of megabytes.
    pub(crate) fn delays_only(&mut self) {
        let rows = Rows::new(self);
        self.cache.get_mut().rows = Some(rows);
    }

    /// The topology's changes, those of one time together.
    pub(crate) fn script(&self) -> Vec<(Time, Vec<(LinkIx, Changed)>)> {
        let alike = self.changes.chunk_by(|a, b| a.at == b.at);
        alike.map(|all| (all[0].at, all.iter().map(|one| (one.link, one.to)).collect())).collect()
    }

    /// One-way delay from one member to another.
    pub fn delay(&self, from: u32, to: u32) -> Duration {
        let cache = &mut *self.cache.borrow_mut();
        match &mut cache.rows {
            Some(rows) => rows.delay(&mut cache.routes, from, to),
            None => cache.path(self, from, to).delay,
        }
    }

    /// Bytes per second that the path from one member to another carries, beside its ends.
    pub fn cap(&self, from: u32, to: u32) -> f64 {
        let cache = &mut *self.cache.borrow_mut();
        if cache.rows.is_some() {
            return f64::INFINITY;
        }
        let back = cache.path(self, to, from).delay;
        let path = cache.path(self, from, to);
        let loss = 1.0 - path.pass;
        let Some(tcp) = self.tcp.filter(|_| loss > 0.0) else { return path.rate };
        let rtt = path.delay + back;
        let mss = f64::from(path.mtu.saturating_sub(tcp.header).max(1));
        let rate =
            formula::padhye(&formula::Path { mss, rtt, loss, per_ack: tcp.per_ack }, rtt * tcp.rto);
        // A rate of nothing would be a cut; a path that loses everything is as good as one.
        path.rate.min(rate.max(1.0))
    }

    /// Whether a link on the way between two members is down.
    pub(crate) fn is_cut(&self, a: u32, b: u32) -> bool {
        if self.downs == 0 {
            return false;
        }
        let cache = &mut *self.cache.borrow_mut();
        cache.path(self, a, b).is_down || cache.path(self, b, a).is_down
    }

    /// Carries out changes; returns the members whose own rates are others now.
    pub(crate) fn apply(&mut self, changes: &[(LinkIx, Changed)]) -> Vec<(u32, Rate, Rate)> {
        let mut is_touched = vec![false; self.links.len()];
        for &(link, to) in changes {
            let Some(state) = self.links.get_mut(link.0 as usize) else { continue };
            is_touched[link.0 as usize] = true;
            match to {
                Changed::Rate(rate) => state.rate = rate,
                Changed::Delay(delay) => state.delay = delay,
                Changed::Loss(loss) => state.pass = 1.0 - mean_loss(loss),
                Changed::Down => state.is_down = true,
                Changed::Up => state.is_down = false,
            }
        }
        self.downs = self.links.iter().filter(|link| link.is_down).count() as u32;
        let mut cache = self.cache.borrow_mut();
        let is_hit = |path: &Path| path.links.iter().any(|link| is_touched[link.0 as usize]);
        let hit: Vec<(u32, u32)> =
            cache.paths.iter().filter(|(_, path)| is_hit(path)).map(|(&pair, _)| pair).collect();
        for (from, to) in hit {
            if let Some(path) = cache.paths.get_mut(&(from, to)) {
                let links = std::mem::take(&mut path.links);
                *path = self.add_up(links, from, to);
            }
        }
        let rates = |member: usize| {
            let (up, down) = &self.access[member];
            (member as u32, sum(&self.links, up), sum(&self.links, down))
        };
        let is_changed = |member: &usize| {
            let (up, down) = &self.access[*member];
            up.iter().chain(down).any(|&link| is_touched[link as usize])
        };
        (0..self.access.len()).filter(is_changed).map(rates).collect()
    }

    fn add_up(&self, links: Box<[LinkIx]>, from: u32, to: u32) -> Path {
        let mut path = Path {
            delay: Duration::ZERO,
            rate: f64::INFINITY,
            pass: 1.0,
            mtu: u32::MAX,
            is_down: false,
            links: Box::default(),
        };
        let last = links.len().wrapping_sub(1);
        for (hop, link) in links.iter().enumerate() {
            let state = &self.links[link.0 as usize];
            path.delay += state.delay;
            path.pass *= state.pass;
            path.mtu = path.mtu.min(state.mtu);
            path.is_down |= state.is_down;
            // A host's only link is its port, which all its paths share.
            let is_port = (hop == 0 && self.access[from as usize].0.len() == 1)
                || (hop == last && self.access[to as usize].1.len() == 1);
            if !is_port {
                path.rate = path.rate.min(state.rate.as_f64());
            }
        }
        path.links = links;
        path
    }
}

impl Cache {
    fn path(&mut self, terrain: &Terrain, from: u32, to: u32) -> &Path {
        self.paths.entry((from, to)).or_insert_with(|| {
            let (a, b) = (terrain.nodes[from as usize], terrain.nodes[to as usize]);
            let links = self.routes.path(a, b).unwrap_or_default();
            terrain.add_up(links.into(), from, to)
        })
    }
}

fn check_members(topology: &Topology, members: &[NodeIx]) -> Result<(), Problem> {
    for (place, &node) in members.iter().enumerate() {
        let what = match topology.nodes.get(node.0 as usize) {
            None => format!("the topology has no node {}", node.0),
            Some(node) if !node.is_host => format!("{:?} is a router, no host", node.name),
            Some(host) if members[..place].contains(&node) => {
                format!("{:?} is there twice", host.name)
            }
            Some(_) => continue,
        };
        return Err(Problem { node: Some(node), what });
    }
    Ok(())
}

fn sum(links: &[State], of: &[u32]) -> Rate {
    let rates = of.iter().map(|&link| links[link as usize].rate.bytes());
    Rate::bytes_per_sec(rates.fold(0, u64::saturating_add))
}

/// The share of packets that a link loses in the long run.
fn mean_loss(loss: Option<Loss>) -> f64 {
    match loss.map(|loss| loss.model) {
        None => 0.0,
        Some(LossModel::Independent { probability }) => probability,
        Some(LossModel::GilbertElliott { to_bad, to_good, loss_good, loss_bad }) => {
            let total = to_bad + to_good;
            let bad = if total > 0.0 { to_bad / total } else { 0.0 };
            bad * loss_bad + (1.0 - bad) * loss_good
        }
    }
}

/// Delays between the routers at which hosts hang, a row at a time when it is first asked for.
#[derive(Clone, Debug)]
struct Rows {
    /// By member: the column or row of its router, and the delay between.
    out: Vec<(u32, u64)>,
    into: Vec<(u32, u64)>,
    starts: Vec<NodeIx>,
    ends: Vec<NodeIx>,
    /// In tenths of a microsecond.
    rows: Vec<Option<Box<[u32]>>>,
}

impl Rows {
    fn new(terrain: &Terrain) -> Rows {
        let cache = terrain.cache.borrow();
        let site = |links: &[u32], node: NodeIx, is_out: bool| match links {
            [only] => cache.routes.router_at(LinkIx(*only), is_out).map_or((node, 0), |router| {
                (router, terrain.links[*only as usize].delay.as_nanos() as u64)
            }),
            _ => (node, 0),
        };
        let number = |sites: Vec<(NodeIx, u64)>| {
            let mut known: Vec<NodeIx> = sites.iter().map(|site| site.0).collect();
            known.sort_unstable();
            known.dedup();
            let place = |node| known.partition_point(|&other| other < node) as u32;
            let by_member = sites.iter().map(|&(node, delay)| (place(node), delay)).collect();
            (by_member, known)
        };
        let members = || terrain.nodes.iter().zip(&terrain.access);
        let (out, starts) =
            number(members().map(|(&node, links)| site(&links.0, node, true)).collect());
        let (into, ends) =
            number(members().map(|(&node, links)| site(&links.1, node, false)).collect());
        let rows = vec![None; starts.len()];
        Rows { out, into, starts, ends, rows }
    }

    fn delay(&mut self, routes: &mut Routes, from: u32, to: u32) -> Duration {
        let ((start, out), (end, into)) = (self.out[from as usize], self.into[to as usize]);
        let row = self.rows[start as usize].get_or_insert_with(|| {
            let delays = routes.delays(self.starts[start as usize], &self.ends);
            let tenths = |delay: Option<Duration>| {
                delay.map_or(u32::MAX, |delay| {
                    u32::try_from(delay.as_nanos() / 100).unwrap_or(u32::MAX)
                })
            };
            delays.into_iter().map(tenths).collect()
        });
        Duration::from_nanos(out + u64::from(row[end as usize]) * 100 + into)
    }
}

#[cfg(test)]
mod tests;
