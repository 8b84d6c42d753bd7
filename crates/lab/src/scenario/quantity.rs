//! Times, rates and sizes as scenarios write them: `"20ms"`, `"155mbit"`, `"16KiB"`.

use anabranch_proto::time::Duration;
use anabranch_world::units::Rate;
use anabranch_world::units::text::{self, UnitError};

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

    /// The quantity in the base unit: seconds, bytes per second, bytes, arrivals per second.
    pub(crate) fn parse(self, words: &str) -> Result<f64, String> {
        let (what, example) = self.like();
        if words.trim_start().starts_with('-') {
            return Err(format!("{words:?} is negative; {what} is not, write it like {example}"));
        }
        let tell = |error: UnitError| error.to_string();
        match self {
            Dimension::Time => text::time(words).map(|time| time.as_secs_f64()).map_err(tell),
            Dimension::Size => text::size(words).map(|bytes| bytes as f64).map_err(tell),
            Dimension::Rate if is_no_rate(words) => Ok(0.0),
            Dimension::Rate => text::rate(words).map(|bytes| bytes as f64).map_err(tell),
            Dimension::Arrivals => arrivals(words)
                .ok_or_else(|| format!("{words:?} is not {what}; write it like {example}")),
        }
    }
}

/// A time, at most a century.
pub(crate) fn time(words: &str) -> Result<Duration, String> {
    let secs = Dimension::Time.parse(words)?;
    if secs > TIME_MAX_SECS {
        return Err(format!("{words:?} is too large"));
    }
    Ok(Duration::from_nanos((secs * 1e9).round() as u64))
}

/// A rate above zero.
pub(crate) fn rate(words: &str) -> Result<Rate, String> {
    match Dimension::Rate.parse(words)? {
        0.0 => Err(format!("{words:?} carries nothing; write a rate above zero")),
        bytes => Ok(Rate::bytes_per_sec(bytes as u64)),
    }
}

/// A size in bytes.
pub(crate) fn size(words: &str) -> Result<u64, String> {
    Dimension::Size.parse(words).map(|bytes| bytes as u64)
}

const TIME_MAX_SECS: f64 = 3.2e9;

/// Whether a rate is zero: a source that is silent, or cross traffic that is not there.
fn is_no_rate(words: &str) -> bool {
    // One of the unit is a rate, so it is one.
    split(words).is_some_and(|(number, unit)| {
        number == 0.0 && (unit.is_empty() || text::rate(&format!("1{unit}")).is_ok())
    })
}

fn arrivals(words: &str) -> Option<f64> {
    let (number, unit) = split(words)?;
    let factor = match unit {
        "/s" => 1.0,
        "/min" => 1.0 / 60.0,
        "" if number == 0.0 => 1.0,
        _ => return None,
    };
    Some(number * factor).filter(|rate| *rate < ARRIVALS_MAX)
}

/// The number at the beginning and the unit behind it.
pub(crate) fn split(words: &str) -> Option<(f64, &str)> {
    let words = words.trim();
    let end = words.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(words.len());
    let (number, unit) = words.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

/// Far more arrivals per second than a machine can simulate.
const ARRIVALS_MAX: f64 = 1e9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_people_write_them() {
        assert_eq!(time("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(time("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        assert_eq!(rate("155mbit").map(Rate::bytes), Ok(19_375_000));
        assert_eq!(Dimension::Rate.parse("0mbit"), Ok(0.0));
        assert_eq!(rate("8MiB/s").map(Rate::bytes), Ok(8 << 20));
        assert_eq!(size("16KiB"), Ok(16_384));
        assert_eq!(size("1.5GB"), Ok(1_500_000_000));
        assert_eq!(Dimension::Arrivals.parse("30/min"), Ok(0.5));
    }

    #[test]
    fn what_is_no_quantity_gets_a_sentence() {
        for (text, part) in [
            ("20", "has no unit; write it like"),
            ("-5ms", "is negative"),
            ("5 parsecs", "has a unit that is not known"),
            ("fast", "does not begin with a number"),
            ("", "does not begin with a number"),
            ("9999999h", "too large"),
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
