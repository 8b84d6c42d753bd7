//! Times, rates and sizes as scenarios write them: `"20ms"`, `"155mbit"`, `"16KiB"`.

use anabranch_proto::time::Duration;
use anabranch_world::units::Rate;

/// What a text stands for, and how to write one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dimension {
    Time,
    Rate,
    Size,
    Arrivals,
}

impl Dimension {
    pub(crate) const ALL: [Dimension; 4] =
        [Dimension::Time, Dimension::Rate, Dimension::Size, Dimension::Arrivals];

    /// What it is, and how it is written.
    fn like(self) -> (&'static str, &'static str) {
        match self {
            Dimension::Time => ("a time", "\"20ms\", \"30s\" or \"10min\""),
            Dimension::Rate => ("a rate", "\"155mbit\" or \"20MB/s\""),
            Dimension::Size => ("a size", "\"16KiB\", \"100MB\" or \"1000B\""),
            Dimension::Arrivals => ("an arrival rate", "\"500/s\""),
        }
    }

    /// How it is written, for messages.
    pub(crate) fn example(self) -> &'static str {
        self.like().1
    }

    /// What one of `unit` is in the base unit: seconds, bytes per second, bytes, arrivals per
    /// second.
    fn factor(self, unit: &str) -> Option<f64> {
        match self {
            Dimension::Time => time_factor(unit),
            Dimension::Rate => rate_factor(unit),
            Dimension::Size => bytes_factor(unit),
            Dimension::Arrivals => arrivals_factor(unit),
        }
    }

    /// The quantity in the base unit.
    pub(crate) fn parse(self, text: &str) -> Result<f64, String> {
        let (what, example) = self.like();
        let (number, unit) = split(text)
            .ok_or_else(|| format!("{text:?} is not {what}; write it like {example}"))?;
        if number < 0.0 {
            return Err(format!("{text:?} is negative; {what} is not, write it like {example}"));
        }
        if unit.is_empty() && number != 0.0 {
            return Err(format!("{text:?} has no unit; write {what} like {example}"));
        }
        let factor = if unit.is_empty() { Some(1.0) } else { self.factor(unit) };
        let factor = factor
            .ok_or_else(|| format!("{unit:?} is no unit of {what}; write it like {example}"))?;
        let value = number * factor;
        let largest = if self == Dimension::Time { LARGEST_SECS } else { LARGEST };
        if value > largest { Err(format!("{text:?} is too large")) } else { Ok(value) }
    }
}

/// A time.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    Dimension::Time.parse(text).map(|secs| Duration::from_nanos((secs * 1e9).round() as u64))
}

/// A rate above zero.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    match Dimension::Rate.parse(text)? {
        0.0 => Err(format!("{text:?} carries nothing; write a rate above zero")),
        bytes => Ok(Rate::bytes_per_sec(bytes.round() as u64)),
    }
}

/// A size in bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    Dimension::Size.parse(text).map(|bytes| bytes.round() as u64)
}

/// The number at the beginning, perhaps negative, and the unit behind it.
pub(crate) fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let is_part = |(at, c): &(usize, char)| {
        c.is_ascii_digit()
            || *c == '.'
            || (*c == '-' && (*at == 0 || text[..*at].ends_with(['e', 'E'])))
            || (matches!(c, 'e' | 'E') && is_exponent(&text[*at..]))
    };
    let end = text.char_indices().find(|part| !is_part(part)).map_or(text.len(), |(at, _)| at);
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

/// Whether an exponent begins here, as in `1e6bit`; `1EB` has none.
fn is_exponent(text: &str) -> bool {
    let rest = text[1..].strip_prefix('-').unwrap_or(&text[1..]);
    rest.starts_with(|c: char| c.is_ascii_digit())
}

fn time_factor(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" | "sec" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

fn rate_factor(unit: &str) -> Option<f64> {
    let lower = unit.to_ascii_lowercase();
    let bits = lower
        .strip_suffix("bit/s")
        .or_else(|| lower.strip_suffix("bit"))
        .or_else(|| if unit.ends_with("bps") { lower.strip_suffix("bps") } else { None });
    match bits {
        Some(prefix) => prefix_factor(prefix).map(|factor| factor / 8.0),
        None => unit.strip_suffix("/s").and_then(bytes_factor),
    }
}

fn bytes_factor(unit: &str) -> Option<f64> {
    // "Mb" would be bits to some readers: only a capital B is bytes.
    let prefix = unit.strip_suffix('B')?;
    match prefix.strip_suffix('i') {
        None => prefix_factor(&prefix.to_ascii_lowercase()),
        Some(binary) => match binary.to_ascii_lowercase().as_str() {
            "k" => Some(1024.0),
            "m" => Some(1024.0 * 1024.0),
            "g" => Some(1024.0 * 1024.0 * 1024.0),
            _ => None,
        },
    }
}

fn arrivals_factor(unit: &str) -> Option<f64> {
    match unit {
        "/s" => Some(1.0),
        "/min" => Some(1.0 / 60.0),
        _ => None,
    }
}

fn prefix_factor(prefix: &str) -> Option<f64> {
    Some(match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        _ => return None,
    })
}

/// The largest quantity in base units: exact as a float, and far beyond any scenario.
const LARGEST: f64 = 9e15;
/// The longest time, in seconds: a century.
const LARGEST_SECS: f64 = 3.2e9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_people_write_them() {
        assert_eq!(time("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(time("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        assert_eq!(rate("155mbit").map(Rate::bytes), Ok(19_375_000));
        assert_eq!(rate("1e6bit").map(Rate::bytes), Ok(125_000));
        assert_eq!(rate("8MiB/s").map(Rate::bytes), Ok(8 << 20));
        assert_eq!(size("16KiB"), Ok(16_384));
        assert_eq!(size("1.5GB"), Ok(1_500_000_000));
        assert_eq!(Dimension::Arrivals.parse("30/min"), Ok(0.5));
    }

    #[test]
    fn what_is_no_quantity_gets_a_sentence() {
        for (text, part) in [
            ("20", "has no unit; write a time like"),
            ("-5ms", "is negative"),
            ("5 parsecs", "\"parsecs\" is no unit of a time"),
            ("fast", "is not a time"),
            ("", "is not a time"),
            ("999999999999h", "too large"),
        ] {
            let error = time(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        for text in ["5Mb", "5MB", "0mbit", "-1mbit"] {
            assert!(rate(text).is_err(), "{text}");
        }
        for text in ["5Mb", "5mbit", "5"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
