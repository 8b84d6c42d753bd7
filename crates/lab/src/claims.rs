//! Claims: what the papers report, stated as data and judged by running it.
//!
//! A claim is a TOML file in `claims/`: the paper's words in ours, the scenarios that repeat the
//! experiment, the figures, and *checks*. A check picks one number out of the results (a metric, of
//! a system, at some points of a sweep, by a statistic) and says within which bounds it has to lie.
//! Nothing about a claim is code: who doubts a bound reads and changes one line of data.
//!
//! A check *holds*, *differs* (by how much), or is *open* because a system it needs does not exist
//! here. A claim holds when all its checks hold, differs when one differs, and is partial otherwise.
//! A claim may name a deliberately *broken* variant that must make it differ: a check that
//! nothing can fail says nothing.
//!
//! - [`Claim`]: the data; [`library`]: the claims that come with the program;
//! - [`judge`]: from results to verdicts; [`plot`]: from results to figures;
//! - [`run`]: from a claim to results; [`page`] and [`output`]: the report, and what is written.

pub mod judge;
pub mod library;
pub mod output;
pub mod page;
pub mod plot;
pub mod run;
mod select;

use serde::Deserialize;
use std::collections::BTreeMap;

/// One claim of one paper.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its stable name: family, dot, subject.
    pub id: String,
    /// What is compared, in a few words.
    pub title: String,
    /// Which paper reports it.
    pub paper: String,
    /// Where in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// How the paper did it.
    pub setup: String,
    /// What the paper reports.
    pub claim: String,
    /// What we decided where the paper leaves it open, and where quick mode departs from full mode.
    #[serde(default)]
    pub notes: Vec<String>,
    /// How long it takes.
    pub cost: Cost,
    /// The experiments.
    #[serde(rename = "run")]
    pub runs: Vec<Run>,
    /// What is drawn.
    #[serde(default, rename = "figure")]
    pub figures: Vec<FigureSpec>,
    /// What has to be so.
    #[serde(rename = "check")]
    pub checks: Vec<Check>,
    /// A variant that must not pass.
    pub broken: Option<Broken>,
}

/// How long a claim takes, in seconds of one core, as measured once; an estimate for the reader.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// The quick mode.
    pub quick_s: f64,
    /// The paper's size.
    pub full_s: f64,
}

/// A scenario to run.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// What checks and figures call it.
    pub name: String,
    /// The scenario's name in `scenarios/`. Its `[quick]` part says what quick mode changes.
    pub scenario: String,
    /// Dotted paths into the scenario and values that replace the file's.
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
}

/// A figure of the results.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureSpec {
    /// Its name, which is its file's name too.
    pub name: String,
    /// What a reader sees above it.
    pub title: String,
    /// Of which run; the first if none is given.
    pub run: Option<String>,
    /// Which table of the run.
    #[serde(default = "runs_table")]
    pub table: String,
    /// Which rows.
    #[serde(default, rename = "where")]
    pub rows: Rows,
    /// How points become marks.
    pub kind: KindSpec,
    /// The horizontal axis. Of a distribution, this is what is distributed; bars may have none.
    pub x: Option<AxisSpec>,
    /// The vertical axis; a distribution has none.
    pub y: Option<AxisSpec>,
    /// The columns whose values make a series each.
    #[serde(default = "system_column")]
    pub by: Vec<String>,
    /// Values to compare with.
    #[serde(default)]
    pub rules: Vec<RuleSpec>,
    /// Further distributions beside those of the table, such as a computed bound.
    #[serde(default)]
    pub also: Vec<AlsoSpec>,
}

/// A further distribution of a figure.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlsoSpec {
    /// Its name in the legend.
    pub label: String,
    /// Which table of the run.
    #[serde(default = "runs_table")]
    pub table: String,
    /// What is distributed.
    pub column: String,
    /// Which rows.
    #[serde(default, rename = "where")]
    pub rows: Rows,
}

/// A kind of figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KindSpec {
    /// The median over the seeds with the range, joined by lines.
    Line,
    /// The same as bars.
    Bar,
    /// The distribution of the column `x` over all chosen rows.
    Cdf,
}

/// An axis of a figure.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxisSpec {
    /// The column of the table.
    pub column: String,
    /// What it measures, with the unit.
    pub label: String,
    /// Whether it is logarithmic.
    #[serde(default)]
    pub log: bool,
    /// Its ends.
    pub range: Option<(f64, f64)>,
}

