//! From results to verdicts.

use super::select::{self, SelectError};
use super::{Against, Allowed, Check, Claim, Comparison, Mode, Results, Rows};
use crate::figure::short;
use crate::stats;

/// How a check, or a whole claim, ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// It is as the paper reports.
    Holds,
    /// It is not; by how much.
    Differs(String),
    /// It could not be judged in full; what is missing.
    Partial(String),
}

impl Verdict {
    /// `holds`, `differs` or `partial`, for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Differs(_) => "differs",
            Verdict::Partial(_) => "partial",
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Holds => f.write_str("holds"),
            Verdict::Differs(by) => write!(f, "differs: {by}"),
            Verdict::Partial(why) => write!(f, "partial: {why}"),
        }
    }
}

/// A check and how it ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// The check.
    pub check: Check,
    /// What was measured, for a person; empty when nothing was.
    pub measured: String,
    /// The numbers that were measured, one per group of `each`.
    pub values: Vec<f64>,
    /// How it ended.
    pub verdict: Verdict,
}

/// A claim and how it ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Judgement {
    /// Its checks, in the order of the claim.
    pub checks: Vec<Judged>,
    /// The verdict over all.
    pub verdict: Verdict,
}

/// Judges a claim by its results. Checks of the other mode are left out.
pub fn judge(claim: &Claim, results: &Results, mode: Mode) -> Judgement {
    let asked = claim.checks.iter().filter(|check| check.mode.is_none_or(|only| only == mode));
    let checks: Vec<Judged> = asked.map(|check| judge_check(claim, check, results)).collect();
    let verdict = overall(&checks);
    Judgement { checks, verdict }
}

fn overall(checks: &[Judged]) -> Verdict {
    let count = |word| checks.iter().filter(|judged| judged.verdict.word() == word).count();
    let differing = count("differs");
    let mut missing: Vec<&str> = Vec::new();
    for judged in checks {
        if let (Verdict::Partial(_), Some(system)) = (&judged.verdict, &judged.check.missing)
            && !missing.contains(&system.as_str())
        {
            missing.push(system);
        }
    }
    if differing > 0 {
        let judged = checks.len() - count("partial");
        return Verdict::Differs(format!("{differing} of {judged} checks"));
    }
    if missing.is_empty() {
        return Verdict::Holds;
    }
    Verdict::Partial(format!("{} missing", missing.join(", ")))
}

fn judge_check(claim: &Claim, check: &Check, results: &Results) -> Judged {
    let judged =
        |measured, values, verdict| Judged { check: check.clone(), measured, values, verdict };
    if let Some(system) = &check.missing {
        return judged(String::new(), Vec::new(), Verdict::Partial(format!("{system} missing")));
    }
    match measure(claim, check, results) {
        Ok(found) => {
            let values = found.iter().map(|found| found.value).collect();
            judged(describe(check, &found), values, compare(check, &found))
        }
        Err(error) => {
            judged(String::new(), Vec::new(), Verdict::Differs(format!("not measured: {error}")))
        }
    }
}

/// One number that a check is about.
struct Found {
    /// Where: the values of `each`.
    group: Rows,
    value: f64,
    /// The range over the seeds, where there are several.
    spread: Option<(f64, f64)>,
}

fn measure(claim: &Claim, check: &Check, results: &Results) -> Result<Vec<Found>, SelectError> {
    let run = check.run.as_deref().unwrap_or(claim.first_run());
    let table = select::table(results, run, &check.table)?;
    let groups = select::groups(table, &check.rows, &check.each)?;
    if groups.is_empty() {
        // Says which rows were wanted.
        select::by_seed(table, &check.rows, &check.metric, check.never)?;
    }
    groups.into_iter().map(|group| found(claim, check, results, group)).collect()
}

fn found(
    claim: &Claim,
    check: &Check,
    results: &Results,
    group: Rows,
) -> Result<Found, SelectError> {
    let run = check.run.as_deref().unwrap_or(claim.first_run());
    let mut rows = check.rows.clone();
    rows.extend(group.clone());
    let table = select::table(results, run, &check.table)?;
    let seeds = select::by_seed(table, &rows, &check.metric, check.never)?;
    let per_seed: Vec<f64> = seeds.iter().filter_map(|seed| check.within.of(seed)).collect();
    let nothing = || SelectError::Nothing {
        table: check.table.clone(),
        column: check.metric.clone(),
        rows: select::show(&rows),
    };
    let own = check.over.of(&per_seed).ok_or_else(nothing)?;
    let Some(against) = &check.against else {
        let spread = (per_seed.len() > 1).then(|| range(&per_seed));
        return Ok(Found { group, value: own, spread });
    };
    let others = other(claim, check, against, results, &rows)?;
    if against.how == Comparison::ShareBelow {
        let shares: Vec<f64> =
            seeds.iter().zip(&others).map(|(own, other)| share_below(own, other)).collect();
        let spread = (shares.len() > 1).then(|| range(&shares));
        let value = check.over.of(&shares).ok_or_else(nothing)?;
        return Ok(Found { group, value, spread });
    }
    let per_seed: Vec<f64> = others.iter().filter_map(|seed| check.within.of(seed)).collect();
    let other = check.over.of(&per_seed).ok_or_else(nothing)?;
    let value = match against.how {
        Comparison::Ratio => own / other,
        Comparison::Difference => own - other,
        Comparison::Faster => other / own - 1.0,
        Comparison::ShareBelow => own,
    };
    Ok(Found { group, value, spread: None })
}

