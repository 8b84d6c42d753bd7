//! The folder that a scenario's results are written to.

use super::{cache::Cache, collect, figures, page, summary};
use crate::plan::Plan;
use crate::runner::Done;
use crate::scenario::Variation;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A folder for results.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// Why results cannot be written.
#[derive(Debug, Error)]
pub enum FolderError {
    /// Something else is there.
    #[error("{0} holds {1}; choose another folder with --out")]
    Taken(String, String),
    /// The disk does not take it.
    #[error("{0} cannot be written: {1}; choose another folder with --out")]
    Write(String, io::Error),
}

/// What was run, how, and how far it came.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The form of this file.
    pub v: u32,
    /// The scenario's name.
    pub scenario: String,
    /// Its title.
    pub title: String,
    /// The program.
    pub version: String,
    /// How it was called.
    pub command: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Whether its quick part was applied.
    pub is_quick: bool,
    /// Whether all runs are finished.
    pub status: Status,
    /// How many runs there are.
    pub runs: usize,
    /// How many of them are finished.
    pub runs_finished: usize,
    /// How many of these were finished before.
    pub runs_kept: usize,
    /// The runs that broke, and why.
    pub failed: Vec<String>,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// How long it took this time.
    pub wall_s: f64,
    /// Runs at a time.
    pub jobs: usize,
    /// Processors of the machine.
    pub processors: usize,
    /// The machine's load over 1, 5 and 15 minutes, at the end.
    pub load: String,
}

/// Whether all runs are finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// They are.
    Complete,
    /// The same command goes on.
    Partial,
}

impl Manifest {
    /// The manifest of what was done; `command` and `version` are the program's own.
    pub fn new(plan: &Plan, done: &Done, variation: &Variation, how: &How) -> Manifest {
        let failed = done.failed.iter();
        let failed = failed.map(|(run, why)| format!("{}: {why}", plan.describe(&plan.runs[*run])));
        Manifest {
            v: 1,
            scenario: plan.scenario.name.clone(),
            title: plan.scenario.title.clone(),
            version: how.version.clone(),
            command: how.command.clone(),
            seeds: plan.seeds.clone(),
            is_quick: variation.is_quick,
            status: match done.finished() == plan.runs.len() {
                true => Status::Complete,
                false => Status::Partial,
            },
            runs: plan.runs.len(),
            runs_finished: done.finished(),
            runs_kept: done.kept,
            failed: failed.collect(),
            started_unix_s: how.started_unix_s,
            wall_s: how.wall_s,
            jobs: how.jobs,
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            load: load(),
        }
    }
}

/// How a scenario was run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct How {
    /// The program and its version.
    pub version: String,
    /// How it was called.
    pub command: String,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// How long it took.
    pub wall_s: f64,
    /// Runs at a time.
    pub jobs: usize,
}

impl Folder {
    /// A folder that is new, empty, or has results of the scenario called `scenario`. Nothing is
    /// written yet.
    ///
    /// # Errors
    ///
    /// When something else is there.
    pub fn open(path: &Path, scenario: &str) -> Result<Folder, FolderError> {
        let folder = Folder { path: path.to_owned() };
        let taken = |what: &str| FolderError::Taken(path.display().to_string(), what.to_owned());
        let mut entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(taken("a file"));
            }
            Err(error) => return Err(folder.fail(error)),
        };
        match folder.manifest() {
            Some(manifest) if manifest.scenario == scenario => Ok(folder),
            Some(manifest) => Err(taken(&format!("results of {:?}", manifest.scenario))),
            None if entries.next().is_none() || path.join(RUNS).is_dir() => Ok(folder),
            None => Err(taken("other files")),
        }
    }

    /// Makes the folder, so that a wrong place is found out before hours of work.
    ///
    /// # Errors
    ///
    /// When the disk does not take it.
    pub fn create(&self) -> Result<(), FolderError> {
        fs::create_dir_all(self.path.join(RUNS)).map_err(|error| self.fail(error))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its finished runs are.
    pub fn cache(&self) -> Cache {
        Cache::new(self.path.join(RUNS))
    }

    /// Where its captures and traces are.
    pub fn probes(&self) -> PathBuf {
        self.path.join("probes")
    }

    /// What was written there before.
    pub fn manifest(&self) -> Option<Manifest> {
        let text = fs::read_to_string(self.path.join(MANIFEST)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Writes everything: tables, summary, figures, the page, and at last the manifest.
    ///
    /// # Errors
    ///
    /// When the disk does not take it.
    pub fn write(&self, plan: &Plan, done: &Done, manifest: &Manifest) -> Result<(), FolderError> {
        self.create()?;
        let tables = collect::tables(plan, &done.outcomes);
        for table in &tables {
            self.put(&format!("{}.csv", table.name), &table.to_csv())?;
        }
        let summary = summary::summary(plan, &done.outcomes);
        self.put("summary.json", &pretty(&summary.to_json(plan)))?;
        let figures = figures::figures(plan, &tables, &summary);
        for figure in &figures {
            self.put(&format!("{}.svg", file_name(&figure.name)), &figure.to_svg())?;
        }
        let page = page::page(plan, manifest, &summary, figures, &tables);
        self.put("report.html", &page)?;
        let manifest = serde_json::to_value(manifest).unwrap_or_default();
        self.put(MANIFEST, &pretty(&manifest))
    }

    /// A file appears complete or not at all.
    fn put(&self, name: &str, text: &str) -> Result<(), FolderError> {
        let (path, partial) = (self.path.join(name), self.path.join(format!("{name}.partial")));
        let put = fs::write(&partial, text).and_then(|()| fs::rename(&partial, path));
        put.map_err(|error| self.fail(error))
    }

    fn fail(&self, error: io::Error) -> FolderError {
        FolderError::Write(self.path.display().to_string(), error)
    }
}

fn pretty(json: &serde_json::Value) -> String {
    format!("{json:#}\n")
}

/// A system's name may hold anything; a file's may not.
fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// The load as Linux tells it.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

const RUNS: &str = "runs";
const MANIFEST: &str = "manifest.json";
