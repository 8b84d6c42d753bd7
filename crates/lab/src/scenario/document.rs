//! A scenario file as a whole, and the experiments it stands for.

use super::measure::{self, Measure};
use super::read::{Reader, from_node};
use super::source::{Fault, ScenarioError, Sources};
use super::sweep::{self, Axis};
use super::system::{self, System, SystemKind};
use super::tree::{Entry, Node, Span, Tree, Value};
use super::workload::{self, Work};
use anabranch_proto::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Reads the files a scenario names beside itself.
pub type Load<'a> = &'a dyn Fn(&str) -> std::io::Result<String>;

/// How a scenario is run other than its file says.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Variation {
    /// Whether its `[quick]` part is applied.
    pub is_quick: bool,
    /// Dotted paths and the values that replace the file's, after `[quick]`.
    pub set: BTreeMap<String, toml::Value>,
}

/// A scenario file, parsed but for what varies.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    sources: Sources,
    root: Node,
}

/// What all runs of a scenario have in common.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name: that of its file.
    pub name: String,
    /// What is compared, in a line.
    pub title: String,
    /// What to look for.
    pub about: Option<String>,
    /// The seeds, when nobody asks for others.
    pub seeds: Vec<u64>,
    /// The systems' names.
    pub systems: Vec<String>,
    /// What is varied, in the order of the file.
    pub axes: Vec<Axis>,
    /// Whether the file has a `[quick]` part, applied or not.
    pub has_quick: bool,
    /// Where files that the topology names are.
    pub folder: PathBuf,
    pub(crate) document: Document,
}

/// One value of each axis, by number.
pub type Point = Vec<usize>;

/// One system at one point: what a run needs but the seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Experiment {
    /// The system under test.
    pub system: System,
    /// When a run ends.
    pub duration: Duration,
    /// What is not measured at the start.
    pub warmup: Duration,
    /// How links of overlay members are carried.
    pub wire: Wire,
    /// The network.
    pub topology: TopologyText,
    /// What there is to do.
    pub work: Work,
    /// What is written down.
    pub measure: Measure,
    /// Where files that the topology names are.
    pub folder: PathBuf,
    /// All parameters as text: what a result depends on beside the seed.
    pub inputs: String,
}

/// A topology as the world reads it; each line of it remembers where it came from.
#[derive(Clone, PartialEq, Debug)]
pub struct TopologyText {
    /// TOML.
    pub text: String,
    /// For each line, its place in the scenario.
    pub(crate) places: Vec<Span>,
}

/// How links of overlay members are carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wire {
    /// Simulated TCP over the topology.
    Packet,
    /// Fair shares.
    #[default]
    Fluid,
    /// Delay only.
    Latency,
}

impl Scenario {
    /// Reads a scenario and the topology it may name.
    ///
    /// # Errors
    ///
    /// What is wrong, at its line.
    pub fn read(path: &Path, variation: &Variation) -> Result<Scenario, ScenarioError> {
        let shown = path.display().to_string();
        let fail = |error: std::io::Error| ScenarioError {
            file: shown.clone(),
            line: 1,
            text: format!("cannot be read: {error}"),
        };
        let text = std::fs::read_to_string(path).map_err(fail)?;
        let name = path.file_stem().map_or("scenario".into(), |stem| stem.to_string_lossy());
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let load = |other: &str| std::fs::read_to_string(folder.join(other));
        let mut scenario = Scenario::parse(&name, &shown, &text, &load, variation)?;
        scenario.folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(scenario)
    }

    /// Parses the scenario called `name`, which stands in `file` as messages call it; `load` reads
    /// what it names beside itself. Everything that is the same for all runs is checked.
    ///
    /// # Errors
    ///
    /// What is wrong, at its line.
    pub fn parse(
        name: &str,
        file: &str,
        text: &str,
        load: Load<'_>,
        variation: &Variation,
    ) -> Result<Scenario, ScenarioError> {
        let mut sources = Sources::default();
        let tree = sources.add(file, text)?;
        let span = 0..0;
        let root = Node { span: span.clone(), value: Value::Table(tree) };
        let mut document = Document { sources, root };
        document.take_in_topology(load)?;
        let quick = document.take("quick");
        let has_quick = quick.is_some();
        if let Some(quick) = quick.filter(|_| variation.is_quick) {
            document.apply_quick(quick).map_err(|fault| document.sources.error(&fault))?;
        }
        document.apply(&variation.set)?;
        let scenario = document.scenario(name).map_err(|fault| document.sources.error(&fault))?;
        Ok(Scenario { has_quick, ..scenario })
    }

