//! Series: lines, steps, marks, bars, error bars.

use super::axis::Plot;
use super::scale::Scale;
use super::svg::{Anchor, Svg, Voice};
use super::{Figure, Kind, Point, text};

/// Above this many points a line has no marks: they would be one blot.
const MARKS_MAX: usize = 60;

/// Draws the series numbered `index`.
pub(super) fn series(svg: &mut Svg, figure: &Figure, index: usize, x: &Scale, y: &Scale) {
    let points = &figure.series[index].points;
    let place = |point: &Point| Some((x.place(point.x)?, y.place(point.y)?));
    if figure.kind != Kind::Scatter {
        for run in runs(points, place) {
            svg.path(
                index,
                &match figure.kind {
                    Kind::Cdf => cumulative(&run, y.base()),
                    Kind::Step => steps(&run),
                    Kind::Line | Kind::Scatter | Kind::Bar => run,
                },
            );
        }
    }
    for point in points {
        let Some((at, _)) = place(point) else { continue };
        whisker(svg, index, at, point, y);
    }
    let has_marks = match figure.kind {
        Kind::Line => points.len() <= MARKS_MAX,
        Kind::Scatter => true,
        Kind::Cdf | Kind::Step | Kind::Bar => false,
    };
    for (at, up) in points.iter().filter_map(place).filter(|_| has_marks) {
        svg.mark(index, at, up);
    }
}

/// The places of points that follow one another without a gap.
fn runs(points: &[Point], place: impl Fn(&Point) -> Option<(f64, f64)>) -> Vec<Vec<(f64, f64)>> {
    let mut runs = vec![Vec::new()];
    for point in points {
        match (place(point), runs.last_mut()) {
            (Some(at), Some(run)) => run.push(at),
            _ => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// A value that holds until the next one.
fn steps(run: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = Vec::with_capacity(2 * run.len());
    for &(x, y) in run {
        if let Some(&(_, before)) = line.last() {
            line.push((x, before));
        }
        line.push((x, y));
    }
    line
}

/// A distribution: steps that begin at nothing.
fn cumulative(run: &[(f64, f64)], base: f64) -> Vec<(f64, f64)> {
    let begin = run.first().map(|&(x, _)| (x, base));
    steps(&begin.into_iter().chain(run.iter().copied()).collect::<Vec<_>>())
}

fn whisker(svg: &mut Svg, index: usize, at: f64, point: &Point, y: &Scale) {
    let Some((low, high)) = point.spread else { return };
    let (Some(low), Some(high)) = (y.place(low), y.place(high)) else { return };
    svg.whisker(index, at, low, at, high);
    svg.whisker(index, at - 4.0, low, at + 4.0, low);
    svg.whisker(index, at - 4.0, high, at + 4.0, high);
}

/// The x values of bars, each once, in ascending order.
pub(super) fn groups(figure: &Figure) -> Vec<f64> {
    let points = figure.series.iter().flat_map(|series| &series.points);
    let mut groups: Vec<f64> = points.map(|point| point.x).filter(|x| x.is_finite()).collect();
    groups.sort_by(f64::total_cmp);
    groups.dedup();
    groups
}

/// Draws all bars: a group per x, a bar per series in it. A single group has a name per bar.
pub(super) fn bars(svg: &mut Svg, figure: &Figure, plot: Plot, y: &Scale) {
    let groups = groups(figure);
    let wide = (plot.right - plot.left) / groups.len().max(1) as f64;
    let slot = wide * if groups.len() == 1 { 1.0 } else { 0.8 } / figure.series.len().max(1) as f64;
    let bar = (slot * if groups.len() == 1 { 0.6 } else { 0.9 }).min(64.0);
    for (index, series) in figure.series.iter().enumerate() {
        for point in &series.points {
            let Some(group) = groups.iter().position(|&x| x == point.x) else { continue };
            let Some(top) = y.place(point.y) else { continue };
            let first =
                plot.left + wide * (group as f64 + 0.5) - slot * figure.series.len() as f64 / 2.0;
            let middle = first + slot * (index as f64 + 0.5);
            let base = y.base();
            svg.bar(index, middle - bar / 2.0, top.min(base), bar, (base - top).abs());
            let ends = point.spread.map(|(low, high)| (y.place(low), y.place(high)));
            whisker(svg, index, middle, point, y);
            let shown = text::short(point.y);
            if text::width(&shown) * Voice::Small.size() <= slot {
                let above = ends.and_then(|(_, high)| high).unwrap_or(top).min(top);
                svg.text(middle, above - 5.0, Anchor::Middle, Voice::Small, &shown);
            }
        }
    }
}
