//! Plots, as data: what is drawn, not how.

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
}

/// An axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// What it measures, with the unit.
    pub label: String,
    /// Whether it is logarithmic.
    pub is_log: bool,
    /// Its ends, where the data should not choose them.
    pub range: Option<(f64, f64)>,
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
    /// One bar per point.
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
