//! Axes: grid, ticks, names.

use super::scale::Scale;
use super::svg::{Anchor, Svg, Voice};
use super::text;

/// The rectangle in which data are drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// How many labels fit on the horizontal axis of this length.
pub(super) const fn labels_across(length: f64) -> usize {
    (length / 80.0) as usize
}

/// How many labels a vertical axis takes.
pub(super) const LABELS_UP: usize = 6;

/// The vertical axis: grid lines, numbers, name.
pub(super) fn vertical(svg: &mut Svg, plot: Plot, scale: &Scale, label: &str) {
    for (y, tick) in scale.ticks(LABELS_UP) {
        if tick.label.is_empty() {
            svg.frame(plot.left - 3.0, y, plot.left, y);
            continue;
        }
        svg.grid(plot.left, y, plot.right, y);
        svg.text(plot.left - 8.0, y + 4.0, Anchor::End, Voice::Small, &tick.label);
    }
    svg.frame(plot.left, plot.top, plot.left, plot.bottom);
    if let Some(gap) = scale.gap() {
        svg.frame(plot.left - 4.0, gap + 4.0, plot.left + 4.0, gap);
        svg.frame(plot.left - 4.0, gap, plot.left + 4.0, gap - 4.0);
    }
    svg.text_upwards(16.0, f64::midpoint(plot.top, plot.bottom), Voice::Label, label);
}

/// How much space the numbers of a vertical axis need.
pub(super) fn width_of_numbers(scale: &Scale) -> f64 {
    let ticks = scale.ticks(LABELS_UP);
    ticks.iter().map(|(_, tick)| text::width(&tick.label)).fold(0.0, f64::max) * Voice::Small.size()
}

/// The horizontal axis: grid lines, numbers, name.
pub(super) fn horizontal(svg: &mut Svg, plot: Plot, scale: &Scale, label: &str) {
    for (x, tick) in scale.ticks(labels_across(plot.right - plot.left)) {
        let is_named = !tick.label.is_empty();
        if is_named {
            svg.grid(x, plot.top, x, plot.bottom);
            svg.text(x, plot.bottom + 18.0, Anchor::Middle, Voice::Small, &tick.label);
        }
        svg.frame(x, plot.bottom, x, plot.bottom + if is_named { 5.0 } else { 3.0 });
    }
    baseline(svg, plot, label);
    if let Some(gap) = scale.gap() {
        svg.frame(gap - 4.0, plot.bottom + 4.0, gap, plot.bottom - 4.0);
        svg.frame(gap, plot.bottom + 4.0, gap + 4.0, plot.bottom - 4.0);
    }
}

/// The horizontal axis of bars: a name below each group.
pub(super) fn groups(svg: &mut Svg, plot: Plot, names: &[String], label: &str) {
    let width = (plot.right - plot.left) / names.len().max(1) as f64;
    let limit = (width - 6.0) / Voice::Small.size();
    for (index, name) in names.iter().enumerate() {
        let x = plot.left + width * (index as f64 + 0.5);
        let name = text::cut(name, limit);
        svg.text(x, plot.bottom + 18.0, Anchor::Middle, Voice::Small, &name);
    }
    baseline(svg, plot, label);
}

fn baseline(svg: &mut Svg, plot: Plot, label: &str) {
    svg.frame(plot.left, plot.bottom, plot.right, plot.bottom);
    let middle = f64::midpoint(plot.left, plot.right);
    svg.text(middle, plot.bottom + 40.0, Anchor::Middle, Voice::Label, label);
}
