//! The page a person reads first: one HTML file without anything outside it.
//!
//! From top to bottom: the title, what was found, what was run, the verdicts, then a section per
//! subject with its numbers, figures and folded tables, and at last the commands that make it again.
//! It needs no script; a table's CSV is inside the page too, as a link.

mod html;
mod page;

use crate::figure::Figure;
use crate::table::Table;

/// A page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// What a reader sees first.
    pub title: String,
    /// What it is about and what was found; one string per paragraph.
    pub lead: Vec<String>,
    /// What was run: the command, the version, the seeds, each with its name.
    pub facts: Vec<(String, String)>,
    /// What holds and what does not.
    pub verdicts: Vec<VerdictRow>,
    /// The subjects.
    pub sections: Vec<Section>,
    /// The commands that make this page again.
    pub commands: Vec<String>,
}

impl Report {
    /// The page; the same report gives the same bytes.
    pub fn to_html(&self) -> String {
        page::page(self)
    }
}

/// One subject.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Section {
    /// Its name within the page, to link to.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What a reader must know of it; one string per paragraph.
    pub prose: Vec<String>,
    /// Its verdicts.
    pub verdicts: Vec<VerdictRow>,
    /// Its key numbers.
    pub numbers: Option<Table>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// What lies behind them, folded.
    pub tables: Vec<Table>,
}

/// A line of verdicts.
#[derive(Clone, PartialEq, Debug)]
pub struct VerdictRow {
    /// What the verdict is about; with `section` it links there.
    pub what: String,
    /// The section that tells more.
    pub section: Option<String>,
    /// What the paper reports.
    pub paper: String,
    /// What was measured.
    pub measured: String,
    /// How it ended, for the eye.
    pub tone: Tone,
    /// How it ended, in words.
    pub verdict: String,
}

/// How a verdict looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// It is as it should be.
    Good,
    /// It is not.
    Bad,
    /// It could not be judged in full.
    Open,
}
