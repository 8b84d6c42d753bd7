//! The report of claims.

use super::judge::{Judged, Judgement, Verdict};
use super::{Claim, Results, Role, plot};
use crate::report::{Report, Section, Tone, VerdictRow};

/// A claim with what its runs gave.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The claim.
    pub claim: Claim,
    /// The tables of its runs.
    pub results: Results,
    /// Its verdicts.
    pub judgement: Judgement,
}

/// The page about these claims. `facts` say what was run; `commands` make it again.
pub fn report(outcomes: &[Outcome], facts: Vec<(String, String)>, commands: Vec<String>) -> Report {
    let title = match outcomes {
        [only] => format!("{}: {}", only.claim.id, only.claim.title),
        _ => "Claims of the papers, judged".into(),
    };
    Report {
        title,
        lead: vec![summary(outcomes)],
        facts,
        verdicts: outcomes.iter().map(row).collect(),
        sections: outcomes.iter().map(section).collect(),
        commands,
    }
}

/// In one sentence, how many hold.
pub fn summary(outcomes: &[Outcome]) -> String {
    let count =
        |word| outcomes.iter().filter(|outcome| outcome.judgement.verdict.word() == word).count();
    if let [only] = outcomes {
        return format!("{}: {}.", only.claim.id, only.judgement.verdict);
    }
    format!(
        "Of {} claims, {} hold, {} differ, and {} could be judged in part only.",
        outcomes.len(),
        count("holds"),
        count("differs"),
        count("partial")
    )
}

fn row(outcome: &Outcome) -> VerdictRow {
    let claim = &outcome.claim;
    let held = outcome.judgement.checks.iter().filter(|judged| judged.verdict == Verdict::Holds);
    VerdictRow {
        what: claim.id.clone(),
        section: Some(claim.id.clone()),
        paper: claim.claim.clone(),
        measured: format!("{} of {} checks hold", held.count(), outcome.judgement.checks.len()),
        tone: tone(&outcome.judgement.verdict),
        verdict: outcome.judgement.verdict.to_string(),
    }
}

fn tone(verdict: &Verdict) -> Tone {
    match verdict {
        Verdict::Holds => Tone::Good,
        Verdict::Differs(_) => Tone::Bad,
        Verdict::Partial(_) => Tone::Open,
    }
}

fn section(outcome: &Outcome) -> Section {
    let claim = &outcome.claim;
    let mut prose = vec![
        format!("Paper ({}, {}): {}.", claim.paper, claim.place, claim.claim),
        format!("Setup: {}.", claim.setup),
    ];
    prose.extend(claim.notes.iter().cloned());
    prose.extend(outcome.judgement.checks.iter().filter_map(reason));
    let (figures, failed) = plot::figures(claim, &outcome.results);
    prose.extend(failed.iter().map(|error| format!("A figure could not be drawn: {error}.")));
    let tables = outcome.results.iter().flat_map(|(run, tables)| {
        tables.iter().cloned().map(move |mut table| {
            table.name = format!("{run}-{}", table.name);
            table
        })
    });
    Section {
        id: claim.id.clone(),
        title: format!("{}: {}", claim.id, claim.title),
        prose,
        verdicts: outcome.judgement.checks.iter().map(check_row).collect(),
        numbers: None,
        figures,
        tables: tables.collect(),
    }
}

/// Why a check differs, where that is known.
fn reason(judged: &Judged) -> Option<String> {
    let why = judged.check.why.as_ref()?;
    matches!(judged.verdict, Verdict::Differs(_)).then(|| format!("{}: {why}", judged.check.what))
}

fn check_row(judged: &Judged) -> VerdictRow {
    let role = match judged.check.role {
        Role::Ours => "ours",
        Role::Rival => "rival",
        Role::Shape => "shape",
    };
    VerdictRow {
        what: format!("{} ({role})", judged.check.what),
        section: None,
        paper: judged.check.paper.clone(),
        measured: judged.measured.clone(),
        tone: tone(&judged.verdict),
        verdict: judged.verdict.to_string(),
    }
}
