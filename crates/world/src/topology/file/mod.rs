//! Topology files: TOML in, a checked [`Topology`] out. `docs/topologies.md` is the reference.
//!
//! A file states hosts, routers, links and changes one by one, or generates them, or both. The
//! same description may stand in a table of a larger document: see [`TopologySpec`]. Whatever is
//! wrong becomes one sentence with the line where it stands and the nearest valid spelling.

mod change;
pub(crate) mod fields;
pub mod item;
pub mod queue;
pub mod way;

use super::build::Builder;
use super::{Topology, check, generate};
use change::{find, read_change};
pub use fields::SpecError;
use fields::{Fields, Read, plain_text};
use item::{Item, Value};
use serde::Deserialize;
use std::path::Path;
use thiserror::Error;
use way::Ways;

/// What is wrong with a topology file: `mesh.toml:12: rate: "20" has no unit; …`.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{file}:{line}: {what}")]
pub struct TopologyError {
    /// The file's name, as given.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// One sentence.
    pub what: String,
}

impl SpecError {
    /// With the file and line of the document it is about.
    pub fn within(self, file: &str, text: &str) -> TopologyError {
        let before = text.get(..self.span.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        TopologyError { file: file.to_owned(), line, what: self.what }
    }
}

/// A topology as it is written, whole or in a table of a larger document (`[topology]`).
///
/// Deserialize it from TOML text: its spans, and so those of its errors, are bytes of that text.
/// It cannot stand behind serde's `flatten` or an untagged enum, which lose spans.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(transparent)]
pub struct TopologySpec {
    /// The document.
    pub item: Item,
}

impl TopologySpec {
    /// The topology. Chance comes from `seed`; a `file` that it names is sought in `base_dir`.
    ///
    /// # Errors
    ///
    /// What is wrong, as one sentence, and the bytes of the document where it stands.
    pub fn build(&self, seed: u64, base_dir: &Path) -> Result<Topology, SpecError> {
        self.build_at(seed, base_dir, 0)
    }

    /// Changes what `path` names (`"generate.bottleneck.rate"`), as a sweep does.
    ///
    /// # Errors
    ///
    /// One sentence, when something on the path is no table.
    pub fn set(&mut self, path: &str, value: toml::Value) -> Result<(), String> {
        self.item.set(path, value)
    }

    fn build_at(&self, seed: u64, base_dir: &Path, depth: u32) -> Read<Topology> {
        let mut fields = Fields::of(&self.item, "a topology")?;
        let (base, generated) = (fields.get("file"), fields.get("generate"));
        let start = match (base, generated) {
            (Some(base), Some(_)) => {
                let what = "a topology starts from a `file` or from `generate`, not from both";
                return Err(SpecError::new(&base.span, what));
            }
            (Some(item), None) => read_file(item, seed, base_dir, depth)?,
            (None, Some(item)) => generate::read(item, seed)?,
            (None, None) => Topology::default(),
        };
        let mut builder = Builder::from(start);
        if fields.get("congestion").is_some() {
            builder.topology().congestion = Some(fields.text("congestion", None)?);
        }
        // Only said to people.
        fields.text("about", Some(""))?;
        each(&mut fields, "host", |item| read_node(item, true, &mut builder))?;
        each(&mut fields, "router", |item| read_node(item, false, &mut builder))?;
        each(&mut fields, "link", |item| read_link(item, &mut builder))?;
        each(&mut fields, "change", |item| read_change(item, &mut builder))?;
        let span = fields.span.clone();
        fields.finish()?;
        let topology = builder.finish();
        check::check(&topology).map_err(|problem| {
            let place = problem.node.and_then(|node| self.place_of(&topology, node));
            SpecError { span: place.unwrap_or(span.start..span.start), what: problem.what }
        })?;
        Ok(topology)
    }

