//! Statistics of small samples: what a report may say about a handful of runs.
//!
//! Definitions, since programs differ in them:
//! - a *quantile* interpolates linearly between order statistics (Hyndman & Fan, definition 7: what R
//!   and NumPy do by default); the median is the quantile at 0.5;
//! - the *mean's interval* is Student's: mean ± t(0.975, n−1)·s/√n;
//! - the *bootstrap interval* takes the 2.5% and 97.5% quantiles of the statistic over resamples,
//!   drawn from a fixed seed, so that a report is the same when it is made again;
//! - *Jain's index* is (Σx)²/(n·Σx²): 1 when all are equal, 1/n when one has everything.
//!
//! Values that are not finite are no observations: every function leaves them out. What nothing was
//! observed of is `None`.

use anabranch_proto::random;

/// The finite values, in ascending order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    finite.sort_by(f64::total_cmp);
    finite
}

/// The arithmetic mean.
pub fn mean(values: &[f64]) -> Option<f64> {
    let finite = sorted(values);
    if finite.is_empty() {
        return None;
    }
    Some(finite.iter().sum::<f64>() / finite.len() as f64)
}

/// The quantile at `share`, which is clamped to 0..=1.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    quantile_of_sorted(&sorted(values), share)
}

/// The median.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

fn quantile_of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = (place.floor() as usize).min(last);
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64))
}

/// The sample's standard deviation (with n−1); `None` below two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let finite = sorted(values);
    if finite.len() < 2 {
        return None;
    }
    let mean = mean(&finite)?;
    let squares: f64 = finite.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((squares / (finite.len() - 1) as f64).sqrt())
}

/// The 95% interval of the mean; `None` below two values.
pub fn mean_interval(values: &[f64]) -> Option<(f64, f64)> {
    let finite = sorted(values);
    let half = student_975(finite.len().checked_sub(1)?) * deviation(&finite)?
        / (finite.len() as f64).sqrt();
    let mean = mean(&finite)?;
    Some((mean - half, mean + half))
}

/// The 97.5% quantile of Student's t with `freedom` degrees; between the table's rows it is
/// interpolated in 1/freedom, which is exact to three digits.
fn student_975(freedom: usize) -> f64 {
    const FIRST: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    const NORMAL: f64 = 1.95996;
    match freedom {
        0 => f64::INFINITY,
        1..=30 => FIRST[freedom - 1],
        _ => NORMAL + (FIRST[29] - NORMAL) * 30.0 / freedom as f64,
    }
}

/// The 95% bootstrap interval of `statistic`, from 1,000 resamples; `None` below two values.
pub fn bootstrap_interval(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> Option<f64>,
) -> Option<(f64, f64)> {
    const RESAMPLES: usize = 1_000;
    let finite = sorted(values);
    if finite.len() < 2 {
        return None;
    }
    let mut rng = random::stream(0, "bootstrap", "resample");
    let mut resample = finite.clone();
    let mut found = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for value in &mut resample {
            *value = finite[random::below(&mut rng, finite.len())];
        }
        found.extend(statistic(&resample));
    }
    Some((quantile(&found, 0.025)?, quantile(&found, 0.975)?))
}

/// Jain's fairness index; `None` of nothing, or when all are zero.
pub fn jain(values: &[f64]) -> Option<f64> {
    let finite = sorted(values);
    let sum: f64 = finite.iter().sum();
    let squares: f64 = finite.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| sum * sum / (finite.len() as f64 * squares))
}

/// The empirical distribution: each distinct value with the share of values that are at most it.
pub fn cdf(values: &[f64]) -> Vec<(f64, f64)> {
    cdf_of(values, values.len())
}

/// As [`cdf`], with shares of `total` instead: who has no value yet (a receiver that never
/// finished) counts as beyond all others.
pub fn cdf_of(values: &[f64], total: usize) -> Vec<(f64, f64)> {
    let finite = sorted(values);
    let total = total.max(finite.len()) as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (index, &value) in finite.iter().enumerate() {
        let share = (index + 1) as f64 / total;
        match points.last_mut() {
            Some(last) if last.0 == value => last.1 = share,
            _ => points.push((value, share)),
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, expected: f64) {
        assert!((found.unwrap() - expected).abs() < 1e-9, "{found:?} is not {expected}");
    }

    #[test]
    fn quantiles_interpolate_between_order_statistics() {
        let values = [40.0, 10.0, 20.0, 30.0];
        near(median(&values), 25.0);
        near(quantile(&values, 0.0), 10.0);
        near(quantile(&values, 0.9), 37.0);
        near(quantile(&values, 2.0), 40.0);
        near(quantile(&[7.0], 0.3), 7.0);
    }

    #[test]
    fn nothing_observed_has_no_statistic_and_not_finite_is_nothing_observed() {
        for values in [&[][..], &[f64::NAN, f64::INFINITY]] {
            assert_eq!((mean(values), median(values), jain(values)), (None, None, None));
            assert!(cdf(values).is_empty());
        }
        near(mean(&[1.0, f64::NAN, 3.0]), 2.0);
        assert_eq!(mean_interval(&[1.0]), None);
        assert_eq!(bootstrap_interval(&[1.0], mean), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn the_means_interval_is_students() {
        // Mean 3, s = 1.5811, t(4) = 2.776: 3 ± 1.963.
        let (low, high) = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((low - 1.037).abs() < 1e-3 && (high - 4.963).abs() < 1e-3, "{low} {high}");
        assert!((student_975(60) - 2.000).abs() < 2e-3 && (student_975(120) - 1.980).abs() < 2e-3);
    }

    #[test]
    fn the_bootstrap_agrees_with_student_on_many_values_and_repeats_itself() {
        let mut rng = random::stream(1, "test", "values");
        let draw = |_| (0..12).map(|_| random::below(&mut rng, 1000) as f64).sum::<f64>();
        let values: Vec<f64> = (0..200).map(draw).collect();
        let (low, high) = bootstrap_interval(&values, mean).unwrap();
        let (t_low, t_high) = mean_interval(&values).unwrap();
        let width = t_high - t_low;
        assert!((low - t_low).abs() < 0.1 * width && (high - t_high).abs() < 0.1 * width);
        assert_eq!(bootstrap_interval(&values, mean), Some((low, high)));
    }

    #[test]
    fn jains_index_is_one_for_equals_and_a_share_when_one_has_all() {
        near(jain(&[5.0; 8]), 1.0);
        near(jain(&[3.0, 0.0, 0.0, 0.0]), 0.25);
        near(jain(&[1.0, 2.0, 3.0]), 36.0 / 42.0);
    }

    #[test]
    fn a_distribution_counts_who_never_finished() {
        assert_eq!(cdf(&[2.0, 1.0, 2.0, 4.0]), [(1.0, 0.25), (2.0, 0.75), (4.0, 1.0)]);
        assert_eq!(cdf_of(&[1.0, 2.0], 4), [(1.0, 0.25), (2.0, 0.5)]);
    }
}
