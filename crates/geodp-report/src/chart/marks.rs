//! Marked lines and their labels.
//!
//! A label may stand on either side of its line and at a few places along it; it takes the place
//! where it covers the least of the data and of the labels before it.

use super::Chart;
use super::axis::Scale;
use super::frame::Plot;
use super::series::Shape;
use crate::svg::{Anchor, Canvas, text_width, wrap};

const LABEL_HEIGHT: f64 = 15.0;

/// Left, top, right, bottom.
type Rect = (f64, f64, f64, f64);

/// Draws the chart's marked lines over its data.
pub(crate) fn marks(canvas: &mut Canvas, chart: &Chart, plot: Plot, (x, y): (&Scale, &Scale)) {
    let mut ink = ink(chart, x, y);
    for mark in &chart.marks {
        let axis = if mark.vertical { &chart.x } else { &chart.y };
        let across = axis.admit(mark.at).map(|value| {
            if mark.vertical {
                between(Some((x.at(value), plot.top)), Some((x.at(value), plot.bottom)))
            } else {
                between(Some((plot.left, y.at(value))), Some((plot.right, y.at(value))))
            }
        });
        ink.extend(across.into_iter().flatten());
    }
    let mut taken: Vec<Rect> = Vec::new();
    for mark in &chart.marks {
        let axis = if mark.vertical { &chart.x } else { &chart.y };
        let Some(value) = axis.admit(mark.at) else { continue };
        let (at, ends) = if mark.vertical {
            (x.at(value), (plot.left, plot.right))
        } else {
            (y.at(value), (plot.top, plot.bottom))
        };
        // A fixed range may leave the mark outside.
        if at < ends.0 - 1.0 || at > ends.1 + 1.0 {
            continue;
        }
        let label = wrap(&mark.label, 13.5, plot.right - plot.left - 8.0, 1).concat();
        let size = (text_width(&label, 13.5), LABEL_HEIGHT);
        let places = if mark.vertical {
            canvas.line("mark", (at, plot.top), (at, plot.bottom));
            places_beside(at, size, plot)
        } else {
            canvas.line("mark", (plot.left, at), (plot.right, at));
            places_along(at, size, plot)
        };
        let cost = |r: &Rect| {
            let covered = ink.iter().filter(|p| inside(r, **p)).count();
            let clash = taken.iter().filter(|t| overlap(r, t)).count();
            let cut = r.1 < plot.top || r.3 > plot.bottom;
            covered + 1000 * clash + 100_000 * usize::from(cut)
        };
        // The first of equals: places come in order of preference.
        if let Some(best) = places.into_iter().min_by_key(cost) {
            canvas.text("halo", (best.0, best.3 - 3.0), Anchor::Start, &label.as_str().into());
            taken.push(best);
        }
    }
}

/// Right and left of a vertical line, from the top down.
fn places_beside(at: f64, (w, h): (f64, f64), plot: Plot) -> Vec<Rect> {
    // A label wider than the room on either side crosses the line rather than leave the plot.
    let within = |left: f64| left.min(plot.right - 4.0 - w).max(plot.left + 4.0);
    let rows = (0..12).map(|row| plot.top + 1.0 + f64::from(row) * (h + 2.0));
    let place = |top: f64| [(within(at + 6.0), top), (within(at - 6.0 - w), top)];
    rows.flat_map(place).map(|(left, top)| (left, top, left + w, top + h)).collect()
}

/// Above and below a horizontal line, at its right, left and middle.
fn places_along(at: f64, (w, h): (f64, f64), plot: Plot) -> Vec<Rect> {
    let lefts = [plot.right - 4.0 - w, plot.left + 6.0, (plot.left + plot.right - w) / 2.0];
    let place = |left: f64| [(left, at - 3.0 - h), (left, at + 3.0)];
    lefts.into_iter().flat_map(place).map(|(left, top)| (left, top, left + w, top + h)).collect()
}

/// Where the data has ink: its points, the way between them, and the inside of bars.
fn ink(chart: &Chart, x: &Scale, y: &Scale) -> Vec<(f64, f64)> {
    let place = |(px, py)| Some((x.at(chart.x.admit(px)?), y.at(chart.y.admit(py)?)));
    let mut ink = Vec::new();
    for series in &chart.series {
        match &series.shape {
            Shape::Scatter(points) => ink.extend(points.iter().copied().filter_map(place)),
            Shape::Line { points, .. } => {
                let points: Vec<_> = points.iter().copied().map(place).collect();
                ink.extend(points.windows(2).flat_map(|pair| between(pair[0], pair[1])));
                ink.extend(points.into_iter().flatten());
            }
            Shape::Histogram(histogram) => {
                let tops = histogram.bins().map(|(from, to, n)| ((from + to) / 2.0, n as f64));
                for (px, py) in tops.filter_map(place) {
                    ink.extend(between(Some((px, py)), Some((px, y.start()))));
                }
            }
        }
    }
    ink
}

/// Points every four pixels on the way from `a` to `b`.
fn between(a: Option<(f64, f64)>, b: Option<(f64, f64)>) -> Vec<(f64, f64)> {
    let (Some(a), Some(b)) = (a, b) else { return Vec::new() };
    let steps = ((b.0 - a.0).hypot(b.1 - a.1) / 4.0) as usize;
    let at = |i: usize| i as f64 / steps.max(1) as f64;
    (0..steps).map(|i| (a.0 + at(i) * (b.0 - a.0), a.1 + at(i) * (b.1 - a.1))).collect()
}

fn inside(r: &Rect, (x, y): (f64, f64)) -> bool {
    x > r.0 - 3.0 && x < r.2 + 3.0 && y > r.1 - 2.0 && y < r.3 + 2.0
}

fn overlap(a: &Rect, b: &Rect) -> bool {
    a.0 < b.2 && b.0 < a.2 && a.1 < b.3 && b.1 < a.3
}
