//! `anabranch lab claims` and `anabranch lab reproduce`: what the papers report, run and judged.

use crate::failure::Failure;
use crate::report::{Line, Reporter};
use anabranch_lab::claims::judge::{Judged, Verdict};
use anabranch_lab::claims::page::{self, Outcome};
use anabranch_lab::claims::run::{self, ClaimError, Options};
use anabranch_lab::claims::{Claim, Mode, library, output};
use anabranch_lab::results::cache::Cache;
use anabranch_node::ErrorKind;
use clap::Args;
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// `anabranch lab claims`.
#[derive(Args, Clone)]
#[command(after_long_help = "\
Examples:
  anabranch lab claims --list
  anabranch lab claims plt --quick       # all claims about PLT
  anabranch lab claims bp.static --full --out results

Every claim is an experiment of a paper. A verdict is: holds, differs (by how much), or partial
(a system it needs does not exist here). Exit code 0 when all hold, 7 when one differs or is
partial. DIR/report.html is for reading, DIR/verdicts.json for programs.")]
pub(crate) struct ClaimsArguments {
    /// Which claims: ids, or the beginning of ids (plt) [default: all].
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Scaled down, with the shape kept: a minute per claim at most, as by default.
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// The papers' sizes; says first how long that takes.
    #[arg(long)]
    pub(crate) full: bool,
    /// Name the claims and run nothing.
    #[arg(long)]
    pub(crate) list: bool,
    /// How and where.
    #[command(flatten)]
    pub(crate) how: HowArguments,
}

/// `anabranch lab reproduce`.
#[derive(Args, Clone)]
#[command(after_long_help = "\
Example:
  anabranch lab reproduce plt.flows --full

The figure of a claim, with its report: the paper's size, unless --quick is given.")]
pub(crate) struct ReproduceArguments {
    /// Which claims.
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
    /// Scaled down, with the shape kept.
    #[arg(long)]
    pub(crate) quick: bool,
    /// How and where.
    #[command(flatten)]
    pub(crate) how: HowArguments,
}

/// How claims are run, and where results go.
#[derive(Args, Clone)]
pub(crate) struct HowArguments {
    /// Where figures, tables and the report go [default: lab-results/claims].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Runs at the same time [default: one per core]; results do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,
}

/// Runs and judges claims.
pub(crate) fn claims(
    arguments: &ClaimsArguments,
    reporter: Reporter,
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    let claims = find(&arguments.ids)?;
    if arguments.list {
        for claim in &claims {
            reporter.print(&format!(
                "{:16} {} ({}, {})",
                claim.id, claim.title, claim.paper, claim.place
            ));
        }
        let ids = claims.iter().map(|claim| claim.id.clone()).collect();
        reporter.emit(&Line::ClaimsListed { ids });
        return Ok(());
    }
    let mode = if arguments.full { Mode::Full } else { Mode::Quick };
    judge(claims, mode, &arguments.how, reporter, interrupt)
}

/// Draws the figures of claims, with their reports.
pub(crate) fn reproduce(
    arguments: &ReproduceArguments,
    reporter: Reporter,
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    let mode = if arguments.quick { Mode::Quick } else { Mode::Full };
    judge(find(&arguments.ids)?, mode, &arguments.how, reporter, interrupt)
}

fn find(ids: &[String]) -> Result<Vec<Claim>, Failure> {
    library::find(ids).map_err(|error| Failure::usage(error.to_string()))
}

fn judge(
    claims: Vec<Claim>,
    mode: Mode,
    how: &HowArguments,
    reporter: Reporter,
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = how.jobs.map_or(cores, |jobs| jobs as usize);
    let folder = how.out.clone().unwrap_or_else(|| PathBuf::from("lab-results/claims"));
    let cache = Cache::new(folder.join("runs"));
    let build = super::build();
    let options = Options { mode, seeds: None, jobs, cache: Some(&cache), build: &build };
    // Everything is checked before anything runs, or a folder is made.
    let mut runs = Vec::new();
    for claim in &claims {
        let plans = run::plans(claim, &options).map_err(|error| failure(&error))?;
        runs.push(plans.values().map(|plan| plan.runs.len()).sum());
    }
    reporter.note(&estimate(&claims, mode, jobs.min(cores)));
    let ids: Vec<String> = claims.iter().map(|claim| claim.id.clone()).collect();
    let asked = claims.len();
    let mut outcomes = Vec::new();
    for (claim, runs) in claims.into_iter().zip(runs) {
        let bar = super::progress_bar(&claim.id, runs, reporter);
        match judge_one(claim, &options, (&bar, reporter), interrupt) {
            Ok(outcome) => outcomes.push(outcome),
            Err(ClaimError::Interrupted) => break,
            Err(error) => return Err(failure(&error)),
        }
        write(&folder, &outcomes, &ids, mode)?;
    }
    let report = folder.join("report.html").display().to_string();
    if outcomes.len() < asked {
        let done = match outcomes.len() {
            0 => "no claim is judged yet".to_owned(),
            some => format!("{some} of {asked} claims are judged, see {report}"),
        };
        let text = format!("interrupted; {done}; the same command goes on from there");
        return Err(Failure::interrupted(text));
    }
    finish(&outcomes, report, reporter)
}