/// The numbers, by seed, that a check's are compared with.
fn other(
    claim: &Claim,
    check: &Check,
    against: &Against,
    results: &Results,
    rows: &Rows,
) -> Result<Vec<Vec<f64>>, SelectError> {
    let run = against.run.as_deref().or(check.run.as_deref()).unwrap_or(claim.first_run());
    let table = against.table.as_deref().unwrap_or(&check.table);
    let metric = against.metric.as_deref().unwrap_or(&check.metric);
    let table = select::table(results, run, table)?;
    let mut rows = rows.clone();
    rows.retain(|column, _| !check.each.contains(column) || table.column(column).is_some());
    rows.extend(against.rows.clone());
    select::by_seed(table, &rows, metric, check.never)
}

/// At which share of 99 evenly spaced ranks `own` is below `other`.
fn share_below(own: &[f64], other: &[f64]) -> f64 {
    let is_below = |rank: &u32| {
        let share = f64::from(*rank) / 100.0;
        select::quantile(own, share) < select::quantile(other, share)
    };
    (1..100).filter(is_below).count() as f64 / 99.0
}

fn range(values: &[f64]) -> (f64, f64) {
    let sorted = stats::sorted(values);
    (sorted.first().copied().unwrap_or(f64::NAN), sorted.last().copied().unwrap_or(f64::NAN))
}

fn compare(check: &Check, found: &[Found]) -> Verdict {
    let worst = found
        .iter()
        .filter_map(|found| Some((excess(check, found.value)?, found)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, worst)) = worst else { return Verdict::Holds };
    let at = place(&worst.group);
    if worst.value.is_nan() {
        return Verdict::Differs(format!("neither side ever finished{at}"));
    }
    let (word, bound) = match (check.min, check.max) {
        (Some(min), _) if worst.value.is_nan() || worst.value < min => ("least", min),
        (_, Some(max)) => ("most", max),
        (min, _) => ("least", min.unwrap_or(f64::NAN)),
    };
    let by = (worst.value - bound).abs();
    let by = if bound == 0.0 {
        short(by)
    } else {
        format!("{}%", short((by / bound.abs() * 1000.0).round() / 10.0))
    };
    let side = if word == "least" { "below" } else { "above" };
    let (value, bound) = (short(worst.value), short(bound));
    Verdict::Differs(format!("{value}{at}, {by} {side} the {word} allowed, {bound}"))
}

/// By how much a value is outside the bounds, for comparison between groups; `None` inside.
fn excess(check: &Check, value: f64) -> Option<f64> {
    if value.is_nan() {
        return Some(f64::INFINITY);
    }
    let below = check.min.map_or(f64::NEG_INFINITY, |min| (min - value) / min.abs().max(1e-9));
    let above = check.max.map_or(f64::NEG_INFINITY, |max| (value - max) / max.abs().max(1e-9));
    let excess = below.max(above);
    (excess > 0.0).then_some(excess)
}

fn place(group: &Rows) -> String {
    let parts: Vec<String> = group
        .iter()
        .map(|(column, allowed)| match allowed {
            Allowed::Number(number) => format!("{column} {}", short(*number)),
            Allowed::Text(text) => format!("{column} {text}"),
            Allowed::Any(_) | Allowed::Within(_) => column.clone(),
        })
        .collect();
    if parts.is_empty() { String::new() } else { format!(" at {}", parts.join(", ")) }
}

fn describe(check: &Check, found: &[Found]) -> String {
    let unit = if check.unit.is_empty() { String::new() } else { format!(" {}", check.unit) };
    match found {
        [only] => {
            let spread = match only.spread {
                Some((low, high)) if short(low) != short(high) => {
                    format!(" ({}–{})", short(low), short(high))
                }
                _ => String::new(),
            };
            format!("{}{unit}{spread}", short(only.value))
        }
        several => {
            let values: Vec<f64> = several.iter().map(|found| found.value).collect();
            let (low, high) = range(&values);
            let (low, high) = (short(low), short(high));
            let values = if low == high { low } else { format!("{low} to {high}") };
            format!("{values}{unit} at {} points", several.len())
        }
    }
}

#[cfg(test)]
mod tests;
