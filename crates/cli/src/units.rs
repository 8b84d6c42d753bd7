//! Sizes, rates and times on the command line: read as [`anabranch_world::units::text`] reads
//! them, and shown to people.

pub(crate) use anabranch_world::units::text::{rate, seconds, size};
use std::time::Duration;

/// A block size in bytes: a power of two from 16 KiB to 8 MiB.
pub(crate) fn block_size(text: &str) -> Result<u32, String> {
    let bytes = size(text).map_err(|error| error.to_string())?;
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| bytes.is_power_of_two() && (16 << 10..=8 << 20).contains(bytes))
        .ok_or_else(|| format!("{text:?} is not a power of two from 16KiB to 8MiB, such as 1MiB"))
}

/// Bytes for people: `1.5 GB`.
pub(crate) fn show_size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 999.5 {
            return match unit {
                "B" => format!("{bytes} B"),
                _ => format!("{value:.prec$} {unit}", prec = usize::from(value < 99.95)),
            };
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

/// A rate for people: `12.3 MB/s`.
pub(crate) fn show_rate(bytes_per_second: f64) -> String {
    format!("{}/s", show_size(bytes_per_second.max(0.0) as u64))
}

/// A time for people: `3.2 s`, `5 min 12 s`, `2 h 5 min`.
pub(crate) fn show_time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_size_is_a_power_of_two_in_its_range() {
        assert_eq!(block_size("1MiB"), Ok(1 << 20));
        for text in ["1MB", "8KiB", "16MiB", "3MiB", "1"] {
            assert!(block_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn quantities_are_shown_short() {
        assert_eq!(show_size(999), "999 B");
        assert_eq!(show_size(1000), "1.0 kB");
        assert_eq!(show_size(268_435_456), "268 MB");
        assert_eq!(show_size(999_999_999), "1.0 GB");
        assert_eq!(show_rate(12_345_678.0), "12.3 MB/s");
        assert_eq!(show_time(Duration::from_millis(3210)), "3.2 s");
        assert_eq!(show_time(Duration::from_secs(312)), "5 min 12 s");
    }
}
