//! `anabranch lab list`.

use super::events::{Entry, LabLine};
use crate::report::{Line, Reporter};
use anabranch_lab::scenario::Variation;
use anabranch_lab::scenarios;

/// Lists the scenarios that come with the program, one line each.
pub(super) fn list(reporter: Reporter) {
    let variation = Variation::default();
    let entries: Vec<Entry> = scenarios::ALL
        .iter()
        .filter_map(|(name, _)| scenarios::read(name, &variation)?.ok())
        .map(|scenario| Entry { name: scenario.name, title: scenario.title })
        .collect();
    let width = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    for entry in &entries {
        reporter.print(&format!("{:width$}  {}", entry.name, entry.title));
    }
    reporter.emit(&Line::Lab(LabLine::List { scenarios: entries }));
}
