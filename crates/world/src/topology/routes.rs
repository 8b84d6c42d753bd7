//! Which links a packet takes: the shortest path by delay; among equals the one with the fewest
//! hops, then the one whose last links have the lowest numbers.
//!
//! Routes are fixed for a run, as in the papers: a link that goes down loses packets and diverts
//! none. Hosts do not forward, so a path runs over routers between its ends.
//!
//! One tree per source, made when the source is first asked for (Dijkstra 1959) and cut down to
//! the branches that lead to hosts. Cost for 20,000 nodes of which 1,000 are hosts: a few
//! milliseconds and some 30 KB per source that sends.

use super::{LinkIx, NodeIx, Topology};
use anabranch_proto::time::Duration;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The routes of a topology. See [the module](self).
#[derive(Clone, Debug)]
pub struct Routes {
    graph: Graph,
    trees: BTreeMap<NodeIx, Tree>,
    /// The best way to each node that the current search knows.
    best: Vec<Best>,
    /// The path that was asked for last.
    path: Vec<LinkIx>,
}

/// Links by the node they leave.
#[derive(Clone, Debug)]
struct Graph {
    is_host: Vec<bool>,
    /// The links of node n are `out[first[n]..first[n + 1]]`.
    first: Vec<u32>,
    out: Vec<u32>,
    links: Vec<Edge>,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    from: u32,
    to: u32,
    delay_ns: u64,
}

/// How a node is reached: cheaper is less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Best {
    delay_ns: u64,
    hops: u32,
    /// The link by which it is reached.
    link: u32,
}

const UNREACHED: Best = Best { delay_ns: u64::MAX, hops: u32::MAX, link: NONE };
const NONE: u32 = u32::MAX;

/// (node, link by which it is reached), by node: the nodes on the ways to hosts.
type Tree = Box<[(u32, u32)]>;

impl Routes {
    /// The routes of `topology`; nothing is computed yet.
    pub fn new(topology: &Topology) -> Routes {
        let graph = Graph::new(topology);
        let best = vec![UNREACHED; graph.is_host.len()];
        Routes { graph, trees: BTreeMap::new(), best, path: Vec::new() }
    }

    /// The links from one node to another in the order of travel; empty from a node to itself,
    /// `None` where there is no way. A way to a router is searched anew at every call.
    pub fn path(&mut self, from: NodeIx, to: NodeIx) -> Option<&[LinkIx]> {
        let is_host = *self.graph.is_host.get(to.0 as usize)?;
        self.graph.is_host.get(from.0 as usize)?;
        self.path.clear();
        if from == to {
            return Some(&self.path);
        }
        let is_found = if is_host {
            if !self.trees.contains_key(&from) {
                self.graph.search(from, &mut self.best);
                self.trees.insert(from, self.graph.prune(from, &self.best));
            }
            let tree = &self.trees[&from];
            self.graph.walk(from, to, &mut self.path, |node| {
                tree.binary_search_by_key(&node, |entry| entry.0).map_or(NONE, |at| tree[at].1)
            })
        } else {
            self.graph.search(from, &mut self.best);
            let best = &self.best;
            self.graph.walk(from, to, &mut self.path, |node| best[node as usize].link)
        };
        is_found.then_some(&self.path)
    }

    /// The delay of the way from one node to another, without queues and serialization.
    pub fn delay(&mut self, from: NodeIx, to: NodeIx) -> Option<Duration> {
        self.path(from, to)?;
        let total = self.path.iter().map(|link| self.graph.links[link.0 as usize].delay_ns);
        Some(Duration::from_nanos(total.fold(0, u64::saturating_add)))
    }

    /// The delays from one node to many, by a single search; `None` where there is no way.
    pub fn delays(&mut self, from: NodeIx, to: &[NodeIx]) -> Vec<Option<Duration>> {
        self.graph.search(from, &mut self.best);
        let reached = |node: &NodeIx| {
            let best = self.best[node.0 as usize];
            (*node == from || best.link != NONE).then_some(Duration::from_nanos(best.delay_ns))
        };
        to.iter().map(reached).collect()
    }

