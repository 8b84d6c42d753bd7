//! `anabranch lab`: scenarios run in the simulator, over the library `anabranch-lab`.

mod claims;
mod events;
mod list;
mod run;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::style_of;
use crate::report::Reporter;
use anabranch_lab::scenario::parse_seeds;
use claims::{ClaimsArguments, ReproduceArguments};
use clap::{Args, Subcommand};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) use events::LabLine;

/// `anabranch lab`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  anabranch lab list
  anabranch lab run dumbbell-tcp
  anabranch lab run my-network.toml --seeds 1..10 --out results
  anabranch lab claims plt --quick")]
pub(crate) struct LabArguments {
    /// What to do.
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand)]
enum LabCommand {
    /// Run a scenario: every system at every point of its sweep with every seed.
    Run(RunArguments),
    /// List the scenarios and claims that come with the program.
    #[command(after_long_help = "\
Example:
  anabranch lab list")]
    List,
    /// Run what the papers report and judge it.
    Claims(ClaimsArguments),
    /// Draw the figure of a claim at the paper's size.
    Reproduce(ReproduceArguments),
}

/// `anabranch lab run`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  anabranch lab run file-star
  anabranch lab run my-network.toml --seed 7 --jobs 1
  anabranch lab run mice --quick --json | jq .

The table of medians is the only thing on stdout; the folder has a report to read (report.html),
tables as CSV, and figures. What is finished is kept: after Ctrl-C the same command goes on where
it stopped. Results do not depend on --jobs.")]
pub(crate) struct RunArguments {
    /// A scenario file, or the name of a scenario that comes with the program.
    #[arg(value_name = "SCENARIO")]
    scenario: String,
    /// Run with this seed only.
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Run with these seeds, both ends included [default: the scenario's].
    #[arg(long, value_name = "A..B", value_parser = Seeds::parse)]
    seeds: Option<Seeds>,
    /// Write results to this folder [default: lab-results/ and the scenario's name].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Do so many runs at a time [default: one per processor].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Run the scenario's smaller version: what its `quick` part says.
    #[arg(long)]
    quick: bool,
}

/// Seeds of a command line.
#[derive(Clone)]
struct Seeds(Vec<u64>);

impl Seeds {
    fn parse(text: &str) -> Result<Seeds, String> {
        parse_seeds(text).map(Seeds)
    }
}

/// Runs `anabranch lab`, which computes and does not wait, on a thread of its own.
pub(crate) async fn run(
    arguments: LabArguments,
    reporter: Reporter,
    mut interrupt: Interrupt,
) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    tokio::spawn(async move {
        interrupt.wait().await;
        asked.store(true, Ordering::Relaxed);
    });
    let work = move || match arguments.command {
        LabCommand::Run(arguments) => run::run(&arguments, reporter, &stop),
        LabCommand::List => {
            list::list(reporter);
            Ok(())
        }
        LabCommand::Claims(arguments) => claims::claims(&arguments, reporter, &stop),
        LabCommand::Reproduce(arguments) => claims::reproduce(&arguments, reporter, &stop),
    };
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|error| Err(Failure::other(format!("the lab broke: {error}"))))
}

/// A line with the runs that are done and the time that is left, on stderr when that is a terminal.
fn progress_bar(name: &str, runs: usize, reporter: Reporter) -> ProgressBar {
    let is_shown = !reporter.quiet && std::io::stderr().is_terminal();
    let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(runs as u64), target);
    let left = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        // Before the first run is over nobody knows.
        let _ = match state.pos() {
            0 => Ok(()),
            _ => write!(text, ", {} left", HumanDuration(state.eta())),
        };
    };
    bar.set_style(
        style_of("{prefix} {bar:24} {pos}/{len} runs{left} {msg}").with_key("left", left),
    );
    bar.set_prefix(name.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Names this very program: results of another build are not taken for its own.
fn build() -> String {
    let program = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    format!("anabranch {} {}", env!("CARGO_PKG_VERSION"), blake3::hash(&program).to_hex())
}
