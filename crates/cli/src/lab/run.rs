//! `anabranch lab run`.

use super::RunArguments;
use super::events::LabLine;
use crate::failure::Failure;
use crate::progress::plural;
use crate::report::{Line, Reporter};
use anabranch_lab::plan::Plan;
use anabranch_lab::results::{CellSummary, Folder, FolderError, How, Manifest, Status, summary};
use anabranch_lab::runner::{self, Done, Options, Step};
use anabranch_lab::scenario::{Scenario, ScenarioError, Variation};
use anabranch_lab::scenarios;
use anabranch_lab::table::{Table, Value};
use serde_json::{Map, Value as Json, json};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Runs a scenario. Everything is checked before the folder is made.
pub(super) fn run(
    arguments: &RunArguments,
    reporter: Reporter,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |at| at.as_secs());
    let variation = Variation { is_quick: arguments.quick, ..Variation::default() };
    let scenario = read(&arguments.scenario, &variation)?;
    let asked = arguments.seed.map(|seed| vec![seed]);
    let seeds = asked.or_else(|| arguments.seeds.as_ref().map(|seeds| seeds.0.clone()));
    let version = format!("anabranch {}", env!("CARGO_PKG_VERSION"));
    if scenario.has_quick && !arguments.quick {
        // What is wrong in the smaller version is said now, not when somebody is in a hurry.
        let quick = Variation { is_quick: true, ..Variation::default() };
        Plan::new(read(&arguments.scenario, &quick)?, None, "").map_err(wrong)?;
    }
    let plan = Plan::new(scenario, seeds, &super::build()).map_err(wrong)?;
    let default = || Path::new("lab-results").join(&plan.scenario.name);
    let out = arguments.out.clone().unwrap_or_else(default);
    let folder = Folder::open(&out, &plan.scenario.name).map_err(cannot_write)?;
    folder.create().map_err(cannot_write)?;
    reporter.emit(&Line::Lab(LabLine::Planned {
        scenario: plan.scenario.name.clone(),
        title: plan.scenario.title.clone(),
        runs: plan.runs.len(),
        systems: plan.scenario.systems.clone(),
        seeds: plan.seeds.clone(),
    }));
    let jobs = arguments.jobs.map_or_else(processors, usize::from);
    let done = work(&plan, &folder, jobs, reporter, stop);
    let wall_s = begun.elapsed().as_secs_f64();
    let how = How { version, command: command(), started_unix_s, wall_s, jobs };
    let manifest = Manifest::new(&plan, &done, &variation, &how);
    folder.write(&plan, &done, &manifest).map_err(cannot_write)?;
    tell(&plan, &done, &manifest, &out, reporter);
    end(&plan, &done, &out)
}

/// A file of this name, or else what comes with the program.
fn read(name: &str, variation: &Variation) -> Result<Scenario, Failure> {
    let path = Path::new(name);
    if path.exists() {
        return Scenario::read(path, variation).map_err(wrong);
    }
    match scenarios::read(name, variation) {
        Some(scenario) => scenario.map_err(wrong),
        None => Err(Failure::usage(format!(
            "there is no file {name:?}, and no scenario of this name comes with the program (see \
             anabranch lab list){}",
            scenarios::suggest(name)
        ))),
    }
}

fn work(plan: &Plan, folder: &Folder, jobs: usize, reporter: Reporter, stop: &AtomicBool) -> Done {
    let bar = super::progress_bar(&plan.scenario.name, plan.runs.len(), reporter);
    let on = |step: Step<'_>| {
        bar.set_position(step.done as u64);
        reporter.emit(&Line::Lab(run_line(plan, &step)));
        if let Err(error) = step.result {
            let text = format!("{}: {error}", plan.describe(&plan.runs[step.run]));
            bar.suspend(|| reporter.note(&text));
        }
    };
    let cache = folder.cache();
    let probes = folder.probes();
    let (cache, probes) = (Some(&cache), Some(probes.as_path()));
    let done = runner::run(plan, &Options { jobs, interrupt: stop, cache, probes, on: &on });
    bar.finish_and_clear();
    done
}

