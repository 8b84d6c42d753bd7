//! The runs' tables put together: whose row it is stands in front.

use crate::engine::Outcome;
use crate::plan::Plan;
use crate::table::{Table, Value};

/// One table per concern over all finished runs, in the plan's order; `runs` with the scalars is
/// the first. Each row begins with system, the sweep's columns, and seed.
pub fn tables(plan: &Plan, outcomes: &[Option<Outcome>]) -> Vec<Table> {
    let mut all = vec![runs(plan, outcomes)];
    for (number, outcome) in outcomes.iter().enumerate() {
        for table in outcome.iter().flat_map(|outcome| &outcome.tables) {
            let at = all.iter().position(|known| known.name == table.name).unwrap_or_else(|| {
                all.push(empty(plan, &table.name, &table.columns));
                all.len() - 1
            });
            add(&mut all[at], &whose(plan, number), table);
        }
    }
    all
}

/// The scalars: one row per run.
fn runs(plan: &Plan, outcomes: &[Option<Outcome>]) -> Table {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in outcomes.iter().flatten().flat_map(|outcome| &outcome.scalars) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let mut table = empty(plan, "runs", &names);
    for (number, outcome) in outcomes.iter().enumerate() {
        let Some(outcome) = outcome else { continue };
        let mut row = whose(plan, number);
        row.extend(names.iter().map(|name| Value::from(outcome.scalar(name))));
        table.push(row);
    }
    table
}

fn empty(plan: &Plan, name: &str, columns: &[String]) -> Table {
    let mut all = vec!["system"];
    all.extend(plan.scenario.axes.iter().map(|axis| axis.column.as_str()));
    all.push("seed");
    all.extend(columns.iter().map(String::as_str));
    Table::new(name, &all)
}

/// System, point and seed of a run.
fn whose(plan: &Plan, number: usize) -> Vec<Value> {
    let run = &plan.runs[number];
    let cell = &plan.cells[run.cell];
    let mut row = vec![Value::Text(cell.system.clone())];
    row.extend(cell.values.iter().cloned());
    row.push(Value::Number(run.seed as f64));
    row
}

/// Adds a run's rows; its columns are those of the first run, or new ones at the end.
fn add(all: &mut Table, whose: &[Value], table: &Table) {
    let places: Vec<usize> = table
        .columns
        .iter()
        .map(|column| {
            let own = all.columns[whose.len()..].iter().position(|known| known == column);
            own.map_or_else(
                || {
                    all.columns.push(column.clone());
                    all.rows.iter_mut().for_each(|row| row.push(Value::Missing));
                    all.columns.len() - 1
                },
                |at| whose.len() + at,
            )
        })
        .collect();
    for row in &table.rows {
        let mut full = whose.to_vec();
        full.resize(all.columns.len(), Value::Missing);
        for (place, value) in places.iter().zip(row) {
            full[*place] = value.clone();
        }
        all.rows.push(full);
    }
}
