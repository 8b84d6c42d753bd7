//! Who takes part: each knows how to start its source and its receivers, and how to see that a
//! receiver has everything. Every one of them verifies what it receives and serves it to others.

pub(crate) mod anabranch;
pub(crate) mod aria2;
pub(crate) mod libtorrent;
pub(crate) mod rqbit;

use crate::job::Job;
use crate::process::Process;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that can do the job.
pub(crate) trait Contender {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// Its version; the error says why it cannot take part.
    fn version(&self) -> Result<String, String>;

    /// Starts the process that has the file. `dir` is its own.
    fn start_source(&mut self, job: &Job, dir: &Path) -> io::Result<Process>;

    /// Whether that process serves.
    fn source_is_ready(&mut self, job: &Job, dir: &Path) -> bool;

    /// Starts receiver number `index`, which writes to `dir/content`.
    fn start_receiver(&mut self, job: &Job, index: usize, dir: &Path) -> io::Result<Process>;

    /// Whether that receiver has everything, verified.
    fn has_finished(&mut self, job: &Job, index: usize, dir: &Path) -> bool;
}

/// All of them; the programs of anabranch and rqbit as given, or else where they are usually.
pub(crate) fn all(anabranch: Option<PathBuf>, rqbit: Option<PathBuf>) -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(anabranch::Anabranch::new(anabranch)),
        Box::new(aria2::Aria2),
        Box::new(libtorrent::Libtorrent),
        Box::new(rqbit::Rqbit::new(rqbit)),
    ]
}

/// Those that can take part here; says which version they are, or why they cannot.
pub(crate) fn able(
    contenders: impl Iterator<Item = Box<dyn Contender>>,
) -> impl Iterator<Item = Box<dyn Contender>> {
    contenders.filter(|contender| {
        let version = contender.version();
        let is_able = version.is_ok();
        let told = version.unwrap_or_else(|why| format!("skipped: {why}"));
        eprintln!("{:<10} {told}", contender.name());
        is_able
    })
}

/// The first line that `program` prints about its version.
fn version_line(program: &Path, argument: &str, install: &str) -> Result<String, String> {
    let missing = |_| format!("there is no {} ({install})", program.display());
    let output = Command::new(program).arg(argument).output().map_err(missing)?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}
