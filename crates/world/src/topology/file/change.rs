//! `[[change]]`: what becomes of links in the course of a run.

use super::fields::{Fields, Read, SpecError, nearest, plain_text};
use super::item::Item;
use super::way::{LossFor, read_loss};
use crate::topology::build::Builder;
use crate::topology::{Change, Changed, LinkIx, NodeIx};
use anabranch_proto::time::Time;

/// Reads one change and adds it to what is built.
pub(crate) fn read_change(item: &Item, builder: &mut Builder) -> Read<()> {
    let mut fields = Fields::of(item, "a change")?;
    let at = Time::ZERO + fields.time("at", None)?;
    let links = read_links(&mut fields, builder)?;
    let mut changes = Vec::new();
    if fields.get("rate").is_some() {
        changes.push(Changed::Rate(fields.rate("rate", None)?));
    }
    if fields.get("delay").is_some() {
        changes.push(Changed::Delay(fields.time("delay", None)?));
    }
    if let Some(loss) = fields.get("loss") {
        changes.push(Changed::Loss(read_loss(loss, LossFor::One)?.0));
    }
    let (is_down, is_up) = (fields.flag("down", false)?, fields.flag("up", false)?);
    let span = fields.span.clone();
    fields.finish()?;
    if is_down && is_up {
        return Err(SpecError::new(&span, "a link goes `down` or `up`, not both at once"));
    }
    changes.extend(is_down.then_some(Changed::Down));
    changes.extend(is_up.then_some(Changed::Up));
    if changes.is_empty() {
        let what = "a change needs one of `rate`, `delay`, `loss`, `down = true` and `up = true`";
        return Err(SpecError::new(&span, what));
    }
    for link in links {
        let add = changes.iter().map(|&to| Change { at, link, to });
        builder.topology().changes.extend(add);
    }
    Ok(())
}

/// `link = "a -> b"`, `link = "a <-> b"` or `label = "core"`.
fn read_links(fields: &mut Fields<'_>, builder: &mut Builder) -> Read<Vec<LinkIx>> {
    match (fields.get("link"), fields.get("label")) {
        (Some(link), None) => links_between(link, builder),
        (None, Some(label)) => links_labelled(label, builder),
        (None, None) => fields.need("link").map(|_| Vec::new()),
        (Some(_), Some(label)) => {
            let what = "a change names its links by `link` or by `label`, not by both";
            Err(SpecError::new(&label.span, what))
        }
    }
}

fn links_between(item: &Item, builder: &mut Builder) -> Read<Vec<LinkIx>> {
    let fail = |what: String| SpecError::new(&item.span, what);
    let text = plain_text(item).map_err(|what| fail(format!("link: {what}")))?;
    let (ends, is_both) = match text.split_once("<->") {
        Some(ends) => (Some(ends), true),
        None => (text.split_once("->"), false),
    };
    let (from, to) = ends.ok_or_else(|| {
        fail(format!("link: {text:?} names no link; write it like \"a -> b\" or \"a <-> b\""))
    })?;
    let (from, to) = (find(item, builder, from.trim())?, find(item, builder, to.trim())?);
    let links: Vec<LinkIx> =
        select(builder, |a, b, _| (a, b) == (from, to) || (is_both && (a, b) == (to, from)));
    if links.is_empty() { Err(fail(format!("link: there is no link {text:?}"))) } else { Ok(links) }
}

fn links_labelled(item: &Item, builder: &mut Builder) -> Read<Vec<LinkIx>> {
    let fail = |what: String| SpecError::new(&item.span, what);
    let label = plain_text(item).map_err(|what| fail(format!("label: {what}")))?;
    let links = select(builder, |_, _, of| of == label);
    if links.is_empty() {
        let topology = builder.topology();
        let labels: Vec<&str> = topology.links.iter().map(|link| link.label.as_str()).collect();
        let guess = nearest(label, &labels);
        return Err(fail(format!("label: no link has the label {label:?}{guess}")));
    }
    Ok(links)
}

fn select(builder: &mut Builder, is: impl Fn(NodeIx, NodeIx, &str) -> bool) -> Vec<LinkIx> {
    let links = builder.topology().links.iter().enumerate();
    let found = links.filter(|(_, link)| is(link.from, link.to, &link.label));
    found.map(|(ix, _)| LinkIx(ix as u32)).collect()
}

/// The node of this name, or a sentence with the nearest.
pub(crate) fn find(item: &Item, builder: &Builder, name: &str) -> Read<NodeIx> {
    builder.find(name).ok_or_else(|| {
        let guess = nearest(name, &builder.names());
        SpecError::new(&item.span, format!("there is no host or router {name:?}{guess}"))
    })
}
