//! Which congestion control, as scenarios choose it.

use super::fast;

/// A congestion control and its parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Choice {
    /// NewReno (RFC 6582).
    NewReno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// FAST, with or without multiplicative increase.
    Fast(fast::Config),
    /// XCP's sender.
    Xcp,
}

impl Choice {
    /// Its name in scenarios and tables.
    pub fn name(&self) -> &'static str {
        match self {
            Choice::NewReno => "newreno",
            Choice::Cubic => "cubic",
            Choice::Fast(config) if config.increase_below.is_some() => "fast-mi",
            Choice::Fast(_) => "fast",
            Choice::Xcp => "xcp",
        }
    }
}
