//! A [`Chart`] laid out and drawn.
//!
//! Order: admit what the axes can show, take ticks over it, give labels their room, then draw grid,
//! bands, bars, lines, points, marked lines. The data's window is a nested `<svg>`, which clips
//! without the ids that would collide when a page holds many figures.

use super::axis::Scale;
use super::frame::{self, Look, MARGIN, Plot};
use super::marks::marks;
use super::paint::{SHAPED, paint};
use super::series::{Series, Shape};
use super::{Chart, Width};
use crate::format::count;
use crate::svg::{Canvas, Svg};
use crate::theme::{VARIANTS, variants};

pub(crate) fn draw(chart: &Chart, width: Width) -> Svg {
    let mut canvas = Canvas::default();
    let looks = looks(&chart.series);
    let entries: Vec<(&str, Look)> =
        chart.series.iter().zip(&looks).map(|(s, look)| (s.name.as_str(), look.clone())).collect();
    let top = frame::header(&mut canvas, width, &chart.title, &entries) + 36.0;
    let (height, wished) = match width {
        Width::Wide => (270.0, (9, 6)),
        Width::Narrow => (210.0, (6, 5)),
    };
    let end = plot(&mut canvas, chart, &looks, Room { width: width.pixels(), top, height, wished });
    let end = frame::note(&mut canvas, width, end, &missing(chart));
    Svg::new(width.pixels(), end, &chart.title, &chart.summary(), canvas)
}

/// What a plot has to itself.
pub(crate) struct Room {
    /// From the left edge to the right one, axes included.
    pub(crate) width: f64,
    /// Where the data's window begins, and how high it is.
    pub(crate) top: f64,
    pub(crate) height: f64,
    /// Ticks of x and y at most.
    pub(crate) wished: (usize, usize),
}

/// Draws axes and data; returns where they end.
pub(crate) fn plot(canvas: &mut Canvas, chart: &Chart, looks: &[Look], room: Room) -> f64 {
    let Room { width, top, height, wished } = room;
    let bottom = top + height;
    let (xs, ys, _) = admitted(chart);
    let x_ticks = chart.x.ticks(xs.iter().copied(), wished.0);
    let y_ticks = chart.y.ticks(ys.iter().copied(), wished.1);
    let (Some(mut x_ticks), Some(y_ticks), false) = (x_ticks, y_ticks, xs.is_empty()) else {
        let right = width - MARGIN;
        frame::no_data(canvas, Plot { left: MARGIN, right, top: top - 20.0, bottom });
        return bottom + MARGIN;
    };
    let right = width - MARGIN - 14.0;
    let plot = Plot { left: MARGIN + frame::gutter(&y_ticks), right, top, bottom };
    let mut x = Scale::new(&chart.x, &x_ticks, (plot.left, plot.right));
    for fewer in (3..wished.0).rev() {
        if frame::fits(&x, &x_ticks, 1) {
            break;
        }
        if let Some(ticks) = chart.x.ticks(xs.iter().copied(), fewer) {
            x_ticks = ticks;
            x = Scale::new(&chart.x, &x_ticks, (plot.left, plot.right));
        }
    }
    let y = Scale::new(&chart.y, &y_ticks, (plot.bottom, plot.top));
    frame::y_axis(canvas, plot, &y, &y_ticks, &chart.y.heading());
    frame::x_axis(canvas, plot, &x, &x_ticks, &chart.x.heading());
    let (lines, points) = paint(chart, looks, (&x, &y));
    window(canvas, plot, 1.5, lines);
    window(canvas, plot, 6.0, points);
    marks(canvas, chart, plot, (&x, &y));
    bottom + 48.0
}

/// What was left out, in words; nothing if all is there.
pub(crate) fn missing(chart: &Chart) -> String {
    let (_, _, dropped) = admitted(chart);
    let values = match dropped {
        0 => return String::new(),
        1 => "value",
        _ => "values",
    };
    let log = if chart.x.log || chart.y.log { ", or not positive on a log axis" } else { "" };
    format!("{} {values} not drawn: not finite{log}", count(dropped))
}

/// Shows `inner` within the plot and `bleed` pixels around it, for what sits on its edge.
fn window(canvas: &mut Canvas, plot: Plot, bleed: f64, inner: Canvas) {
    let (width, height) = (plot.right - plot.left, plot.bottom - plot.top);
    let (left, top) = (plot.left - bleed, plot.top - bleed);
    canvas.window((left, top), (width + 2.0 * bleed, height + 2.0 * bleed), inner);
}

/// How each series looks: class by role and order, dash by order, marker by role.
pub(crate) fn looks(series: &[Series]) -> Vec<Look> {
    let orders = variants(series.iter().map(|s| s.role));
    let look = |(s, order): (&Series, usize)| Look {
        class: s.role.class(order),
        dash: if s.dashed { "theory-dash" } else { ["", "dash1", "dash2"][order % VARIANTS] },
        line: matches!(s.shape, Shape::Line { .. }),
        marker: match &s.shape {
            Shape::Line { .. } => s.markers.then_some(s.role.index()),
            Shape::Scatter(points) if points.len() > SHAPED => Some(0),
            Shape::Scatter(_) => Some(s.role.index()),
            Shape::Histogram(_) => None,
        },
        filled: matches!(s.shape, Shape::Histogram(_)),
    };
    series.iter().zip(orders).map(look).collect()
}

/// All values the axes must span, and how many points have no place.
fn admitted(chart: &Chart) -> (Vec<f64>, Vec<f64>, u64) {
    let (mut xs, mut ys, mut dropped) = (Vec::new(), Vec::new(), 0);
    for series in &chart.series {
        for row in series.rows() {
            let binned = row.x_end.is_some();
            // An empty bin has no height on a log axis, and no place to miss.
            if binned && row.y == 0.0 && chart.y.log {
                continue;
            }
            let (Some(x), Some(y)) = (chart.x.admit(row.x), chart.y.admit(row.y)) else {
                dropped += if binned { row.y as u64 } else { 1 };
                continue;
            };
            xs.push(x);
            ys.push(y);
            xs.extend(row.x_end.and_then(|end| chart.x.admit(end)));
            // Bars stand on zero, or on the decade below the smallest.
            ys.extend(binned.then_some(if chart.y.log { y / 2.0 } else { 0.0 }));
            if let Some((low, high)) = row.bounds {
                ys.extend(chart.y.admit(low));
                ys.extend(chart.y.admit(high));
            }
        }
        if let Shape::Histogram(histogram) = &series.shape {
            dropped += histogram.left_out();
        }
    }
    if !xs.is_empty() {
        for mark in &chart.marks {
            let (axis, values) =
                if mark.vertical { (&chart.x, &mut xs) } else { (&chart.y, &mut ys) };
            values.extend(axis.admit(mark.at));
        }
    }
    (xs, ys, dropped)
}
