//! What surrounds the data: title, legend, axes, and the note under the figure.
//!
//! From the top: title (at most two lines), legend (rows, wrapped), the y axis' title set
//! horizontally, the plot, the x axis' labels and title, the note. Each part takes the height it
//! needs, and what is left out takes none.

use super::Width;
use super::axis::Scale;
use super::ticks::Ticks;
use crate::svg::{Anchor, Canvas, Label, point, text_width, wrap};

pub(crate) const MARGIN: f64 = 12.0;

/// How a series looks: the legend draws a sample of it.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) class: String,
    pub(crate) dash: &'static str,
    pub(crate) line: bool,
    pub(crate) marker: Option<usize>,
    pub(crate) filled: bool,
}

/// The rectangle data is drawn in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plot {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

/// Draws title and legend; returns the height they took.
pub(crate) fn header(
    canvas: &mut Canvas,
    width: Width,
    title: &str,
    entries: &[(&str, Look)],
) -> f64 {
    let room = width.pixels() - 2.0 * MARGIN;
    let mut y = 6.0;
    for line in wrap(title, 17.0, room, 2) {
        y += 20.0;
        canvas.text("title", (MARGIN, y), Anchor::Start, &line.as_str().into());
    }
    let entries: Vec<_> = entries.iter().filter(|(name, _)| !name.is_empty()).collect();
    if entries.is_empty() {
        return y + 4.0;
    }
    y += 24.0;
    let mut x = MARGIN;
    for (name, look) in entries {
        let lines = wrap(name, 13.0, room - 38.0, 2);
        let widest = lines.iter().map(|line| text_width(line, 13.0)).fold(0.0, f64::max);
        let needs = 38.0 + widest;
        if x > MARGIN && x + needs > MARGIN + room {
            x = MARGIN;
            y += 20.0;
        }
        sample(canvas, look, x, y - 4.5);
        for (n, line) in lines.iter().enumerate() {
            y += if n > 0 { 16.0 } else { 0.0 };
            canvas.text("legend", (x + 34.0, y), Anchor::Start, &line.as_str().into());
        }
        x += needs + 16.0;
    }
    y + 4.0
}

fn sample(canvas: &mut Canvas, look: &Look, x: f64, y: f64) {
    let mut inner = Canvas::default();
    if look.filled {
        inner.rect("bar", x + 4.0, y - 5.5, 20.0, 11.0);
    }
    if look.line {
        inner.line(format!("line {}", look.dash).trim_end(), (x, y), (x + 28.0, y));
    }
    if let Some(shape) = look.marker {
        inner.path("marker", &marker(shape, (x + 14.0, y)));
    }
    canvas.group(&look.class, inner);
}

/// Path data of a marker; each role has its own shape.
pub(crate) fn marker(shape: usize, (x, y): (f64, f64)) -> String {
    let corners = |points: &[(f64, f64)]| {
        let path: Vec<String> = points.iter().map(|(dx, dy)| point((x + dx, y + dy))).collect();
        format!("M{}Z", path.join("L"))
    };
    match shape {
        0 => format!("M{}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", point((x - 4.0, y))),
        1 => corners(&[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)]),
        2 => corners(&[(0.0, -4.8), (4.4, 3.2), (-4.4, 3.2)]),
        3 => corners(&[(0.0, 4.8), (4.4, -3.2), (-4.4, -3.2)]),
        _ => corners(&[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)]),
    }
}

/// Grid, y labels and the y axis' title.
pub(crate) fn y_axis(canvas: &mut Canvas, plot: Plot, scale: &Scale, ticks: &Ticks, title: &str) {
    let room = plot.right - MARGIN;
    if let Some(line) = wrap(title, 12.5, room, 1).first() {
        canvas.text("small", (MARGIN, plot.top - 15.0), Anchor::Start, &line.as_str().into());
    }
    for (value, label) in &ticks.major {
        let y = scale.at(*value);
        canvas.line("grid", (plot.left, y), (plot.right, y));
        canvas.text("small", (plot.left - 7.0, y + 4.0), Anchor::End, label);
    }
    let d: String = ticks.minor.iter().map(|v| tick(plot.left, scale.at(*v), 3.0, 0.0)).collect();
    canvas.path("axis", &d);
}

