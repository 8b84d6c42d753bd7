//! Quantiles of a run's own observations, as scalars.

use super::Outcome;
use crate::stats;

/// Sets `PREFIX_{mean,median,p90,p95,p99}_UNIT`.
pub(super) fn set(outcome: &mut Outcome, prefix: &str, unit: &str, values: &[f64]) {
    outcome.set(format!("{prefix}_mean_{unit}"), stats::mean(values));
    for (name, share) in [("median", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)] {
        outcome.set(format!("{prefix}_{name}_{unit}"), stats::quantile(values, share));
    }
}
