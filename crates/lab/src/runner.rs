//! Carries out the runs of a plan on all cores, and keeps each as soon as it is finished.
//!
//! Runs are independent and take nothing but their experiment and seed, so the results are the same
//! whatever the number of workers; they are put in the plan's order when they are collected. The
//! only clock that is read is the wall's, for progress.

use crate::engine::{self, Outcome, RunError};
use crate::plan::Plan;
use crate::results::cache::Cache;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How runs are carried out.
pub struct Options<'a> {
    /// Runs at a time; at least 1.
    pub jobs: usize,
    /// Set when somebody wants the program to end: what is finished is kept.
    pub interrupt: &'a AtomicBool,
    /// Where finished runs are kept and found again.
    pub cache: Option<&'a Cache>,
    /// Where captures and traces go; without a folder there are none.
    pub probes: Option<&'a Path>,
    /// Told after each run, by whichever worker did it.
    pub on: &'a (dyn Fn(Step<'_>) + Sync),
}

/// A run is over.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Its number in the plan.
    pub run: usize,
    /// Whether it was finished before and only read.
    pub is_kept: bool,
    /// What came of it.
    pub result: &'a Result<Outcome, RunError>,
    /// How long it took.
    pub wall: Duration,
    /// How many are over, this one too.
    pub done: usize,
}

/// What came of all runs.
#[derive(Debug, Default)]
pub struct Done {
    /// In the order of the plan; `None` where a run was not finished.
    pub outcomes: Vec<Option<Outcome>>,
    /// Runs that were finished before.
    pub kept: usize,
    /// Runs that broke, with the reason.
    pub failed: Vec<(usize, String)>,
    /// Whether it was interrupted before all runs were over.
    pub is_interrupted: bool,
    /// Why finished runs could not be kept, if they could not.
    pub cache_error: Option<String>,
}

impl Done {
    /// How many runs have an outcome.
    pub fn finished(&self) -> usize {
        self.outcomes.iter().flatten().count()
    }
}

/// Carries out all runs of a plan, or as many as there are before an interrupt.
pub fn run(plan: &Plan, options: &Options<'_>) -> Done {
    let outcomes = plan.runs.iter().map(|_| None).collect();
    let done = Mutex::new(Done { outcomes, ..Done::default() });
    let (next, over) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= plan.runs.len() || options.interrupt.load(Ordering::Relaxed) {
                return;
            }
            let begun = Instant::now();
            let (is_kept, result, cache_error) = run_one(plan, number, options);
            if result == Err(RunError::Interrupted) {
                return;
            }
            let finished = over.fetch_add(1, Ordering::Relaxed) + 1;
            let wall = begun.elapsed();
            (options.on)(Step { run: number, is_kept, result: &result, wall, done: finished });
            let mut done = done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            done.kept += usize::from(is_kept);
            if done.cache_error.is_none() {
                done.cache_error = cache_error;
            }
            match result {
                Ok(outcome) => done.outcomes[number] = Some(outcome),
                Err(error) => done.failed.push((number, error.to_string())),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..options.jobs.clamp(1, plan.runs.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    done.failed.sort();
    done.is_interrupted = done.finished() + done.failed.len() < plan.runs.len();
    done
}

/// Reads a run that was kept, or else does it and keeps it.
fn run_one(
    plan: &Plan,
    number: usize,
    options: &Options<'_>,
) -> (bool, Result<Outcome, RunError>, Option<String>) {
    let run = &plan.runs[number];
    let experiment = plan.experiment(run);
    let stem = options.probes.map(|folder| folder.join(plan.file_stem(run)));
    let files = stem.iter().flat_map(|stem| engine::files(experiment, stem));
    // A run whose files are gone is done again.
    let cache = options.cache.filter(|_| files.into_iter().all(|file| file.is_file()));
    if let Some(outcome) = cache.and_then(|cache| cache.load(&run.key)) {
        return (true, Ok(outcome), None);
    }
    let result = engine::run(experiment, run.seed, stem.as_deref(), options.interrupt);
    let kept = match (&result, options.cache) {
        (Ok(outcome), Some(cache)) => cache.store(&run.key, outcome),
        _ => Ok(()),
    };
    (false, result, kept.err().map(|error| error.to_string()))
}

#[cfg(test)]
mod tests;
