//! Picking rows and numbers out of the tables of a run.

use super::{Allowed, Results, Rows, Statistic};
use crate::stats;
use crate::table::{Table, Value};
use std::collections::BTreeMap;

/// Why a number could not be taken: the claim's data and the results do not fit.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SelectError {
    /// No such run.
    #[error("there is no run {0:?}")]
    Run(String),
    /// No such table.
    #[error("run {run:?} has no table {table:?}")]
    Table {
        /// The run.
        run: String,
        /// The table that is not there.
        table: String,
    },
    /// No such column.
    #[error("table {table:?} has no column {column:?}")]
    Column {
        /// The table.
        table: String,
        /// The column that is not there.
        column: String,
    },
    /// The rows have no number in that column, or there are none.
    #[error("no row of table {table:?} has a number in {column:?} {rows}")]
    Nothing {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Which rows were wanted.
        rows: String,
    },
}

/// The table of a run.
pub(super) fn table<'a>(
    results: &'a Results,
    run: &str,
    table: &str,
) -> Result<&'a Table, SelectError> {
    let tables = results.get(run).ok_or_else(|| SelectError::Run(run.to_owned()))?;
    let found = tables.iter().find(|candidate| candidate.name == table);
    found.ok_or_else(|| SelectError::Table { run: run.to_owned(), table: table.to_owned() })
}

/// The place of a column.
pub(super) fn column(table: &Table, name: &str) -> Result<usize, SelectError> {
    let missing = || SelectError::Column { table: table.name.clone(), column: name.to_owned() };
    table.column(name).ok_or_else(missing)
}

/// The rows that are allowed.
pub(super) fn rows<'a>(table: &'a Table, rows: &Rows) -> Result<Vec<&'a [Value]>, SelectError> {
    let mut wanted = Vec::new();
    for (name, allowed) in rows {
        wanted.push((column(table, name)?, allowed));
    }
    let is_wanted =
        |row: &&Vec<Value>| wanted.iter().all(|(column, allowed)| allowed.takes(&row[*column]));
    Ok(table.rows.iter().filter(is_wanted).map(Vec::as_slice).collect())
}

impl Allowed {
    /// Whether this value is among those allowed.
    fn takes(&self, value: &Value) -> bool {
        match (self, value) {
            (Allowed::Any(several), _) => several.iter().any(|allowed| allowed.takes(value)),
            (Allowed::Text(wanted), Value::Text(text)) => wanted == text,
            (Allowed::Number(wanted), Value::Number(number)) => {
                (wanted - number).abs() <= 1e-9 * wanted.abs()
            }
            (Allowed::Within(within), Value::Number(number)) => {
                (within.min..=within.max).contains(number)
            }
            _ => false,
        }
    }

    /// For a person.
    fn show(&self) -> String {
        match self {
            Allowed::Number(number) => number.to_string(),
            Allowed::Text(text) => text.clone(),
            Allowed::Any(several) => {
                several.iter().map(Allowed::show).collect::<Vec<_>>().join(" or ")
            }
            Allowed::Within(within) => format!("{}..{}", within.min, within.max),
        }
    }
}

/// For a person: `where loss is 0, system is tcp`.
pub(super) fn show(rows: &Rows) -> String {
    let parts: Vec<String> =
        rows.iter().map(|(column, allowed)| format!("{column} is {}", allowed.show())).collect();
    if parts.is_empty() { "at all".into() } else { format!("where {}", parts.join(", ")) }
}

/// The numbers of a column, by seed. A table without seeds counts as one. `never`: rows without a
/// number are infinite.
pub(super) fn by_seed(
    table: &Table,
    wanted: &Rows,
    metric: &str,
    never: bool,
) -> Result<Vec<Vec<f64>>, SelectError> {
    let column = column(table, metric)?;
    let seed = table.column("seed");
    let mut seeds: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in rows(table, wanted)? {
        let number = row[column].number().filter(|number| number.is_finite());
        let Some(number) = number.or(never.then_some(f64::INFINITY)) else { continue };
        let seed = seed.map(|seed| row[seed].show()).unwrap_or_default();
        seeds.entry(seed).or_default().push(number);
    }
    if seeds.is_empty() {
        let (table, column, rows) = (table.name.clone(), metric.to_owned(), show(wanted));
        return Err(SelectError::Nothing { table, column, rows });
    }
    Ok(seeds.into_values().collect())
}

/// The distinct values that the chosen rows have in `columns`, in the order of the table.
pub(super) fn groups(
    table: &Table,
    wanted: &Rows,
    columns: &[String],
) -> Result<Vec<Rows>, SelectError> {
    let mut places = Vec::new();
    for name in columns {
        places.push((name, column(table, name)?));
    }
    let mut groups: Vec<Rows> = Vec::new();
    for row in rows(table, wanted)? {
        let mut group = Rows::new();
        for &(name, place) in &places {
            let allowed = match &row[place] {
                Value::Number(number) => Allowed::Number(*number),
                other => Allowed::Text(other.show()),
            };
            group.insert(name.clone(), allowed);
        }
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    Ok(groups)
}

impl Statistic {
    /// The statistic of these values, some of which may be infinite.
    pub(super) fn of(self, values: &[f64]) -> Option<f64> {
        match self {
            Statistic::Median => quantile(values, 0.5),
            Statistic::Mean => {
                let is_finite = values.iter().all(|value| value.is_finite());
                if is_finite { stats::mean(values) } else { Some(f64::INFINITY) }
            }
            Statistic::Min => quantile(values, 0.0),
            Statistic::Max => quantile(values, 1.0),
            Statistic::P10 => quantile(values, 0.1),
            Statistic::P90 => quantile(values, 0.9),
            Statistic::P95 => quantile(values, 0.95),
        }
    }
}

/// As [`stats::quantile`], but infinite values are the largest and not left out.
pub(super) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let finite = stats::sorted(values);
    if finite.len() == values.len() {
        return stats::quantile(&finite, share);
    }
    let place = share * (values.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let ends = finite.get(below).zip(finite.get(above));
    Some(ends.map_or(f64::INFINITY, |(low, high)| low + (high - low) * (place - below as f64)))
}

/// A number, from a cell that may have a unit behind it: `"10% bdp"` is 10.
pub(super) fn leading_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => Some(*number),
        Value::Text(text) => {
            let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
            text[..end.unwrap_or(text.len())].parse().ok()
        }
        Value::Missing => None,
    }
}