    /// All points of the sweep, the last axis the fastest.
    pub fn points(&self) -> Vec<Point> {
        self.axes.iter().fold(vec![Vec::new()], |points, axis| {
            let extend = |point: &Point| -> Vec<Point> {
                let longer = |value| point.iter().copied().chain([value]).collect();
                (0..axis.values.len()).map(longer).collect()
            };
            points.iter().flat_map(extend).collect()
        })
    }

    /// What the system numbered `system` does at `point`.
    pub fn experiment(&self, system: usize, point: &[usize]) -> Result<Experiment, ScenarioError> {
        let document = &self.document;
        let at = || {
            let mut root = document.root.clone();
            let node = document.system(system)?;
            if let Some(set) = system_set(node)? {
                for (path, entry) in set.in_order() {
                    root.set(path, &entry.key_span, entry.node.clone())?;
                }
            }
            for (axis, value) in self.axes.iter().zip(point) {
                for path in &axis.paths {
                    root.set(path, &axis.span, axis.nodes[*value].clone())?;
                }
            }
            let experiment = experiment(&root, system)?;
            Ok(Experiment { folder: self.folder.clone(), ..experiment })
        };
        at().map_err(|fault| document.sources.error(&fault))
    }

    /// The error of something at a place of this scenario.
    pub(crate) fn error(&self, span: &Span, text: impl Into<String>) -> ScenarioError {
        self.document.sources.error(&Fault::new(span, text))
    }

    pub(crate) fn fault(&self, fault: &Fault) -> ScenarioError {
        self.document.sources.error(fault)
    }

    /// The place of the first axis with several values, for what concerns the whole sweep.
    pub(crate) fn sweep_span(&self) -> Span {
        self.axes.first().map_or(0..0, |axis| axis.span.clone())
    }
}

impl Document {
    fn table(&self) -> &Tree {
        match &self.root.value {
            Value::Table(tree) => tree,
            _ => unreachable!("a document is a table"),
        }
    }

    fn take(&mut self, key: &str) -> Option<Entry> {
        match &mut self.root.value {
            Value::Table(tree) => tree.remove(key),
            _ => None,
        }
    }

    /// A topology that is named is read, and stands in the tree as if it were written there.
    fn take_in_topology(&mut self, load: Load<'_>) -> Result<(), ScenarioError> {
        let Some(entry) = self.table().get("topology") else { return Ok(()) };
        let (key_span, span) = (entry.key_span.clone(), entry.node.span.clone());
        let Value::Text(file) = entry.node.value.clone() else { return Ok(()) };
        let text = load(&file).map_err(|error| {
            let text = format!("the topology {file:?} cannot be read: {error}");
            self.sources.error(&Fault::new(&span, text))
        })?;
        let tree = self.sources.add(&file, &text)?;
        if let Value::Table(root) = &mut self.root.value {
            let node = Node { span, value: Value::Table(tree) };
            root.insert("topology", Entry { key_span, node });
        }
        Ok(())
    }

    /// `[quick]` replaces parameters, the seeds, and entries of the sweep.
    fn apply_quick(&mut self, quick: Entry) -> Result<(), Fault> {
        let Value::Table(quick) = quick.node.value else {
            return Err(Fault::new(&quick.node.span, "`quick` is a table of dotted paths"));
        };
        for (path, entry) in quick.in_order() {
            match (path, &entry.node.value) {
                ("sweep", Value::Table(axes)) => {
                    let sweep = Node {
                        span: entry.node.span.clone(),
                        value: Value::Table(Tree::default()),
                    };
                    if self.table().get("sweep").is_none() {
                        self.root.set("sweep", &entry.key_span, sweep)?;
                    }
                    for (axis, values) in axes.in_order() {
                        self.set_axis(axis, values);
                    }
                }
                _ => self.root.set(path, &entry.key_span, entry.node.clone())?,
            }
        }
        Ok(())
    }