    /// The router at the far end of a link as seen from a host: where it ends when it leaves the
    /// host, where it begins when it reaches it; `None` when that is a host too.
    pub(crate) fn router_at(&self, link: LinkIx, is_out: bool) -> Option<NodeIx> {
        let edge = self.graph.links[link.0 as usize];
        let node = if is_out { edge.to } else { edge.from };
        (!self.graph.is_host[node as usize]).then_some(NodeIx(node))
    }

    /// Whether there is a way from `from` to every host; else the first that cannot be reached.
    pub fn unreachable_from(&mut self, from: NodeIx) -> Option<NodeIx> {
        self.graph.search(from, &mut self.best);
        let hosts = (0..self.best.len()).filter(|&node| self.graph.is_host[node]);
        hosts
            .map(|node| NodeIx(node as u32))
            .find(|&host| host != from && self.best[host.0 as usize].link == NONE)
    }
}

impl Graph {
    fn new(topology: &Topology) -> Graph {
        let edge = |link: &super::Link| Edge {
            from: link.from.0,
            to: link.to.0,
            delay_ns: u64::try_from(link.delay.as_nanos()).unwrap_or(u64::MAX),
        };
        let links: Vec<Edge> = topology.links.iter().map(edge).collect();
        let mut first = vec![0u32; topology.nodes.len() + 1];
        for link in &links {
            first[link.from as usize + 1] += 1;
        }
        for node in 1..first.len() {
            first[node] += first[node - 1];
        }
        let mut free = first.clone();
        let mut out = vec![0; links.len()];
        for (index, link) in links.iter().enumerate() {
            let place = &mut free[link.from as usize];
            out[*place as usize] = index as u32;
            *place += 1;
        }
        let is_host = topology.nodes.iter().map(|node| node.is_host).collect();
        Graph { is_host, first, out, links }
    }

    /// Fills `best` with the cheapest way from `from` to every node.
    fn search(&self, from: NodeIx, best: &mut [Best]) {
        best.fill(UNREACHED);
        best[from.0 as usize] = Best { delay_ns: 0, hops: 0, link: NONE };
        let mut heap = BinaryHeap::from([Reverse((0, 0, from.0))]);
        while let Some(Reverse((delay_ns, hops, node))) = heap.pop() {
            let reached = best[node as usize];
            let is_stale = (reached.delay_ns, reached.hops) != (delay_ns, hops);
            if is_stale || (self.is_host[node as usize] && node != from.0) {
                continue;
            }
            let links = self.first[node as usize] as usize..self.first[node as usize + 1] as usize;
            for &link in &self.out[links] {
                let edge = self.links[link as usize];
                let delay_ns = delay_ns.saturating_add(edge.delay_ns);
                let way = Best { delay_ns, hops: hops + 1, link };
                let known = &mut best[edge.to as usize];
                let is_cheaper = (way.delay_ns, way.hops) < (known.delay_ns, known.hops);
                if way < *known {
                    *known = way;
                }
                if is_cheaper {
                    heap.push(Reverse((way.delay_ns, way.hops, edge.to)));
                }
            }
        }
    }

    /// What of a search leads to hosts.
    fn prune(&self, from: NodeIx, best: &[Best]) -> Tree {
        let mut is_kept = vec![false; best.len()];
        for host in (0..best.len()).filter(|&node| self.is_host[node]) {
            let mut node = host;
            while !is_kept[node] && best[node].link != NONE && node != from.0 as usize {
                is_kept[node] = true;
                node = self.links[best[node].link as usize].from as usize;
            }
        }
        let kept = (0..best.len()).filter(|&node| is_kept[node]);
        kept.map(|node| (node as u32, best[node].link)).collect()
    }

    /// Follows a tree back from `to`; whether it led to `from`.
    fn walk(
        &self,
        from: NodeIx,
        to: NodeIx,
        path: &mut Vec<LinkIx>,
        link_to: impl Fn(u32) -> u32,
    ) -> bool {
        let mut node = to.0;
        while node != from.0 {
            let link = link_to(node);
            if link == NONE {
                return false;
            }
            path.push(LinkIx(link));
            node = self.links[link as usize].from;
        }
        path.reverse();
        true
    }
}

#[cfg(test)]
mod tests;
