//! Grouped horizontal bars with error bars: results by method, one bar a protocol or a setting.
//!
//! Bars lie down so that long names of methods read straight, start at zero so that lengths
//! compare, and carry their value as a number, because lengths near each other do not.

use super::axis::{Axis, Scale};
use super::frame::{self, Look, MARGIN, Plot};
use super::{Figure, Width};
use crate::csv;
use crate::format::{group, significant, with_minus};
use crate::svg::{Anchor, Canvas, Svg, point, text_width, wrap};
use crate::theme::{Role, variants};

const BAR: f64 = 15.0;
const LINE: f64 = 16.0;

/// A value and, where it has one, its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    value: f64,
    bounds: Option<(f64, f64)>,
}

impl Estimate {
    /// A value with an interval of equal halves.
    pub fn plus_minus(value: f64, half: f64) -> Estimate {
        Estimate::between(value, value - half, value + half)
    }

    /// A value with its interval.
    pub fn between(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, bounds: Some((low, high)) }
    }
}

impl From<f64> for Estimate {
    fn from(value: f64) -> Estimate {
        Estimate { value, bounds: None }
    }
}

/// A bar chart.
///
/// ```
/// use geodp_report::{Axis, Bars, Estimate, Figure, Role};
/// let figure = Bars::new("Test accuracy", Axis::linear("accuracy").unit("%"), ["DP", "GeoDP"])
///     .group("published", Role::Neutral, [88.12, 93.58])
///     .group("here", Role::Dp, [Estimate::plus_minus(90.1, 0.4), Estimate::plus_minus(91.0, 0.3)]);
/// assert!(figure.csv().starts_with("category,group,accuracy [%],low,high\nDP,published,88.12,,\n"));
/// ```
#[derive(Clone, Debug)]
pub struct Bars {
    title: String,
    axis: Axis,
    categories: Vec<String>,
    groups: Vec<(String, Role, Vec<Estimate>)>,
}

impl Bars {
    /// Bars over an axis, with the categories from top to bottom.
    pub fn new(
        title: impl Into<String>,
        mut axis: Axis,
        categories: impl IntoIterator<Item: Into<String>>,
    ) -> Bars {
        let categories = categories.into_iter().map(Into::into).collect();
        // Bars on a log axis have no honest start.
        axis.log = false;
        Bars { title: title.into(), axis, categories, groups: vec![] }
    }

    /// One bar in every category, in their order; missing ones stay empty.
    pub fn group(
        mut self,
        name: impl Into<String>,
        role: Role,
        values: impl IntoIterator<Item: Into<Estimate>>,
    ) -> Bars {
        self.groups.push((name.into(), role, values.into_iter().map(Into::into).collect()));
        self
    }

    fn shown(&self) -> impl Iterator<Item = &Estimate> {
        self.groups.iter().flat_map(|(_, _, v)| v.iter().take(self.categories.len()))
    }

    fn drawn(&self, estimate: Estimate, decimals: Option<usize>) -> Drawn {
        let value = self.axis.admit(estimate.value);
        let whole = |(low, high): &(f64, f64)| {
            value.is_some() && self.axis.admit(*low).and(self.axis.admit(*high)).is_some()
        };
        let text = match (value, decimals) {
            (None, _) => "no data".to_owned(),
            (Some(v), Some(decimals)) => group(&with_minus(format!("{v:.decimals$}"))),
            (Some(v), None) => significant(v, 4),
        };
        Drawn { value, bounds: estimate.bounds.filter(whole), text }
    }
}

impl Figure for Bars {
    fn title(&self) -> &str {
        &self.title
    }

    fn svg_at(&self, width: Width) -> Svg {
        let mut canvas = Canvas::default();
        let orders = variants(self.groups.iter().map(|g| g.1));
        let classes: Vec<String> =
            self.groups.iter().zip(orders).map(|(g, order)| g.1.class(order)).collect();
        let entries: Vec<(&str, Look)> = self
            .groups
            .iter()
            .zip(&classes)
            .map(|(group, class)| {
                let class = class.clone();
                (
                    group.0.as_str(),
                    Look { class, dash: "", line: false, marker: None, filled: true },
                )
            })
            .collect();
        let top = frame::header(&mut canvas, width, &self.title, &entries) + 14.0;
        let values: Vec<f64> = self.shown().filter_map(|e| self.axis.admit(e.value)).collect();
        let bounds = self.shown().filter_map(|e| e.bounds).flat_map(|(low, high)| [low, high]);
        let bounds: Vec<f64> = bounds.filter_map(|v| self.axis.admit(v)).collect();
        let negative = values.iter().chain(&bounds).any(|v| *v < 0.0);
        let names = Names::new(&self.categories, width, negative);
        let bars_height = self.groups.len() as f64 * BAR;
        let heights: Vec<f64> = names.lines.iter().map(|l| names.height(l, bars_height)).collect();
        let zero_and = values.iter().chain(&bounds).copied().chain([0.0]);
        let right = width.pixels() - MARGIN - 14.0;
        let wished = if width == Width::Wide { 6 } else { 4 };
        let decimals = decimals(&values);
        let mut bottom = top + heights.iter().sum::<f64>();
        match self.axis.ticks(zero_and, wished).filter(|_| !values.is_empty()) {
            Some(ticks) => {
                // Room for the numbers beyond the longest bar.
                let plot = Plot { left: names.column, right: right - 50.0, top, bottom };
                let scale = Scale::new(&self.axis, &ticks, (plot.left, plot.right));
                frame::x_axis(&mut canvas, plot, &scale, &ticks, &self.axis.heading());
                let mut y = top;
                for (i, height) in heights.iter().enumerate() {
                    let bars_top = names.draw(&mut canvas, i, y, *height, bars_height);
                    for (g, class) in classes.iter().enumerate() {
                        if let Some(estimate) = self.groups[g].2.get(i) {
                            let y = bars_top + g as f64 * BAR;
                            bar(&mut canvas, class, &scale, y, &self.drawn(*estimate, decimals));
                        }
                    }
                    y += height;
                }
                let zero = scale.at(0.0);
                canvas.line("axis", (zero, top), (zero, bottom));
                bottom += 48.0;
            }
            None => {
                bottom = top + 160.0;
                let plot = Plot { left: MARGIN, right: right + 14.0, top, bottom };
                frame::no_data(&mut canvas, plot);
                bottom += MARGIN;
            }
        }
        let summary =
            format!("{} by category: {}.", self.axis.heading(), self.categories.join(", "));
        Svg::new(width.pixels(), bottom, &self.title, &summary, canvas)
    }