    /// Values from outside the file; a fault in one has no line but the file's first.
    fn apply(&mut self, set: &BTreeMap<String, toml::Value>) -> Result<(), ScenarioError> {
        for (path, value) in set {
            let node = Node::from_toml(value);
            let result = match path.strip_prefix("sweep.") {
                // A path in the sweep is one key with dots in it.
                Some(axis) => {
                    self.set_axis(axis, &Entry { key_span: 0..0, node });
                    Ok(())
                }
                None => self.root.set(path, &(0..0), node),
            };
            result.map_err(|fault| self.sources.error(&fault))?;
        }
        Ok(())
    }

    fn set_axis(&mut self, axis: &str, values: &Entry) {
        if let Value::Table(root) = &mut self.root.value
            && let Some(mut sweep) = root.remove("sweep")
        {
            if let Value::Table(axes) = &mut sweep.node.value {
                axes.insert(axis, values.clone());
            }
            root.insert("sweep", sweep);
        }
    }

    fn scenario(&self, name: &str) -> Result<Scenario, Fault> {
        let mut reader = Reader::new(self.table(), &(0..0), "a scenario");
        let title = reader.required("title")?;
        let about = reader.optional("about")?;
        let seeds = match reader.node("seeds") {
            Some(node) => seeds(node)?,
            None => vec![1, 2, 3],
        };
        let axes = match reader.node("sweep").map(|node| (&node.value, node)) {
            None => Vec::new(),
            Some((Value::Table(tree), _)) => sweep::read(tree)?,
            Some((_, node)) => return Err(Fault::new(&node.span, "`sweep` is a table")),
        };
        let mut systems = Vec::new();
        let mut known = BTreeSet::new();
        for node in self.systems()? {
            let name: String = Reader::of(node, "[[system]]")?.required("name")?;
            if !known.insert(name.clone()) {
                let text = format!("two systems are called {name:?}; names are unique");
                return Err(Fault::new(&node.span, text));
            }
            system_set(node)?;
            systems.push(name);
        }
        let document = self.clone();
        Ok(Scenario {
            name: name.to_owned(),
            title,
            about,
            seeds,
            systems,
            axes,
            has_quick: false,
            folder: PathBuf::new(),
            document,
        })
    }

    fn systems(&self) -> Result<&[Node], Fault> {
        list(self.table(), "system", "what is compared")
    }

    fn system(&self, number: usize) -> Result<&Node, Fault> {
        let systems = self.systems()?;
        systems.get(number).ok_or_else(|| Fault::new(&(0..0), "there is no such system"))
    }
}

/// A list of tables that must have a member.
fn list<'a>(tree: &'a Tree, key: &str, what: &str) -> Result<&'a [Node], Fault> {
    match tree.get(key).map(|entry| &entry.node) {
        Some(Node { value: Value::List(items), .. }) if !items.is_empty() => Ok(items),
        Some(node) => Err(Fault::new(&node.span, format!("write {what} as [[{key}]]"))),
        None => {
            Err(Fault::new(&(0..0), format!("a scenario needs at least one [[{key}]]: {what}")))
        }
    }
}

/// The parameters that differ for a system.
fn system_set(node: &Node) -> Result<Option<&Tree>, Fault> {
    let Value::Table(tree) = &node.value else { return Ok(None) };
    match tree.get("set").map(|entry| &entry.node) {
        None => Ok(None),
        Some(Node { value: Value::Table(set), .. }) => Ok(Some(set)),
        Some(other) => {
            Err(Fault::new(&other.span, "`set` is a table: { \"dotted.path\" = value }"))
        }
    }
}

