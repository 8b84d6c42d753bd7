//! Tables as CSV (RFC 4180), written and read back without loss.
//!
//! A header, then a record per row. A field is quoted when it holds a comma, a quote or a line break,
//! and also when it is *text that reads as something else* (`"12"`, `""`): an unquoted field is a
//! number if it parses as one, and missing if it is empty, so types survive. Numbers are the
//! shortest decimal that reads back as the same double, hence the same on every machine.
//!
//! Deviation: records end in LF, not CRLF, because `cut` and `awk` would take the CR for data.
//! Both are read.

use super::{Table, Value};
use std::fmt::Write;

/// Why a text is no table; lines count from 1.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CsvError {
    /// There is not even a header.
    #[error("no header: the first line must name the columns")]
    Empty,
    /// A quote that is never closed.
    #[error("line {0}: a quoted field is not closed; add the missing quote")]
    Unclosed(usize),
    /// A quote in the middle of an unquoted field, or text behind a closing quote.
    #[error("line {0}: a quote inside a field; quote the whole field and double the quotes in it")]
    StrayQuote(usize),
    /// A record whose number of fields differs from the header's.
    #[error("line {line}: {found} fields where the header has {expected}")]
    Width {
        /// Where the record begins.
        line: usize,
        /// How many fields it has.
        found: usize,
        /// How many columns there are.
        expected: usize,
    },
}

impl Table {
    /// The table as CSV; the same table gives the same bytes.
    pub fn to_csv(&self) -> String {
        let mut text = String::new();
        record(&mut text, self.columns.iter().map(|column| quoted_if_needed(column, false)));
        for row in &self.rows {
            record(&mut text, row.iter().map(field));
        }
        text
    }

    /// Reads what [`to_csv`](Table::to_csv) or another program wrote.
    ///
    /// # Errors
    /// When quotes do not match or a record has another number of fields than the header.
    pub fn from_csv(name: &str, text: &str) -> Result<Table, CsvError> {
        let mut records = Reader { rest: text, line: 1 };
        let (_, header) = records.next_record()?.ok_or(CsvError::Empty)?;
        let columns: Vec<String> = header.into_iter().map(|field| field.text).collect();
        let mut table = Table { name: name.to_owned(), columns, rows: Vec::new() };
        while let Some((line, fields)) = records.next_record()? {
            let (found, expected) = (fields.len(), table.columns.len());
            if found != expected {
                return Err(CsvError::Width { line, found, expected });
            }
            table.rows.push(fields.into_iter().map(Field::into_value).collect());
        }
        Ok(table)
    }
}

fn record(text: &mut String, fields: impl Iterator<Item = String>) {
    let before = text.len();
    for (index, field) in fields.enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&field);
    }
    // A record of one empty field would be an empty line, which other readers skip.
    if text.len() == before {
        text.push_str("\"\"");
    }
    text.push('\n');
}

fn field(value: &Value) -> String {
    match value {
        Value::Number(value) => number(*value),
        Value::Text(text) => quoted_if_needed(text, true),
        Value::Missing => String::new(),
    }
}

/// The shortest decimal that reads back as the same number: `0.25`, `1e-9`, `NaN`, `inf`.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && size.is_finite() && !(1e-5..1e16).contains(&size) {
        format!("{value:e}")
    } else {
        format!("{value}")
    }
}

