//! `anabranch lab list`.

use super::events::{Entry, LabLine};
use crate::report::{Line, Reporter};
use anabranch_lab::claims::library;
use anabranch_lab::scenario::Variation;
use anabranch_lab::scenarios;

/// Lists the scenarios and claims that come with the program, one line each.
pub(super) fn list(reporter: Reporter) {
    let variation = Variation::default();
    let scenarios: Vec<Entry> = scenarios::ALL
        .iter()
        .filter_map(|(name, _)| scenarios::read(name, &variation)?.ok())
        .map(|scenario| Entry { name: scenario.name, title: scenario.title })
        .collect();
    // What comes with the program is right: a test says so.
    let claims = library::all().unwrap_or_default().into_iter();
    let claims: Vec<Entry> =
        claims.map(|claim| Entry { name: claim.id, title: claim.title }).collect();
    let all = || scenarios.iter().chain(&claims);
    let width = all().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    for (what, entries) in [("scenario", &scenarios), ("claim", &claims)] {
        for entry in entries {
            reporter.print(&format!("{what:8}  {:width$}  {}", entry.name, entry.title));
        }
    }
    reporter.emit(&Line::Lab(LabLine::List { scenarios, claims }));
}
