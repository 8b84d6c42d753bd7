//! Which congestion control, as scenarios choose it.

use super::{CongestionControl, Cubic, NewReno, Start, fast, xcp};
use super::{fast::Fast, xcp::Xcp};

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
    Xcp(xcp::Config),
}

impl Choice {
    /// The names that [`named`](Choice::named) knows.
    pub const NAMES: [&str; 5] = ["newreno", "cubic", "fast", "fast-mi", "xcp"];

    /// By its name, with the default parameters; `None` for a name that is not in
    /// [`NAMES`](Choice::NAMES).
    pub fn named(name: &str) -> Option<Choice> {
        Some(match name {
            "newreno" => Choice::NewReno,
            "cubic" => Choice::Cubic,
            "fast" => Choice::Fast(fast::Config::default()),
            "fast-mi" => Choice::Fast(fast::Config::with_increase()),
            "xcp" => Choice::Xcp(xcp::Config::default()),
            _ => return None,
        })
    }

    /// The control, as it is at the start of a connection.
    pub fn build(&self, start: Start) -> Box<dyn CongestionControl> {
        match *self {
            Choice::NewReno => Box::new(NewReno::new(start)),
            Choice::Cubic => Box::new(Cubic::new(start)),
            Choice::Fast(config) => Box::new(Fast::new(config, start)),
            Choice::Xcp(config) => Box::new(Xcp::new(config, start)),
        }
    }

    /// Its name in scenarios and tables.
    pub fn name(&self) -> &'static str {
        match self {
            Choice::NewReno => "newreno",
            Choice::Cubic => "cubic",
            Choice::Fast(config) if config.increase_below.is_some() => "fast-mi",
            Choice::Fast(_) => "fast",
            Choice::Xcp(_) => "xcp",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_builds_the_control_that_calls_itself_so() {
        for name in Choice::NAMES {
            let choice = Choice::named(name).unwrap();
            assert_eq!((choice.name(), choice.build(Start::default()).name()), (name, name));
        }
        assert_eq!(Choice::named("vegas"), None);
    }
}
