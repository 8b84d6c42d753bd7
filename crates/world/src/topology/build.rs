//! Putting a topology together node by node, with names checked.

use super::file::way::{Way, Ways};
use super::{LinkIx, Node, NodeIx, Topology};
use std::collections::BTreeMap;

/// A topology that grows.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    topology: Topology,
    names: BTreeMap<String, NodeIx>,
}

impl Builder {
    /// Goes on with a topology.
    pub fn from(topology: Topology) -> Builder {
        let names = topology.nodes.iter().enumerate();
        let names = names.map(|(ix, node)| (node.name.clone(), NodeIx(ix as u32))).collect();
        Builder { topology, names }
    }

    /// Adds a host. A name that exists already is a mistake in a generator; files are checked
    /// with [`Builder::find`] first.
    pub fn host(&mut self, name: impl Into<String>) -> NodeIx {
        self.add(name.into(), true)
    }

    /// Adds a router.
    pub fn router(&mut self, name: impl Into<String>) -> NodeIx {
        self.add(name.into(), false)
    }

    fn add(&mut self, name: String, is_host: bool) -> NodeIx {
        let ix = NodeIx(self.topology.nodes.len() as u32);
        let known = self.names.insert(name.clone(), ix);
        debug_assert_eq!(known, None, "{name} is there already");
        self.topology.nodes.push(Node { name, is_host });
        ix
    }

    /// The node of this name.
    pub fn find(&self, name: &str) -> Option<NodeIx> {
        self.names.get(name).copied()
    }

    /// Every name.
    pub fn names(&self) -> Vec<&str> {
        self.names.keys().map(String::as_str).collect()
    }

    /// Adds one direction.
    pub fn one_way(&mut self, from: NodeIx, to: NodeIx, way: &Way) -> LinkIx {
        let ix = LinkIx(self.topology.links.len() as u32);
        self.topology.links.push(way.link(from, to));
        ix
    }

    /// Adds both directions; the way there has the number that is returned, the way back the next.
    pub fn link(&mut self, from: NodeIx, to: NodeIx, ways: &Ways) -> LinkIx {
        let ix = self.one_way(from, to, &ways.there);
        self.one_way(to, from, &ways.back);
        ix
    }

    /// What has been built so far.
    pub fn topology(&mut self) -> &mut Topology {
        &mut self.topology
    }

    /// The topology, its changes in the order of time.
    pub fn finish(mut self) -> Topology {
        self.topology.changes.sort_by_key(|change| change.at);
        self.topology
    }
}