    /// Where a node is declared, if it is.
    fn place_of(&self, topology: &Topology, node: super::NodeIx) -> Option<std::ops::Range<usize>> {
        let name = &topology.nodes[node.0 as usize].name;
        let mut fields = Fields::of(&self.item, "a topology").ok()?;
        let Value::List(hosts) = &fields.get("host")?.value else { return None };
        let is_it = |item: &&Item| {
            let name_of = Fields::of(item, "").and_then(|mut host| host.text("name", None));
            name_of.is_ok_and(|of| of == *name)
        };
        hosts.iter().find(is_it).map(|item| item.span.clone())
    }
}

impl Topology {
    /// Reads a topology file; `file` is its name for messages, and what it names is sought beside
    /// it. Chance comes from seed 1; see [`Topology::parse_seeded`].
    ///
    /// # Errors
    ///
    /// One sentence with file and line.
    pub fn parse(text: &str, file: &str) -> Result<Topology, TopologyError> {
        Topology::parse_seeded(text, file, 1)
    }

    /// As [`Topology::parse`], with the seed of what is generated.
    ///
    /// # Errors
    ///
    /// One sentence with file and line.
    pub fn parse_seeded(text: &str, file: &str, seed: u64) -> Result<Topology, TopologyError> {
        parse_at(text, file, seed, 0)
    }
}

fn parse_at(text: &str, file: &str, seed: u64, depth: u32) -> Result<Topology, TopologyError> {
    let spec: TopologySpec = toml::from_str(text).map_err(|error| {
        let what = format!("this is not TOML: {}", error.message().replace('\n', ", "));
        SpecError { span: error.span().unwrap_or(0..0), what }.within(file, text)
    })?;
    let base_dir = Path::new(file).parent().unwrap_or(Path::new(""));
    spec.build_at(seed, base_dir, depth).map_err(|error| error.within(file, text))
}

/// The topology in another file.
fn read_file(item: &Item, seed: u64, base_dir: &Path, depth: u32) -> Read<Topology> {
    let fail = |what: String| SpecError::new(&item.span, what);
    let name = plain_text(item).map_err(|what| fail(format!("file: {what}")))?;
    if depth >= DEPTH_MAX {
        return Err(fail(format!("file: topologies name each other {DEPTH_MAX} files deep")));
    }
    let path = base_dir.join(name);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| fail(format!("file: {} cannot be read: {error}", path.display())))?;
    parse_at(&text, &path.display().to_string(), seed, depth + 1)
        .map_err(|error| fail(error.to_string()))
}

/// Reads every table of a list such as `[[link]]`.
fn each<'a>(
    fields: &mut Fields<'a>,
    key: &'static str,
    mut read: impl FnMut(&'a Item) -> Read<()>,
) -> Read<()> {
    let Some(item) = fields.get(key) else { return Ok(()) };
    match &item.value {
        Value::List(items) => items.iter().try_for_each(read),
        Value::Table(_) => {
            let what = format!("`{key}` is a list of tables: write [[{key}]] with two brackets");
            Err(SpecError::new(&item.span, what))
        }
        _ => read(item),
    }
}

fn read_node(item: &Item, is_host: bool, builder: &mut Builder) -> Read<()> {
    let mut fields = Fields::of(item, if is_host { "a host" } else { "a router" })?;
    let place = fields.need("name")?;
    let name = fields.text("name", None)?;
    fields.finish()?;
    if let Err(what) = check::name(&name) {
        return Err(SpecError::new(&place.span, what));
    }
    if builder.find(&name).is_some() {
        let what = format!("{name:?} is there already; every host and router has its own name");
        return Err(SpecError::new(&place.span, what));
    }
    if is_host {
        builder.host(name)
    } else {
        builder.router(name)
    };
    Ok(())
}

fn read_link(item: &Item, builder: &mut Builder) -> Read<()> {
    let mut fields = Fields::of(item, "a link")?;
    let mut end = |key| -> Read<_> {
        let name = fields.text(key, None)?;
        let node = find(fields.need(key)?, builder, &name)?;
        Ok(node)
    };
    let (from, to) = (end("from")?, end("to")?);
    if from == to {
        return Err(SpecError::new(&fields.span, "a link leads from one node to another"));
    }
    if fields.flag("one-way", false)? {
        let way = Ways::read_one_way(&mut fields)?;
        fields.finish()?;
        builder.one_way(from, to, &way);
    } else {
        let ways = Ways::read(&mut fields, None)?;
        fields.finish()?;
        builder.link(from, to, &ways);
    }
    Ok(())
}

/// How deep files may name each other.
const DEPTH_MAX: u32 = 4;

#[cfg(test)]
mod tests;
