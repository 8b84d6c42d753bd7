//! Tidy tables: one observation per row, one variable per column.
//!
//! A table is what every result is made of: the runner fills it, a report shows it, and as CSV it is
//! what a reader's own tools take. The CSV form keeps everything: what is written is read back
//! equal, to the last bit of a number (see [`Table::to_csv`]).

mod csv;

pub use csv::CsvError;

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

impl Value {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// As a person reads it: text as it is, numbers in the shortest form that keeps their value,
    /// nothing for what is missing.
    pub fn show(&self) -> String {
        match self {
            Value::Number(number) => csv::number(*number),
            Value::Text(text) => text.clone(),
            Value::Missing => String::new(),
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Value {
        number.map_or(Value::Missing, Value::Number)
    }
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

impl Table {
    /// A table without rows.
    pub fn new(name: &str, columns: &[&str]) -> Table {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Table { name: name.to_owned(), columns, rows: Vec::new() }
    }

    /// Appends a row. A short row is filled with [`Value::Missing`]; a long one is a bug.
    ///
    /// # Panics
    /// When the row has more values than there are columns.
    pub fn push(&mut self, mut row: Vec<Value>) {
        assert!(row.len() <= self.columns.len(), "{}: a row is too long", self.name);
        row.resize(self.columns.len(), Value::Missing);
        self.rows.push(row);
    }

    /// The place of a column, if there is one of this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The numbers of a column, in the order of the rows; what is no number is left out.
    pub fn numbers(&self, name: &str) -> Vec<f64> {
        let Some(column) = self.column(name) else { return Vec::new() };
        self.rows.iter().filter_map(|row| row.get(column)?.number()).collect()
    }
}
