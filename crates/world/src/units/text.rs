//! Sizes, rates and times as people write them: `64MiB`, `155mbit`, `20ms`.
//!
//! A number without a unit is refused, because nobody can tell which one was meant; zero needs
//! none. Letters may be small or capital, except where that changes the meaning (`Mb`).

use anabranch_proto::time::Duration;
use thiserror::Error;

/// Why a text is not a quantity; the sentence names what would be one.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum UnitError {
    /// No number at its beginning.
    #[error("{0:?} does not begin with a number; write it like {1}")]
    Number(String, &'static str),
    /// No unit.
    #[error("{0:?} has no unit; write it like {1}")]
    Bare(String, &'static str),
    /// A unit of something else, or none that is known.
    #[error("{0:?} has a unit that is not known or not clear here; write it like {1}")]
    Unit(String, &'static str),
    /// Beyond what fits.
    #[error("{0:?} is too large")]
    TooLarge(String),
}

const SIZE_LIKE: &str = "64MiB, 1.5GB or 512B";
const RATE_LIKE: &str = "155mbit, 20MB/s or 8MiB/s";
const TIME_LIKE: &str = "20ms, 30s or 10min";

/// A size in bytes.
pub fn size(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text, SIZE_LIKE)?;
    let factor = bytes_factor(unit).ok_or_else(|| wrong_unit(text, unit, SIZE_LIKE));
    scale(text, number, if number == 0.0 && unit.is_empty() { 1.0 } else { factor? })
}

/// A rate in bytes per second. Bits are written `kbit`, `mbit`, `gbit` (or `Mbps`, `mbit/s`),
/// bytes with a `/s`.
pub fn rate(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text, RATE_LIKE)?;
    let factor = rate_factor(unit).ok_or_else(|| wrong_unit(text, unit, RATE_LIKE))?;
    match scale(text, number, factor)? {
        // A limit of nothing would stop the transfer without a word.
        0 => Err(UnitError::Number(text.to_owned(), RATE_LIKE)),
        bytes => Ok(bytes),
    }
}

/// A time.
pub fn time(text: &str) -> Result<Duration, UnitError> {
    time_or_seconds(text, false)
}

/// A time for an option that says that it counts seconds: the one place for a bare number.
pub fn seconds(text: &str) -> Result<Duration, UnitError> {
    time_or_seconds(text, true)
}

fn time_or_seconds(text: &str, is_bare_allowed: bool) -> Result<Duration, UnitError> {
    let (number, unit) = split(text, TIME_LIKE)?;
    let seconds = match unit.to_ascii_lowercase().as_str() {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" | "sec" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        "" if is_bare_allowed || number == 0.0 => 1.0,
        _ => return Err(wrong_unit(text, unit, TIME_LIKE)),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| UnitError::TooLarge(text.to_owned()))
}

/// The number at the beginning and the unit after it.
fn split<'a>(text: &'a str, like: &'static str) -> Result<(f64, &'a str), UnitError> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.parse().map_err(|_| UnitError::Number(text.to_owned(), like))?;
    Ok((number, unit.trim()))
}

fn wrong_unit(text: &str, unit: &str, like: &'static str) -> UnitError {
    match unit.is_empty() {
        true => UnitError::Bare(text.to_owned(), like),
        false => UnitError::Unit(text.to_owned(), like),
    }
}

fn scale(text: &str, number: f64, factor: f64) -> Result<u64, UnitError> {
    let value = (number * factor).round();
    // 2^63 is far beyond any disk and exact as a float.
    if value >= 9.2e18 { Err(UnitError::TooLarge(text.to_owned())) } else { Ok(value as u64) }
}

fn bytes_factor(unit: &str) -> Option<f64> {
    // "Mb" would be bits to some readers: only a capital B is bytes, unless "ib" says so.
    let is_bytes = unit.ends_with('B') || unit.to_ascii_lowercase().ends_with("ib");
    let lower = unit.to_ascii_lowercase();
    let power: u32 = match lower.trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    let base: u64 = if lower.ends_with("ib") { 1024 } else { 1000 };
    (is_bytes && lower != "ib").then(|| base.pow(power) as f64)
}

fn rate_factor(unit: &str) -> Option<f64> {
    let lower = unit.to_ascii_lowercase();
    let per_second = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("/S"));
    let bits = lower
        .strip_suffix("bit/s")
        .or_else(|| lower.strip_suffix("bit"))
        .or_else(|| if unit.ends_with("bps") { lower.strip_suffix("bps") } else { None });
    if let Some(prefix) = bits {
        let factor = match prefix {
            "" => 1.0,
            "k" => 1e3,
            "m" => 1e6,
            "g" => 1e9,
            "t" => 1e12,
            _ => return None,
        };
        return Some(factor / 8.0);
    }
    per_second.and_then(bytes_factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("64MiB", 64 << 20),
            ("64 mib", 64 << 20),
            ("1.5GB", 1_500_000_000),
            ("20 kB", 20_000),
            ("1TiB", 1 << 40),
            ("7B", 7),
            ("0", 0),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_refused_where_the_unit_matters() {
        assert!(matches!(size("64"), Err(UnitError::Bare(..))));
        assert!(matches!(rate("100"), Err(UnitError::Bare(..))));
        assert!(matches!(time("20"), Err(UnitError::Bare(..))));
        assert_eq!(seconds("20"), Ok(Duration::from_secs(20)));
        assert!(size("64").unwrap_err().to_string().contains("has no unit; write it like 64MiB"));
    }

    #[test]
    fn a_unit_that_could_mean_bits_or_bytes_is_refused() {
        for text in ["5Mb", "5mb", "5M", "5Mbit"] {
            assert!(matches!(size(text), Err(UnitError::Unit(..))), "{text}");
        }
        for text in ["5MB", "5Mb", "5mb/s", "5MBps", "5M"] {
            assert!(matches!(rate(text), Err(UnitError::Unit(..))), "{text}");
        }
    }

    #[test]
    fn rates_are_bits_by_name_and_bytes_per_second() {
        for (text, bytes) in [
            ("155mbit", 19_375_000),
            ("155 Mbit/s", 19_375_000),
            ("8kbit", 1000),
            ("10Gbps", 1_250_000_000),
            ("20MB/s", 20_000_000),
            ("8MiB/s", 8 << 20),
            ("1 B/s", 1),
        ] {
            assert_eq!(rate(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, milliseconds) in [("20ms", 20), ("1.5 s", 1500), ("2min", 120_000), ("0", 0)] {
            assert_eq!(time(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        assert_eq!(time("1h"), Ok(Duration::from_secs(3600)));
    }

    #[test]
    fn what_is_no_quantity_gets_a_sentence_and_never_a_panic() {
        for text in ["", "MiB", "-5MB", "1e9B", "1..2MB", "∞s", ".", "1.2.3 s", "ibB", "5ib"] {
            assert!(size(text).is_err() && rate(text).is_err() && time(text).is_err(), "{text}");
        }
        assert!(matches!(size("99999999999999TB"), Err(UnitError::TooLarge(_))));
        assert!(matches!(time("99999999999999999999h"), Err(UnitError::TooLarge(_))));
        assert!(rate("0mbit").is_err());
    }
}
