//! One run: an experiment and a seed in, scalars and tables out.

mod choose;
mod connections;
mod file;
mod network;
mod probe;
mod quantiles;
mod xcp_ways;

pub(crate) use network::files_of;
pub use probe::files;

use crate::scenario::source::Fault;
use crate::scenario::{Experiment, Work};
use crate::table::Table;
use anabranch_world::topology::Topology;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use thiserror::Error;

/// What came of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Scalars by name, in the order in which they are shown.
    pub scalars: Vec<(String, f64)>,
    /// Tables: rows of this run only.
    pub tables: Vec<Table>,
}

/// Why a run gave nothing.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize)]
pub enum RunError {
    /// Somebody wants the program to end.
    #[error("interrupted")]
    Interrupted,
    /// The run broke.
    #[error("{0}")]
    Failed(String),
}

impl Outcome {
    /// A scalar, if there is one of this name.
    pub fn scalar(&self, name: &str) -> Option<f64> {
        self.scalars.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    fn set(&mut self, name: impl Into<String>, value: impl Into<Option<f64>>) {
        // What was not observed is left out: an empty cell.
        if let Some(value) = value.into().filter(|value| value.is_finite()) {
            self.scalars.push((name.into(), value));
        }
    }
}

/// Checks what only shows with the network at hand: hosts, links, ways between them. It keeps the
/// last network, which neighbours in a plan often share.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    last: Option<(String, Topology)>,
}

impl Checker {
    pub(crate) fn check(&mut self, experiment: &Experiment, seed: u64) -> Result<(), Fault> {
        let text = &experiment.topology.text;
        let topology = match self.last.take().filter(|(last, _)| last == text) {
            Some((_, topology)) => topology,
            None => network::build(experiment, seed)?,
        };
        match &experiment.work {
            Work::Connections(workloads) => {
                connections::check(experiment, workloads, &topology, seed)?;
            }
            Work::File(work) => file::check(experiment, work, &topology)?,
        }
        self.last = Some((text.clone(), topology));
        Ok(())
    }
}

/// Carries out a run; it looks at `interrupt` now and then. A capture and a trace that it asks for
/// go to `stem` with an ending; without one they are not written.
///
/// # Errors
///
/// When it was interrupted, or the simulation itself broke.
pub fn run(
    experiment: &Experiment,
    seed: u64,
    stem: Option<&Path>,
    interrupt: &AtomicBool,
) -> Result<Outcome, RunError> {
    let broken = |fault: Fault| RunError::Failed(fault.text);
    let topology = network::build(experiment, seed).map_err(broken)?;
    match &experiment.work {
        Work::Connections(workloads) => {
            connections::run(experiment, workloads, &topology, seed, (stem, interrupt))
        }
        Work::File(work) => file::run(experiment, work, &topology, seed, (stem, interrupt)),
    }
}
