//! Where an axis is marked, and with what.

use super::text;

/// A mark on an axis.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Tick {
    /// Where.
    pub(super) at: f64,
    /// What stands beside it; empty for a mark between.
    pub(super) label: String,
}

/// Marks at multiples of 1, 2, 2.5 or 5 times a power of ten within `low..=high`, about `count`.
pub(super) fn linear(low: f64, high: f64, count: usize) -> Vec<Tick> {
    let step = step(low, high, count);
    let first = (low / step - 1e-9).ceil();
    let last = (high / step + 1e-9).floor();
    let decimals = decimals(step);
    let count = (last - first).clamp(0.0, 100.0) as usize;
    (0..=count)
        .map(|index| {
            let at = (first + index as f64) * step;
            Tick { at, label: label(at, step, decimals) }
        })
        .collect()
}

/// The distance between the marks of [`linear`].
pub(super) fn step(low: f64, high: f64, count: usize) -> f64 {
    let raw = (high - low) / count.max(1) as f64;
    let power = 10f64.powi(raw.log10().floor() as i32);
    let factor = [1.0, 2.0, 2.5, 5.0].into_iter().find(|factor| factor * power >= raw * 0.999);
    factor.unwrap_or(10.0) * power
}

/// How many decimals multiples of `step` need.
fn decimals(step: f64) -> usize {
    (0..12)
        .find(|&decimals| {
            let scaled = step * 10f64.powi(decimals);
            (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1e-9)
        })
        .map_or(12, |decimals| decimals as usize)
}

fn label(at: f64, step: f64, decimals: usize) -> String {
    if at.abs() < step * 1e-6 {
        return "0".into();
    }
    for (unit, letter) in [(1e9, "G"), (1e6, "M")] {
        if step >= unit / 10.0 && at.abs() >= unit {
            return format!("{}{letter}", text::decimal(at / unit, self::decimals(step / unit)));
        }
    }
    if step < 1e-4 { text::short(at) } else { text::decimal(at, decimals) }
}

/// Marks of a logarithmic axis: powers of ten, and what lies between while there is space for it.
pub(super) fn log(low: f64, high: f64, count: usize) -> Vec<Tick> {
    let decades = (high / low).log10();
    if decades < 0.7 {
        return linear(low, high, count.min(5));
    }
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let every = (decades / count.max(1) as f64).ceil().max(1.0) as i32;
    let labelled: &[u32] = if decades < 1.5 {
        &[1, 2, 5]
    } else if decades < 2.5 {
        &[1, 3]
    } else {
        &[1]
    };
    let mut ticks = Vec::new();
    for power in first..=last {
        for digit in 1..10u32 {
            let at = f64::from(digit) * 10f64.powi(power);
            if at < low * (1.0 - 1e-9) || at > high * (1.0 + 1e-9) {
                continue;
            }
            let is_labelled = labelled.contains(&digit) && power.rem_euclid(every) == 0;
            if is_labelled {
                ticks.push(Tick { at, label: log_label(at, power, digit) });
            } else if digit == 1 || decades <= 7.0 {
                ticks.push(Tick { at, label: String::new() });
            }
        }
    }
    ticks
}

fn log_label(at: f64, power: i32, digit: u32) -> String {
    match (power, digit) {
        (-3..=4, _) => text::short(at),
        (_, 1) => text::superscript(power),
        _ => format!("{digit}·{}", text::superscript(power)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn linear_ticks_are_round_numbers_within_the_ends() {
        assert_eq!(labels(&linear(0.0, 1.0, 5)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&linear(0.0, 250.0, 5)), ["0", "50", "100", "150", "200", "250"]);
        assert_eq!(labels(&linear(-3.0, 7.0, 4)), ["\u{2212}2.5", "0", "2.5", "5.0"]);
        assert_eq!(labels(&linear(0.0, 4e6, 4)), ["0", "1M", "2M", "3M", "4M"]);
        assert_eq!(labels(&linear(0.0, 12_000.0, 3)), ["0", "5000", "10\u{2009}000"]);
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten_and_more_where_there_are_few() {
        assert_eq!(labels(&log(1e-6, 0.1, 8)), ["10⁻⁶", "10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1"]);
        assert_eq!(labels(&log(1.0, 20.0, 8)), ["1", "2", "5", "10", "20"]);
        assert_eq!(labels(&log(1e-12, 1.0, 5)).len(), 5);
        assert_eq!(labels(&log(100.0, 300.0, 5)), ["100", "150", "200", "250", "300"]);
    }
}
