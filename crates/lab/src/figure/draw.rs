//! The layout of a figure: title, legend, plot, axes, note, from top to bottom.

use super::axis::{self, Plot};
use super::scale::{Fit, Scale};
use super::svg::{Anchor, Svg, Voice};
use super::{Axis, Figure, Kind, marks, text};

const WIDTH: f64 = 760.0;
const PLOT_HEIGHT: f64 = 320.0;
const MARGIN: f64 = 20.0;
/// Below the plot: numbers and the axis' name.
const FOOT: f64 = 56.0;
/// The sample of a line in the legend, with the space behind it.
const SAMPLE: f64 = 38.0;
const ROW: f64 = 20.0;

/// Draws a figure.
pub(super) fn figure(figure: &Figure) -> String {
    let mut svg = Svg::new();
    let title = text::cut(&figure.title, (WIDTH - 2.0 * MARGIN) / Voice::Title.size());
    svg.text(MARGIN, 26.0, Anchor::Start, Voice::Title, &title);
    let top = 46.0 + legend(&mut svg, figure, 48.0);
    let bottom = top + PLOT_HEIGHT;
    let y = y_scale(figure, top, bottom);
    let left = 38.0 + axis::width_of_numbers(&y).max(24.0);
    let plot = Plot { left, right: WIDTH - MARGIN, top, bottom };
    axes_and_data(&mut svg, figure, plot, &y);
    let mut height = bottom + FOOT;
    if let Some(note) = note(figure, plot, &y) {
        svg.text(MARGIN, height + 6.0, Anchor::Start, Voice::Small, &note);
        height += ROW;
    }
    svg.finish(WIDTH, height, &figure.title)
}

fn axes_and_data(svg: &mut Svg, figure: &Figure, plot: Plot, y: &Scale) {
    axis::vertical(svg, plot, y, &figure.y.label);
    let clip = clip_name(figure);
    let height = plot.bottom - plot.top;
    // Marks on the edge stay whole.
    let area = [plot.left - 5.0, plot.top - 5.0, plot.right - plot.left + 10.0, height + 10.0];
    if figure.kind == Kind::Bar {
        axis::groups(svg, plot, &group_names(figure), &figure.x.label);
        rules(svg, figure, plot, y);
        marks::bars(svg, figure, plot, y);
    } else {
        let x = x_scale(figure, plot);
        axis::horizontal(svg, plot, &x, &figure.x.label);
        rules(svg, figure, plot, y);
        svg.clip(&clip, area[0], area[1], area[2], area[3]);
        for index in 0..figure.series.len() {
            marks::series(svg, figure, index, &x, y);
        }
        svg.end();
    }
    if !has_data(figure) {
        let (x, y) = (f64::midpoint(plot.left, plot.right), f64::midpoint(plot.top, plot.bottom));
        svg.text(x, y, Anchor::Middle, Voice::Label, "nothing was measured");
    }
}