/// Grid, x labels (every one, or every second and so on where they would touch), line and title.
pub(crate) fn x_axis(canvas: &mut Canvas, plot: Plot, scale: &Scale, ticks: &Ticks, title: &str) {
    let keep = (1..ticks.major.len()).find(|n| fits(scale, ticks, *n)).unwrap_or(usize::MAX);
    for (i, (value, label)) in ticks.major.iter().enumerate() {
        let x = scale.at(*value);
        canvas.line("grid", (x, plot.top), (x, plot.bottom));
        if i % keep == 0 {
            canvas.text("small", (x, plot.bottom + 18.0), Anchor::Middle, label);
        }
    }
    canvas.line("axis", (plot.left, plot.bottom), (plot.right, plot.bottom));
    let minor = ticks.minor.iter().map(|v| tick(scale.at(*v), plot.bottom, 0.0, -3.0));
    let major = ticks.major.iter().map(|(v, _)| tick(scale.at(*v), plot.bottom, 0.0, 4.0));
    canvas.path("axis", &minor.chain(major).collect::<String>());
    if let Some(line) = wrap(title, 12.5, plot.right - MARGIN, 1).first() {
        let middle = (plot.left + plot.right) / 2.0;
        // Centred under the plot, but never out of the figure.
        let half = text_width(line, 12.5) / 2.0;
        let middle = middle.min(plot.right + 8.0 - half).max(MARGIN + half);
        canvas.text("small", (middle, plot.bottom + 38.0), Anchor::Middle, &line.as_str().into());
    }
}

/// Whether every `n`-th label leaves room to the next.
pub(crate) fn fits(scale: &Scale, ticks: &Ticks, n: usize) -> bool {
    let shown: Vec<(f64, f64)> =
        ticks.major.iter().step_by(n).map(|(v, l)| (scale.at(*v), l.width())).collect();
    shown.windows(2).all(|w| w[1].0 - w[0].0 >= (w[0].1 + w[1].1) / 2.0 + 10.0)
}

/// Room for the widest y label.
pub(crate) fn gutter(ticks: &Ticks) -> f64 {
    let widest = ticks.major.iter().map(|(_, label)| label.width()).fold(0.0, f64::max);
    (widest + 16.0).max(34.0)
}

/// Lines at the foot of the figure, for what the reader must know of the data; returns where the
/// figure ends.
pub(crate) fn note(canvas: &mut Canvas, width: Width, top: f64, text: &str) -> f64 {
    let mut y = top;
    for line in wrap(text, 12.5, width.pixels() - 2.0 * MARGIN, 2) {
        y += 17.0;
        canvas.text("small", (MARGIN, y), Anchor::Start, &line.as_str().into());
    }
    if y > top { y + 8.0 } else { y }
}

/// The figure of no data.
pub(crate) fn no_data(canvas: &mut Canvas, plot: Plot) {
    let d = format!(
        "M{}L{}L{}L{}Z",
        point((plot.left, plot.top)),
        point((plot.right, plot.top)),
        point((plot.right, plot.bottom)),
        point((plot.left, plot.bottom))
    );
    canvas.path("grid", &d);
    let middle = ((plot.left + plot.right) / 2.0, (plot.top + plot.bottom) / 2.0 + 4.0);
    canvas.text("small", middle, Anchor::Middle, &Label::from("no data"));
}

fn tick(x: f64, y: f64, dx: f64, dy: f64) -> String {
    format!("M{}L{}", point((x, y)), point((x + dx, y + dy)))
}
