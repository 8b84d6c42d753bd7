//! The elements a drawing is made of, and how they look.
//!
//! Colours are attributes, for viewers that know no style sheets, and classes, so that a dark page
//! gets lighter ones. The palette is Okabe and Ito's, which keeps apart for the colour-blind, without
//! its yellow, which is lost on white.

use super::text::{coordinate, escape};
use std::fmt::Write;

/// Colours of series on light and on dark ground.
const COLOURS: [(&str, &str); 7] = [
    ("#0072b2", "#56a8e0"),
    ("#d55e00", "#f0803c"),
    ("#009e73", "#2fc299"),
    ("#b8568f", "#dd8fbd"),
    ("#b07c00", "#e8b23a"),
    ("#5f6b73", "#a9b4bc"),
    ("#3d3d9e", "#9a9af0"),
];

/// Dash patterns; five and seven have no common divisor, so 35 series differ.
const DASHES: [&str; 5] = ["", "7 3", "2 2.5", "9 3 2 3", "12 4"];

const INK: (&str, &str) = ("#1f2328", "#e6edf3");
const MUTED: (&str, &str) = ("#59636e", "#9da7b3");
const GRID: (&str, &str) = ("#dfe3e8", "#343b44");

const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif";

/// A drawing that grows.
pub(super) struct Svg {
    body: String,
}

/// Where a text is anchored.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    /// At its beginning.
    Start,
    /// At its middle.
    Middle,
    /// At its end.
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// What a text is for.
#[derive(Clone, Copy)]
pub(super) enum Voice {
    /// The title.
    Title,
    /// The name of an axis or of a series.
    Label,
    /// A number on an axis, a note.
    Small,
}

impl Voice {
    /// The size of its font in pixels.
    pub(super) fn size(self) -> f64 {
        match self {
            Voice::Title => 15.0,
            Voice::Label => 12.5,
            Voice::Small => 11.5,
        }
    }

    fn class(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Voice::Title => ("ab-ink", INK.0, " font-weight=\"600\""),
            Voice::Label => ("ab-ink", INK.0, ""),
            Voice::Small => ("ab-muted", MUTED.0, ""),
        }
    }
}

impl Svg {
    /// An empty drawing.
    pub(super) fn new() -> Svg {
        Svg { body: String::new() }
    }

