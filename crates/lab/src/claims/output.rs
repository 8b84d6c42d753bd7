//! What judged claims leave on disk: a page, figures, tables, and verdicts for programs.

use super::page::{self, Outcome};
use super::plot;
use crate::report::Report;
use serde_json::{Value as Json, json};
use std::io;
use std::path::{Path, PathBuf};

/// Writes everything about these claims into `folder`, which is made when it is not there:
/// `report.html`, `verdicts.json`, and per claim a folder with its figures and tables.
///
/// # Errors
/// What the file system says.
pub fn write(
    folder: &Path,
    outcomes: &[Outcome],
    facts: Vec<(String, String)>,
    commands: Vec<String>,
) -> io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    for outcome in outcomes {
        write_claim(folder, outcome)?;
    }
    let verdicts: Vec<Json> = outcomes.iter().map(verdict).collect();
    std::fs::write(folder.join("verdicts.json"), format!("{:#}\n", Json::from(verdicts)))?;
    let report: Report = page::report(outcomes, facts, commands);
    let path = folder.join("report.html");
    std::fs::write(&path, report.to_html())?;
    Ok(path)
}

fn write_claim(folder: &Path, outcome: &Outcome) -> io::Result<()> {
    let folder = folder.join(&outcome.claim.id);
    std::fs::create_dir_all(&folder)?;
    for figure in plot::figures(&outcome.claim, &outcome.results).0 {
        std::fs::write(folder.join(format!("{}.svg", figure.name)), figure.to_svg())?;
    }
    for (run, tables) in &outcome.results {
        for table in tables {
            std::fs::write(folder.join(format!("{run}-{}.csv", table.name)), table.to_csv())?;
        }
    }
    Ok(())
}

/// A claim's verdicts, for programs.
pub fn verdict(outcome: &Outcome) -> Json {
    let checks = outcome.judgement.checks.iter().map(|judged| {
        json!({
            "what": judged.check.what,
            "paper": judged.check.paper,
            "measured": judged.measured,
            "values": judged.values,
            "verdict": judged.verdict.word(),
            "text": judged.verdict.to_string(),
        })
    });
    json!({
        "id": outcome.claim.id,
        "verdict": outcome.judgement.verdict.word(),
        "text": outcome.judgement.verdict.to_string(),
        "checks": checks.collect::<Vec<Json>>(),
    })
}