/// Reads a tree in which everything is set.
fn experiment(root: &Node, system: usize) -> Result<Experiment, Fault> {
    let Value::Table(tree) = &root.value else {
        return Err(Fault::new(&root.span, "a scenario is a table"));
    };
    let mut reader = Reader::new(tree, &(0..0), "a scenario");
    for key in ["title", "about", "seeds", "sweep", "system", "workload", "quick"] {
        let _ = reader.node(key);
    }
    let systems = list(tree, "system", "what is compared")?;
    let read: Vec<System> = systems.iter().map(system::read).collect::<Result<_, _>>()?;
    let work = workload::read_all(list(tree, "workload", "what there is to do")?)?;
    let wires = [("packet", Wire::Packet), ("fluid", Wire::Fluid), ("latency", Wire::Latency)];
    let wire = reader.word("wire", &wires)?.unwrap_or_default();
    let duration = duration(&mut reader, &work)?;
    let warmup = reader.or("warmup", Duration::ZERO)?;
    if warmup >= duration {
        return Err(Fault::new(&reader.span_of("warmup"), "`warmup` is not before `duration`"));
    }
    check_starts(&work, list(tree, "workload", "what there is to do")?, duration)?;
    let measure = reader.node("measure").map_or(Ok(Measure::default()), measure::read)?;
    measure.check(&work, wire)?;
    let topology = match reader.node("topology") {
        Some(node @ Node { value: Value::Table(tree), .. }) => TopologyText::new(tree, &node.span),
        Some(node) => return Err(Fault::new(&node.span, "`topology` is a table or a file's name")),
        None => return Err(Fault::new(&(0..0), "a scenario needs `topology`")),
    };
    reader.finish()?;
    for (system, node) in read.iter().zip(systems) {
        check_fits(system, &work).map_err(|text| Fault::new(&node.span, text))?;
    }
    let system = read.into_iter().nth(system);
    let system = system.ok_or_else(|| Fault::new(&root.span, "there is no such system"))?;
    let (folder, inputs) = (PathBuf::new(), inputs(tree, &system.name));
    Ok(Experiment { system, duration, warmup, wire, topology, work, measure, folder, inputs })
}

/// The parameters of a system's run as text; what names things for people is left out.
fn inputs(tree: &Tree, system: &str) -> String {
    let mut tree = tree.clone();
    for key in ["title", "about", "seeds", "sweep", "quick"] {
        tree.remove(key);
    }
    if let Some(mut systems) = tree.remove("system") {
        if let Value::List(items) = &mut systems.node.value {
            items.retain(|item| item.label() == Some(system));
        }
        tree.insert("system", systems);
    }
    let mut text = TopologyText { text: String::new(), places: Vec::new() };
    text.sorted(&tree);
    text.text
}

fn duration(reader: &mut Reader<'_>, work: &Work) -> Result<Duration, Fault> {
    let duration = match work {
        Work::File(_) => reader.or("duration", Duration::from_secs(3600))?,
        Work::Connections(_) => reader.required("duration")?,
    };
    if duration.is_zero() || duration > DURATION_MAX {
        let text = "`duration` is above zero and at most 1000h";
        return Err(Fault::new(&reader.span_of("duration"), text));
    }
    Ok(duration)
}

/// Connections that would begin when the run is over measure nothing.
fn check_starts(work: &Work, nodes: &[Node], duration: Duration) -> Result<(), Fault> {
    let Work::Connections(workloads) = work else { return Ok(()) };
    for (workload, node) in workloads.iter().zip(nodes) {
        if workload.active.0 >= duration {
            let span = Reader::of(node, "[[workload]]")?.span_of("start");
            return Err(Fault::new(&span, "`start` is not before the run's `duration`"));
        }
    }
    Ok(())
}

/// Transports carry connections, overlays bring files.
fn check_fits(system: &System, work: &Work) -> Result<(), String> {
    match (&system.kind, work) {
        (SystemKind::Transport(_), Work::Connections(_))
        | (SystemKind::Overlay(_), Work::File(_)) => Ok(()),
        (SystemKind::Transport(_), Work::File(_)) => Err(format!(
            "the system {:?} is a transport, and the workload is a file; give it an `overlay`",
            system.name
        )),
        (SystemKind::Overlay(_), Work::Connections(_)) => Err(format!(
            "the system {:?} is an overlay, and moves files: the workload has to be of kind \"file\"",
            system.name
        )),
    }
}

