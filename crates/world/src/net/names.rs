//! Names of links, from which their chance comes and by which they are reported.

use crate::topology::{LinkIx, Topology};
use std::collections::BTreeMap;

/// The names of a topology's links.
#[derive(Debug)]
pub(crate) struct Names {
    nodes: Vec<Box<str>>,
    /// From, to, and which of those with the same ends.
    links: Vec<(u32, u32, u32)>,
}

impl Names {
    pub(crate) fn new(topology: &Topology) -> Names {
        let mut seen = BTreeMap::new();
        let link = |link: &crate::topology::Link| {
            let number = seen.entry((link.from, link.to)).or_insert(0);
            *number += 1;
            (link.from.0, link.to.0, *number)
        };
        let links = topology.links.iter().map(link).collect();
        Names {
            nodes: topology.nodes.iter().map(|node| node.name.as_str().into()).collect(),
            links,
        }
    }

    /// `a->b`; `a->b#2` for the second from a to b.
    pub(crate) fn of(&self, link: LinkIx) -> String {
        let (from, to, number) = self.links[link.0 as usize];
        let (from, to) = (&self.nodes[from as usize], &self.nodes[to as usize]);
        if number == 1 { format!("{from}->{to}") } else { format!("{from}->{to}#{number}") }
    }
}
