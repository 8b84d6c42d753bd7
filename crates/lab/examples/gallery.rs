//! Draws one figure of each kind, and a page with all of them, into a directory, to look at: `cargo run -p anabranch-lab --example
//! gallery -- DIR`. The shapes are made up; they show what the drawing must cope with.

use anabranch_lab::figure::{Axis, Figure, Kind, Point, Rule, Series};
use anabranch_lab::report::{Report, Section, Tone, VerdictRow};
use anabranch_lab::stats;
use anabranch_lab::table::Table;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let figures = vec![loss(), completion(), window(), delays(), bars(), groups(), empty()];
    for figure in &figures {
        let name = format!("{}.svg", figure.name);
        std::fs::write(Path::new(&directory).join(name), figure.to_svg())?;
    }
    std::fs::write(Path::new(&directory).join("report.html"), page(figures).to_html())
}

fn page(figures: Vec<Figure>) -> Report {
    let mut numbers = Table::new("points", &["system", "loss", "goodput_mbps"]);
    for series in &figures[0].series {
        for point in &series.points {
            numbers.push(vec![series.label.as_str().into(), point.x.into(), point.y.into()]);
        }
    }
    let row = |what: &str, measured: &str, tone, verdict: &str| VerdictRow {
        what: what.into(),
        section: Some("all".into()),
        paper: "high while the loss is below the threshold, low beyond it".into(),
        measured: measured.into(),
        tone,
        verdict: verdict.into(),
    };
    Report {
        title: "What a report looks like".into(),
        lead: vec![
            "The values on this page are made up: it shows what a drawing must cope with.".into(),
        ],
        facts: vec![
            ("command".into(), "cargo run -p anabranch-lab --example gallery".into()),
            ("seeds".into(), "none".into()),
        ],
        verdicts: vec![
            row("it holds", "240 Mb/s", Tone::Good, "holds"),
            row("it does not", "201 Mb/s", Tone::Bad, "differs: 11% below the least"),
            row("it cannot be said", "–", Tone::Open, "partial: rival X missing"),
        ],
        sections: vec![Section {
            id: "all".into(),
            title: "Every kind of figure".into(),
            figures,
            tables: vec![numbers],
            ..Section::default()
        }],
        commands: vec!["cargo run -p anabranch-lab --example gallery -- DIR".into()],
    }
}

/// A sweep over a logarithmic axis with a zero, error bars, two lines of reference.
fn loss() -> Figure {
    let mut figure = Figure::new(
        "loss",
        "Goodput of one flow over random loss, small buffer",
        Kind::Line,
        Axis::log("loss behind the bottleneck"),
        Axis::linear("goodput [Mb/s]").within(0.0, 270.0),
    );
    let losses = [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1];
    for (name, knee) in [("TCP-SACK", 1e-5), ("FAST(100)", 1e-4), ("XCP", 1e-3), ("CUBIC", 5e-5)] {
        let points = losses.map(|x: f64| {
            let y = 240.0 / (1.0 + (x / knee).sqrt());
            Point { x, y, spread: Some((y * 0.9, y * 1.08)) }
        });
        figure.series.push(Series { label: name.into(), points: points.into() });
    }
    figure.rules.push(Rule { label: "capacity".into(), y: 250.0 });
    figure
}

fn completion() -> Figure {
    let mut figure = Figure::new(
        "completion",
        "Completion of 99 receivers, 100 MB",
        Kind::Cdf,
        Axis::linear("time since the start [s]"),
        Axis::linear("share of the receivers"),
    );
    for (index, name) in ["access link", "TCP feasible", "Bullet′", "BitTorrent"].iter().enumerate()
    {
        let begin = 133.0 + 25.0 * index as f64;
        let times: Vec<f64> =
            (0..40).map(|rank| begin + f64::from(rank * rank) * 0.02 * index as f64).collect();
        figure.series.push(Series::new(name, &stats::cdf(&times)));
    }
    figure
}

fn window() -> Figure {
    let points: Vec<(f64, f64)> = (0..400)
        .map(|step| (f64::from(step) * 0.5, 1200.0 + 1300.0 * f64::from(step % 90) / 90.0))
        .collect();
    let mut figure = Figure::new(
        "window",
        "Congestion window",
        Kind::Step,
        Axis::linear("time [s]"),
        Axis::linear("window [packets]"),
    );
    figure.series.push(Series::new("TCP-SACK", &points));
    figure
}

fn delays() -> Figure {
    let mut figure = Figure::new(
        "delays",
        "Each receiver's rate and delay",
        Kind::Scatter,
        Axis::log("rate [kb/s]"),
        Axis::log("delay [ms]"),
    );
    for index in 0..9 {
        let points: Vec<(f64, f64)> = (1..12)
            .map(|step| {
                let step = f64::from(step);
                (step * step * 40.0 + f64::from(index), 900.0 / (step + f64::from(index)))
            })
            .collect();
        figure.series.push(Series::new(&format!("class {index}"), &points));
    }
    figure
}

fn bars() -> Figure {
    let mut figure = Figure::new(
        "bars",
        "Utilization with 50 elephants and mice",
        Kind::Bar,
        Axis::linear(""),
        Axis::linear("utilization"),
    );
    for (name, y) in [("PLT", 0.975), ("XCP", 0.92), ("FAST", 0.72), ("FAST-MI", 0.78)] {
        let spread = Some((y - 0.02, y + 0.01));
        figure
            .series
            .push(Series { label: name.into(), points: vec![Point { x: 0.0, y, spread }] });
    }
    figure.rules.push(Rule { label: "paper, PLT: 0.97".into(), y: 0.97 });
    figure
}

fn groups() -> Figure {
    let mut figure = Figure::new(
        "groups",
        "Goodput by number of flows",
        Kind::Bar,
        Axis::linear("flows"),
        Axis::linear("goodput [Mb/s]"),
    );
    figure.series = vec![
        Series::new("TCP-SACK", &[(10.0, 201.0), (50.0, 230.0), (100.0, 238.0)]),
        Series::new("FAST(100)", &[(10.0, 190.0), (50.0, 215.0), (100.0, f64::NAN)]),
        Series::new("XCP", &[(10.0, 245.0), (50.0, 246.0), (100.0, 244.0)]),
    ];
    figure
}

fn empty() -> Figure {
    Figure::new(
        "empty",
        "What nobody measured",
        Kind::Line,
        Axis::log("loss"),
        Axis::log("goodput [Mb/s]"),
    )
}
