//! One cell, from text or typed, and the inputs it becomes.
//!
//! CSV has text alone, Parquet has types. Both go through here, and a typed value becomes exactly what
//! its text would: that is why a table gives the same bits in both formats.

use super::date::Moment;
use super::decimal::decimal;
use super::schema::{Missing, truth};
use super::{ColumnReport, Feature, FeatureKind, Names, NumericScale};

/// What stands in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Missing,
    /// Trimmed, and not one of the words for missing.
    Text(&'a str),
    /// A plain decimal as it is written, and the number it is.
    Decimal(&'a [u8], f64),
    Integer(i64),
    Number(f64),
    Truth(bool),
    Moment(Moment),
}

/// What a cell led to.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Inputs,
    /// The row is to be left out.
    Skip,
}

impl<'a> Cell<'a> {
    /// A text cell: trimmed, and missing if it is empty or one of the declared words.
    #[inline]
    pub(crate) fn of_text(text: &'a str, na: &Names) -> Self {
        let text = text.trim();
        if text.is_empty() || (!na.list().is_empty() && na.position(text).is_some()) {
            Cell::Missing
        } else {
            Cell::Text(text)
        }
    }

    /// A text cell that may be a plain decimal, which then need not be read again.
    #[inline]
    pub(crate) fn of_bytes(bytes: &'a [u8], na: &Names) -> Result<Self, String> {
        if na.list().is_empty()
            && let Some(number) = decimal(bytes)
        {
            return Ok(Cell::Decimal(bytes, number));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Cell::of_text(text, na)),
            Err(_) => Err("text that is not UTF-8; save the file as UTF-8".to_owned()),
        }
    }

    /// A number; what is not finite is missing.
    #[inline]
    pub(crate) fn of_number(number: f64, na: &Names) -> Self {
        let missing = !number.is_finite() || (!na.list().is_empty() && na.number(number).is_some());
        if missing { Cell::Missing } else { Cell::Number(number) }
    }

    /// An integer.
    #[inline]
    pub(crate) fn of_integer(number: i64, na: &Names) -> Self {
        let missing = !na.list().is_empty() && na.number(number as f64).is_some();
        if missing { Cell::Missing } else { Cell::Integer(number) }
    }

    /// As a text table would write it.
    pub(crate) fn text(&self) -> String {
        match self {
            Cell::Missing => String::new(),
            Cell::Text(text) => (*text).to_owned(),
            Cell::Decimal(bytes, _) => written(bytes).to_owned(),
            Cell::Integer(number) => number.to_string(),
            Cell::Number(number) => number.to_string(),
            Cell::Truth(truth) => if *truth { "True" } else { "False" }.to_owned(),
            Cell::Moment(moment) => moment.date(),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Cell::Text(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
            Cell::Integer(number) => Some(*number as f64),
            Cell::Decimal(_, number) | Cell::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn days(&self) -> Option<f64> {
        match self {
            Cell::Text(text) => Moment::parse(text).map(Moment::days),
            Cell::Decimal(bytes, _) => Moment::parse(written(bytes)).map(Moment::days),
            Cell::Moment(moment) => Some(moment.days()),
            _ => None,
        }
    }

    fn truth(&self) -> Option<bool> {
        match self {
            Cell::Text(text) => truth(text),
            Cell::Decimal(bytes, _) => truth(written(bytes)),
            Cell::Truth(truth) => Some(*truth),
            Cell::Integer(0) | Cell::Number(0.0) => Some(false),
            Cell::Integer(1) | Cell::Number(1.0) => Some(true),
            _ => None,
        }
    }

    fn name(&self, names: &Names) -> Option<usize> {
        match self {
            Cell::Text(text) => names.position(text),
            Cell::Decimal(bytes, _) => names.position(written(bytes)),
            Cell::Number(number) => names.number(*number),
            other => names.position(&other.text()),
        }
    }

    /// In a message: enough of it to be found.
    fn quoted(&self) -> String {
        let text = self.text();
        let short: String = text.chars().take(40).collect();
        if short.len() < text.len() { format!("{short:?}…") } else { format!("{short:?}") }
    }

    /// Appends the inputs of this cell in a feature's column.
    #[inline]
    pub(crate) fn encode(
        &self,
        feature: &Feature,
        scale: NumericScale,
        counts: &mut ColumnReport,
        inputs: &mut Vec<f32>,
    ) -> Result<Outcome, String> {
        if *self == Cell::Missing {
            return missing(feature, scale, counts, inputs);
        }
        let needed = |number: Option<f64>, what: &str| {
            number.ok_or_else(|| format!("{} is not {what}", self.quoted()))
        };
        let number = match &feature.kind {
            FeatureKind::Numeric { .. } => {
                let number = self.number().ok_or_else(|| {
                    let hint = match self.days() {
                        Some(_) => "; declare the column with dates = [first, last]",
                        None => "",
                    };
                    format!("{} is not a number{hint}", self.quoted())
                });
                number?
            }
            FeatureKind::Date { .. } => needed(self.days(), "a date as 2025-12-31")?,
            FeatureKind::Boolean => {
                needed(self.truth().map(|truth| f64::from(u8::from(truth))), "true or false")?
            }
            FeatureKind::Categorical { values } => {
                let found = self.name(values);
                counts.other += u64::from(found.is_none());
                one_hot(found.unwrap_or(values.list().len()), feature, inputs);
                return Ok(Outcome::Inputs);
            }
        };
        let [low, high] = feature.kind.range().unwrap_or([0.0, 1.0]);
        // The last day of a range ends with it, not when it begins.
        let end = if matches!(feature.kind, FeatureKind::Date { .. }) { high + 1.0 } else { high };
        counts.below += u64::from(number < low);
        counts.above += u64::from(number > high && number >= end);
        inputs.push(scaled(number, [low, high], scale));
        if matches!(feature.missing, Missing::Value(_)) {
            inputs.push(0.0);
        }
        Ok(Outcome::Inputs)
    }

    /// The class that this cell of the label column is.
    pub(crate) fn class(&self, classes: &Names) -> Result<u32, String> {
        self.name(classes).map(|class| class as u32).ok_or_else(|| {
            format!("{} is not one of the declared classes {:?}", self.quoted(), classes.list())
        })
    }

    /// The number that this cell of the label column is.
    pub(crate) fn target(&self) -> Result<f64, String> {
        self.number().ok_or_else(|| format!("{} is not a number", self.quoted()))
    }
}

/// A decimal's characters, all of which are ASCII.
fn written(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

fn missing(
    feature: &Feature,
    scale: NumericScale,
    counts: &mut ColumnReport,
    inputs: &mut Vec<f32>,
) -> Result<Outcome, String> {
    counts.missing += 1;
    match (feature.missing, &feature.kind) {
        (Missing::Refuse, _) => Err(
            "the cell is empty; fill it, or declare missing = \"skip\", a value, or for values \"category\"".to_owned(),
        ),
        (Missing::Skip, _) => Ok(Outcome::Skip),
        (Missing::Category, FeatureKind::Categorical { values }) => {
            one_hot(values.list().len() + 1, feature, inputs);
            Ok(Outcome::Inputs)
        }
        (Missing::Category, _) => Err("missing = \"category\" is for values".to_owned()),
        (Missing::Value(value), kind) => {
            inputs.push(scaled(value, kind.range().unwrap_or([0.0, 1.0]), scale));
            inputs.push(1.0);
            Ok(Outcome::Inputs)
        }
    }
}

fn one_hot(hot: usize, feature: &Feature, inputs: &mut Vec<f32>) {
    inputs.extend((0..feature.width()).map(|at| if at == hot { 1.0 } else { 0.0 }));
}

/// A clamped number of a range, scaled.
#[inline]
pub(crate) fn scaled(number: f64, [low, high]: [f64; 2], scale: NumericScale) -> f32 {
    let unit = (number.clamp(low, high) - low) / (high - low);
    match scale {
        NumericScale::Unit => unit as f32,
        NumericScale::Symmetric => (2.0 * unit - 1.0) as f32,
    }
}
