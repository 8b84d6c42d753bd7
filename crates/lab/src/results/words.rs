//! Columns in words, for the axes and legends of figures.

use crate::table::Value;

/// What stands behind a column's name, and the unit that it means. The longer come first.
const UNITS: [(&str, &str); 11] = [
    ("_percent_bdp", "% of the BDP"),
    ("_per_s", "per s"),
    ("_packets", "packets"),
    ("_percent", "%"),
    ("_bytes", "bytes"),
    ("_mbps", "Mb/s"),
    ("_kbps", "kb/s"),
    ("_bdp", "BDP"),
    ("_rtt", "round trips"),
    ("_ms", "ms"),
    ("_s", "s"),
];

fn parts(column: &str) -> (String, Option<&'static str>) {
    let unit = UNITS.iter().find(|(end, _)| column.len() > end.len() && column.ends_with(end));
    let name = unit.map_or(column, |(end, _)| &column[..column.len() - end.len()]);
    (name.replace('_', " "), unit.map(|(_, unit)| *unit))
}

/// A column as an axis is called: `rate [Mb/s]`.
pub(super) fn axis(column: &str) -> String {
    match parts(column) {
        (name, Some(unit)) => format!("{name} [{unit}]"),
        (name, None) => name,
    }
}

/// A column's value in a legend or title: `rate 10 Mb/s`.
pub(super) fn value(column: &str, value: &Value) -> String {
    match parts(column) {
        (name, Some(unit)) if value.number().is_some() => format!("{name} {} {unit}", value.show()),
        (name, _) => format!("{name} {}", value.show()),
    }
}

/// The words with a capital letter in front.
pub(super) fn title(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_told_with_their_units() {
        for (column, expected) in [
            ("rate_mbps", "rate [Mb/s]"),
            ("rate_per_s", "rate [per s]"),
            ("limit_percent_bdp", "limit [% of the BDP]"),
            ("window_bytes", "window [bytes]"),
            ("block_interval_s", "block interval [s]"),
            ("probability", "probability"),
            ("_s", " s"),
        ] {
            assert_eq!(axis(column), expected);
        }
        assert_eq!(value("limit_bdp", &Value::Number(0.1)), "limit 0.1 BDP");
        assert_eq!(value("join", &Value::Text("at 0s".into())), "join at 0s");
        assert_eq!(title("mean queue"), "Mean queue");
    }
}
