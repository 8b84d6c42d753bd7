//! Running a claim: its scenarios, as the mode wants them, on as many threads as allowed.

use super::judge::{self, Judgement};
use super::page::Outcome;
use super::{Broken, Claim, Mode, Results, Run};
use crate::engine::{self, RunError};
use crate::plan::Plan;
use crate::scenario::{Scenario, ScenarioError, Variation};
use crate::table::{Table, Value};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Why a claim could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The claim names a scenario that does not come with the program.
    #[error("claim {claim}: there is no scenario {scenario:?}")]
    NoScenario {
        /// The claim.
        claim: String,
        /// What it names.
        scenario: String,
    },
    /// A scenario is wrong.
    #[error("claim {claim}: {error}")]
    Scenario {
        /// The claim.
        claim: String,
        /// What is wrong, and where.
        error: ScenarioError,
    },
    /// A run broke.
    #[error("claim {claim}: {run}: {error}")]
    Run {
        /// The claim.
        claim: String,
        /// Which run.
        run: String,
        /// How.
        error: String,
    },
    /// Somebody wants the program to end.
    #[error("interrupted")]
    Interrupted,
}

/// How claims are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How large.
    pub mode: Mode,
    /// Seeds instead of the scenarios'.
    pub seeds: Option<Vec<u64>>,
    /// Runs at the same time, at least 1. Results do not depend on it.
    pub jobs: usize,
}

/// Is told how many of a claim's runs are done, and how many there are.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Runs a claim and judges it.
///
/// # Errors
/// When a scenario is wrong, a run breaks, or `interrupt` becomes true.
pub fn claim(
    claim: Claim,
    options: &Options,
    progress: Progress<'_>,
    interrupt: &AtomicBool,
) -> Result<Outcome, ClaimError> {
    let plans = plans(&claim, options, None)?;
    let results = carry_out(&claim, &plans, options, progress, interrupt)?;
    let judgement = judge::judge(&claim, &results, options.mode);
    Ok(Outcome { claim, results, judgement })
}

/// Runs the deliberately broken variant of a claim and judges it as the claim is judged. `None`
/// when it has none.
///
/// # Errors
/// As [`claim`].
pub fn broken(
    claim: &Claim,
    options: &Options,
    interrupt: &AtomicBool,
) -> Result<Option<Judgement>, ClaimError> {
    let Some(broken) = &claim.broken else { return Ok(None) };
    let plans = plans(claim, options, Some(broken))?;
    let results = carry_out(claim, &plans, options, &|_, _| {}, interrupt)?;
    Ok(Some(judge::judge(claim, &results, options.mode)))
}

/// The runs of a claim, checked: nothing is run when anything is wrong.
///
/// # Errors
/// The first thing that is wrong.
pub fn plans(
    claim: &Claim,
    options: &Options,
    broken: Option<&Broken>,
) -> Result<BTreeMap<String, Plan>, ClaimError> {
    let mut plans = BTreeMap::new();
    for run in &claim.runs {
        let name = || claim.id.clone();
        let fail = |error| ClaimError::Scenario { claim: name(), error };
        let mut set = run.set.clone();
        if let Some(broken) = broken
            && broken.run.as_deref().unwrap_or(claim.first_run()) == run.name
        {
            set.extend(broken.set.clone());
        }
        let scenario = scenario(claim, run, &set, options.mode)?;
        let plan = Plan::new(scenario, options.seeds.clone(), BUILD).map_err(fail)?;
        plans.insert(run.name.clone(), plan);
    }
    Ok(plans)
}

/// The program that runs claims; their results are not kept for another one.
const BUILD: &str = concat!("claims ", env!("CARGO_PKG_VERSION"));

/// The scenario of a run with its overrides.
fn scenario(
    claim: &Claim,
    run: &Run,
    set: &BTreeMap<String, toml::Value>,
    mode: Mode,
) -> Result<Scenario, ClaimError> {
    let missing =
        || ClaimError::NoScenario { claim: claim.id.clone(), scenario: run.scenario.clone() };
    let text = crate::scenarios::text(&run.scenario).ok_or_else(missing)?;
    let file = format!("{}.toml", run.scenario);
    let load = |other: &str| {
        let known = crate::scenarios::text(other.trim_end_matches(".toml"));
        known.map(str::to_owned).ok_or_else(|| std::io::ErrorKind::NotFound.into())
    };
    let variation = Variation { is_quick: mode == Mode::Quick, set: set.clone() };
    Scenario::parse(&run.scenario, &file, text, &load, &variation)
        .map_err(|error| ClaimError::Scenario { claim: claim.id.clone(), error })
}

