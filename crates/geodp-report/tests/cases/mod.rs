//! A page of figures that are hard to lay out: long names, crowded ticks, many marks, extremes.

use geodp_report::{
    Axis, Bars, Chart, Estimate, Figure, Histogram, Page, Role, Section, Series, Table,
};

fn line(points: impl IntoIterator<Item = (f64, f64)>) -> Series {
    Series::line("", Role::Dp, points)
}

fn plain(title: &str) -> Chart {
    Chart::new(title, Axis::linear("x"), Axis::linear("y"))
}

/// The axes of the paper's figures and of long trainings.
fn axes() -> Vec<Chart> {
    let dims = [1250.0, 5000.0, 20_000.0, 80_000.0, 320_000.0];
    let batches = [512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16_384.0];
    let betas = [0.1, 0.2, 0.4, 0.6, 0.8, 1.0];
    vec![
        Chart::new("Runtime", Axis::log("dimension d"), Axis::log("time").unit("s"))
            .series(Series::line("DP", Role::Dp, dims.map(|d| (d, 4e-9 * d))).markers())
            .series(Series::line("GeoDP", Role::GeoDp, dims.map(|d| (d, 6e-9 * d))).markers())
            .series(Series::line("DP, B = 512", Role::Dp, dims.map(|d| (d, 9e-9 * d))).markers()),
        Chart::new("Batches", Axis::log("batch B"), Axis::linear("error"))
            .series(line(batches.map(|b| (b, 1.0 / b)))),
        Chart::new("Bounding factor", Axis::linear("β"), Axis::log("MSE"))
            .series(line(betas.map(|b| (b, b * b)))),
        plain("A million steps").series(line((0..=1000).map(|t| (1000.0 * f64::from(t), 1.0)))),
        plain("Tiny values")
            .series(line((0..9).map(|t| (1e-6 * f64::from(t), -1e-7 * f64::from(t))))),
        plain("A thin slice").series(line([(1000.0, 99.9991), (1001.0, 99.9993)])),
        plain("Negative")
            .series(line((0..50).map(|t| (f64::from(t) - 25.0, (f64::from(t) / 5.0).sin())))),
        plain("One point").series(line([(3.0, 0.9)])),
        Chart::new("Decades", Axis::log("x"), Axis::log("y"))
            .series(line((-60..=60).step_by(10).map(|p| (10f64.powi(p), 10f64.powi(p / 2))))),
    ]
}

/// Names, marks and spreads that crowd a figure.
fn crowds() -> Vec<Chart> {
    let rising = |k: f64| (0..20).map(move |t| (f64::from(t), k * f64::from(t).sqrt()));
    let mut many = plain("Twelve settings of two methods, each under its whole name, over epochs");
    for i in 0..12 {
        let role = if i % 2 == 0 { Role::Dp } else { Role::GeoDp };
        let name = format!("SUR + PSAC + AUTO-S, B = 16384, β = 0.{i}");
        many = many.series(Series::line(name, role, rising(f64::from(i + 1))));
    }
    let around = |k: f64| rising(k).map(|(_, y)| (0.8 * y, 1.3 * y + 0.2)).collect::<Vec<_>>();
    let shifted = |by: u32| (0..900).map(move |i| f64::from(i * 37 % 101 + i % 17 + by));
    let edges: Vec<f64> = (0..=40).map(|i| 4.0 * f64::from(i)).collect();
    let histogram =
        |name: &str, role, by| Series::histogram(name, role, Histogram::over(&edges, shifted(by)));
    vec![
        many,
        plain("Error bars")
            .series(Series::line("DP", Role::Dp, rising(1.0)).error_bars(around(1.0)).markers())
            .series(Series::line("GeoDP", Role::GeoDp, rising(1.5)).error_bars(around(1.5)).markers()),
        plain("Marks side by side")
            .series(line(rising(1.0)))
            .mark_x(10.0, "median")
            .mark_x(10.4, "99.9 % of the records")
            .mark_x(18.9, "maximum over all records")
            .mark_y(4.2, "target ε = 3")
            .mark_y(4.3, "claimed ε = 3.1"),
        Chart::new("Two histograms", Axis::linear("score"), Axis::log("records"))
            .series(histogram("members", Role::Neutral, 30))
            .series(histogram("others", Role::Neutral, 0)),
        Chart::new(
            "A title that goes on for longer than two lines of any phone could ever hold, and then on",
            Axis::linear("an axis whose title says everything there is to say about its quantity and more"),
            Axis::linear("another such axis, of the kind people write when they fear to be misunderstood"),
        )
        .series(line(rising(2.0))),
        plain(&"UnbreakableTitle".repeat(8))
            .series(Series::line("UnbreakableName".repeat(8), Role::Dp, rising(1.0)))
            .mark_x(3.0, "UnbreakableMark".repeat(8)),
        plain("Dots").series(Series::scatter("many", Role::GeoDp, (0..3000).map(|i| {
            (f64::from(i * 7919 % 10_007), f64::from(i * 104_729 % 10_009))
        }))),
    ]
}

/// All results of a table of the paper, and bars to both sides of zero.
fn bars() -> Vec<Bars> {
    let rows = ["", "+IS", "+SUR", "+AUTO-S", "+PSAC", "+SUR+PSAC"];
    let names = |m: &str| rows.map(|r| format!("{m}{r} B = 16384 β = 0.1"));
    let all = [names("DP"), names("GeoDP")].concat();
    let here = (0..12).map(|i| Estimate::plus_minus(60.0 + 3.0 * f64::from(i), 2.0));
    vec![
        Bars::new("All rows", Axis::linear("test accuracy").unit("%"), all)
            .group("published", Role::Neutral, (0..12).map(|i| 61.0 + 3.2 * f64::from(i)))
            .group("released protocol", Role::Dp, here.clone())
            .group("fair protocol", Role::GeoDp, here),
        Bars::new(
            "Gains",
            Axis::linear("gain").unit("percentage points"),
            ["up", "UnbreakableCategoryNameOfSomeMethodOrOther"],
        )
        .group(
            "",
            Role::Dp,
            [Estimate::plus_minus(1.5, 0.8), Estimate::plus_minus(-3.25, 0.4)],
        ),
    ]
}

/// The whole page.
pub(crate) fn page() -> Page {
    let word = "NameWithoutAnyPlaceToBreakIt".repeat(6);
    let mut section = Section::new(format!("Hard cases: {word}")).paragraph(word.as_str());
    let (axes, crowds, bars) = (axes(), crowds(), bars());
    let figures = axes.iter().chain(&crowds).map(|chart| chart as &dyn Figure);
    for figure in figures.chain(bars.iter().map(|bars| bars as &dyn Figure)) {
        section = section.figure(figure, figure.title());
    }
    let wide = Table::new((0..14).map(|i| format!("column {i}")))
        .row((0..14).map(|i| format!("{}", 1e6 * f64::from(i))));
    let section = section
        .table(wide)
        .key_values([(word.as_str(), word.as_str())])
        .headline([("name", word.as_str()), ("other", "98.1 %")])
        .code(word.as_str());
    Page::new(word.as_str()).subtitle(word.as_str()).section(section).footer(word.as_str())
}
