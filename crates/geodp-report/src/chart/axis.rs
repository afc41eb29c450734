//! One axis: its title and unit, linear or logarithmic, and how a value becomes a position.

use super::ticks::{self, LARGEST, Ticks};

/// An axis before the data is known.
///
/// ```
/// use geodp_report::Axis;
/// let sigma = Axis::log("noise multiplier σ");
/// let accuracy = Axis::linear("test accuracy").unit("%").range(0.0, 100.0);
/// ```
#[derive(Clone, Debug)]
pub struct Axis {
    title: String,
    unit: Option<String>,
    pub(crate) log: bool,
    pub(crate) range: Option<(f64, f64)>,
    floor: Option<f64>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(title: impl Into<String>) -> Axis {
        Axis { title: title.into(), unit: None, log: false, range: None, floor: None }
    }

    /// A logarithmic axis; values that are not positive are left out, and the figure says so.
    pub fn log(title: impl Into<String>) -> Axis {
        Axis { log: true, ..Axis::linear(title) }
    }

    /// The unit, shown after the title.
    pub fn unit(mut self, unit: impl Into<String>) -> Axis {
        self.unit = Some(unit.into());
        self
    }

    /// Shows at least `lo` to `hi` and nothing beyond the round numbers around them. A range an
    /// axis cannot have (not finite, empty, not positive on a log axis) is ignored.
    pub fn range(mut self, lo: f64, hi: f64) -> Axis {
        self.range = (self.can_show(lo) && self.can_show(hi) && lo < hi).then_some((lo, hi));
        self
    }

    /// Draws everything below `floor` at `floor`: zeros on a log axis stay in sight.
    pub fn floor(mut self, floor: f64) -> Axis {
        self.floor = self.can_show(floor).then_some(floor);
        self
    }

    /// Title with its unit.
    pub(crate) fn heading(&self) -> String {
        match &self.unit {
            Some(unit) => format!("{} [{unit}]", self.title),
            None => self.title.clone(),
        }
    }

    /// The value as it will be drawn, or nothing if it cannot be.
    pub(crate) fn admit(&self, value: f64) -> Option<f64> {
        let value = match self.floor {
            Some(floor) if value < floor => floor,
            _ => value,
        };
        self.can_show(value).then_some(value)
    }

    fn can_show(&self, value: f64) -> bool {
        if self.log { (LARGEST.recip()..=LARGEST).contains(&value) } else { value.abs() <= LARGEST }
    }

    /// Ticks over the given values (already admitted), or nothing where there are none.
    pub(crate) fn ticks(&self, values: impl Iterator<Item = f64>, wished: usize) -> Option<Ticks> {
        let (lo, hi) = match self.range {
            Some(range) => range,
            None => values.fold(None, |range: Option<(f64, f64)>, v| {
                Some(range.map_or((v, v), |(lo, hi)| (lo.min(v), hi.max(v))))
            })?,
        };
        Some(if self.log { ticks::log(lo, hi, wished) } else { ticks::linear(lo, hi, wished) })
    }
}

/// An axis with its ticks, laid over pixels.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    log: bool,
    from: f64,
    to: f64,
    pixels: (f64, f64),
}

impl Scale {
    /// Maps the ticks' span to `pixels` (start, end).
    pub(crate) fn new(axis: &Axis, ticks: &Ticks, pixels: (f64, f64)) -> Scale {
        let (from, to) = ticks.span();
        let turn = |v: f64| if axis.log { v.log10() } else { v };
        Scale { log: axis.log, from: turn(from), to: turn(to), pixels }
    }

    /// The position of an admitted value, kept near the plot so that coordinates stay short.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let value = if self.log { value.log10() } else { value };
        let share = ((value - self.from) / (self.to - self.from)).clamp(-2.0, 3.0);
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// Where the axis starts.
    pub(crate) fn start(&self) -> f64 {
        self.pixels.0
    }

    /// The position of an interval's end: a value a log axis cannot show lies beyond its start.
    pub(crate) fn end_at(&self, value: f64) -> f64 {
        if self.log && value <= 0.0 { self.at(LARGEST.recip()) } else { self.at(value) }
    }
}