/// One run of one plan.
struct Job<'a> {
    of: usize,
    plan: &'a Plan,
    number: usize,
}

fn carry_out(
    claim: &Claim,
    plans: &BTreeMap<String, Plan>,
    options: &Options,
    progress: Progress<'_>,
    interrupt: &AtomicBool,
) -> Result<Results, ClaimError> {
    let jobs: Vec<Job<'_>> = plans
        .values()
        .enumerate()
        .flat_map(|(of, plan)| (0..plan.runs.len()).map(move |number| Job { of, plan, number }))
        .collect();
    let outcomes = run_all(&jobs, options.jobs, progress, interrupt);
    let mut by_plan: Vec<Vec<engine::Outcome>> = plans.values().map(|_| Vec::new()).collect();
    for (job, outcome) in jobs.iter().zip(outcomes) {
        let outcome = outcome.map_err(|error| match error {
            RunError::Interrupted => ClaimError::Interrupted,
            RunError::Failed(error) => {
                let run = job.plan.describe(&job.plan.runs[job.number]);
                ClaimError::Run { claim: claim.id.clone(), run, error }
            }
        })?;
        by_plan[job.of].push(outcome);
    }
    let tables = plans.values().zip(by_plan).map(|(plan, outcomes)| tables(plan, outcomes));
    Ok(plans.keys().cloned().zip(tables).collect())
}

/// Carries out all jobs; what each gave stands in the order of the jobs, whoever was first.
fn run_all(
    jobs: &[Job<'_>],
    threads: usize,
    progress: Progress<'_>,
    interrupt: &AtomicBool,
) -> Vec<Result<engine::Outcome, RunError>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Result<engine::Outcome, RunError>>>> =
        Mutex::new(jobs.iter().map(|_| None).collect());
    let finished = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(number) else { break };
                    let run = &job.plan.runs[job.number];
                    let outcome = engine::run(job.plan.experiment(run), run.seed, interrupt);
                    done.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(outcome);
                    progress(finished.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_iter().map(|slot| slot.unwrap_or(Err(RunError::Interrupted))).collect()
}

/// The tables of all runs of a plan, one below the other: each row says which system, point and
/// seed it belongs to.
fn tables(plan: &Plan, outcomes: Vec<engine::Outcome>) -> Vec<Table> {
    let axes: Vec<&str> = plan.scenario.axes.iter().map(|axis| axis.column.as_str()).collect();
    let head: Vec<&str> = ["system"].into_iter().chain(axes).chain(["seed"]).collect();
    let mut runs = Table::new("runs", &head);
    let mut others: Vec<Table> = Vec::new();
    for (run, outcome) in plan.runs.iter().zip(outcomes) {
        let cell = &plan.cells[run.cell];
        let mut place: Vec<Value> = vec![cell.system.as_str().into()];
        place.extend(cell.values.iter().cloned());
        place.push((run.seed as f64).into());
        add_scalars(&mut runs, &place, &outcome.scalars);
        for table in outcome.tables {
            add_rows(&mut others, &head, &place, table);
        }
    }
    for row in &mut runs.rows {
        row.resize(runs.columns.len(), Value::Missing);
    }
    others.insert(0, runs);
    others
}

fn add_scalars(runs: &mut Table, place: &[Value], scalars: &[(String, f64)]) {
    let mut row = place.to_vec();
    for (name, value) in scalars {
        let column = runs.column(name).unwrap_or_else(|| {
            runs.columns.push(name.clone());
            runs.columns.len() - 1
        });
        if row.len() <= column {
            row.resize(column + 1, Value::Missing);
        }
        row[column] = Value::Number(*value);
    }
    runs.rows.push(row);
}

fn add_rows(tables: &mut Vec<Table>, head: &[&str], place: &[Value], from: Table) {
    let known = tables.iter().position(|table| table.name == from.name);
    let at = known.unwrap_or_else(|| {
        let mut table = Table::new(&from.name, head);
        table.columns.extend(from.columns.clone());
        tables.push(table);
        tables.len() - 1
    });
    for row in from.rows {
        tables[at].rows.push(place.iter().cloned().chain(row).collect());
    }
}

#[cfg(test)]
mod tests;
