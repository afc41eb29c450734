//! A checked schema: what each column of a table means.

use std::fs;
use std::path::Path;

use geodp_nn::Loss;
use serde::Deserialize;

use super::date::Moment;
use super::file::SchemaFile;
use super::{Names, nearest};
use crate::DataError;
use crate::files::shown;

/// Where numbers of a declared range go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumericScale {
    /// To \[0, 1\].
    #[default]
    Unit,
    /// To \[−1, 1\].
    Symmetric,
}

/// What a feature column holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FeatureKind {
    /// A number in a declared range; one input.
    Numeric {
        /// Lower end of the range.
        low: f64,
        /// Upper end of the range.
        high: f64,
    },
    /// One of the declared values; one input for each, and one for anything else.
    Categorical {
        /// The declared values.
        values: Names,
    },
    /// A date in a declared range; one input.
    Date {
        /// First day, in days since 1970-01-01.
        first: i64,
        /// Last day.
        last: i64,
    },
    /// Yes or no; one input.
    Boolean,
}

/// What is done where a cell is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Missing {
    /// The table is refused.
    #[default]
    Refuse,
    /// The row is left out, and counted.
    Skip,
    /// It is a category of its own: one more input.
    Category,
    /// This value is taken (of a date, days since 1970-01-01), and one more input is 1.
    Value(f64),
}

/// A column that becomes inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Feature {
    /// The column's heading.
    pub column: String,
    /// What it holds.
    pub kind: FeatureKind,
    /// What is done where it is missing.
    pub missing: Missing,
}

impl Feature {
    /// How many inputs it becomes.
    pub fn width(&self) -> usize {
        let own = match &self.kind {
            FeatureKind::Categorical { values } => values.list().len() + 1,
            _ => 1,
        };
        own + usize::from(matches!(self.missing, Missing::Category | Missing::Value(_)))
    }

    /// Part of the schema's line; what has no treatment of missing cells reads as it always did.
    fn describe(&self) -> String {
        let column = &self.column;
        let kind = match &self.kind {
            FeatureKind::Numeric { low, high } => format!("; {column:?} {low}..{high}"),
            FeatureKind::Categorical { values } => format!("; {column:?} {:?}", values.list()),
            FeatureKind::Date { first, last } => format!("; {column:?} days {first}..{last}"),
            FeatureKind::Boolean => format!("; {column:?} boolean"),
        };
        match self.missing {
            Missing::Refuse => kind,
            Missing::Skip => kind + " missing skipped",
            Missing::Category => kind + " missing a category",
            Missing::Value(value) => format!("{kind} missing {value}"),
        }
    }
}

/// What is learnt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Label {
    /// One of these classes.
    Classes(Names),
    /// A number.
    Range {
        /// Its declared range.
        range: [f64; 2],
        /// What being off by some costs.
        loss: Loss,
    },
}

/// The privacy unit: all rows with the same content of a column.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// The column's heading.
    pub column: String,
    /// How many rows of a unit are used in a step at most.
    pub most_rows: usize,
}

/// A checked schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    pub(crate) scale: NumericScale,
    pub(crate) delimiter: Option<u8>,
    pub(crate) na: Names,
    pub(crate) label_column: String,
    pub(crate) label: Label,
    pub(crate) label_missing: Missing,
    pub(crate) unit: Option<Unit>,
    pub(crate) features: Vec<Feature>,
    pub(crate) looked: bool,
    pub(crate) text: String,
}

impl Schema {
    /// Reads a schema file.
    pub fn load(path: &Path) -> Result<Self, DataError> {
        let text = fs::read_to_string(path).map_err(DataError::io("read", path))?;
        Self::parse(&shown(path), &text)
    }

    /// Reads the text of a schema file; `file` is its name in messages.
    pub fn parse(file: &str, text: &str) -> Result<Self, DataError> {
        let problem = |problem| DataError::Schema { file: file.to_owned(), problem };
        let raw: SchemaFile = toml::from_str(text)
            .map_err(|error| problem(nearest::explain_key(&error.to_string())))?;
        let schema = raw.check().map_err(problem)?;
        Ok(Schema { text: text.to_owned(), ..schema })
    }

    /// The text it was read from, for whoever keeps a copy.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where numbers of a declared range go.
    pub fn scale(&self) -> NumericScale {
        self.scale
    }

    /// Heading of the label column.
    pub fn label(&self) -> &str {
        &self.label_column
    }

    /// What the label is.
    pub fn label_kind(&self) -> &Label {
        &self.label
    }

    /// The classes, in the order of their labels; none if a number is learnt.
    pub fn classes(&self) -> &[String] {
        match &self.label {
            Label::Classes(names) => names.list(),
            Label::Range { .. } => &[],
        }
    }

    /// The feature columns, in the order of their inputs.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// The privacy unit, where it is not the row.
    pub fn unit(&self) -> Option<&Unit> {
        self.unit.as_ref()
    }

    /// Whether ranges and values were read from the records. That was not private, and every
    /// statement about a model made with this schema has to say so.
    pub fn looked(&self) -> bool {
        self.looked
    }

    /// How many inputs a record becomes.
    pub fn input_len(&self) -> usize {
        self.features.iter().map(Feature::width).sum()
    }

    /// The schema in one line, part of a dataset's fingerprint.
    pub(crate) fn describe(&self) -> String {
        let features: String = self.features.iter().map(Feature::describe).collect();
        let scale = match self.scale {
            NumericScale::Unit => "unit",
            NumericScale::Symmetric => "symmetric",
        };
        let na = match self.na.list() {
            [] => String::new(),
            names => format!("; missing are {names:?}"),
        };
        let label = match self.label {
            Label::Classes(_) => String::new(),
            Label::Range { range: [low, high], .. } => format!("; label {low}..{high}"),
        };
        format!("table {scale}{features}{na}{label}")
    }
}

impl FeatureKind {
    /// Ends of the range that goes to \[0, 1\], of dates in days since 1970-01-01; `None` for categories.
    pub fn range(&self) -> Option<[f64; 2]> {
        match self {
            FeatureKind::Numeric { low, high } => Some([*low, *high]),
            FeatureKind::Date { first, last } => Some([*first as f64, *last as f64]),
            FeatureKind::Boolean => Some([0.0, 1.0]),
            FeatureKind::Categorical { .. } => None,
        }
    }

    /// The number that a declared replacement of missing cells is.
    pub(crate) fn replacement(&self, text: &str) -> Result<f64, String> {
        let number = match self {
            FeatureKind::Numeric { .. } => text.parse().ok().filter(|v: &f64| v.is_finite()),
            FeatureKind::Date { .. } => Moment::parse(text).map(Moment::days),
            FeatureKind::Boolean => truth(text).map(|truth| f64::from(u8::from(truth))),
            FeatureKind::Categorical { .. } => None,
        };
        let Some([low, high]) = self.range() else {
            return Err("missing = \"category\", \"skip\" or \"refuse\" is for values".to_owned());
        };
        number.filter(|number| (low..=high).contains(number)).ok_or_else(|| {
            format!("missing = {text:?} is none of \"skip\", \"refuse\" and a value in its range")
        })
    }
}

/// Yes or no, as tables write it.
pub(crate) fn truth(text: &str) -> Option<bool> {
    const YES: [&str; 5] = ["true", "yes", "t", "y", "1"];
    const NO: [&str; 5] = ["false", "no", "f", "n", "0"];
    let is = |words: [&str; 5]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match text.parse() {
        Ok(1.0) => Some(true),
        Ok(0.0) => Some(false),
        _ if is(YES) => Some(true),
        _ if is(NO) => Some(false),
        _ => None,
    }
}
