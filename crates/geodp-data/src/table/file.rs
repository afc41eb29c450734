//! The schema file as TOML holds it, and its check.

use std::collections::HashSet;

use geodp_nn::Loss;
use serde::Deserialize;

use super::date::Moment;
use super::schema::{Label, Missing, Unit};
use super::{Feature, FeatureKind, Names, NumericScale, Schema};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SchemaFile {
    #[serde(default)]
    scale: NumericScale,
    delimiter: Option<char>,
    #[serde(default)]
    na: Vec<Name>,
    #[serde(default)]
    missing: Option<Name>,
    #[serde(default)]
    looked: bool,
    label: LabelFile,
    unit: Option<Unit>,
    #[serde(default)]
    feature: Vec<FeatureFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelFile {
    column: String,
    classes: Option<Vec<Name>>,
    range: Option<Vec<f64>>,
    loss: Option<LabelLoss>,
    missing: Option<Name>,
}

/// How far a number may be off.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LabelLoss {
    Squared,
    Huber,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeatureFile {
    column: String,
    range: Option<Vec<f64>>,
    values: Option<Vec<Name>>,
    dates: Option<Vec<String>>,
    boolean: Option<bool>,
    missing: Option<Name>,
}

/// A value as it stands in a cell; `0`, `1.5` and `true` need no quotes in the schema.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Integer(i64),
    Number(f64),
    Boolean(bool),
}

impl Name {
    fn text(self) -> String {
        match self {
            Name::Text(text) => text.trim().to_owned(),
            Name::Integer(number) => number.to_string(),
            Name::Number(number) => number.to_string(),
            Name::Boolean(truth) => truth.to_string(),
        }
    }
}

impl SchemaFile {
    pub(super) fn check(self) -> Result<Schema, String> {
        let delimiter = self.delimiter.map(plain_character).transpose()?;
        let na = self.na.into_iter().map(Name::text).filter(|name| !name.is_empty()).collect();
        let na = Names::new(na).map_err(|problem| format!("na: {problem}"))?;
        let (label, label_missing) = self.label.check()?;
        if self.feature.is_empty() {
            return Err("no [[feature]]: declare at least one column to learn from".to_owned());
        }
        let mut seen = HashSet::from([self.label.column.clone()]);
        if let Some(unit) = &self.unit {
            if unit.most_rows == 0 {
                return Err("unit: most_rows is how many rows of a unit are used in a step; give at least 1".to_owned());
            }
            if !seen.insert(unit.column.clone()) {
                return Err(format!("the unit's column {:?} is the label's", unit.column));
            }
        }
        let mut features = Vec::with_capacity(self.feature.len());
        for feature in self.feature {
            if !seen.insert(feature.column.clone()) {
                return Err(format!("column {:?} is declared twice", feature.column));
            }
            features.push(feature.check(self.missing.clone())?);
        }
        Ok(Schema {
            scale: self.scale,
            delimiter,
            na,
            label_column: self.label.column,
            label,
            label_missing,
            unit: self.unit,
            features,
            looked: self.looked,
            text: String::new(),
        })
    }
}

fn plain_character(delimiter: char) -> Result<u8, String> {
    u8::try_from(delimiter)
        .ok()
        .filter(|byte| byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r'))
        .ok_or_else(|| format!("delimiter {delimiter:?} is not a plain character"))
}

impl LabelFile {
    fn check(&self) -> Result<(Label, Missing), String> {
        let label = match (&self.classes, &self.range) {
            (Some(classes), None) => {
                let classes = distinct("label", classes.clone())?;
                if classes.list().len() < 2 {
                    return Err("label: declare at least two classes".to_owned());
                }
                if self.loss.is_some() {
                    return Err("label: loss goes with range, to learn a number".to_owned());
                }
                Label::Classes(classes)
            }
            (None, Some(range)) => Label::Range {
                range: ordered(range).map_err(|problem| format!("label: {problem}"))?,
                loss: match self.loss {
                    None | Some(LabelLoss::Squared) => Loss::Squared,
                    Some(LabelLoss::Huber) => Loss::Huber,
                },
            },
            _ => {
                return Err("label: give either classes = [\"a\", \"b\"], or range = [low, high] to learn a number".to_owned());
            }
        };
        let missing = match self.missing.clone().map(Name::text).as_deref() {
            None | Some("refuse") => Missing::Refuse,
            Some("skip") => Missing::Skip,
            Some(other) => {
                return Err(format!("label: missing = {other:?}; give \"refuse\" or \"skip\""));
            }
        };
        Ok((label, missing))
    }
}

impl FeatureFile {
    fn check(self, default_missing: Option<Name>) -> Result<Feature, String> {
        let place = |problem: String| format!("column {:?}: {problem}", self.column);
        let kind = match (self.range, self.values, self.dates, self.boolean) {
            (Some(range), None, None, None) => {
                let [low, high] = ordered(&range).map_err(place)?;
                FeatureKind::Numeric { low, high }
            }
            (None, Some(values), None, None) => {
                let values = distinct(&self.column, values)?;
                if values.list().is_empty() {
                    return Err(place("declare at least one value".to_owned()));
                }
                FeatureKind::Categorical { values }
            }
            (None, None, Some(dates), None) => {
                let [first, last] = days(&dates).map_err(place)?;
                FeatureKind::Date { first, last }
            }
            (None, None, None, Some(true)) => FeatureKind::Boolean,
            _ => {
                return Err(place(
                    "give either range = [low, high], values = [\"a\", \"b\"], dates = [\"2000-01-31\", \"2025-12-31\"] or boolean = true".to_owned(),
                ));
            }
        };
        let missing = match self.missing.or(default_missing).map(Name::text).as_deref() {
            None | Some("refuse") => Missing::Refuse,
            Some("skip") => Missing::Skip,
            Some("category") if matches!(kind, FeatureKind::Categorical { .. }) => {
                Missing::Category
            }
            Some(value) => Missing::Value(kind.replacement(value).map_err(place)?),
        };
        Ok(Feature { column: self.column, kind, missing })
    }
}

fn ordered(range: &[f64]) -> Result<[f64; 2], String> {
    let [low, high] = *range else {
        return Err("a range is two numbers, [low, high]".to_owned());
    };
    if !(low.is_finite() && high.is_finite() && (high - low).is_finite() && low < high) {
        return Err(format!("range [{low}, {high}] must be two finite numbers, the smaller first"));
    }
    Ok([low, high])
}

fn days(dates: &[String]) -> Result<[i64; 2], String> {
    let parsed: Option<Vec<i64>> =
        dates.iter().map(|date| Moment::parse(date.trim()).map(|moment| moment.day)).collect();
    match parsed.as_deref() {
        Some(&[first, last]) if first < last => Ok([first, last]),
        _ => Err(format!("dates = {dates:?} must be two dates as 2025-12-31, the earlier first")),
    }
}

fn distinct(column: &str, names: Vec<Name>) -> Result<Names, String> {
    let names = names.into_iter().map(Name::text).collect();
    Names::new(names).map_err(|problem| format!("{column}: {problem}"))
}
