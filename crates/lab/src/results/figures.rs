//! The figures that every scenario gets: scalars over the sweep, completions as a distribution,
//! and series over time.

use super::summary::Summary;
use super::words;
use crate::figure::{Axis, Figure, Kind, Point, Series};
use crate::plan::Plan;
use crate::stats;
use crate::table::{Table, Value};

/// The figures of a scenario's results.
pub fn figures(plan: &Plan, tables: &[Table], summary: &Summary) -> Vec<Figure> {
    let mut all = Vec::new();
    for (scalar, label) in PLOTTED {
        all.extend(over_sweep(plan, summary, scalar, label));
    }
    let of = |name: &str| tables.iter().find(|table| table.name == name);
    if let Some(table) = of("completions") {
        all.push(completions(plan, table));
    }
    if let Some(table) = of("flows").filter(|table| !table.numbers("fct_rtt").is_empty()) {
        all.push(distribution(plan, table, "fct_rtt", "flow completion time [round trips]"));
    }
    if let Some(table) = of("series") {
        all.extend(series(plan, table));
    }
    all
}

/// A scalar over the first axis with numbers; one line per system and value of the other axes.
fn over_sweep(plan: &Plan, summary: &Summary, scalar: &str, label: &str) -> Option<Figure> {
    let axes = &plan.scenario.axes;
    let is_numeric = |values: &[Value]| values.iter().all(|value| value.number().is_some());
    let x = axes.iter().position(|axis| axis.values.len() > 1 && is_numeric(&axis.values))?;
    let mut all: Vec<Series> = Vec::new();
    for cell in &summary.cells {
        let Some(values) = cell.values(scalar) else { continue };
        let planned = &plan.cells[cell.cell];
        let others = (0..axes.len()).filter(|axis| *axis != x && axes[*axis].values.len() > 1);
        let others: Vec<String> = others
            .map(|axis| format!(", {}", words::value(&axes[axis].column, &planned.values[axis])))
            .collect();
        let label = format!("{}{}", planned.system, others.concat());
        let (Some(x), Some(y)) = (planned.values[x].number(), stats::median(values)) else {
            continue;
        };
        let ends = (stats::quantile(values, 0.0), stats::quantile(values, 1.0));
        let spread = match ends {
            (Some(low), Some(high)) if values.len() > 1 => Some((low, high)),
            _ => None,
        };
        let point = Point { x, y, spread };
        match all.iter_mut().find(|series| series.label == label) {
            Some(series) => series.points.push(point),
            None => all.push(Series { label, points: vec![point] }),
        }
    }
    if all.is_empty() {
        return None;
    }
    all.truncate(SERIES_MAX);
    let name = format!("{scalar}-over-{}", axes[x].column);
    let x_axis = axis_over(&axes[x].column, &axes[x].values);
    let title = words::title(label);
    let mut figure = Figure::new(&name, &title, Kind::Line, x_axis, Axis::linear(label));
    figure.series = all;
    Some(figure)
}

/// Logarithmic when the values span two decades and none is zero or below.
fn axis_over(column: &str, values: &[Value]) -> Axis {
    let numbers: Vec<f64> = values.iter().filter_map(Value::number).collect();
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(0.0, f64::max);
    let label = words::axis(column);
    if least > 0.0 && most / least >= 100.0 { Axis::log(&label) } else { Axis::linear(&label) }
}

/// Who was complete when, over all seeds; who never was counts too.
fn completions(plan: &Plan, table: &Table) -> Figure {
    distribution(plan, table, "completion_s", "time from start to the last block [s]")
}

