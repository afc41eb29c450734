//! Charts: data, axes and marked lines in; an SVG or a CSV out.
//!
//! A [`Chart`] is plain data until [`Figure::svg_at`] lays it out for a width. Nothing it is given
//! can make it fail: what cannot be drawn is left out and counted in a note under the figure, and
//! a chart of nothing says "no data".

mod axis;
mod bars;
mod draw;
mod frame;
mod histogram;
mod marks;
mod paint;
mod panels;
mod series;
mod ticks;

pub use axis::Axis;
pub use bars::{Bars, Estimate};
pub use histogram::Histogram;
pub use panels::Panels;
pub use series::Series;

use crate::csv;
use crate::svg::Svg;
use crate::theme::Role;

/// The width a figure is laid out for: same data and colours, fewer ticks and shorter lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 680 pixels: a page, a screen, paper.
    Wide,
    /// 340 pixels: a phone.
    Narrow,
}

impl Width {
    pub(crate) fn pixels(self) -> f64 {
        match self {
            Width::Wide => 680.0,
            Width::Narrow => 340.0,
        }
    }
}

/// Anything that can stand in a report as a picture and beside it as rows.
pub trait Figure {
    /// What the figure shows, in a line.
    fn title(&self) -> &str;
    /// The picture, laid out for a width.
    fn svg_at(&self, width: Width) -> Svg;
    /// The data, a header and one row a point.
    fn csv(&self) -> String;
    /// The picture at its usual width; `to_string()` on it gives a file.
    fn svg(&self) -> Svg {
        self.svg_at(Width::Wide)
    }
}

/// A line across the plot that marks one value.
#[derive(Clone, Debug)]
struct Mark {
    vertical: bool,
    at: f64,
    label: String,
}

/// A chart over two axes; see the [crate's example](crate).
#[derive(Clone, Debug)]
pub struct Chart {
    title: String,
    description: Option<String>,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    marks: Vec<Mark>,
}

impl Chart {
    /// An empty chart over its two axes.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Chart {
        let title = title.into();
        Chart { title, description: None, x, y, series: Vec::new(), marks: Vec::new() }
    }

    /// A receiver operating characteristic on log axes from `floor` to 1, with the line of chance.
    /// Add a curve as a line of (false positive rate, true positive rate); rates of zero lie off
    /// the left or lower edge.
    pub fn roc(title: impl Into<String>, floor: f64) -> Chart {
        let floor = if floor > 0.0 && floor < 1.0 { floor.max(1e-12) } else { 1e-3 };
        let axis = |name| Axis::log(name).floor(1e-3 * floor).range(floor, 1.0);
        Chart::new(title, axis("false positive rate"), axis("true positive rate"))
            .series(Series::line("chance", Role::Theory, [(floor, floor), (1.0, 1.0)]))
    }

    /// Adds data.
    pub fn series(mut self, series: Series) -> Chart {
        self.series.push(series);
        self
    }

    /// Marks a value of x by a vertical line with a label, such as `C = 0.1`.
    pub fn mark_x(self, at: f64, label: impl Into<String>) -> Chart {
        self.mark(true, at, label.into())
    }

    /// Marks a value of y by a horizontal line with a label, such as `target ε = 3`.
    pub fn mark_y(self, at: f64, label: impl Into<String>) -> Chart {
        self.mark(false, at, label.into())
    }

    /// What a reader who cannot see the figure should know; a summary of the axes if not given.
    pub fn description(mut self, text: impl Into<String>) -> Chart {
        self.description = Some(text.into());
        self
    }

    fn mark(mut self, vertical: bool, at: f64, label: String) -> Chart {
        self.marks.push(Mark { vertical, at, label });
        self
    }

    fn summary(&self) -> String {
        self.description.clone().unwrap_or_else(|| {
            let names: Vec<&str> = self.series.iter().map(|s| s.name.as_str()).collect();
            let (y, x) = (self.y.heading(), self.x.heading());
            format!("{y} against {x}. Series: {}.", names.join(", "))
        })
    }
}

impl Figure for Chart {
    fn title(&self) -> &str {
        &self.title
    }

    fn svg_at(&self, width: Width) -> Svg {
        draw::draw(self, width)
    }

    /// Columns: series, x (and the end of a histogram's bin), y, and low and high where some
    /// series has them.
    fn csv(&self) -> String {
        let rows: Vec<(&str, series::Row)> = self
            .series
            .iter()
            .flat_map(|s| s.rows().into_iter().map(move |row| (s.name.as_str(), row)))
            .collect();
        let binned = rows.iter().any(|(_, row)| row.x_end.is_some());
        let bounded = rows.iter().any(|(_, row)| row.bounds.is_some());
        let (x, y) = (self.x.heading(), self.y.heading());
        let mut header = vec!["series".to_owned()];
        header.extend(if binned { vec![format!("{x} from"), format!("{x} to")] } else { vec![x] });
        header.push(y);
        header.extend(["low", "high"].into_iter().filter(|_| bounded).map(str::to_owned));
        let cell = |value: Option<f64>| value.map_or(String::new(), csv::number);
        let fields = rows.iter().map(|(name, row)| {
            let mut fields = vec![(*name).to_owned(), csv::number(row.x)];
            fields.extend(binned.then(|| cell(row.x_end)));
            fields.push(csv::number(row.y));
            if bounded {
                fields.push(cell(row.bounds.map(|b| b.0)));
                fields.push(cell(row.bounds.map(|b| b.1)));
            }
            fields
        });
        csv::to_csv(header, fields)
    }
}
