//! An experiment's topology, built, and faults in it where they stand in the scenario.

use crate::scenario::Experiment;
use crate::scenario::source::{Fault, one_line};
use anabranch_world::topology::file::TopologySpec;
use anabranch_world::topology::{LinkIx, NodeIx, Topology};
use std::path::Path;

/// Builds the topology; chance comes from the run's seed.
pub(super) fn build(experiment: &Experiment, seed: u64) -> Result<Topology, Fault> {
    let text = &experiment.topology;
    let line_of = |at: usize| 1 + text.text.get(..at).map_or(0, |head| head.matches('\n').count());
    let fault = |at: usize, what: &str| Fault::new(&text.place(line_of(at)), one_line(what));
    let spec: TopologySpec = toml::from_str(&text.text)
        .map_err(|error| fault(error.span().map_or(0, |span| span.start), error.message()))?;
    spec.build(seed, &experiment.folder).map_err(|error| fault(error.span.start, &error.what))
}

/// The files that the topology names, and those that they name, with all that is in them: a result
/// depends on that. A file that cannot be read is a fault of the topology, and told by [`build`].
pub(crate) fn files_of(experiment: &Experiment) -> String {
    let mut all = String::new();
    let (mut text, mut folder) = (experiment.topology.text.clone(), experiment.folder.clone());
    for _ in 0..FILES_MAX {
        let table = text.parse::<toml::Table>().unwrap_or_default();
        let Some(toml::Value::String(name)) = table.get("file") else { break };
        let path = folder.join(name);
        text = std::fs::read_to_string(&path).unwrap_or_default();
        all.push_str(&format!("{name:?} {}\n{text}\n", text.len()));
        folder = path.parent().unwrap_or(Path::new("")).to_owned();
    }
    all
}

/// The hosts' names and numbers.
pub(super) fn hosts(topology: &Topology) -> (Vec<String>, Vec<NodeIx>) {
    let hosts = topology.nodes.iter().zip(0..).filter(|(node, _)| node.is_host);
    hosts.map(|(node, number)| (node.name.clone(), NodeIx(number))).unzip()
}

/// A node's name.
pub(super) fn name(topology: &Topology, node: NodeIx) -> &str {
    topology.nodes.get(node.0 as usize).map_or("", |node| &node.name)
}

/// A link as tables call it: `left>right`.
pub(super) fn link_name(topology: &Topology, link: LinkIx) -> String {
    let link = &topology.links[link.0 as usize];
    format!("{}>{}", name(topology, link.from), name(topology, link.to))
}

/// All links' numbers.
pub(super) fn links(topology: &Topology) -> impl Iterator<Item = LinkIx> + use<> {
    (0..topology.links.len() as u32).map(LinkIx)
}

/// More files than topologies can name one after the other.
const FILES_MAX: usize = 32;
