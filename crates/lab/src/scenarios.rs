//! The scenarios that come with the program: the papers' experiments, in `scenarios/`.

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))),*]
    };
}

/// The name and the text of each, by family, in the order of the papers.
pub const ALL: &[(&str, &str)] = embedded![
    "plt-loss",
    "plt-flows",
    "plt-bdp",
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

/// The text of the scenario of this name.
pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
