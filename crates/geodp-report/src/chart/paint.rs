//! The data itself: lines with their bands, points, and bars, as few and short elements as will do.

use super::Chart;
use super::axis::Scale;
use super::frame::{Look, marker};
use super::histogram::Histogram;
use super::series::{Shape, Spread};
use crate::svg::{Canvas, point};

type Point = (f64, f64);

/// Up to this many points have the shape of their role; more are dots.
pub(crate) const SHAPED: usize = 60;

/// Paints all series: lines, bands and bars on one canvas, points on another that lies over it.
pub(crate) fn paint(chart: &Chart, looks: &[Look], scales: (&Scale, &Scale)) -> (Canvas, Canvas) {
    let (mut lines, mut points) = (Canvas::default(), Canvas::default());
    let (x, y) = scales;
    let place = |(px, py): Point| Some((x.at(chart.x.admit(px)?), y.at(chart.y.admit(py)?)));
    let histograms = chart.series.iter().filter(|s| matches!(s.shape, Shape::Histogram(_))).count();
    for (series, look) in chart.series.iter().zip(looks) {
        let mut under = Canvas::default();
        let marked: Vec<Point> = match &series.shape {
            Shape::Scatter(all) => all.iter().copied().filter_map(place).collect(),
            Shape::Histogram(histogram) => {
                let class = if histograms > 1 { "bar over" } else { "bar" };
                paint_bars(&mut under, class, chart, histogram, scales);
                Vec::new()
            }
            Shape::Line { points, spread } => {
                let placed: Vec<Option<Point>> = points.iter().copied().map(place).collect();
                if let Some((kind, bounds)) = spread {
                    let end = |(at, (low, high)): (&Option<Point>, &Point)| {
                        let finite = low.is_finite() && high.is_finite();
                        at.filter(|_| finite).map(|at| (at.0, y.end_at(*low), y.end_at(*high)))
                    };
                    let ends: Vec<_> = placed.iter().zip(bounds).map(end).collect();
                    paint_spread(&mut under, *kind, &ends);
                }
                let alone = paint_line(&mut under, look, &placed);
                // A line of one point has no length: show the point.
                if series.markers { placed.into_iter().flatten().collect() } else { alone }
            }
        };
        lines.group(&look.class, under);
        points.group(&look.class, paint_points(look, &marked));
    }
    (lines, points)
}

fn paint_points(look: &Look, points: &[Point]) -> Canvas {
    let mut canvas = Canvas::default();
    if points.len() <= SHAPED {
        let shape = look.marker.unwrap_or(0);
        canvas.path("marker", &points.iter().map(|p| marker(shape, *p)).collect::<String>());
    } else {
        // A dot is a line of no length with a round end: the shortest way to write it.
        let d: String = points.iter().map(|p| format!("M{}h0", point(*p))).collect();
        canvas.path("dots", &d);
    }
    canvas
}

fn paint_bars(
    canvas: &mut Canvas,
    class: &str,
    chart: &Chart,
    histogram: &Histogram,
    (x, y): (&Scale, &Scale),
) {
    let base = y.end_at(0.0).min(y.start());
    for (from, to, count) in histogram.bins().filter(|bin| bin.2 > 0) {
        let ends = (chart.x.admit(from), chart.x.admit(to), chart.y.admit(count as f64));
        if let (Some(from), Some(to), Some(top)) = ends {
            let (left, right, top) = (x.at(from), x.at(to), y.at(top));
            let gap = if right - left > 4.0 { 1.0 } else { 0.0 };
            canvas.rect(class, left + gap / 2.0, top, right - left - gap, base - top);
        }
    }
}

/// Joins neighbouring points; returns those that have no neighbour.
fn paint_line(canvas: &mut Canvas, look: &Look, placed: &[Option<Point>]) -> Vec<Point> {
    let (mut alone, mut d) = (Vec::new(), String::new());
    for run in placed.split(Option::is_none) {
        let run: Vec<Point> = run.iter().flatten().copied().collect();
        match run.as_slice() {
            [] => {}
            [one] => alone.push(*one),
            run => d.push_str(&polyline(&thin(run))),
        }
    }
    canvas.path(format!("line {}", look.dash).trim_end(), &d);
    alone
}

fn paint_spread(canvas: &mut Canvas, kind: Spread, ends: &[Option<(f64, f64, f64)>]) {
    let mut d = String::new();
    match kind {
        Spread::Band => {
            for run in ends.split(Option::is_none).filter(|run| run.len() > 1) {
                let run: Vec<_> = run.iter().flatten().collect();
                let upper: Vec<Point> = run.iter().map(|e| (e.0, e.2)).collect();
                let lower: Vec<Point> = run.iter().rev().map(|e| (e.0, e.1)).collect();
                d.push_str(&polyline(&thin(&upper)));
                d.push_str(&polyline(&thin(&lower)).replacen('M', "L", 1));
                d.push('Z');
            }
            canvas.path("band", &d);
        }
        Spread::Whiskers => {
            for (x, low, high) in ends.iter().flatten() {
                d.push_str(&format!("M{}L{}", point((*x, *low)), point((*x, *high))));
                for end in [low, high] {
                    d.push_str(&format!("M{}h8", point((x - 4.0, *end))));
                }
            }
            canvas.path("whisker", &d);
        }
    }
}

fn polyline(points: &[Point]) -> String {
    let path: Vec<String> = points.iter().map(|p| point(*p)).collect();
    if path.is_empty() { String::new() } else { format!("M{}", path.join("L")) }
}

/// Keeps of each half pixel's column the first, lowest, highest and last point: a curve of a
/// million steps looks the same and stays small.
fn thin(points: &[Point]) -> Vec<Point> {
    if points.len() < 2000 {
        return points.to_vec();
    }
    let mut kept = Vec::new();
    for column in points.chunk_by(|a, b| (a.0 * 2.0).floor() == (b.0 * 2.0).floor()) {
        let at = |better: fn(f64, f64) -> bool| {
            (0..column.len()).fold(0, |m, i| if better(column[i].1, column[m].1) { i } else { m })
        };
        let mut chosen = [0, at(|a, b| a < b), at(|a, b| a > b), column.len() - 1];
        chosen.sort_unstable();
        let mut last = None;
        for i in chosen {
            if last != Some(i) {
                kept.push(column[i]);
            }
            last = Some(i);
        }
    }
    kept
}
