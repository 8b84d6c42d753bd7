//! From results to figures.

use super::select::{self, SelectError};
use super::{AxisSpec, Claim, FigureSpec, KindSpec, Results};
use crate::figure::{Axis, Figure, Kind, Point, Rule, Series};
use crate::stats;
use crate::table::{Table, Value};

/// The figures of a claim; one that cannot be drawn is told instead.
pub fn figures(claim: &Claim, results: &Results) -> (Vec<Figure>, Vec<SelectError>) {
    let (mut drawn, mut failed) = (Vec::new(), Vec::new());
    for spec in &claim.figures {
        match figure(claim, spec, results) {
            Ok(figure) => drawn.push(figure),
            Err(error) => failed.push(error),
        }
    }
    (drawn, failed)
}

fn figure(claim: &Claim, spec: &FigureSpec, results: &Results) -> Result<Figure, SelectError> {
    let run = spec.run.as_deref().unwrap_or(claim.first_run());
    let table = select::table(results, run, &spec.table)?;
    let y = spec.y.as_ref();
    let rows = if spec.table == "completions" { "receivers" } else { &spec.table };
    let y_axis = y.map_or_else(|| Axis::linear(&format!("share of {rows}")), axis);
    let x_axis = spec.x.as_ref().map_or(Axis::linear(""), axis);
    let x = spec.x.as_ref().map(|x| x.column.as_str());
    let kind = match spec.kind {
        KindSpec::Line => Kind::Line,
        KindSpec::Bar => Kind::Bar,
        KindSpec::Cdf => Kind::Cdf,
    };
    let name = format!("{}-{}", claim.id, spec.name);
    let mut figure = Figure::new(&name, &spec.title, kind, x_axis, y_axis);
    for group in select::groups(table, &spec.rows, &spec.by)? {
        let mut rows = spec.rows.clone();
        rows.extend(group.clone());
        let rows = select::rows(table, &rows)?;
        let points = match y {
            Some(y) => sweep(table, &rows, x, &y.column)?,
            None => distribution(table, &rows, x.unwrap_or_default())?,
        };
        figure.series.push(Series { label: label(spec, table, &rows), points });
    }
    for also in &spec.also {
        let table = select::table(results, run, &also.table)?;
        let points = distribution(table, &select::rows(table, &also.rows)?, &also.column)?;
        figure.series.push(Series { label: also.label.clone(), points });
    }
    figure.rules =
        spec.rules.iter().map(|rule| Rule { label: rule.label.clone(), y: rule.y }).collect();
    Ok(figure)
}

fn axis(spec: &AxisSpec) -> Axis {
    Axis { label: spec.label.clone(), is_log: spec.log, range: spec.range }
}

/// What a series is called: the values of the columns that make it, with the column's name where
/// the value alone says nothing.
fn label(spec: &FigureSpec, table: &Table, rows: &[&[Value]]) -> String {
    let Some(row) = rows.first() else { return String::new() };
    let name = |column: &String| {
        let value = table.column(column).map(|place| &row[place])?;
        Some(match value {
            Value::Number(_) => format!("{} {}", column.replace('_', " "), value.show()),
            _ => value.show(),
        })
    };
    spec.by.iter().filter_map(name).collect::<Vec<_>>().join(", ")
}

/// Per x the median over the rows, with the range. Without an x all rows are one point.
fn sweep(
    table: &Table,
    rows: &[&[Value]],
    x: Option<&str>,
    y: &str,
) -> Result<Vec<Point>, SelectError> {
    let x = x.map(|x| select::column(table, x)).transpose()?;
    let y = select::column(table, y)?;
    let mut at: Vec<(f64, Vec<f64>)> = Vec::new();
    for row in rows {
        let x = x.map_or(Some(0.0), |x| select::leading_number(&row[x]));
        let (Some(x), Some(y)) = (x, row[y].number()) else { continue };
        match at.iter_mut().find(|(known, _)| *known == x) {
            Some((_, values)) => values.push(y),
            None => at.push((x, vec![y])),
        }
    }
    at.sort_by(|a, b| a.0.total_cmp(&b.0));
    let point = |(x, values): (f64, Vec<f64>)| {
        let sorted = stats::sorted(&values);
        let spread = match (sorted.first(), sorted.last()) {
            (Some(&low), Some(&high)) if low < high => Some((low, high)),
            _ => None,
        };
        Point { x, y: stats::median(&values).unwrap_or(f64::NAN), spread }
    };
    Ok(at.into_iter().map(point).collect())
}

/// The distribution of a column; rows without a number (who never finished) count as beyond.
fn distribution(table: &Table, rows: &[&[Value]], column: &str) -> Result<Vec<Point>, SelectError> {
    let column = select::column(table, column)?;
    let values: Vec<f64> = rows.iter().filter_map(|row| row[column].number()).collect();
    let point = |(x, y)| Point { x, y, spread: None };
    Ok(stats::cdf_of(&values, rows.len()).into_iter().map(point).collect())
}