/// `"A..B"` with both ends, a number, or a list.
fn seeds(node: &Node) -> Result<Vec<u64>, Fault> {
    match &node.value {
        Value::Text(text) => parse_seeds(text).map_err(|text| Fault::new(&node.span, text)),
        _ => {
            let seeds: Vec<u64> = from_node("seeds", node)?;
            if seeds.is_empty() {
                return Err(Fault::new(&node.span, "`seeds` is empty: there would be no run"));
            }
            Ok(seeds)
        }
    }
}

/// `A..B`, both included, or one number.
///
/// # Errors
///
/// What is wrong with the text.
pub fn parse_seeds(text: &str) -> Result<Vec<u64>, String> {
    let wrong = || format!("{text:?} is no range of seeds; write it like \"1..10\"");
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let number = |part: &str| part.trim().parse::<u64>().map_err(|_| wrong());
    let (first, last) = (number(first)?, number(last)?);
    match last.checked_sub(first) {
        None => Err(format!("{text:?} is empty: there would be no run")),
        Some(span) if span >= SEEDS_MAX => Err(format!("{text:?} is more than {SEEDS_MAX} seeds")),
        Some(_) => Ok((first..=last).collect()),
    }
}

impl TopologyText {
    /// One parameter per line, so that a line of the text is a place in the scenario.
    fn new(tree: &Tree, span: &Span) -> TopologyText {
        let mut text = TopologyText { text: String::new(), places: Vec::new() };
        for (key, entry) in tree.in_order() {
            text.parameter(key, entry);
            text.text.push('\n');
        }
        if text.places.is_empty() {
            text.places.push(span.clone());
        }
        text
    }

    /// The same whatever the order in the file.
    fn sorted(&mut self, tree: &Tree) {
        for key in tree.keys() {
            let Some(entry) = tree.get(key) else { continue };
            match &entry.node.value {
                Value::Table(inner) => {
                    self.text.push_str(&format!("{}: {{\n", quoted(key)));
                    self.sorted(inner);
                    self.text.push('}');
                }
                _ => self.parameter(key, entry),
            }
            self.text.push('\n');
        }
    }

    fn parameter(&mut self, key: &str, entry: &Entry) {
        self.places.push(entry.key_span.clone());
        let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_plain = !key.is_empty() && key.chars().all(is_bare);
        self.text.push_str(&if is_plain { key.to_owned() } else { quoted(key) });
        self.text.push_str(" = ");
        self.value(&entry.node);
    }

    fn value(&mut self, node: &Node) {
        match &node.value {
            Value::Text(text) => self.text.push_str(&quoted(text)),
            Value::Integer(number) => self.text.push_str(&number.to_string()),
            Value::Float(number) => self.text.push_str(&format!("{number:?}")),
            Value::Bool(is) => self.text.push_str(if *is { "true" } else { "false" }),
            Value::List(items) => {
                self.text.push('[');
                for item in items {
                    self.text.push('\n');
                    self.places.push(item.span.clone());
                    self.value(item);
                    self.text.push(',');
                }
                self.text.push(']');
            }
            Value::Table(tree) => {
                self.text.push('{');
                for (at, (key, entry)) in tree.in_order().into_iter().enumerate() {
                    self.text.push_str(if at == 0 { "\n" } else { ",\n" });
                    self.parameter(key, entry);
                }
                self.text.push('}');
            }
        }
    }

    /// Where a line of the text (from 1) came from.
    pub(crate) fn place(&self, line: usize) -> Span {
        let at = line.saturating_sub(1).min(self.places.len().saturating_sub(1));
        self.places.get(at).cloned().unwrap_or(0..0)
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

const SEEDS_MAX: u64 = 100_000;
const DURATION_MAX: Duration = Duration::from_secs(3_600_000);
