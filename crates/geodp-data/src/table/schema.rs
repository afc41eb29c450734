//! The schema file: what each column means, checked once.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::Names;
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
}

/// A column that becomes inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Feature {
    /// The column's heading.
    pub column: String,
    /// What it holds.
    pub kind: FeatureKind,
}

impl Feature {
    /// How many inputs it becomes.
    pub fn width(&self) -> usize {
        match &self.kind {
            FeatureKind::Numeric { .. } => 1,
            FeatureKind::Categorical { values } => values.list().len() + 1,
        }
    }
}

/// A checked schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    pub(super) scale: NumericScale,
    pub(super) delimiter: u8,
    pub(super) label: String,
    pub(super) classes: Names,
    pub(super) features: Vec<Feature>,
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
        let raw: SchemaFile = toml::from_str(text).map_err(|error| problem(error.to_string()))?;
        raw.check().map_err(problem)
    }

    /// Heading of the label column.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The classes, in the order of their labels.
    pub fn classes(&self) -> &[String] {
        self.classes.list()
    }

    /// The feature columns, in the order of their inputs.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// How many inputs a record becomes.
    pub fn input_len(&self) -> usize {
        self.features.iter().map(Feature::width).sum()
    }

    /// The schema in one line, part of a dataset's fingerprint.
    pub(super) fn describe(&self) -> String {
        let feature = |feature: &Feature| match &feature.kind {
            FeatureKind::Numeric { low, high } => format!("; {:?} {low}..{high}", feature.column),
            FeatureKind::Categorical { values } => {
                format!("; {:?} {:?}", feature.column, values.list())
            }
        };
        let features: String = self.features.iter().map(feature).collect();
        let scale = match self.scale {
            NumericScale::Unit => "unit",
            NumericScale::Symmetric => "symmetric",
        };
        format!("table {scale}{features}")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaFile {
    #[serde(default)]
    scale: NumericScale,
    #[serde(default = "comma")]
    delimiter: char,
    label: LabelFile,
    #[serde(default)]
    feature: Vec<FeatureFile>,
}

fn comma() -> char {
    ','
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelFile {
    column: String,
    classes: Vec<Name>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeatureFile {
    column: String,
    range: Option<Vec<f64>>,
    values: Option<Vec<Name>>,
}

/// A value as it stands in a cell; `0` and `true` need no quotes in the schema.
#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Integer(i64),
    Boolean(bool),
}

impl Name {
    fn text(self) -> String {
        match self {
            Name::Text(text) => text.trim().to_owned(),
            Name::Integer(number) => number.to_string(),
            Name::Boolean(truth) => truth.to_string(),
        }
    }
}

impl SchemaFile {
    fn check(self) -> Result<Schema, String> {
        let delimiter = u8::try_from(self.delimiter)
            .ok()
            .filter(|byte| byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r'))
            .ok_or_else(|| format!("delimiter {:?} is not a plain character", self.delimiter))?;
        let classes = distinct("label", self.label.classes)?;
        if classes.list().len() < 2 {
            return Err("label: declare at least two classes".to_owned());
        }
        if self.feature.is_empty() {
            return Err("no [[feature]]: declare at least one column to learn from".to_owned());
        }
        let mut seen = HashSet::from([self.label.column.clone()]);
        let mut features = Vec::with_capacity(self.feature.len());
        for feature in self.feature {
            if !seen.insert(feature.column.clone()) {
                return Err(format!("column {:?} is declared twice", feature.column));
            }
            features.push(feature.check()?);
        }
        Ok(Schema { scale: self.scale, delimiter, label: self.label.column, classes, features })
    }
}

impl FeatureFile {
    fn check(self) -> Result<Feature, String> {
        let column = self.column;
        let kind = match (self.range, self.values) {
            (Some(range), None) => {
                let [low, high] = range[..] else {
                    return Err(format!("column {column:?}: a range is two numbers, [low, high]"));
                };
                if !(low.is_finite() && high.is_finite() && (high - low).is_finite() && low < high)
                {
                    return Err(format!(
                        "column {column:?}: range [{low}, {high}] must be two finite numbers, the smaller first"
                    ));
                }
                FeatureKind::Numeric { low, high }
            }
            (None, Some(values)) => {
                let values = distinct(&column, values)?;
                if values.list().is_empty() {
                    return Err(format!("column {column:?}: declare at least one value"));
                }
                FeatureKind::Categorical { values }
            }
            _ => {
                return Err(format!(
                    "column {column:?}: give either range = [low, high] or values = [\"a\", \"b\"]"
                ));
            }
        };
        Ok(Feature { column, kind })
    }
}

fn distinct(column: &str, names: Vec<Name>) -> Result<Names, String> {
    let names = names.into_iter().map(Name::text).collect();
    Names::new(names).map_err(|problem| format!("{column}: {problem}"))
}
