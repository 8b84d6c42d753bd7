//! Tidy tables: one observation per row, one variable per column.

/// A cell.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A number; written in full precision.
    Number(f64),
    /// Text.
    Text(String),
    /// Nothing was observed: an empty cell.
    Missing,
}

/// A table; every row has as many values as there are columns.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    /// Its name, which is its file's name too.
    pub name: String,
    /// The columns' names, with the unit behind: `goodput_mbps`, `time_s`.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
}
