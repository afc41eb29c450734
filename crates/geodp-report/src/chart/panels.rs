//! Charts beside one another under one title and one legend: the same series on several data sets, each
//! with axes of its own. On a phone they stand below one another.
//!
//! Series of one name must look the same in every panel, and what a series looks like follows from its
//! place among those of its role. So panels are given the same series in the same order; one that has no
//! points in any panel is left out of the legend.

use super::draw::{Room, looks, missing, plot};
use super::frame::{self, Look};
use super::{Chart, Figure, Width};
use crate::csv;
use crate::svg::{Canvas, Svg};

/// Several charts as one figure.
///
/// ```
/// use geodp_report::{Axis, Chart, Figure, Panels, Role, Series};
/// let panel = |name, y| {
///     let axis = Axis::linear(name).unit("%");
///     Chart::new(name, Axis::log("ε"), axis).series(Series::line("DP", Role::Dp, [(1.0, y)]))
/// };
/// let figure = Panels::new("Accuracy", [panel("MNIST", 98.0), panel("CIFAR-10", 60.0)]);
/// assert_eq!(figure.csv(), "panel,series,x,y,low,high\nMNIST,DP,1,98,,\nCIFAR-10,DP,1,60,,\n");
/// ```
#[derive(Clone, Debug)]
pub struct Panels {
    title: String,
    charts: Vec<Chart>,
}

impl Panels {
    /// A figure of these charts, whose titles name the panels.
    pub fn new(title: impl Into<String>, charts: impl IntoIterator<Item = Chart>) -> Panels {
        Panels { title: title.into(), charts: charts.into_iter().collect() }
    }

    /// One entry for each name that has points somewhere.
    fn legend(&self) -> Vec<(&str, Look)> {
        let mut entries: Vec<(&str, Look)> = Vec::new();
        for chart in &self.charts {
            for (series, look) in chart.series.iter().zip(looks(&chart.series)) {
                let known = entries.iter().any(|(name, _)| *name == series.name);
                if !known && !series.rows().is_empty() {
                    entries.push((&series.name, look));
                }
            }
        }
        entries
    }
}

impl Figure for Panels {
    fn title(&self) -> &str {
        &self.title
    }

    fn svg_at(&self, width: Width) -> Svg {
        let mut canvas = Canvas::default();
        let head = frame::header(&mut canvas, width, &self.title, &self.legend());
        let count = self.charts.len().max(1) as f64;
        let (across, height) = match width {
            Width::Wide => (width.pixels() / count, 230.0),
            Width::Narrow => (width.pixels(), 170.0),
        };
        let (mut x, mut y, mut end) = (0.0, head, head);
        for chart in &self.charts {
            let mut panel = Canvas::default();
            let room = Room { width: across, top: 36.0, height, wished: (6, 6) };
            let used = plot(&mut panel, chart, &looks(&chart.series), room);
            canvas.moved((x, y), panel);
            end = end.max(y + used);
            match width {
                Width::Wide => x += across,
                Width::Narrow => y = end,
            }
        }
        let notes: Vec<String> =
            self.charts.iter().map(missing).filter(|note| !note.is_empty()).collect();
        let end = frame::note(&mut canvas, width, end, &notes.join("; "));
        let parts: Vec<String> =
            self.charts.iter().map(|c| format!("{}: {}", c.title, c.summary())).collect();
        Svg::new(width.pixels(), end, &self.title, &parts.join(" "), canvas)
    }

    fn csv(&self) -> String {
        let header = ["panel", "series", "x", "y", "low", "high"];
        let rows = self.charts.iter().flat_map(|chart| {
            chart.series.iter().flat_map(move |series| {
                series.rows().into_iter().map(move |row| {
                    let end = |value: Option<f64>| value.map_or(String::new(), csv::number);
                    vec![
                        chart.title.clone(),
                        series.name.clone(),
                        csv::number(row.x),
                        csv::number(row.y),
                        end(row.bounds.map(|bounds| bounds.0)),
                        end(row.bounds.map(|bounds| bounds.1)),
                    ]
                })
            })
        });
        csv::to_csv(header, rows)
    }
}
