//! Whether XCP's packets meet XCP routers where it matters.
//!
//! An XCP sender takes what the routers on the way grant. A queue of another kind grants nothing
//! and denies nothing, so over a bottleneck with such a queue the window would only ever grow
//! until packets are lost: a protocol that nobody proposed. It is refused.

use super::network;
use crate::scenario::source::Fault;
use crate::scenario::tree::Span;
use anabranch_world::topology::{LinkIx, NodeIx, QueueSpec, Routes, Topology};

/// Checks that on each way the slowest link is an XCP router's, and slower than all others. A faster link
/// that several flows share is not looked at.
pub(super) fn check(
    topology: &Topology,
    routes: &mut Routes,
    pairs: &[(NodeIx, NodeIx)],
    span: &Span,
) -> Result<(), Fault> {
    for &(from, to) in pairs {
        let way = routes.path(from, to).unwrap_or_default();
        let Some(link) = slowest_without(topology, way) else { continue };
        let text = format!(
            "XCP from {:?} to {:?} has no XCP router at {:?}, the slowest link of its way; set the \
             `kind` of that link's queue to \"xcp\"",
            network::name(topology, from),
            network::name(topology, to),
            network::link_name(topology, link)
        );
        return Err(Fault::new(span, text));
    }
    Ok(())
}

/// A link without an XCP router that is no faster than every link with one.
fn slowest_without(topology: &Topology, way: &[LinkIx]) -> Option<LinkIx> {
    let link = |at: &LinkIx| &topology.links[at.0 as usize];
    let (with, without): (Vec<LinkIx>, Vec<LinkIx>) =
        way.iter().partition(|at| is_router(&link(at).queue));
    let least = with.iter().map(|at| link(at).rate).min();
    let slowest = without.into_iter().min_by_key(|at| link(at).rate)?;
    least.is_none_or(|least| link(&slowest).rate <= least).then_some(slowest)
}

fn is_router(queue: &QueueSpec) -> bool {
    match queue {
        QueueSpec::Xcp(_) => true,
        QueueSpec::Priority { classes, .. } => classes.iter().any(is_router),
        _ => false,
    }
}
