//! What must hold of every topology before a packet is sent through it.

use super::{NodeIx, Topology};

/// What does not hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}")]
pub struct Problem {
    /// At which node.
    pub node: Option<NodeIx>,
    /// One sentence.
    pub what: String,
}

/// Checks that there are hosts and that each can reach each other one.
///
/// # Errors
///
/// The first problem found.
pub fn check(topology: &Topology) -> Result<(), Problem> {
    let hosts: Vec<NodeIx> = topology.hosts().collect();
    if hosts.len() < 2 {
        let what = "a topology needs at least two hosts";
        return Err(Problem { node: None, what: what.to_owned() });
    }
    let ways = Adjacency::new(topology);
    if ways.is_plainly_connected(&hosts) {
        return Ok(());
    }
    for &from in &hosts {
        let reached = ways.reach(from, true);
        if let Some(&to) = hosts.iter().find(|host| !reached[host.0 as usize]) {
            let name = |node: NodeIx| &topology.nodes[node.0 as usize].name;
            // The one that nobody can reach is the one to name.
            let is_lost = from == hosts[0] || !ways.reach(hosts[0], true)[to.0 as usize];
            let node = Some(if is_lost { to } else { from });
            let what = format!(
                "there is no way from {:?} to {:?}; hosts do not forward, and a link with \
                 `one-way = true` leads there only",
                name(from),
                name(to)
            );
            return Err(Problem { node, what });
        }
    }
    Ok(())
}

/// Checks a node's name: it becomes a file's, a network namespace's and a word of `"a -> b"`.
///
/// # Errors
///
/// One sentence.
pub fn name(name: &str) -> Result<(), String> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if (1..=NAME_LEN_MAX).contains(&name.len())
        && name.chars().all(is_fine)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !name.contains("->")
    {
        return Ok(());
    }
    Err(format!(
        "{name:?} is no name: 1 to {NAME_LEN_MAX} letters, digits, `.`, `_` and `-`, a letter or \
         digit first"
    ))
}

const NAME_LEN_MAX: usize = 64;

struct Adjacency<'a> {
    topology: &'a Topology,
    out: Vec<Vec<u32>>,
    back: Vec<Vec<u32>>,
}

impl Adjacency<'_> {
    fn new(topology: &Topology) -> Adjacency<'_> {
        let mut out = vec![Vec::new(); topology.nodes.len()];
        let mut back = out.clone();
        for link in &topology.links {
            out[link.from.0 as usize].push(link.to.0);
            back[link.to.0 as usize].push(link.from.0);
        }
        Adjacency { topology, out, back }
    }

    fn is_host(&self, node: u32) -> bool {
        self.topology.nodes[node as usize].is_host
    }

    /// The nodes that can be reached from `from` (or that can reach it, backwards).
    fn reach(&self, from: NodeIx, is_forward: bool) -> Vec<bool> {
        let links = if is_forward { &self.out } else { &self.back };
        let mut reached = vec![false; links.len()];
        let mut todo = vec![from.0];
        reached[from.0 as usize] = true;
        while let Some(node) = todo.pop() {
            if node != from.0 && self.is_host(node) {
                continue;
            }
            for &next in &links[node as usize] {
                if !std::mem::replace(&mut reached[next as usize], true) {
                    todo.push(next);
                }
            }
        }
        reached
    }

    /// Whether every host has a link to and from a core of routers that all reach each other: the
    /// common case, found out in two searches instead of one per host.
    fn is_plainly_connected(&self, hosts: &[NodeIx]) -> bool {
        let core = self.out[hosts[0].0 as usize].iter().find(|&&node| !self.is_host(node));
        let Some(&core) = core else { return false };
        let (to, from) = (self.reach(NodeIx(core), true), self.reach(NodeIx(core), false));
        hosts.iter().all(|host| to[host.0 as usize] && from[host.0 as usize])
    }
}
