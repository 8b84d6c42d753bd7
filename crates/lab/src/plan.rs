//! The runs of a scenario: systems × points of the sweep × seeds, all checked before any begins.

use crate::engine::{self, Checker};
use crate::scenario::{Experiment, Point, Scenario, ScenarioError};
use crate::table::Value;
use std::sync::Arc;

/// The runs of a scenario.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// The seeds, each of which every cell runs with.
    pub seeds: Vec<u64>,
    /// Systems × points, the systems the slowest.
    pub cells: Vec<Cell>,
    /// All runs, in the order of the tables.
    pub runs: Vec<Run>,
}

/// One system at one point of the sweep.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The system's name.
    pub system: String,
    /// The point.
    pub point: Point,
    /// The point's value on each axis, as it stands in tables.
    pub values: Vec<Value>,
    /// What is run.
    pub experiment: Arc<Experiment>,
}

/// One run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Its cell.
    pub cell: usize,
    /// Its seed.
    pub seed: u64,
    /// Names everything its result depends on: two runs with one key have the same result.
    pub key: String,
}

impl Plan {
    /// Plans and checks all runs. `seeds`: instead of the scenario's. `build` names the program: a
    /// result that another build left is not taken for one of this.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with a scenario, at whatever point of its sweep.
    pub fn new(
        scenario: Scenario,
        seeds: Option<Vec<u64>>,
        build: &str,
    ) -> Result<Plan, ScenarioError> {
        let seeds = seeds.unwrap_or_else(|| scenario.seeds.clone());
        let count = scenario.axes.iter().map(|axis| axis.values.len() as u64);
        let points = count.fold(1, u64::saturating_mul);
        let runs = points.saturating_mul((scenario.systems.len() * seeds.len()) as u64);
        if runs > RUNS_MAX {
            let text = format!(
                "this sweep makes {runs} runs ({} systems, {points} points, {} seeds), and at most \
                 {RUNS_MAX} are possible; take fewer values",
                scenario.systems.len(),
                seeds.len()
            );
            return Err(scenario.error(&scenario.sweep_span(), text));
        }
        let mut plan = Plan { scenario, seeds, cells: Vec::new(), runs: Vec::new() };
        let mut checker = Checker::default();
        for system in 0..plan.scenario.systems.len() {
            for point in plan.scenario.points() {
                plan.add_cell(system, point, build, &mut checker)?;
            }
        }
        Ok(plan)
    }

    fn add_cell(
        &mut self,
        system: usize,
        point: Point,
        build: &str,
        checker: &mut Checker,
    ) -> Result<(), ScenarioError> {
        let scenario = &self.scenario;
        let experiment = scenario.experiment(system, &point)?;
        if let Some(seed) = self.seeds.first() {
            let checked = checker.check(&experiment, *seed);
            checked.map_err(|fault| scenario.fault(&fault))?;
        }
        let on_axis = scenario.axes.iter().zip(&point);
        let values = on_axis.map(|(axis, value)| axis.values[*value].clone()).collect();
        let files = engine::files_of(&experiment);
        for seed in &self.seeds {
            let key = key(&experiment, &files, *seed, build);
            self.runs.push(Run { cell: self.cells.len(), seed: *seed, key });
        }
        let (system, experiment) = (scenario.systems[system].clone(), Arc::new(experiment));
        self.cells.push(Cell { system, point, values, experiment });
        Ok(())
    }

    /// What a run does.
    pub fn experiment(&self, run: &Run) -> &Arc<Experiment> {
        &self.cells[run.cell].experiment
    }

    /// A run in a few words: `tcp, loss 0.01, seed 3`.
    pub fn describe(&self, run: &Run) -> String {
        let cell = &self.cells[run.cell];
        let on_axis = self.scenario.axes.iter().zip(&cell.values);
        let values = on_axis.map(|(axis, value)| format!("{} {}, ", axis.column, value.show()));
        format!("{}, {}seed {}", cell.system, values.collect::<String>(), run.seed)
    }

    /// What the files of a run are called, without ending: its description as a file's name, and
    /// the beginning of its key.
    pub fn file_stem(&self, run: &Run) -> String {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '+' | '=');
        let described = self.describe(run).replace(", ", "-");
        let plain = described.chars().take(STEM_MAX).map(|c| if is_plain(c) { c } else { '_' });
        format!("{}-{}", plain.collect::<String>(), &run.key[..8])
    }
}

fn key(experiment: &Experiment, files: &str, seed: u64, build: &str) -> String {
    let mut hash = blake3::Hasher::new();
    for part in [build, &experiment.system.name, &experiment.inputs, files] {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.update(&seed.to_le_bytes());
    hash.finalize().to_hex()[..32].to_owned()
}

/// Most runs of a scenario.
const RUNS_MAX: u64 = 100_000;
/// Most letters of a description in a file's name: file systems take 255 bytes.
const STEM_MAX: usize = 50;
