//! Figures of any data: well formed, self-contained, never a panic, and drawn where the ticks say.

use geodp_report::{Axis, Bars, Chart, Estimate, Figure, Histogram, Role, Series, Width};
use proptest::prelude::*;
use roxmltree::{Document, Node};

/// Checks the promises every figure makes and returns its text.
fn check(figure: &dyn Figure, width: Width) -> String {
    let svg = figure.svg_at(width).to_string();
    let document = Document::parse(&svg).expect("well formed");
    let root = document.root_element();
    assert!(root.attribute("viewBox").is_some() && root.attribute("role") == Some("img"));
    for name in ["title", "desc"] {
        assert!(root.children().any(|node| node.tag_name().name() == name), "{name}");
    }
    for outside in ["<script", "href", "url(", "@import", "<image"] {
        assert!(!svg.contains(outside), "{outside}");
    }
    for node in document.descendants() {
        for attribute in
            node.attributes().filter(|a| "x y d width height viewBox".contains(a.name()))
        {
            let numbers = attribute.value();
            assert!(!numbers.contains("NaN") && !numbers.contains("inf"), "{numbers}");
        }
    }
    let text = |node: Node| node.text().unwrap_or("").to_owned();
    document
        .descendants()
        .filter(|n| n.has_tag_name("text"))
        .map(text)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Anything a float can be, with the awkward ones often.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => -1e3_f64..1e3,
        2 => any::<f64>(),
        1 => prop::sample::select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY,
                                       f64::MIN_POSITIVE, f64::MAX, 5e-324, 1e200, 1e-200]),
    ]
}

fn axis(log: bool) -> Axis {
    if log { Axis::log("a") } else { Axis::linear("a") }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_data_gives_a_figure(points in prop::collection::vec((value(), value()), 0..12),
                               bounds in prop::collection::vec((value(), value()), 0..12),
                               mark in value(), logs: (bool, bool), kind in 0..5, floor in value(),
                               range in (value(), value())) {
        let values: Vec<f64> = points.iter().map(|p| p.0).collect();
        let series = match kind {
            0 => Series::line("s", Role::Dp, points).band(bounds).markers(),
            1 => Series::line("s", Role::Dp, points).error_bars(bounds),
            2 => Series::scatter("s", Role::Dp, points),
            3 => Series::histogram("s", Role::Dp, Histogram::log(values, 7)),
            _ => Series::histogram("s", Role::Dp, Histogram::linear(values, 7)),
        };
        let mut y = axis(logs.1).floor(floor);
        if kind == 1 {
            y = y.range(range.0, range.1);
        }
        let chart = Chart::new("t", axis(logs.0), y).series(series).mark_x(mark, "m").mark_y(mark, "m");
        for width in [Width::Wide, Width::Narrow] {
            check(&chart, width);
        }
    }

    #[test]
    fn any_bars_give_a_figure(values in prop::collection::vec((value(), value()), 0..6),
                              categories in 0_usize..5) {
        let estimates = values.iter().map(|(v, e)| Estimate::plus_minus(*v, *e));
        let bars = Bars::new("t", Axis::log("a"), vec!["c"; categories])
            .group("g", Role::Dp, estimates)
            .group("h", Role::Dp, values.iter().map(|v| v.1));
        for width in [Width::Wide, Width::Narrow] {
            check(&bars, width);
        }
    }
}

#[test]
fn nothing_to_draw_says_so() {
    let empty = Chart::new("t", Axis::linear("x"), Axis::log("y"));
    assert!(check(&empty, Width::Wide).contains("no data"));
    let points = [(f64::NAN, 1.0), (1.0, 0.0), (2.0, -1.0)];
    let undrawable = empty.clone().series(Series::line("s", Role::Dp, points));
    let text = check(&undrawable, Width::Wide);
    assert!(text.contains("no data") && text.contains("3 values not drawn"), "{text}");
    assert!(check(&Bars::new("t", Axis::linear("x"), ["a"]), Width::Wide).contains("no data"));
    let hist = empty.series(Series::histogram("h", Role::Dp, Histogram::log([0.0], 5)));
    assert!(check(&hist, Width::Wide).contains("1 value not drawn"));
}

#[test]
fn one_point_is_seen_and_gaps_stay_gaps() {
    let chart = |points: &[(f64, f64)]| {
        let line = Series::line("", Role::Dp, points.iter().copied());
        Chart::new("t", Axis::linear("x"), Axis::linear("y")).series(line).svg().to_string()
    };
    assert!(chart(&[(1.0, 1.0)]).contains("<path class=\"marker\""));
    let gap = chart(&[(0.0, 0.0), (1.0, 1.0), (2.0, f64::NAN), (3.0, 3.0), (4.0, 4.0)]);
    let line = gap.split("<path class=\"line\" d=\"").nth(1).and_then(|s| s.split('"').next());
    assert_eq!(line.unwrap().matches('M').count(), 2);
}