fn quoted_if_needed(text: &str, is_value: bool) -> String {
    let reads_otherwise = is_value && (text.is_empty() || text.parse::<f64>().is_ok());
    if !reads_otherwise && !text.contains([',', '"', '\n', '\r']) {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    // Writing to a string cannot fail.
    let _ = write!(quoted, "\"{}\"", text.replace('"', "\"\""));
    quoted
}

struct Field {
    text: String,
    was_quoted: bool,
}

impl Field {
    fn into_value(self) -> Value {
        if self.was_quoted {
            return Value::Text(self.text);
        }
        if self.text.is_empty() {
            return Value::Missing;
        }
        self.text.parse().map_or(Value::Text(self.text), Value::Number)
    }
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl Reader<'_> {
    /// The next record and the line it begins on.
    fn next_record(&mut self) -> Result<Option<(usize, Vec<Field>)>, CsvError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let line = self.line;
        let mut fields = vec![self.next_field()?];
        while let Some(rest) = self.rest.strip_prefix(',') {
            self.rest = rest;
            fields.push(self.next_field()?);
        }
        let ended = self.rest.strip_prefix("\r\n").or_else(|| self.rest.strip_prefix(['\n', '\r']));
        if let Some(rest) = ended {
            self.rest = rest;
            self.line += 1;
        }
        Ok(Some((line, fields)))
    }

    /// A field; what follows is a comma, a line's end or the end.
    fn next_field(&mut self) -> Result<Field, CsvError> {
        let Some(quoted) = self.rest.strip_prefix('"') else {
            let end = self.rest.find([',', '\n', '\r']).unwrap_or(self.rest.len());
            let (text, rest) = self.rest.split_at(end);
            self.rest = rest;
            if text.contains('"') {
                return Err(CsvError::StrayQuote(self.line));
            }
            return Ok(Field { text: text.to_owned(), was_quoted: false });
        };
        let begun = self.line;
        let mut text = String::new();
        let mut rest = quoted;
        loop {
            let end = rest.find('"').ok_or(CsvError::Unclosed(begun))?;
            self.line += rest[..end].matches('\n').count();
            text.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            match rest.strip_prefix('"') {
                Some(more) => rest = more,
                None => break,
            }
            text.push('"');
        }
        self.rest = rest;
        if !rest.is_empty() && !rest.starts_with([',', '\n', '\r']) {
            return Err(CsvError::StrayQuote(self.line));
        }
        Ok(Field { text, was_quoted: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(columns: &[&str], rows: Vec<Vec<Value>>) -> Table {
        Table { rows, ..Table::new("t", columns) }
    }

    #[test]
    fn fields_are_quoted_only_where_they_must_be() {
        let rows = vec![
            vec!["plain".into(), 0.1.into()],
            vec!["a, \"b\"\nc".into(), Value::Missing],
            vec!["12".into(), 1e-9.into()],
            vec!["".into(), f64::NAN.into()],
        ];
        let text = table(&["who", "rate, mean"], rows).to_csv();
        assert_eq!(
            text,
            "who,\"rate, mean\"\nplain,0.1\n\"a, \"\"b\"\"\nc\",\n\"12\",1e-9\n\"\",NaN\n"
        );
    }

    #[test]
    fn numbers_keep_their_last_bit_and_stay_short() {
        let third = 1.0 / 3.0;
        for value in [0.0, -0.0, 1.0, third, f64::MIN_POSITIVE, f64::MAX, 5e-324, 1e15, -12.5] {
            let text = number(value);
            assert!(text.len() <= 24, "{text}");
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{text}");
        }
        assert_eq!((number(f64::INFINITY), number(250.0)), ("inf".into(), "250".into()));
    }

    #[test]
    fn broken_texts_are_refused_with_their_line() {
        assert_eq!(Table::from_csv("t", ""), Err(CsvError::Empty));
        assert_eq!(Table::from_csv("t", "a\n\"x"), Err(CsvError::Unclosed(2)));
        assert_eq!(Table::from_csv("t", "a\nx\"y\n"), Err(CsvError::StrayQuote(2)));
        assert_eq!(Table::from_csv("t", "a\n\"x\"y\n"), Err(CsvError::StrayQuote(2)));
        let width = CsvError::Width { line: 4, found: 1, expected: 2 };
        assert_eq!(Table::from_csv("t", "a,b\n\"1\n2\",3\n4\n"), Err(width));
    }

    #[test]
    fn what_other_programs_write_is_read_with_crlf_and_without_a_last_line_end() {
        let read = Table::from_csv("t", "a,b\r\nx,1\r\ny,").unwrap();
        let rows = vec![vec!["x".into(), 1.0.into()], vec!["y".into(), Value::Missing]];
        assert_eq!(read, table(&["a", "b"], rows));
    }

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<f64>()
                .prop_filter("NaN is not equal to itself", |x| !x.is_nan())
                .prop_map(Value::Number),
            "[ -~\\n\r\"é,]{0,8}".prop_map(Value::Text),
            "(NaN|inf|-?[0-9]{1,3}(\\.[0-9])?)".prop_map(Value::Text),
            Just(Value::Missing),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_equal(
            columns in prop::collection::vec("[ -~\\n\"é,]{0,6}", 2..5),
            rows in prop::collection::vec(prop::collection::vec(value(), 5), 0..6),
        ) {
            let width = columns.len();
            let rows = rows.into_iter().map(|row| row.into_iter().take(width).collect()).collect();
            let table = Table { name: "t".into(), columns, rows };
            prop_assert_eq!(Table::from_csv("t", &table.to_csv()).unwrap(), table);
        }
    }
}
