//! The data of a chart: lines, scattered points and histograms, each with a name and a role.

use super::histogram::Histogram;
use crate::theme::Role;

/// One named set of data in a [`Chart`](crate::Chart).
///
/// ```
/// use geodp_report::{Role, Series};
/// let loss = Series::line("DP-SGD", Role::Dp, [(0.0, 2.3), (1.0, 0.9), (2.0, 0.4)])
///     .band([(2.2, 2.4), (0.8, 1.0), (0.3, 0.5)])
///     .markers();
/// ```
#[derive(Clone, Debug)]
pub struct Series {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) shape: Shape,
    pub(crate) dashed: bool,
    pub(crate) markers: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Line { points: Vec<(f64, f64)>, spread: Option<(Spread, Vec<(f64, f64)>)> },
    Scatter(Vec<(f64, f64)>),
    Histogram(Histogram),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Spread {
    Band,
    Whiskers,
}

impl Series {
    /// Points joined by a line, in the order given. Points that cannot be drawn leave a gap.
    pub fn line(
        name: impl Into<String>,
        role: Role,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Series {
        let points = points.into_iter().collect();
        Series::new(name, role, Shape::Line { points, spread: None })
    }

    /// Points on their own.
    pub fn scatter(
        name: impl Into<String>,
        role: Role,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Series {
        Series::new(name, role, Shape::Scatter(points.into_iter().collect()))
    }

    /// Counts over bins.
    pub fn histogram(name: impl Into<String>, role: Role, histogram: Histogram) -> Series {
        Series::new(name, role, Shape::Histogram(histogram))
    }

    fn new(name: impl Into<String>, role: Role, shape: Shape) -> Series {
        let dashed = role == Role::Theory;
        Series { name: name.into(), role, shape, dashed, markers: false }
    }

    /// A shaded band (low, high) around a line, one pair per point; say in the caption what it is.
    pub fn band(self, bounds: impl IntoIterator<Item = (f64, f64)>) -> Series {
        self.spread(Spread::Band, bounds)
    }

    /// Error bars (low, high), one pair per point.
    pub fn error_bars(self, bounds: impl IntoIterator<Item = (f64, f64)>) -> Series {
        self.spread(Spread::Whiskers, bounds)
    }

    /// Marks every point of a line.
    pub fn markers(mut self) -> Series {
        self.markers = true;
        self
    }

    /// Draws the line dashed, as theory is.
    pub fn dashed(mut self) -> Series {
        self.dashed = true;
        self
    }

    fn spread(mut self, kind: Spread, bounds: impl IntoIterator<Item = (f64, f64)>) -> Series {
        if let Shape::Line { spread, .. } = &mut self.shape {
            *spread = Some((kind, bounds.into_iter().collect()));
        }
        self
    }

    /// All points with their bounds, as they stand in the CSV.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let row = |(x, y): (f64, f64)| Row { x, x_end: None, y, bounds: None };
        match &self.shape {
            Shape::Scatter(points) => points.iter().copied().map(row).collect(),
            Shape::Line { points, spread } => {
                let bound = |i| spread.as_ref().and_then(|(_, bounds)| bounds.get(i).copied());
                let rows = points.iter().copied().map(row).enumerate();
                rows.map(|(i, row)| Row { bounds: bound(i), ..row }).collect()
            }
            Shape::Histogram(h) => h
                .bins()
                .map(|(from, to, count)| Row {
                    x: from,
                    x_end: Some(to),
                    y: count as f64,
                    bounds: None,
                })
                .collect(),
        }
    }
}

/// A row of a chart's data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) x: f64,
    pub(crate) x_end: Option<f64>,
    pub(crate) y: f64,
    pub(crate) bounds: Option<(f64, f64)>,
}