/// The oracle: tick labels are text at known positions, so a reader can place any value between
/// them by hand. Markers must lie where that reader would put them.
#[test]
fn points_lie_where_the_tick_labels_say() {
    let points = [(0.01, 20.0), (0.3, 45.0), (100.0, 80.0)];
    let line = Series::line("", Role::GeoDp, points).markers();
    let chart = Chart::new("t", Axis::log("x"), Axis::linear("y")).series(line);
    let svg = chart.svg().to_string();
    let document = Document::parse(&svg).unwrap();
    let number = |node: &Node, name| node.attribute(name).unwrap().parse::<f64>().unwrap();
    let label = |anchor: &str, text: &str| {
        let here = |n: &Node| n.attribute("text-anchor") == Some(anchor) && n.text() == Some(text);
        let node = document.descendants().find(here).unwrap();
        (number(&node, "x"), number(&node, "y") - 4.0)
    };
    let (left, right) = (label("middle", "0.01").0, label("middle", "100").0);
    let (low, high) = (label("end", "20").1, label("end", "80").1);
    let marker = document.descendants().find(|n| n.attribute("class") == Some("marker")).unwrap();
    let drawn: Vec<(f64, f64)> = marker
        .attribute("d")
        .unwrap()
        .split('M')
        .skip(1)
        .map(|square| {
            let corner: Vec<f64> =
                square.split('L').next().unwrap().split(' ').map(|v| v.parse().unwrap()).collect();
            (corner[0] + 3.6, corner[1] + 3.6)
        })
        .collect();
    assert_eq!(drawn.len(), points.len());
    for ((x, y), (px, py)) in points.into_iter().zip(drawn) {
        let expect_x = left + (right - left) * (x / 0.01).log10() / 4.0;
        let expect_y = low + (high - low) * (y - 20.0) / 60.0;
        assert!((px - expect_x).abs() < 0.2 && (py - expect_y).abs() < 0.2, "{px} {py}");
    }
}

#[test]
fn long_curves_stay_small_and_keep_their_peaks() {
    let curve = (0..200_000)
        .map(|t| (f64::from(t), if t == 77_777 { 9.0 } else { f64::from(t % 7) / 7.0 }));
    let chart = Chart::new("t", Axis::linear("x"), Axis::linear("y")).series(Series::line(
        "",
        Role::Dp,
        curve,
    ));
    let svg = chart.svg().to_string();
    assert!(svg.len() < 150_000, "{}", svg.len());
    let line = svg.split("class=\"line\" d=\"").nth(1).unwrap();
    let heights =
        line.split('"').next().unwrap().split(['M', 'L']).filter_map(|p| p.split_once(' '));
    let ys: Vec<f64> = heights.map(|(_, y)| y.parse().unwrap()).collect();
    let top = ys.iter().copied().fold(f64::INFINITY, f64::min);
    let usual = ys.iter().copied().filter(|y| *y > top + 1.0).fold(f64::INFINITY, f64::min);
    assert!(usual - top > 100.0, "the one peak stands out: {top} {usual}");
}

#[test]
fn series_of_one_role_are_told_apart_and_roles_keep_their_colours() {
    let line = |role| Series::line("s", role, [(0.0, 1.0), (1.0, 2.0)]);
    let chart = Chart::new("t", Axis::linear("x"), Axis::linear("y"))
        .series(line(Role::GeoDp))
        .series(line(Role::Dp))
        .series(line(Role::GeoDp))
        .series(line(Role::Theory));
    let svg = chart.svg().to_string();
    for class in ["geodp0", "dp0", "geodp1", "theory0"] {
        // Once in the legend, once in the plot.
        assert_eq!(svg.matches(&format!("<g class=\"{class}\">")).count(), 2, "{class}");
    }
    assert_eq!(svg.matches("class=\"line dash1\"").count(), 2);
    assert_eq!(svg.matches("class=\"line theory-dash\"").count(), 2);
}

#[test]
fn the_rows_are_the_data() {
    let chart = Chart::new("t", Axis::log("σ"), Axis::linear("loss").unit("nats"))
        .series(Series::line("a, b", Role::Dp, [(1e-7, 1.5), (2.0, f64::NAN)]).band([(1.0, 2.0)]))
        .series(Series::scatter("c", Role::Dp, [(3.0, 4.0)]));
    let expected =
        "series,σ,loss [nats],low,high\n\"a, b\",1e-7,1.5,1,2\n\"a, b\",2,NaN,,\nc,3,4,,\n";
    assert_eq!(chart.csv(), expected);
    let histogram = Histogram::over(&[0.0, 1.0, 2.0], [0.5, 1.5, 1.6]);
    let chart = Chart::new("t", Axis::linear("norm"), Axis::linear("records"))
        .series(Series::histogram("h", Role::Neutral, histogram));
    assert_eq!(chart.csv(), "series,norm from,norm to,records\nh,0,1,1\nh,1,2,2\n");
}
