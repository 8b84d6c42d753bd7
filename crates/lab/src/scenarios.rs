//! The scenarios that come with the program, so that the one binary works anywhere: small ones to
//! begin with, then the papers' experiments by family.

use crate::scenario::{Scenario, ScenarioError, Variation, nearest};

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))),*]
    };
}

/// Names and texts, in the order in which they are listed.
pub const ALL: &[(&str, &str)] = embedded![
    "dumbbell-tcp",
    "fast-vs-xcp",
    "mice",
    "parking-lot",
    "file-star",
    "file-mesh",
    "plt-loss",
    "plt-flows",
    "plt-bdp",
    "plt-fairness",
    "plt-mice",
    "plt-friendly",
    "plt-hcm",
    "plt-rwnd",
    "plt-shutdown",
    "bp-static",
    "bp-dynamic",
    "bp-requests",
    "bp-peers-lossy",
    "bp-peers-constrained",
    "bp-outstanding-clean",
    "bp-outstanding-lossy",
    "bp-last-block",
    "bp-scale",
    "bp-scale-crowd",
    "bp-scale-churn",
];

/// The text of the scenario called `name`.
pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// `; did you mean …?` for a name that none of them has.
pub fn suggest(name: &str) -> String {
    nearest::suggest(name, ALL.iter().map(|(known, _)| *known))
}

/// The scenario called `name`, if one of this name comes with the program.
///
/// # Errors
///
/// What is wrong with it: a test excludes that, but for the variation.
pub fn read(name: &str, variation: &Variation) -> Option<Result<Scenario, ScenarioError>> {
    let text = text(name)?;
    let load = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    Some(Scenario::parse(name, &format!("{name}.toml"), text, &load, variation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn every_scenario_that_comes_with_the_program_can_be_planned_in_both_sizes() {
        for (name, _) in ALL {
            for is_quick in [false, true] {
                let variation = Variation { is_quick, ..Variation::default() };
                let scenario = read(name, &variation).unwrap().unwrap_or_else(|e| panic!("{e}"));
                let plan = Plan::new(scenario, None, "test").unwrap_or_else(|e| panic!("{e}"));
                assert!(!plan.runs.is_empty(), "{name}");
            }
        }
    }

    #[test]
    fn every_file_in_scenarios_comes_with_the_program() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let name = path.file_stem().unwrap().to_str().unwrap();
                assert!(text(name).is_some(), "{name}");
            }
        }
    }
}
