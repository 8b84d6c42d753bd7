//! Which hosts and links a scenario means.

use super::network;
use crate::scenario::source::Fault;
use crate::scenario::tree::Span;
use crate::scenario::workload::fits;
use crate::scenario::{Hosts, Measure, nearest};
use anabranch_world::topology::{LinkIx, NodeIx, Routes, Topology};

/// The hosts that a pattern chooses.
pub(super) fn hosts(topology: &Topology, hosts: &Hosts) -> Result<Vec<NodeIx>, Fault> {
    let (names, numbers) = network::hosts(topology);
    Ok(hosts.select(&names)?.into_iter().map(|at| numbers[at]).collect())
}

/// Who sends to whom: the first with the first, round and round.
pub(super) fn pairs(
    topology: &Topology,
    routes: &mut Routes,
    from: &Hosts,
    to: &Hosts,
) -> Result<Vec<(NodeIx, NodeIx)>, Fault> {
    let (sources, sinks) = (hosts(topology, from)?, hosts(topology, to)?);
    let count = sources.len().max(sinks.len());
    let name = |node| network::name(topology, node);
    let mut pairs = Vec::with_capacity(count);
    for number in 0..count {
        let (source, sink) = (sources[number % sources.len()], sinks[number % sinks.len()]);
        if source == sink {
            let text = format!("{:?} would send to itself; choose other hosts", name(source));
            return Err(Fault::new(&to.span, text));
        }
        for (a, b) in [(source, sink), (sink, source)] {
            if routes.delay(a, b).is_none() {
                let text = format!("no way leads from {:?} to {:?}; add a link", name(a), name(b));
                return Err(Fault::new(&to.span, text));
            }
        }
        pairs.push((source, sink));
    }
    Ok(pairs)
}

/// The links that a scenario names: `a>b` with stars, or a label of the topology.
pub(super) fn links(
    topology: &Topology,
    patterns: &[String],
    span: &Span,
) -> Result<Vec<LinkIx>, Fault> {
    let mut chosen = Vec::new();
    for pattern in patterns {
        let is_meant = |link: &LinkIx| {
            let label = &topology.links[link.0 as usize].label;
            label == pattern || fits(pattern, &network::link_name(topology, *link))
        };
        let meant: Vec<LinkIx> = network::links(topology).filter(is_meant).collect();
        if meant.is_empty() {
            let labels: std::collections::BTreeSet<&str> =
                topology.links.iter().map(|link| link.label.as_str()).collect();
            let hint = nearest::suggest(pattern, labels.into_iter().filter(|l| !l.is_empty()));
            let text = format!(
                "the topology has no link {pattern:?}{hint}; a link is called \"from>to\" or by its label"
            );
            return Err(Fault::new(span, text));
        }
        chosen.extend(meant);
    }
    chosen.sort();
    chosen.dedup();
    Ok(chosen)
}

/// The links whose queue is sampled and that are traced: those that are named, or else the
/// bottleneck, or else all of a small network.
pub(super) fn sampled(topology: &Topology, measure: &Measure) -> Result<Vec<LinkIx>, Fault> {
    match (measure.links.is_empty(), &measure.bottleneck) {
        (false, _) => links(topology, &measure.links, &measure.span),
        (true, Some(named)) => links(topology, std::slice::from_ref(named), &measure.span),
        (true, None) if topology.links.len() <= LINKS_SAMPLED_MAX => {
            Ok(network::links(topology).collect())
        }
        (true, None) => Ok(Vec::new()),
    }
}

/// Without a choice, networks up to this size have all their links sampled.
const LINKS_SAMPLED_MAX: usize = 64;
