//! What `anabranch lab` says as JSON.

use serde::Serialize;
use serde_json::{Map, Value};

/// One line of `--json` output of `anabranch lab`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum LabLine {
    /// Everything was checked and begins.
    Planned { scenario: String, title: String, runs: usize, systems: Vec<String>, seeds: Vec<u64> },
    /// A run is over.
    Run {
        system: String,
        point: Map<String, Value>,
        seed: u64,
        /// Whether it was finished by an earlier command.
        kept: bool,
        wall_s: f64,
        runs_done: usize,
        runs: usize,
        scalars: Map<String, Value>,
        /// Why it gave nothing, if it did.
        error: Option<String>,
    },
    /// The last line of `lab run`.
    Result {
        scenario: String,
        status: &'static str,
        out: String,
        report: String,
        runs: usize,
        runs_finished: usize,
        runs_kept: usize,
        runs_failed: usize,
        wall_s: f64,
        summary: Value,
    },
    /// The last line of `lab list`.
    #[serde(rename = "result")]
    List { scenarios: Vec<Entry>, claims: Vec<Entry> },
}

/// A scenario or claim that comes with the program.
#[derive(Serialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) title: String,
}
