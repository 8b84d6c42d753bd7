//! Tables of a page.

use super::{Tone, VerdictRow};
use crate::figure::{escape, short};
use crate::table::{Table, Value};
use std::fmt::Write;

/// Above this many rows a table shows only its beginning; the CSV behind its link has everything.
const ROWS_MAX: usize = 200;

/// Above this many bytes a table's CSV is not put into the page: it lies beside it as a file.
const CSV_MAX: usize = 400_000;

pub(super) fn verdicts(html: &mut String, rows: &[VerdictRow]) {
    if rows.is_empty() {
        return;
    }
    html.push_str(
        "<div class=\"wide\"><table class=\"verdicts\"><thead><tr><th>what<th>paper<th>measured\
         <th>verdict</tr></thead><tbody>\n",
    );
    for row in rows {
        let what = escape(&row.what);
        let what = match &row.section {
            Some(section) => format!("<a href=\"#{}\">{what}</a>", anchor(section)),
            None => what,
        };
        let class = match row.tone {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Open => "open",
        };
        add(
            html,
            format_args!(
                "<tr><td>{what}<td>{}<td>{}<td><span class=\"{class}\">{}</span></tr>\n",
                escape(&row.paper),
                escape(&row.measured),
                escape(&row.verdict)
            ),
        );
    }
    html.push_str("</tbody></table></div>\n");
}

/// A table that is open to see, its numbers rounded for reading.
pub(super) fn open(html: &mut String, table: &Table) {
    html.push_str("<div class=\"wide\">");
    body(html, table);
    html.push_str("</div>\n");
}

/// A table that opens when it is asked for.
pub(super) fn folded(html: &mut String, table: &Table) {
    let (rows, name) = (table.rows.len(), escape(&table.name));
    let unit = if rows == 1 { "row" } else { "rows" };
    add(html, format_args!("<details><summary>{name} ({rows} {unit})</summary>\n"));
    let csv = table.to_csv();
    if csv.len() <= CSV_MAX {
        let data = percent_encoded(&csv);
        add(
            html,
            format_args!(
                "<p><a download=\"{name}.csv\" href=\"data:text/csv;charset=utf-8,{data}\">{name}.csv</a>, \
             in full precision</p>\n"
            ),
        );
    }
    html.push_str("<div class=\"wide\">");
    body(html, table);
    html.push_str("</div>");
    if rows > ROWS_MAX {
        add(html, format_args!("<p>{} more rows are in {name}.csv.</p>", rows - ROWS_MAX));
    }
    html.push_str("</details>\n");
}

fn body(html: &mut String, table: &Table) {
    html.push_str("<table><thead><tr>");
    for column in &table.columns {
        add(html, format_args!("<th>{}", escape(&column.replace('_', " "))));
    }
    html.push_str("</tr></thead><tbody>\n");
    for row in table.rows.iter().take(ROWS_MAX) {
        html.push_str("<tr>");
        for value in row {
            match value {
                Value::Number(number) => {
                    add(html, format_args!("<td class=\"n\">{}", escape(&short(*number))));
                }
                Value::Text(text) => add(html, format_args!("<td>{}", escape(text))),
                Value::Missing => html.push_str("<td class=\"n\">"),
            }
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table>");
}

/// A name as an identifier within the page.
pub(super) fn anchor(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    name.chars().map(plain).collect()
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 5 / 4);
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'.' | b',' | b'/' => {
                encoded.push(byte.into());
            }
            _ => add(&mut encoded, format_args!("%{byte:02X}")),
        }
    }
    encoded
}

pub(super) fn add(html: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = html.write_fmt(text);
}