/// A value to compare with.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSpec {
    /// What it is.
    pub label: String,
    /// At which y.
    pub y: f64,
}

/// Which rows of a table: every column must have a value that is allowed.
pub type Rows = BTreeMap<String, Allowed>;

/// Which values a column may have.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Allowed {
    /// This number.
    Number(f64),
    /// This text.
    Text(String),
    /// One of these.
    Any(Vec<Allowed>),
    /// A number between these, ends included.
    Within(Within),
}

/// A range of numbers.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Within {
    /// The least.
    #[serde(default = "least")]
    pub min: f64,
    /// The most.
    #[serde(default = "most")]
    pub max: f64,
}

/// Something that has to be so.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// What is checked, in words.
    pub what: String,
    /// What the paper says of it, in words.
    pub paper: String,
    /// Whose number it is.
    pub role: Role,
    /// The system it needs that does not exist here: the check is then open.
    pub missing: Option<String>,
    /// The mode in which it is asked for, where scaling down would change what it means.
    pub mode: Option<Mode>,
    /// Of which run; the first if none is given.
    pub run: Option<String>,
    /// Which table of the run.
    #[serde(default = "runs_table")]
    pub table: String,
    /// Which column the number is in.
    pub metric: String,
    /// Which rows.
    #[serde(default, rename = "where")]
    pub rows: Rows,
    /// Whether rows without a number count as infinitely large: who never finished.
    #[serde(default)]
    pub never: bool,
    /// The statistic over the rows of one seed.
    #[serde(default)]
    pub within: Statistic,
    /// The statistic over the seeds.
    #[serde(default)]
    pub over: Statistic,
    /// The columns whose values are judged one by one; the check holds when it holds for each. The
    /// other side of a comparison has the same values, where it has these columns.
    #[serde(default)]
    pub each: Vec<String>,
    /// What the number is compared with.
    pub against: Option<Against>,
    /// The least that is allowed.
    pub min: Option<f64>,
    /// The most that is allowed.
    pub max: Option<f64>,
    /// What the number is measured in, for the reader.
    #[serde(default)]
    pub unit: String,
    /// Why it may differ, when that was found out; shown beside the verdict and changes nothing.
    pub why: Option<String>,
}

/// What a number is compared with: the same, but where it says otherwise.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Against {
    /// How.
    #[serde(rename = "as")]
    pub how: Comparison,
    /// Another run.
    pub run: Option<String>,
    /// Another table.
    pub table: Option<String>,
    /// Another column.
    pub metric: Option<String>,
    /// Columns with other values; the rest is as in the check.
    #[serde(default, rename = "where")]
    pub rows: Rows,
}

/// How two numbers are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// This one divided by the other.
    Ratio,
    /// This one less the other.
    Difference,
    /// By how much the other is longer than this one, as a share of this one: "25% faster".
    Faster,
    /// The share of ranks, from the smallest to the largest value, at which this one is below the
    /// other: for how many of the nodes it is better.
    ShareBelow,
}

/// A number of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The middle one.
    #[default]
    Median,
    /// The arithmetic mean.
    Mean,
    /// The least.
    Min,
    /// The most.
    Max,
    /// The 10% quantile.
    P10,
    /// The 90% quantile.
    P90,
    /// The 95% quantile.
    P95,
}

/// How large experiments are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Scaled down, with the shape kept.
    Quick,
    /// The paper's size.
    Full,
}

/// Whose number a check is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Our system's: the bar to reach.
    Ours,
    /// A rival's: it should land near the paper's.
    Rival,
    /// How systems compare: who is first, where the knee is.
    Shape,
}

/// A deliberately broken variant of the claim's system. At its size the claim's check holds, and
/// with the override it must differ: so the check can fail, and fails for the system's sake.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broken {
    /// What is broken.
    pub what: String,
    /// The check that must find out, by its words.
    pub check: String,
    /// Overrides of the run that make it small enough for a test, beside quick mode's.
    #[serde(default)]
    pub size: BTreeMap<String, toml::Value>,
    /// The overrides that break it.
    pub set: BTreeMap<String, toml::Value>,
}

fn runs_table() -> String {
    "runs".into()
}

fn system_column() -> Vec<String> {
    vec!["system".into()]
}

fn least() -> f64 {
    f64::NEG_INFINITY
}

fn most() -> f64 {
    f64::INFINITY
}

/// What the runs of a claim gave: per run its tables.
pub type Results = BTreeMap<String, Vec<crate::table::Table>>;
