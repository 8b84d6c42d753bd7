//! What is varied: dotted paths over lists or ranges of values.

use super::quantity::{Dimension, split};
use super::read::Reader;
use super::source::Fault;
use super::tree::{Entry, Node, Span, Tree, Value};
use crate::table;

/// One axis of a sweep: parameters that take the same value together.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The column it has in tables, with the unit behind: `loss`, `rate_mbps`.
    pub column: String,
    /// The dotted paths.
    pub paths: Vec<String>,
    /// The values, as they stand in tables.
    pub values: Vec<table::Value>,
    pub(super) span: Span,
    pub(super) nodes: Vec<Node>,
}

/// Reads `[sweep]`.
pub(super) fn read(tree: &Tree) -> Result<Vec<Axis>, Fault> {
    let axes = tree.in_order().into_iter().map(|(key, entry)| read_axis(key, entry));
    let mut axes: Vec<Axis> = axes.collect::<Result<_, _>>()?;
    name_columns(&mut axes);
    Ok(axes)
}

fn read_axis(key: &str, entry: &Entry) -> Result<Axis, Fault> {
    let paths: Vec<String> = key.split(',').map(|path| path.trim().to_owned()).collect();
    for path in &paths {
        let head = path.split('.').next().unwrap_or_default();
        if FIXED.contains(&head) {
            let text = format!("{path:?} cannot be varied: it belongs to the whole scenario");
            return Err(Fault::new(&entry.key_span, text));
        }
    }
    let nodes = match &entry.node.value {
        Value::List(items) => items.clone(),
        Value::Table(_) => range(&entry.node)?,
        _ => {
            let text = format!("{key:?} is a list of values, or {{ from, to, steps }}");
            return Err(Fault::new(&entry.node.span, text));
        }
    };
    if nodes.is_empty() {
        let text = format!("{key:?} has no values: the sweep would be empty");
        return Err(Fault::new(&entry.node.span, text));
    }
    let (values, unit) = values(&nodes);
    let mut written = std::collections::BTreeSet::new();
    if let Some(twice) = nodes.iter().find(|node| !written.insert(brief(node))) {
        let text = format!("{key:?} has one value twice; a point of a sweep is run once");
        return Err(Fault::new(&twice.span, text));
    }
    // The column is completed by `name_columns`.
    Ok(Axis { column: unit, paths, values, span: entry.key_span.clone(), nodes })
}

/// `{ from, to, steps, log }` as a list.
fn range(node: &Node) -> Result<Vec<Node>, Fault> {
    let mut reader = Reader::of(node, "a range")?;
    let (Some(from), Some(to)) = (reader.node("from"), reader.node("to")) else {
        return Err(reader.fault("a range needs `from` and `to`"));
    };
    let steps: u32 = reader.required("steps")?;
    let is_log: bool = reader.or("log", false)?;
    let span = reader.span_of("steps");
    reader.finish()?;
    if !(2..=STEPS_MAX).contains(&steps) {
        return Err(Fault::new(&span, format!("`steps` is from 2 to {STEPS_MAX}")));
    }
    let (first, unit) = number(from)?;
    let (last, unit_last) = number(to)?;
    if unit != unit_last {
        return Err(Fault::new(
            &to.span,
            "`from` and `to` have different units; write both in one",
        ));
    }
    if is_log && (first <= 0.0 || last <= 0.0) {
        return Err(Fault::new(&from.span, "equal ratios need `from` and `to` above zero"));
    }
    let is_whole = matches!((&from.value, &to.value), (Value::Integer(_), Value::Integer(_)));
    let at = |step: u32| {
        let share = f64::from(step) / f64::from(steps - 1);
        match (step, is_log) {
            (0, _) => first,
            (step, _) if step == steps - 1 => last,
            (_, true) => first * libm::pow(last / first, share),
            (_, false) => first + (last - first) * share,
        }
    };
    let node_of = |number: f64| Node {
        span: node.span.clone(),
        value: match unit {
            Some(unit) => Value::Text(format!("{number}{unit}")),
            None if is_whole => Value::Integer(number.round() as i64),
            None => Value::Float(number),
        },
    };
    let mut nodes: Vec<Node> = (0..steps).map(|step| node_of(at(step))).collect();
    nodes.dedup();
    Ok(nodes)
}

