//! The page of a scenario's results.

use super::folder::{Manifest, Status};
use super::summary::Summary;
use crate::figure::Figure;
use crate::plan::Plan;
use crate::report::{Report, Section};
use crate::table::{Table, Value};

pub(super) fn page(
    plan: &Plan,
    manifest: &Manifest,
    summary: &Summary,
    figures: Vec<Figure>,
    tables: &[Table],
) -> String {
    let scenario = &plan.scenario;
    let mut lead: Vec<String> = scenario.about.iter().cloned().collect();
    if manifest.status == Status::Partial {
        lead.push(format!(
            "Partial: {} of {} runs are finished. The same command goes on where it stopped.",
            manifest.runs_finished, manifest.runs
        ));
    }
    for failure in manifest.failed.iter().take(SHOWN_MAX) {
        lead.push(format!("A run failed: {failure}."));
    }
    let small = |table: &&Table| table.rows.len() <= ROWS_MAX;
    let left_out = tables.iter().filter(|table| !small(table)).map(|table| table.name.as_str());
    let left_out: Vec<&str> = left_out.collect();
    let mut prose = vec![format!(
        "{}. Every scalar of every run is in runs.csv, quartiles and ranges are in summary.json.",
        match plan.seeds.len() {
            1 => "One seed".to_owned(),
            several => format!("Medians over {several} seeds"),
        }
    )];
    if !left_out.is_empty() {
        prose.push(format!(
            "Too long for this page, and beside it as CSV: {}.",
            left_out.join(", ")
        ));
    }
    let section = Section {
        id: "results".into(),
        title: "Results".into(),
        prose,
        numbers: Some(summary.to_table(plan)),
        figures,
        tables: tables.iter().filter(small).cloned().collect(),
        ..Section::default()
    };
    let facts = [
        ("scenario", scenario.name.clone()),
        ("version", manifest.version.clone()),
        ("seeds", seeds(&plan.seeds)),
        ("runs", format!("{} of {}", manifest.runs_finished, manifest.runs)),
        ("wall time", format!("{:.1} s", manifest.wall_s)),
        ("load of the machine", manifest.load.clone()),
    ];
    let report = Report {
        title: scenario.title.clone(),
        lead,
        facts: facts.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        sections: vec![sweep_section(plan), Some(section)].into_iter().flatten().collect(),
        commands: vec![manifest.command.clone()],
        ..Report::default()
    };
    report.to_html()
}

/// What is varied.
fn sweep_section(plan: &Plan) -> Option<Section> {
    if plan.scenario.axes.is_empty() {
        return None;
    }
    let mut table = Table::new("sweep", &["column", "parameter", "values"]);
    for axis in &plan.scenario.axes {
        let values: Vec<String> = axis.values.iter().map(Value::show).collect();
        let row = [axis.column.clone(), axis.paths.join(", "), values.join(", ")];
        table.push(row.map(Value::Text).to_vec());
    }
    Some(Section {
        id: "sweep".into(),
        title: "What is varied".into(),
        numbers: Some(table),
        ..Section::default()
    })
}

/// `1..5`, or a list.
pub(super) fn seeds(seeds: &[u64]) -> String {
    match seeds {
        [first, .., last] if seeds.windows(2).all(|pair| pair[1] == pair[0] + 1) => {
            format!("{first}..{last}")
        }
        _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Longer tables are beside the page, not in it.
const ROWS_MAX: usize = 1000;
const SHOWN_MAX: usize = 5;