fn run_line(plan: &Plan, step: &Step<'_>) -> LabLine {
    let run = &plan.runs[step.run];
    let cell = &plan.cells[run.cell];
    let axes = plan.scenario.axes.iter().map(|axis| axis.column.clone());
    let scalars = step.result.as_ref().map(|outcome| &outcome.scalars[..]).unwrap_or_default();
    LabLine::Run {
        system: cell.system.clone(),
        point: axes.zip(cell.values.iter().map(to_json)).collect(),
        seed: run.seed,
        kept: step.is_kept,
        wall_s: step.wall.as_secs_f64(),
        runs_done: step.done,
        runs: plan.runs.len(),
        scalars: scalars.iter().map(|(name, value)| (name.clone(), json!(value))).collect(),
        error: step.result.as_ref().err().map(ToString::to_string),
    }
}

fn to_json(value: &Value) -> Json {
    match value {
        Value::Number(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::Missing => Json::Null,
    }
}

/// The result: a table for people and scripts, or the last event but one of a failure.
fn tell(plan: &Plan, done: &Done, manifest: &Manifest, out: &Path, reporter: Reporter) {
    if done.kept > 0 {
        let kept = plural(done.kept as u64, "run");
        reporter
            .note(&format!("{kept} of {} had been finished before and were kept", plan.runs.len()));
    }
    if let Some(error) = &done.cache_error {
        reporter.note(&format!("warning: finished runs could not be kept: {error}"));
    }
    let summary = summary(plan, &done.outcomes);
    if !reporter.json && done.finished() > 0 {
        print!("{}", aligned(&summary.to_table(plan)));
    }
    let report = out.join("report.html");
    reporter.note(&format!("results: {}", report.display()));
    if manifest.status == Status::Complete {
        reporter.emit(&Line::Lab(LabLine::Result {
            scenario: plan.scenario.name.clone(),
            status: "complete",
            out: out.display().to_string(),
            report: report.display().to_string(),
            runs: plan.runs.len(),
            runs_finished: done.finished(),
            runs_kept: done.kept,
            runs_failed: done.failed.len(),
            wall_s: manifest.wall_s,
            summary: summary.cells.iter().map(|cell| medians(plan, cell)).collect(),
        }));
    }
}

/// The medians of one system at one point.
fn medians(plan: &Plan, cell: &CellSummary) -> Json {
    let planned = &plan.cells[cell.cell];
    let axes = plan.scenario.axes.iter().map(|axis| axis.column.clone());
    let point: Map<String, Json> = axes.zip(planned.values.iter().map(to_json)).collect();
    let median = |values: &[f64]| json!(anabranch_lab::stats::median(values));
    let scalars: Map<String, Json> =
        cell.scalars.iter().map(|(name, values)| (name.clone(), median(values))).collect();
    json!({ "system": planned.system, "point": point, "runs": cell.runs, "medians": scalars })
}

fn end(plan: &Plan, done: &Done, out: &Path) -> Result<(), Failure> {
    if done.is_interrupted {
        return Err(Failure::interrupted(format!(
            "interrupted: {} of {} runs are finished and kept in {}; the same command goes on from \
             there",
            done.finished(),
            plan.runs.len(),
            out.display()
        )));
    }
    match done.failed.first() {
        None => Ok(()),
        Some((run, why)) => Err(Failure::other(format!(
            "{} of {} runs failed, the first ({}): {why}",
            done.failed.len(),
            plan.runs.len(),
            plan.describe(&plan.runs[*run])
        ))),
    }
}

/// A table with aligned columns; numbers in four digits.
fn aligned(table: &Table) -> String {
    let show = |value: &Value| match value {
        Value::Number(number) if *number == 0.0 => "0".to_owned(),
        Value::Number(number) if number.fract() == 0.0 && number.abs() < 1e6 => number.to_string(),
        Value::Number(number) => {
            let digits = (3 - number.abs().log10().floor() as i32).clamp(0, 9) as usize;
            format!("{number:.digits$}")
        }
        Value::Text(text) => text.clone(),
        Value::Missing => "-".to_owned(),
    };
    let mut lines = vec![table.columns.clone()];
    lines.extend(table.rows.iter().map(|row| row.iter().map(show).collect()));
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn command() -> String {
    let words = std::env::args().skip(1).map(|word| match word.contains(char::is_whitespace) {
        true => format!("'{word}'"),
        false => word,
    });
    format!("anabranch {}", words.collect::<Vec<_>>().join(" "))
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn wrong(error: ScenarioError) -> Failure {
    Failure::usage(error.to_string())
}

fn cannot_write(error: FolderError) -> Failure {
    Failure::storage(error.to_string())
}
