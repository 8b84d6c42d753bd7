//! The scalars over the seeds: what `summary.json` says.

use crate::engine::Outcome;
use crate::plan::Plan;
use crate::stats;
use crate::table::{Table, Value};
use serde_json::{Map, Value as Json, json};

/// All cells' scalars over the seeds, in the plan's order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// One entry per system and point that has a finished run.
    pub cells: Vec<CellSummary>,
}

/// The scalars of one system at one point.
#[derive(Clone, PartialEq, Debug)]
pub struct CellSummary {
    /// Its number in the plan.
    pub cell: usize,
    /// How many runs there are.
    pub runs: usize,
    /// Scalars and their values, one per run.
    pub scalars: Vec<(String, Vec<f64>)>,
}

/// Takes the outcomes of each cell together.
pub fn summary(plan: &Plan, outcomes: &[Option<Outcome>]) -> Summary {
    let mut cells: Vec<CellSummary> = Vec::new();
    for (run, outcome) in plan.runs.iter().zip(outcomes) {
        let Some(outcome) = outcome else { continue };
        if cells.last().is_none_or(|last| last.cell != run.cell) {
            cells.push(CellSummary { cell: run.cell, runs: 0, scalars: Vec::new() });
        }
        let Some(cell) = cells.last_mut() else { continue };
        cell.runs += 1;
        for (name, value) in &outcome.scalars {
            match cell.scalars.iter_mut().find(|(known, _)| known == name) {
                Some((_, values)) => values.push(*value),
                None => cell.scalars.push((name.clone(), vec![*value])),
            }
        }
    }
    Summary { cells }
}

impl Summary {
    /// As `summary.json` has it.
    pub fn to_json(&self, plan: &Plan) -> Json {
        let cells: Vec<Json> = self.cells.iter().map(|cell| cell_json(plan, cell)).collect();
        json!({ "v": 1, "scenario": plan.scenario.name, "cells": cells })
    }

    /// The medians of the scalars that most people look at first, as a table.
    pub fn to_table(&self, plan: &Plan) -> Table {
        let names: Vec<&str> = FIRST
            .iter()
            .copied()
            .filter(|name| self.cells.iter().any(|cell| cell.values(name).is_some()))
            .collect();
        let mut columns = vec!["system"];
        columns.extend(plan.scenario.axes.iter().map(|axis| axis.column.as_str()));
        columns.push("runs");
        columns.extend(&names);
        let mut table = Table::new("summary", &columns);
        for cell in &self.cells {
            let planned = &plan.cells[cell.cell];
            let mut row = vec![Value::Text(planned.system.clone())];
            row.extend(planned.values.iter().cloned());
            row.push(Value::Number(cell.runs as f64));
            let median = |name: &&str| Value::from(cell.values(name).and_then(stats::median));
            row.extend(names.iter().map(median));
            table.push(row);
        }
        table
    }
}

impl CellSummary {
    /// The values of a scalar, one per run that has it.
    pub fn values(&self, name: &str) -> Option<&[f64]> {
        let found = self.scalars.iter().find(|(known, _)| known == name);
        found.map(|(_, values)| values.as_slice())
    }
}

fn cell_json(plan: &Plan, cell: &CellSummary) -> Json {
    let planned = &plan.cells[cell.cell];
    let mut point = Map::new();
    for (axis, value) in plan.scenario.axes.iter().zip(&planned.values) {
        let value = match value {
            Value::Number(number) => json!(number),
            Value::Text(text) => json!(text),
            Value::Missing => Json::Null,
        };
        point.insert(axis.column.clone(), value);
    }
    let mut scalars = Map::new();
    for (name, values) in &cell.scalars {
        let at = |share| stats::quantile(values, share);
        let all = json!({
            "n": values.len(),
            "median": at(0.5),
            "p25": at(0.25),
            "p75": at(0.75),
            "min": at(0.0),
            "max": at(1.0),
        });
        scalars.insert(name.clone(), all);
    }
    json!({ "system": planned.system, "point": point, "runs": cell.runs, "scalars": scalars })
}

/// What most people look at first.
const FIRST: [&str; 21] = [
    "goodput_mbps",
    "goodput_fraction",
    "utilization",
    "jain",
    "drop_fraction",
    "queue_mean_packets",
    "fct_median_rtt",
    "fct_p95_rtt",
    "fct_median_s",
    "fct_p95_s",
    "flows_finished",
    "completed",
    "receivers",
    "bound_s",
    "completion_median_s",
    "completion_last_s",
    "completion_last_ratio",
    "control_kbps",
    "duplicate_fraction",
    "source_ratio",
    "link_stress_mean",
];
