use super::*;
use crate::figure::{Point, Rule, Series};

fn line() -> Figure {
    let mut figure =
        Figure::new("f", "Goodput", Kind::Line, Axis::linear("time [s]"), Axis::linear("Mb/s"));
    figure.series = vec![
        Series::new("A", &[(0.0, 1.0), (1.0, 2.0), (2.0, 4.0)]),
        Series::new("B", &[(0.0, 4.0), (1.0, 3.0)]),
    ];
    figure
}

fn count(svg: &str, what: &str) -> usize {
    svg.matches(what).count()
}

/// A drawing is a tree of elements that open and close in order, and only numbers are coordinates.
fn assert_well_formed(svg: &str) {
    let mut open = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').unwrap();
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
    }
    assert!(open.is_empty(), "{open:?}");
    let body = svg.split("</style>").nth(1).unwrap();
    for wrong in ["NaN", "inf", "=\"-0\"", "href", "script"] {
        assert!(!body.contains(wrong), "{wrong} in {body}");
    }
}

/// The places through which the lines of a series go.
fn path(svg: &str, series: usize) -> String {
    let start = format!("<path class=\"ab-s{series}\" d=\"");
    // The first is the sample in the legend.
    svg.split(&start).nth(2).unwrap().split('"').next().unwrap().to_owned()
}

#[test]
fn a_small_line_plot_has_a_line_its_marks_and_a_legend_entry_per_series() {
    let svg = line().to_svg();
    assert_well_formed(&svg);
    assert_eq!(count(&svg, "<path class=\"ab-s0\""), 2);
    assert_eq!(count(&svg, "<circle"), 4, "three marks and the legend's");
    assert_eq!(count(&svg, "<rect class"), 0);
    for text in [">Goodput<", ">time [s]<", ">Mb/s<", ">A<", ">B<", ">2<"] {
        assert!(svg.contains(text), "{text}");
    }
    // From the left edge to the right one, upwards, in equal steps of x.
    assert_eq!(path(&svg, 0), "M70 310.53L401 235.06L732 84.11");
    assert_eq!(svg, line().to_svg());
}

#[test]
fn a_distribution_climbs_in_steps_from_zero_to_one() {
    let mut figure = line();
    figure.kind = Kind::Cdf;
    figure.series = vec![Series::new("A", &[(1.0, 0.5), (3.0, 1.0)])];
    let svg = figure.to_svg();
    assert_well_formed(&svg);
    let line = path(&svg, 0);
    let corners = line.split(['M', 'L']).skip(1).map(|corner| corner.split_once(' ').unwrap());
    let heights: Vec<&str> = corners.map(|(_, y)| y).collect();
    assert_eq!(heights, ["386", "386", "226", "226", "66"]);
}

#[test]
fn what_has_no_value_breaks_the_line_and_is_counted() {
    let mut figure = line();
    figure.series = vec![Series::new(
        "A",
        &[(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0), (3.0, f64::INFINITY), (4.0, 5.0)],
    )];
    let svg = figure.to_svg();
    assert_well_formed(&svg);
    assert_eq!(count(&svg, "<path class=\"ab-s0\""), 4, "the legend's and three pieces");
    assert!(svg.contains("Not drawn: 2 points without a value on these axes."));
}

#[test]
fn zeros_on_a_logarithmic_axis_are_drawn_apart_and_negatives_counted() {
    let mut figure = line();
    figure.x = Axis::log("loss");
    figure.series = vec![Series::new("A", &[(0.0, 1.0), (1e-4, 2.0), (1e-2, 3.0), (-1.0, 3.0)])];
    let svg = figure.to_svg();
    assert_well_formed(&svg);
    assert_eq!(count(&svg, "<circle"), 4, "three points and the legend's");
    assert!(svg.contains("Not drawn: 1 point without a value on these axes."));
    assert!(svg.contains(">0.01<") && svg.contains(">10⁻⁴<"));
}

#[test]
fn points_beyond_a_given_range_are_counted() {
    let mut figure = line();
    figure.y = Axis::linear("y").within(0.0, 3.5);
    assert!(figure.to_svg().contains("Not drawn: 2 points beyond the axes."));
}

#[test]
fn an_empty_figure_says_so() {
    let mut figure = line();
    figure.series.clear();
    for kind in [Kind::Line, Kind::Cdf, Kind::Step, Kind::Scatter, Kind::Bar] {
        figure.kind = kind;
        let svg = figure.to_svg();
        assert_well_formed(&svg);
        assert!(svg.contains("nothing was measured"), "{kind:?}");
    }
    figure.series = vec![Series::new("A", &[]), Series::new("B", &[(f64::NAN, 1.0)])];
    assert!(figure.to_svg().contains("nothing was measured"));
}

#[test]
fn names_cannot_break_out_of_the_drawing() {
    let mut figure = line();
    figure.title = "</title><script>alert(1)</script>".into();
    figure.series[0].label = "a\" onload=\"x & <b>".into();
    figure.x.label = "\u{1}x\u{0}".into();
    let svg = figure.to_svg();
    assert!(!svg.contains("<script") && !svg.contains("onload=\"") && !svg.contains('\u{1}'));
    assert!(svg.contains("a&quot; onload=&quot;x &amp; &lt;b&gt;"));
}

#[test]
fn error_bars_widen_the_axis_and_are_drawn() {
    let mut figure = line();
    figure.series = vec![Series {
        label: "A".into(),
        points: vec![Point { x: 1.0, y: 2.0, spread: Some((1.0, 9.0)) }],
    }];
    let svg = figure.to_svg();
    assert_well_formed(&svg);
    assert_eq!(count(&svg, "<line class=\"ab-s0\""), 3);
    assert!(!svg.contains("Not drawn"));
}

#[test]
fn bars_stand_on_zero_and_are_named_by_their_series_in_a_single_group() {
    let mut figure = line();
    figure.kind = Kind::Bar;
    figure.series = vec![Series::new("TCP", &[(0.0, 100.0)]), Series::new("XCP", &[(0.0, 240.0)])];
    figure.rules = vec![Rule { label: "capacity".into(), y: 250.0 }];
    let svg = figure.to_svg();
    assert_well_formed(&svg);
    assert_eq!(count(&svg, "<rect class=\"ab-f"), 2, "two bars and no legend");
    for text in [">TCP<", ">XCP<", ">240<", ">capacity<", ">0<"] {
        assert!(svg.contains(text), "{text}");
    }
    figure.series[0].points.push(Point { x: 1.0, y: 50.0, spread: None });
    assert_eq!(count(&figure.to_svg(), "<rect class=\"ab-f"), 5, "three bars, two in the legend");
}

#[test]
fn a_legend_of_many_series_moves_the_plot_down_and_covers_nothing() {
    let mut figure = line();
    let height = |figure: &Figure| {
        let svg = figure.to_svg();
        let height = svg.split("height=\"").nth(1).unwrap().split('"').next().unwrap();
        height.parse::<f64>().unwrap()
    };
    let few = height(&figure);
    figure.series = (0..20)
        .map(|index| {
            Series::new(&format!("a system of a long name {index}"), &[(0.0, 1.0), (1.0, 2.0)])
        })
        .collect();
    assert_well_formed(&figure.to_svg());
    assert!(height(&figure) > few + 5.0 * ROW);
}