/// A number, perhaps with a unit.
fn number(node: &Node) -> Result<(f64, Option<&str>), Fault> {
    match &node.value {
        Value::Integer(number) => Ok((*number as f64, None)),
        Value::Float(number) => Ok((*number, None)),
        Value::Text(text) => match split(text) {
            Some((number, unit)) => Ok((number, Some(unit))),
            None => Err(Fault::new(&node.span, format!("{text:?} is no number with a unit"))),
        },
        other => Err(Fault::new(&node.span, format!("{} is no end of a range", other.what()))),
    }
}

/// The values as they stand in tables, and what their unit puts behind the column's name.
fn values(nodes: &[Node]) -> (Vec<table::Value>, String) {
    let texts: Option<Vec<&str>> = nodes
        .iter()
        .map(|node| match &node.value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let Some(texts) = texts else {
        return (nodes.iter().map(plain).collect(), String::new());
    };
    for dimension in Dimension::ALL {
        let parsed: Result<Vec<f64>, _> = texts.iter().map(|text| dimension.parse(text)).collect();
        if let Ok(parsed) = parsed {
            let (factor, unit) = match dimension {
                Dimension::Time => (1e3, "_ms"),
                Dimension::Rate => (8.0 / 1e6, "_mbps"),
                Dimension::Size => (1.0, "_bytes"),
                Dimension::Arrivals => (1.0, "_per_s"),
            };
            let scaled = parsed.iter().map(|value| table::Value::Number(round(value * factor)));
            return (scaled.collect(), unit.to_owned());
        }
    }
    let parts: Option<Vec<(f64, &str)>> = texts.iter().map(|text| split(text)).collect();
    match parts {
        Some(parts) if parts.iter().all(|part| part.1 == parts[0].1) => {
            let unit: String = parts[0].1.replace('%', "percent_").replace(' ', "");
            let numbers = parts.iter().map(|part| table::Value::Number(part.0)).collect();
            (numbers, format!("_{unit}"))
        }
        _ => (nodes.iter().map(plain).collect(), String::new()),
    }
}

/// Twelve significant digits: what a unit's factor added goes.
fn round(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

fn plain(node: &Node) -> table::Value {
    match &node.value {
        Value::Integer(number) => table::Value::Number(*number as f64),
        Value::Float(number) => table::Value::Number(*number),
        Value::Text(text) => table::Value::Text(text.clone()),
        Value::Bool(is) => table::Value::Text(is.to_string()),
        Value::List(_) | Value::Table(_) => {
            table::Value::Text(node.label().map_or_else(|| brief(node), str::to_owned))
        }
    }
}

/// A table or list in few words.
pub(super) fn brief(node: &Node) -> String {
    match &node.value {
        Value::Table(tree) => {
            let parts = tree.in_order().into_iter();
            let parts: Vec<String> =
                parts.map(|(key, entry)| format!("{key} {}", brief(&entry.node))).collect();
            parts.join(" ")
        }
        Value::List(items) => items.iter().map(brief).collect::<Vec<_>>().join(", "),
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bool(is) => is.to_string(),
    }
}

/// Columns are called by as much of the path's end as tells them apart.
fn name_columns(axes: &mut [Axis]) {
    let units: Vec<String> = axes.iter().map(|axis| axis.column.clone()).collect();
    let tail = |path: &str, parts: usize| -> String {
        let all: Vec<&str> = path.split('.').collect();
        all[all.len().saturating_sub(parts)..].join("_").replace('-', "_")
    };
    let names = |parts: usize| -> Vec<String> {
        let of = |(axis, unit): (&Axis, &String)| format!("{}{unit}", tail(&axis.paths[0], parts));
        axes.iter().zip(&units).map(of).collect()
    };
    let is_clear = |names: &Vec<String>| {
        names
            .iter()
            .enumerate()
            .all(|(at, name)| !TAKEN.contains(&name.as_str()) && !names[..at].contains(name))
    };
    let chosen = (1..8).map(names).find(is_clear).unwrap_or_else(|| names(8));
    for (axis, column) in axes.iter_mut().zip(chosen) {
        axis.column = column;
    }
}

/// Top-level keys that are the same for all runs.
const FIXED: [&str; 6] = ["title", "about", "seeds", "sweep", "quick", "measure"];
/// Columns that tables have anyway.
const TAKEN: [&str; 3] = ["system", "seed", "name"];
const STEPS_MAX: u32 = 10_000;
