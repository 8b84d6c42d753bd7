//! Plots, as data: what is drawn, not how. [`Figure::to_svg`] draws it.
//!
//! A drawing is one self-contained SVG: no script, no font, nothing fetched. It reads on light and
//! on dark pages, and without colour: series differ in mark and dash pattern too. The legend stands
//! above the plot and never covers data. What cannot be drawn (no value, zero on a logarithmic
//! axis) is either given a place of its own or counted in a note below; it never vanishes.

mod axis;
mod draw;
mod marks;
mod scale;
mod svg;
mod text;
mod ticks;

pub(crate) use text::{escape, short};

/// A plot.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its name, which is its file's name too.
    pub name: String,
    /// What a reader sees above it.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// How points become marks.
    pub kind: Kind,
    /// What is drawn, in the order of the legend.
    pub series: Vec<Series>,
    /// Values to compare with, drawn as thin lines across: a bound, or what a paper reports.
    pub rules: Vec<Rule>,
}

impl Figure {
    /// A figure without series.
    pub fn new(name: &str, title: &str, kind: Kind, x: Axis, y: Axis) -> Figure {
        let (name, title) = (name.to_owned(), title.to_owned());
        Figure { name, title, x, y, kind, series: Vec::new(), rules: Vec::new() }
    }

    /// The drawing, a complete SVG document; the same figure gives the same bytes.
    pub fn to_svg(&self) -> String {
        draw::figure(self)
    }
}

/// An axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// What it measures, with the unit.
    pub label: String,
    /// Whether it is logarithmic. Zeros are then drawn at a place of their own, beyond a gap.
    pub is_log: bool,
    /// Its ends, where the data should not choose them.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// A linear axis whose ends the data choose.
    pub fn linear(label: &str) -> Axis {
        Axis { label: label.to_owned(), is_log: false, range: None }
    }

    /// A logarithmic axis whose ends the data choose.
    pub fn log(label: &str) -> Axis {
        Axis { is_log: true, ..Axis::linear(label) }
    }

    /// The same axis from `low` to `high`.
    pub fn within(self, low: f64, high: f64) -> Axis {
        Axis { range: Some((low, high)), ..self }
    }
}

/// How points become marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Points joined by lines, with marks.
    Line,
    /// A cumulative distribution: steps.
    Cdf,
    /// A value over time that holds until the next.
    Step,
    /// Marks only.
    Scatter,
    /// One bar per point: grouped by x; where all share one x, each is named by its series.
    Bar,
}

/// One line of a plot.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// Its points, in the order in which they are joined.
    pub points: Vec<Point>,
}

impl Series {
    /// A series of points without spread.
    pub fn new(label: &str, points: &[(f64, f64)]) -> Series {
        let points = points.iter().map(|&(x, y)| Point { x, y, spread: None }).collect();
        Series { label: label.to_owned(), points }
    }
}

/// A point, perhaps with the range it was found in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// How much.
    pub y: f64,
    /// Lower and upper end of an error bar.
    pub spread: Option<(f64, f64)>,
}

/// A value to compare with.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// What it is, written beside it.
    pub label: String,
    /// At which y.
    pub y: f64,
}
