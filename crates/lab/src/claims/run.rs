//! Running a claim: its scenarios, as the mode wants them, on as many threads as allowed.

use super::judge::{self, Judged};
use super::page::Outcome;
use super::{Claim, Mode, Results, Run};
use crate::plan::Plan;
use crate::results::cache::Cache;
use crate::results::collect;
use crate::runner::{self, Step};
use crate::scenario::{Scenario, ScenarioError, Variation};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

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
pub struct Options<'a> {
    /// How large.
    pub mode: Mode,
    /// Seeds instead of the scenarios'.
    pub seeds: Option<Vec<u64>>,
    /// Runs at the same time, at least 1. Results do not depend on it.
    pub jobs: usize,
    /// Where finished runs are kept, so that an interrupted claim goes on where it was.
    pub cache: Option<&'a Cache>,
    /// Names the program: what another build left in the cache is not taken for its own.
    pub build: &'a str,
}

/// Is told how many of a claim's runs are done, and how many there are.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Runs a claim and judges it.
///
/// # Errors
/// When a scenario is wrong, a run breaks, or `interrupt` becomes true.
pub fn claim(
    claim: Claim,
    options: &Options<'_>,
    progress: Progress<'_>,
    interrupt: &AtomicBool,
) -> Result<Outcome, ClaimError> {
    let plans = plans(&claim, options)?;
    let results = carry_out(&claim, &plans, options, progress, interrupt)?;
    let judgement = judge::judge(&claim, &results, options.mode);
    Ok(Outcome { claim, results, judgement })
}

/// Runs the check of a claim's deliberately broken variant twice, at the variant's size: as the
/// system is, and broken. The first has to hold and the second must differ. `None` when the claim
/// has no such variant.
///
/// # Errors
/// As [`claim`].
pub fn broken(
    claim: &Claim,
    options: &Options<'_>,
    interrupt: &AtomicBool,
) -> Result<Option<(Judged, Judged)>, ClaimError> {
    let (Some(broken), Some(check)) = (&claim.broken, claim.broken_check()) else {
        return Ok(None);
    };
    let name = check.run.as_deref().unwrap_or(claim.first_run());
    let runs = claim.runs.iter().filter(|run| run.name == name).cloned().collect();
    let mut claim = Claim { runs, checks: vec![check.clone()], ..claim.clone() };
    let mut judge_with = |set: &BTreeMap<String, toml::Value>| {
        for run in &mut claim.runs {
            run.set.extend(set.clone());
        }
        let plans = plans(&claim, options)?;
        let results = carry_out(&claim, &plans, options, &|_, _| {}, interrupt)?;
        Ok(judge::judge(&claim, &results, options.mode).checks.pop())
    };
    let (whole, broken) = (judge_with(&broken.size)?, judge_with(&broken.set)?);
    Ok(whole.zip(broken))
}

/// The runs of a claim, checked: nothing is run when anything is wrong.
///
/// # Errors
/// The first thing that is wrong.
pub fn plans(claim: &Claim, options: &Options<'_>) -> Result<BTreeMap<String, Plan>, ClaimError> {
    let mut plans = BTreeMap::new();
    for run in &claim.runs {
        let name = || claim.id.clone();
        let fail = |error| ClaimError::Scenario { claim: name(), error };
        let scenario = scenario(claim, run, options.mode)?;
        let plan = Plan::new(scenario, options.seeds.clone(), options.build).map_err(fail)?;
        plans.insert(run.name.clone(), plan);
    }
    Ok(plans)
}

/// The scenario of a run with its overrides.
fn scenario(claim: &Claim, run: &Run, mode: Mode) -> Result<Scenario, ClaimError> {
    let missing =
        || ClaimError::NoScenario { claim: claim.id.clone(), scenario: run.scenario.clone() };
    let text = crate::scenarios::text(&run.scenario).ok_or_else(missing)?;
    let file = format!("{}.toml", run.scenario);
    let load = |other: &str| {
        let known = crate::scenarios::text(other.trim_end_matches(".toml"));
        known.map(str::to_owned).ok_or_else(|| std::io::ErrorKind::NotFound.into())
    };
    let variation = Variation { is_quick: mode == Mode::Quick, set: run.set.clone() };
    Scenario::parse(&run.scenario, &file, text, &load, &variation)
        .map_err(|error| ClaimError::Scenario { claim: claim.id.clone(), error })
}

fn carry_out(
    claim: &Claim,
    plans: &BTreeMap<String, Plan>,
    options: &Options<'_>,
    progress: Progress<'_>,
    interrupt: &AtomicBool,
) -> Result<Results, ClaimError> {
    let all = plans.values().map(|plan| plan.runs.len()).sum();
    let mut before = 0;
    let mut results = Results::new();
    for (name, plan) in plans {
        let on = |step: Step<'_>| progress(before + step.done, all);
        let (jobs, cache) = (options.jobs, options.cache);
        let done =
            runner::run(plan, &runner::Options { jobs, interrupt, cache, probes: None, on: &on });
        if done.is_interrupted {
            return Err(ClaimError::Interrupted);
        }
        if let Some((number, error)) = done.failed.into_iter().next() {
            let run = plan.describe(&plan.runs[number]);
            return Err(ClaimError::Run { claim: claim.id.clone(), run, error });
        }
        results.insert(name.clone(), collect::tables(plan, &done.outcomes));
        before += plan.runs.len();
    }
    Ok(results)
}

#[cfg(test)]
mod tests;