/// A column as a cumulative distribution: one line per system and point.
fn distribution(plan: &Plan, table: &Table, column: &str, label: &str) -> Figure {
    let keys = 1 + plan.scenario.axes.len();
    let at = table.column(column).unwrap_or(0);
    let mut groups: Vec<(String, usize, Vec<f64>)> = Vec::new();
    for row in &table.rows {
        let key = label_of(plan, &row[..keys]);
        let place = groups.iter().position(|(known, ..)| *known == key);
        let place = place.unwrap_or_else(|| {
            groups.push((key, 0, Vec::new()));
            groups.len() - 1
        });
        groups[place].1 += 1;
        groups[place].2.extend(row[at].number());
    }
    let rows = if table.name == "completions" { "receivers" } else { &table.name };
    let mut figure = Figure::new(
        &format!("{}-{column}", table.name),
        &format!("Distribution of the {label}"),
        Kind::Cdf,
        Axis::linear(label),
        Axis::linear(&format!("share of {rows}")).within(0.0, 1.0),
    );
    for (label, total, values) in groups.into_iter().take(SERIES_MAX) {
        figure.series.push(Series::new(&label, &stats::cdf_of(&values, total)));
    }
    figure
}

/// A system and its point, in words; axes with one value only are left out.
fn label_of(plan: &Plan, keys: &[Value]) -> String {
    let axes = plan.scenario.axes.iter().zip(&keys[1..]);
    let varied = axes.filter(|(axis, _)| axis.values.len() > 1);
    let words = varied.map(|(axis, value)| words::value(&axis.column, value));
    std::iter::once(keys[0].show()).chain(words).collect::<Vec<_>>().join(", ")
}

/// What was written over time, for the first cell and seed of each system.
fn series(plan: &Plan, table: &Table) -> Vec<Figure> {
    let keys = 2 + plan.scenario.axes.len();
    let columns = ["time_s", "what", "of", "value"].map(|name| table.column(name));
    let [Some(time), Some(what), Some(of), Some(value)] = columns else { return Vec::new() };
    let mut figures: Vec<Figure> = Vec::new();
    let mut shown: Vec<(String, Vec<Value>)> = Vec::new();
    for row in &table.rows {
        let (system, what) = (row[0].show(), row[what].show());
        match shown.iter().find(|(known, _)| *known == system) {
            Some((_, first)) if first[..] != row[..keys] => continue,
            Some(_) => {}
            None => shown.push((system.clone(), row[..keys].to_vec())),
        }
        let name = format!("{what}-{system}");
        let at = figures.iter().position(|figure| figure.name == name).unwrap_or_else(|| {
            let (y, seed) = (words::axis(&what), row[keys - 1].show());
            let of = label_of(plan, &row[..keys - 1]);
            let title = format!("{}: {of}, seed {seed}", words::title(&y));
            let x = if what == "block_interval_s" { "interval number" } else { "time [s]" };
            let (x, y) = (Axis::linear(x), Axis::linear(&y));
            figures.push(Figure::new(&name, &title, Kind::Step, x, y));
            figures.len() - 1
        });
        let all = &mut figures[at].series;
        let (Some(x), Some(y)) = (row[time].number(), row[value].number()) else { continue };
        let (label, point) = (row[of].show(), Point { x, y, spread: None });
        match all.iter().position(|series| series.label == label) {
            Some(at) => all[at].points.push(point),
            None if all.len() < SERIES_MAX => all.push(Series { label, points: vec![point] }),
            None => {}
        }
    }
    // Rows stand in the order of time; lines in that of names.
    for figure in &mut figures {
        figure.series.sort_by(|a, b| natural(&a.label).cmp(&natural(&b.label)));
    }
    figures
}

/// A name with its last number apart, so that `bulk 2` comes before `bulk 10`.
fn natural(name: &str) -> (&str, u64) {
    let head = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    (head, name[head.len()..].parse().unwrap_or(0))
}

/// Scalars that are drawn over the sweep.
const PLOTTED: [(&str, &str); 9] = [
    ("goodput_fraction", "goodput, of the bottleneck's payload capacity"),
    ("utilization", "utilization of the bottleneck"),
    ("jain", "Jain's index over the flows"),
    ("queue_mean_packets", "mean queue [packets]"),
    ("fct_p95_rtt", "95th percentile of completion [round trips]"),
    ("completion_median_ratio", "median completion, of the bound"),
    ("completion_last_ratio", "last completion, of the bound"),
    ("control_kbps", "control per member [kb/s]"),
    ("duplicate_fraction", "duplicates, of all payload"),
];
/// More lines cannot be told apart.
const SERIES_MAX: usize = 12;