fn judge_one(
    claim: Claim,
    options: &Options<'_>,
    (bar, reporter): (&ProgressBar, Reporter),
    interrupt: &AtomicBool,
) -> Result<Outcome, ClaimError> {
    let begun = Instant::now();
    let progress = |done: usize, _: usize| bar.set_position(done as u64);
    let outcome = run::claim(claim, options, &progress, interrupt);
    bar.finish_and_clear();
    let outcome = outcome?;
    let took = begun.elapsed().as_secs_f64();
    reporter.print(&describe(&outcome, took));
    reporter.emit(&Line::Claim { elapsed_s: took, claim: output::verdict(&outcome) });
    Ok(outcome)
}

/// What a person reads of a claim on a terminal.
fn describe(outcome: &Outcome, took: f64) -> String {
    let claim = &outcome.claim;
    let mut text =
        format!("{}: {} ({}, {}), {took:.0} s\n", claim.id, claim.title, claim.paper, claim.place);
    for judged in &outcome.judgement.checks {
        text.push_str(&describe_check(judged));
    }
    text.push_str(&format!("  => {}\n", outcome.judgement.verdict));
    text
}

fn describe_check(judged: &Judged) -> String {
    let check = &judged.check;
    let measured = match &judged.verdict {
        Verdict::Partial(_) => String::new(),
        _ => format!("; measured: {}", judged.measured),
    };
    let mut text =
        format!("  {:8} {}; paper: {}{measured}\n", judged.verdict.word(), check.what, check.paper);
    match &judged.verdict {
        Verdict::Differs(by) => text.push_str(&format!("           {by}\n")),
        Verdict::Partial(what) => text.push_str(&format!("           {what}\n")),
        Verdict::Holds => {}
    }
    text
}

fn write(
    folder: &std::path::Path,
    outcomes: &[Outcome],
    ids: &[String],
    mode: Mode,
) -> Result<(), Failure> {
    let mode = if mode == Mode::Full { "--full" } else { "--quick" };
    let command = format!("anabranch lab claims {} {mode}", ids.join(" "));
    let facts = vec![
        ("command".to_owned(), command.clone()),
        ("version".to_owned(), format!("anabranch {}", env!("CARGO_PKG_VERSION"))),
        (
            "size".to_owned(),
            match mode {
                "--full" => "the papers'".to_owned(),
                _ => "quick: scaled down, with the shape kept".to_owned(),
            },
        ),
        ("seeds".to_owned(), "as each scenario says; every table names them".to_owned()),
    ];
    output::write(folder, outcomes, facts, vec![command]).map(|_| ()).map_err(|error| {
        Failure::storage(format!(
            "cannot write to {}: {error}; choose another --out",
            folder.display()
        ))
    })
}

fn finish(outcomes: &[Outcome], report: String, reporter: Reporter) -> Result<(), Failure> {
    let count = |word: &str| {
        outcomes.iter().filter(|outcome| outcome.judgement.verdict.word() == word).count()
    };
    let (holds, differs, partial) = (count("holds"), count("differs"), count("partial"));
    if differs + partial > 0 {
        let text = format!("{} See {report}", page::summary(outcomes));
        return Err(Failure::new(ErrorKind::Partial, text));
    }
    reporter.note(&format!("{} The report is {report}.", page::summary(outcomes)));
    reporter.emit(&Line::ClaimsResult { holds, report });
    Ok(())
}

/// How long it is going to take.
fn estimate(claims: &[Claim], mode: Mode, jobs: usize) -> String {
    let seconds: f64 = claims
        .iter()
        .map(|claim| if mode == Mode::Full { claim.cost.full_s } else { claim.cost.quick_s })
        .sum();
    let minutes = (seconds / jobs as f64 / 60.0).ceil();
    let unit = if minutes == 1.0 { "minute" } else { "minutes" };
    let runs =
        if jobs == 1 { "one run at a time".to_owned() } else { format!("{jobs} runs at a time") };
    let count = match claims.len() {
        1 => "1 claim".to_owned(),
        several => format!("{several} claims"),
    };
    format!("{count}, {runs}: about {minutes} {unit}")
}

fn failure(error: &ClaimError) -> Failure {
    match error {
        ClaimError::Interrupted => Failure::interrupted("interrupted"),
        ClaimError::NoScenario { .. } | ClaimError::Scenario { .. } => {
            Failure::usage(error.to_string())
        }
        ClaimError::Run { .. } => Failure::other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_counts_the_mode_and_the_jobs() {
        let claims = library::find(&["plt.loss".into()]).unwrap();
        let (quick, full) = (claims[0].cost.quick_s, claims[0].cost.full_s);
        assert!(full > quick);
        let minutes = (full / 2.0 / 60.0).ceil();
        assert!(estimate(&claims, Mode::Full, 2).ends_with(&format!("about {minutes} minutes")));
    }
}
