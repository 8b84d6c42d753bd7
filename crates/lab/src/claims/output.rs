//! What judged claims leave on disk: a page, figures, tables, and verdicts for programs.

use super::page::{self, Outcome};
use super::plot;
use crate::report::Report;
use serde_json::{Value as Json, json};
use std::io;
use std::path::{Path, PathBuf};

/// Writes everything about these claims into `folder`, which is made when it is not there:
/// `report.html`, `verdicts.json`, `verdicts.md`, and per claim a folder with its figures and tables.
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
    std::fs::write(folder.join("verdicts.md"), markdown(outcomes, &commands))?;
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

/// The verdicts as a table for documents: nothing in it depends on when or where it was made.
pub fn markdown(outcomes: &[Outcome], commands: &[String]) -> String {
    let mut text = format!("{}\n\n```\n", page::summary(outcomes));
    for command in commands {
        text.push_str(command);
        text.push('\n');
    }
    text.push_str("```\n\n| claim | check | paper | measured | verdict |\n|---|---|---|---|---|\n");
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    for outcome in outcomes {
        let claim = &outcome.claim;
        text.push_str(&format!(
            "| **{}** | {} ({}, {}) | | | **{}** |\n",
            claim.id,
            cell(&claim.title),
            claim.paper,
            cell(&claim.place),
            cell(&outcome.judgement.verdict.to_string())
        ));
        for judged in &outcome.judgement.checks {
            text.push_str(&format!(
                "| | {} | {} | {} | {} |\n",
                cell(&judged.check.what),
                cell(&judged.check.paper),
                cell(&judged.measured),
                cell(&judged.verdict.to_string())
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::judge;
    use crate::claims::{Mode, Results, library};
    use crate::table::{Table, Value};

    fn outcome() -> Outcome {
        let claim = library::find(&["bp.overhead".into()]).expect("it comes along").remove(0);
        let mut runs =
            Table::new("runs", &["system", "seed", "control_kbps", "duplicate_fraction"]);
        for (seed, control) in [(1.0, 24.0), (2.0, 50.0)] {
            runs.push(vec!["Bullet′".into(), seed.into(), control.into(), Value::Number(0.0)]);
        }
        let results = Results::from([("overhead".to_owned(), vec![runs])]);
        let judgement = judge::judge(&claim, &results, Mode::Quick);
        Outcome { claim, results, judgement }
    }

    #[test]
    fn a_judged_claim_leaves_a_page_verdicts_figures_and_tables() {
        let folder = tempfile::tempdir().unwrap();
        let report = write(folder.path(), &[outcome()], Vec::new(), vec!["again".into()]).unwrap();
        let html = std::fs::read_to_string(report).unwrap();
        assert!(html.contains("differs: 1 of 2 checks") && html.contains("again"));
        let json = std::fs::read_to_string(folder.path().join("verdicts.json")).unwrap();
        let json: Json = serde_json::from_str(&json).unwrap();
        assert_eq!(json[0]["id"], "bp.overhead");
        assert_eq!(json[0]["verdict"], "differs");
        assert_eq!(json[0]["checks"][0]["values"][0], 37.0);
        let csv = folder.path().join("bp.overhead/overhead-runs.csv");
        assert!(std::fs::read_to_string(csv).unwrap().starts_with("system,seed,control_kbps"));
        let svg = folder.path().join("bp.overhead/bp.overhead-control.svg");
        assert!(std::fs::read_to_string(svg).unwrap().contains("paper: 30 kb/s"));
    }

    #[test]
    fn the_table_for_documents_has_a_row_per_check() {
        let text = markdown(&[outcome()], &["again".into()]);
        assert_eq!(text.lines().filter(|line| line.starts_with("| |")).count(), 3);
        assert!(text.contains("37 kb/s (24–50)") && text.contains("partial: Bullet missing"));
    }
}