    /// A line of text whose baseline is at `y`.
    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, voice: Voice, text: &str) {
        self.text_with(x, y, anchor, voice, text, "");
    }

    /// A text that runs upwards.
    pub(super) fn text_upwards(&mut self, x: f64, y: f64, voice: Voice, text: &str) {
        let turn = format!(" transform=\"rotate(-90 {} {})\"", coordinate(x), coordinate(y));
        self.text_with(x, y, Anchor::Middle, voice, text, &turn);
    }

    fn text_with(&mut self, x: f64, y: f64, anchor: Anchor, voice: Voice, text: &str, more: &str) {
        let (class, fill, weight) = voice.class();
        let (x, y, size, anchor) = (coordinate(x), coordinate(y), voice.size(), anchor.name());
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" font-size=\"{size}\" \
             text-anchor=\"{anchor}\" fill=\"{fill}\"{weight}{more}>{}</text>",
            escape(text)
        ));
    }

    /// A thin line of the grid.
    pub(super) fn grid(&mut self, x1: f64, y1: f64, x2: f64, y2: f64) {
        self.thin("ab-grid", GRID.0, [x1, y1, x2, y2], "");
    }

    /// A line of the frame: an axis, a tick.
    pub(super) fn frame(&mut self, x1: f64, y1: f64, x2: f64, y2: f64) {
        self.thin("ab-axis", MUTED.0, [x1, y1, x2, y2], "");
    }

    /// A line of reference.
    pub(super) fn rule(&mut self, x1: f64, y1: f64, x2: f64, y2: f64) {
        self.thin("ab-axis", MUTED.0, [x1, y1, x2, y2], " stroke-dasharray=\"3 3\"");
    }

    fn thin(&mut self, class: &str, stroke: &str, ends: [f64; 4], more: &str) {
        let [x1, y1, x2, y2] = ends.map(coordinate);
        self.add(format_args!(
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" \
             stroke=\"{stroke}\" stroke-width=\"1\"{more}/>"
        ));
    }

    /// The line of a series through `points`.
    pub(super) fn path(&mut self, series: usize, points: &[(f64, f64)]) {
        let mut line = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let letter = if index == 0 { "M" } else { "L" };
            // Writing to a string cannot fail.
            let _ = write!(line, "{letter}{} {}", coordinate(*x), coordinate(*y));
        }
        let dash = DASHES[series % DASHES.len()];
        let dash =
            if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        self.add(format_args!(
            "<path class=\"ab-s{}\" d=\"{line}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" \
             stroke-linejoin=\"round\"{dash}/>",
            hue(series),
            colour(series)
        ));
    }

    /// A solid line of a series: an error bar.
    pub(super) fn whisker(&mut self, series: usize, x1: f64, y1: f64, x2: f64, y2: f64) {
        let class = format!("ab-s{}", hue(series));
        self.thin(&class, colour(series), [x1, y1, x2, y2], " stroke-opacity=\"0.8\"");
    }

    /// The mark of a series.
    pub(super) fn mark(&mut self, series: usize, x: f64, y: f64) {
        const RADIUS: f64 = 3.6;
        let (cx, cy, r) = (coordinate(x), coordinate(y), coordinate(RADIUS));
        let (left, right) = (coordinate(x - RADIUS), coordinate(x + RADIUS));
        let (top, bottom) = (coordinate(y - RADIUS), coordinate(y + RADIUS));
        let shape = match series % 5 {
            0 => format!("<circle cx=\"{cx}\" cy=\"{cy}\" r=\"{r}\""),
            1 => {
                let side = coordinate(2.0 * RADIUS);
                format!("<rect x=\"{left}\" y=\"{top}\" width=\"{side}\" height=\"{side}\"")
            }
            2 => format!("<path d=\"M{cx} {top}L{right} {bottom}L{left} {bottom}Z\""),
            3 => format!("<path d=\"M{cx} {top}L{right} {cy}L{cx} {bottom}L{left} {cy}Z\""),
            _ => format!("<path d=\"M{left} {top}L{right} {top}L{cx} {bottom}Z\""),
        };
        // Every second turn through the colours the marks are hollow.
        let is_hollow = (series / COLOURS.len()) % 2 == 1;
        let (class, fill) = if is_hollow { ("ab-h", "#ffffff") } else { ("ab-f", colour(series)) };
        self.add(format_args!(
            "{shape} class=\"{class}{0} ab-s{0}\" fill=\"{fill}\" stroke=\"{1}\" stroke-width=\"1\"/>",
            hue(series),
            colour(series)
        ));
    }

    /// The bar of a series.
    pub(super) fn bar(&mut self, series: usize, x: f64, y: f64, width: f64, height: f64) {
        let [x, y, width, height] = [x, y, width, height].map(coordinate);
        self.add(format_args!(
            "<rect class=\"ab-f{0} ab-s{0}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" \
             height=\"{height}\" fill=\"{1}\" fill-opacity=\"0.85\" stroke=\"{1}\"/>",
            hue(series),
            colour(series)
        ));
    }

    /// Begins a group that shows only what lies within a rectangle.
    pub(super) fn clip(&mut self, name: &str, x: f64, y: f64, width: f64, height: f64) {
        let [x, y, width, height] = [x, y, width, height].map(coordinate);
        self.add(format_args!(
            "<clipPath id=\"{name}\"><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" \
             height=\"{height}\"/></clipPath>\n<g clip-path=\"url(#{name})\">"
        ));
    }

    /// Ends a group.
    pub(super) fn end(&mut self) {
        self.add(format_args!("</g>"));
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }

    /// The whole document.
    pub(super) fn finish(self, width: f64, height: f64, title: &str) -> String {
        let (width, height) = (coordinate(width), coordinate(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ab-figure\" role=\"img\" \
             viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"{FONT}\">\n<title>{}</title>\n<style>{}</style>\n{}</svg>\n",
            escape(title),
            style(),
            self.body
        )
    }
}

fn hue(series: usize) -> usize {
    series % COLOURS.len()
}

fn colour(series: usize) -> &'static str {
    COLOURS[hue(series)].0
}

/// What changes on dark ground. The drawing has no ground of its own: it takes the page's.
fn style() -> String {
    let mut dark = format!(
        ".ab-ink{{fill:{}}}.ab-muted{{fill:{}}}.ab-axis{{stroke:{}}}.ab-grid{{stroke:{}}}",
        INK.1, MUTED.1, MUTED.1, GRID.1
    );
    for (index, (_, colour)) in COLOURS.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(
            dark,
            ".ab-s{index}{{stroke:{colour}}}.ab-f{index}{{fill:{colour}}}.ab-h{index}{{fill:#0d1117}}"
        );
    }
    format!("@media (prefers-color-scheme:dark){{.ab-figure{{color-scheme:dark}}{dark}}}")
}