    fn csv(&self) -> String {
        let header = ["category", "group", &self.axis.heading(), "low", "high"];
        let rows = self.categories.iter().enumerate().flat_map(|(i, category)| {
            self.groups.iter().filter_map(move |(name, _, values)| {
                let Estimate { value, bounds } = *values.get(i)?;
                let end = |b: Option<f64>| b.map_or(String::new(), csv::number);
                let (low, high) = (end(bounds.map(|b| b.0)), end(bounds.map(|b| b.1)));
                Some([category.clone(), name.clone(), csv::number(value), low, high])
            })
        });
        csv::to_csv(header, rows)
    }
}

/// The categories' names: a column beside the bars where there is room, else lines above them.
struct Names {
    lines: Vec<Vec<String>>,
    above: bool,
    column: f64,
}

impl Names {
    fn new(categories: &[String], width: Width, negative: bool) -> Names {
        let above = width == Width::Narrow;
        let room = if above { width.pixels() - 3.0 * MARGIN } else { 0.34 * width.pixels() };
        let lines: Vec<Vec<String>> = categories.iter().map(|c| wrap(c, 13.0, room, 2)).collect();
        let widest = lines.iter().flatten().map(|l| text_width(l, 13.0)).fold(0.0, f64::max);
        // The label of a first tick at a negative number needs room to its left.
        let column =
            if above { MARGIN + if negative { 14.0 } else { 2.0 } } else { MARGIN + widest + 12.0 };
        Names { lines, above, column }
    }

    fn height(&self, lines: &[String], bars: f64) -> f64 {
        let text = lines.len() as f64 * LINE;
        if self.above { text + bars + 14.0 } else { text.max(bars) + 12.0 }
    }

    /// Draws the name of category `i` and returns where its bars start.
    fn draw(&self, canvas: &mut Canvas, i: usize, y: f64, height: f64, bars: f64) -> f64 {
        let text = self.lines[i].len() as f64 * LINE;
        let (x, anchor, first) = if self.above {
            (MARGIN, Anchor::Start, y + 16.0)
        } else {
            (self.column - 10.0, Anchor::End, y + (height - text) / 2.0 + 12.0)
        };
        for (n, line) in self.lines[i].iter().enumerate() {
            let class = if self.above { "halo name" } else { "name" };
            canvas.text(class, (x, first + n as f64 * LINE), anchor, &line.as_str().into());
        }
        if self.above { y + text + 5.0 } else { y + (height - bars) / 2.0 }
    }
}

/// A bar ready to draw: where it ends, its whiskers, and its number.
struct Drawn {
    value: Option<f64>,
    bounds: Option<(f64, f64)>,
    text: String,
}

fn bar(canvas: &mut Canvas, class: &str, scale: &Scale, y: f64, drawn: &Drawn) {
    let zero = scale.at(0.0);
    let middle = y + BAR / 2.0;
    let mut end = zero;
    if let Some(value) = drawn.value {
        let at = scale.at(value);
        let mut inner = Canvas::default();
        inner.rect("bar", zero.min(at), y + 1.0, (at - zero).abs(), BAR - 2.0);
        canvas.group(class, inner);
        end = at.max(zero);
    }
    if let Some((low, high)) = drawn.bounds {
        let (from, to) = (scale.at(low), scale.at(high));
        let caps = [from, to].map(|x| format!("M{}v6", point((x, middle - 3.0)))).concat();
        let whisker = format!("M{}L{}{caps}", point((from, middle)), point((to, middle)));
        canvas.path("error", &whisker);
        end = end.max(to);
    }
    canvas.text("small", (end + 6.0, middle + 4.5), Anchor::Start, &drawn.text.as_str().into());
}

/// The decimals that show four significant digits of the largest value, less zeros that all the
/// values end in; nothing where plain decimals would be too long or too short.
fn decimals(values: &[f64]) -> Option<usize> {
    let largest = values.iter().fold(0.0_f64, |a, v| a.max(v.abs()));
    let most = match largest {
        0.0 => 0,
        l if (1e-3..1e6).contains(&l) => (3 - l.log10().floor() as i32).max(0) as usize,
        _ => return None,
    };
    let needed = |v: &f64| {
        let text = format!("{v:.most$}");
        text.split_once('.').map_or(0, |(_, decimals)| decimals.trim_end_matches('0').len())
    };
    Some(values.iter().map(needed).max().unwrap_or(0))
}
