//! From values to places on the drawing.

use super::{Axis, ticks, ticks::Tick};

/// How far beyond the plot's edge, as a share of its length, zeros stand on a logarithmic axis.
const ZERO_SHARE: f64 = 0.07;

/// One axis, fitted to its data and to its place.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    is_log: bool,
    low: f64,
    high: f64,
    /// Where `low` and `high` are drawn.
    from: f64,
    to: f64,
    /// Where zeros are drawn on a logarithmic axis, if there are any.
    zero: Option<f64>,
}

impl Scale {
    /// Fits `axis` to the values that are to be shown, between the coordinates `from` and `to`.
    /// `pads` leaves some space between the outermost values and the ends; `from_zero` starts
    /// linear axes there.
    pub(super) fn fit(axis: &Axis, values: &[f64], from: f64, to: f64, fit: Fit) -> Scale {
        let usable = |value: &f64| value.is_finite() && (!axis.is_log || *value > 0.0);
        let shown: Vec<f64> = values.iter().copied().filter(usable).collect();
        let range = axis.range.filter(|(low, high)| usable(low) && usable(high) && low < high);
        let (low, high) = range.unwrap_or_else(|| ends(axis.is_log, &shown, fit));
        let has_zero = axis.is_log && values.contains(&0.0);
        let zero = has_zero.then_some(from);
        let from = if has_zero { from + (to - from) * ZERO_SHARE } else { from };
        Scale { is_log: axis.is_log, low, high, from, to, zero }
    }

    /// The place of `value`; `None` where it has none on this axis. Values beyond the ends have
    /// places beyond the plot, where they are clipped.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        if !value.is_finite() {
            return None;
        }
        let share = if self.is_log {
            if value == 0.0 && self.zero.is_some() {
                return self.zero;
            }
            if value <= 0.0 {
                return None;
            }
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        // Far outside is outside: renderers dislike huge coordinates.
        Some(self.from + (self.to - self.from) * share.clamp(-2.0, 3.0))
    }

    /// Whether `value` has a place within the plot.
    pub(super) fn holds(&self, value: f64) -> bool {
        let slack = if self.is_log { self.low * 1e-9 } else { (self.high - self.low) * 1e-9 };
        (self.is_log && value == 0.0 && self.zero.is_some())
            || (value >= self.low - slack && value <= self.high + slack)
    }

    /// Where bars begin: at zero, or at the lower end.
    pub(super) fn base(&self) -> f64 {
        let base = if self.is_log { self.low } else { 0f64.clamp(self.low, self.high) };
        self.place(base).unwrap_or(self.from)
    }

    /// The marks; about `count` with a label.
    pub(super) fn ticks(&self, count: usize) -> Vec<(f64, Tick)> {
        let ticks = if self.is_log {
            ticks::log(self.low, self.high, count)
        } else {
            ticks::linear(self.low, self.high, count)
        };
        let zero = self.zero.map(|place| (place, Tick { at: 0.0, label: "0".into() }));
        let placed = ticks.into_iter().filter_map(|tick| Some((self.place(tick.at)?, tick)));
        zero.into_iter().chain(placed).collect()
    }

    /// Where the gap between zero and the rest of a logarithmic axis is, if there is one.
    pub(super) fn gap(&self) -> Option<f64> {
        self.zero.map(|zero| (zero + self.from) / 2.0)
    }
}

/// How the ends are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fit {
    /// At the outermost values.
    Tight,
    /// Some space around them; from zero where they come near it.
    Padded,
    /// From zero in any case.
    FromZero,
}

fn ends(is_log: bool, shown: &[f64], fit: Fit) -> (f64, f64) {
    let low = shown.iter().copied().fold(f64::INFINITY, f64::min);
    let high = shown.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if shown.is_empty() {
        return if is_log { (0.1, 10.0) } else { (0.0, 1.0) };
    }
    if is_log { log_ends(low, high, fit) } else { linear_ends(low, high, fit) }
}

fn log_ends(low: f64, high: f64, fit: Fit) -> (f64, f64) {
    if high / low < 1.5 {
        return (low / 2.0, high * 2.0);
    }
    match fit {
        Fit::Tight => (low, high),
        Fit::Padded | Fit::FromZero => {
            let margin = (high / low).powf(0.05);
            (low / margin, high * margin)
        }
    }
}

fn linear_ends(low: f64, high: f64, fit: Fit) -> (f64, f64) {
    let near_zero = low >= 0.0 && (low < 0.5 * high || fit == Fit::FromZero);
    let above_zero = if fit != Fit::Tight && near_zero { 0.0 } else { low };
    let low = if fit == Fit::FromZero { above_zero.min(0.0) } else { above_zero };
    let high = if fit == Fit::FromZero { high.max(0.0) } else { high };
    if high - low <= 1e-12 * high.abs() {
        let half = if high == 0.0 { 1.0 } else { high.abs() * 0.1 };
        return (high - half, high + half);
    }
    if fit == Fit::Tight {
        return (low, high);
    }
    let margin = (high - low) * 0.06;
    let low = if low == 0.0 { 0.0 } else { low - margin };
    let high = if high == 0.0 { 0.0 } else { high + margin };
    // Out to the next mark where that is near: an axis that ends on a mark reads better.
    let step = ticks::step(low, high, 5);
    let snapped = (high / step - 1e-9).ceil() * step;
    (low, if high != 0.0 && snapped - high < 0.5 * step { snapped } else { high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ends_start_from_zero_when_values_come_near_it() {
        assert_eq!(linear_ends(10.0, 240.0, Fit::Padded), (0.0, 300.0));
        assert_eq!(linear_ends(95.0, 96.0, Fit::FromZero).0, 0.0);
        let (low, high) = linear_ends(95.0, 96.0, Fit::Padded);
        assert!(low > 94.0 && low < 95.0 && high > 96.0 && high < 97.0, "{low} {high}");
        assert_eq!(linear_ends(3.0, 9.0, Fit::Tight), (3.0, 9.0));
        let (low, high) = linear_ends(5.0, 5.0, Fit::Tight);
        assert!(low < 5.0 && high > 5.0);
    }

    #[test]
    fn zeros_have_a_place_of_their_own_on_a_logarithmic_axis() {
        let scale = Scale::fit(&Axis::log(""), &[0.0, 1e-4, 1e-2], 0.0, 100.0, Fit::Tight);
        assert_eq!(scale.place(0.0), Some(0.0));
        assert_eq!(scale.place(1e-4).map(f64::round), Some(7.0));
        assert_eq!(scale.place(1e-2).map(f64::round), Some(100.0));
        assert_eq!(scale.place(-1.0), None);
        assert!(scale.gap().is_some_and(|gap| gap > 0.0 && gap < 7.0));
        let without = Scale::fit(&Axis::log(""), &[1e-4, 1e-2], 0.0, 100.0, Fit::Tight);
        assert_eq!((without.place(0.0), without.gap()), (None, None));
    }

    #[test]
    fn what_has_no_value_has_no_place() {
        let scale = Scale::fit(&Axis::linear(""), &[f64::NAN], 0.0, 10.0, Fit::Padded);
        assert_eq!(scale.place(f64::NAN), None);
        assert_eq!(scale.place(f64::INFINITY), None);
        assert_eq!(scale.place(0.5), Some(5.0));
        let broken = Axis::linear("").within(3.0, 3.0);
        assert!(Scale::fit(&broken, &[1.0, 2.0], 0.0, 10.0, Fit::Tight).place(1.5).is_some());
    }
}