/// An identifier that is unlikely to meet its like when several drawings share a page.
fn clip_name(figure: &Figure) -> String {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for byte in figure.name.bytes().chain(figure.title.bytes()) {
        sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("ab-clip-{sum:016x}")
}

fn has_data(figure: &Figure) -> bool {
    let mut points = figure.series.iter().flat_map(|series| &series.points);
    points.any(|point| point.x.is_finite() && point.y.is_finite())
}

/// Draws the legend in rows and says how high it is; a single series needs none, and bars that are
/// named below themselves neither.
fn legend(svg: &mut Svg, figure: &Figure, top: f64) -> f64 {
    let is_named_below = figure.kind == Kind::Bar && marks::groups(figure).len() <= 1;
    let is_alone = figure.series.len() == 1 && figure.series[0].label.is_empty();
    if figure.series.is_empty() || is_named_below || is_alone {
        return 0.0;
    }
    let (mut x, mut y) = (MARGIN, top);
    for (index, series) in figure.series.iter().enumerate() {
        let label = text::cut(&series.label, 40.0);
        let width = SAMPLE + text::width(&label) * Voice::Label.size() + 14.0;
        if x > MARGIN && x + width > WIDTH - MARGIN {
            (x, y) = (MARGIN, y + ROW);
        }
        sample(svg, figure.kind, index, x, y);
        svg.text(x + SAMPLE, y + 4.0, Anchor::Start, Voice::Label, &label);
        x += width;
    }
    y - top + ROW
}

fn sample(svg: &mut Svg, kind: Kind, index: usize, x: f64, y: f64) {
    match kind {
        Kind::Bar => svg.bar(index, x + 14.0, y - 6.0, 14.0, 12.0),
        Kind::Scatter => svg.mark(index, x + 21.0, y),
        Kind::Line | Kind::Cdf | Kind::Step => {
            svg.path(index, &[(x + 2.0, y), (x + 32.0, y)]);
            if kind == Kind::Line {
                svg.mark(index, x + 17.0, y);
            }
        }
    }
}

fn y_scale(figure: &Figure, top: f64, bottom: f64) -> Scale {
    let points = figure.series.iter().flat_map(|series| &series.points);
    let mut values: Vec<f64> = points
        .flat_map(|point| {
            let (low, high) = point.spread.unwrap_or((point.y, point.y));
            [point.y, low, high]
        })
        .collect();
    values.extend(figure.rules.iter().map(|rule| rule.y));
    let fit = if figure.kind == Kind::Bar { Fit::FromZero } else { Fit::Padded };
    let whole = Axis { range: figure.y.range.or(Some((0.0, 1.0))), ..figure.y.clone() };
    let axis = if figure.kind == Kind::Cdf && !figure.y.is_log { &whole } else { &figure.y };
    Scale::fit(axis, &values, bottom, top, fit)
}

fn x_scale(figure: &Figure, plot: Plot) -> Scale {
    let points = figure.series.iter().flat_map(|series| &series.points);
    let values: Vec<f64> = points.map(|point| point.x).collect();
    let fit = match figure.kind {
        Kind::Scatter | Kind::Cdf => Fit::Padded,
        Kind::Line | Kind::Step | Kind::Bar => Fit::Tight,
    };
    Scale::fit(&figure.x, &values, plot.left + 8.0, plot.right - 8.0, fit)
}

fn group_names(figure: &Figure) -> Vec<String> {
    match marks::groups(figure).as_slice() {
        [_] => figure.series.iter().map(|series| series.label.clone()).collect(),
        groups => groups.iter().map(|&x| text::short(x)).collect(),
    }
}

/// Lines of reference, named at the right end above the line.
fn rules(svg: &mut Svg, figure: &Figure, plot: Plot, y: &Scale) {
    for rule in figure.rules.iter().filter(|rule| y.holds(rule.y)) {
        let Some(at) = y.place(rule.y) else { continue };
        svg.rule(plot.left, at, plot.right, at);
        svg.text(plot.right - 4.0, at - 4.0, Anchor::End, Voice::Small, &rule.label);
    }
}

/// What is not drawn, so that nobody takes it for not being there.
fn note(figure: &Figure, plot: Plot, y: &Scale) -> Option<String> {
    let x = x_scale(figure, plot);
    let is_bar = figure.kind == Kind::Bar;
    let (mut without, mut beyond) = (0, 0);
    for point in figure.series.iter().flat_map(|series| &series.points) {
        let is_placed = y.place(point.y).is_some() && (is_bar || x.place(point.x).is_some());
        if !is_placed {
            without += 1;
        } else if !(y.holds(point.y) && (is_bar || x.holds(point.x))) {
            beyond += 1;
        }
    }
    let points = |count| if count == 1 { "1 point".to_owned() } else { format!("{count} points") };
    match (without, beyond) {
        (0, 0) => None,
        (_, 0) => Some(format!("Not drawn: {} without a value on these axes.", points(without))),
        (0, _) => Some(format!("Not drawn: {} beyond the axes.", points(beyond))),
        _ => Some(format!(
            "Not drawn: {} without a value, {} beyond the axes.",
            points(without),
            points(beyond)
        )),
    }
}

#[cfg(test)]
mod tests;
