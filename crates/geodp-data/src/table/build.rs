//! Rows of cells become records, labels and units, whatever format they come from.
//!
//! A format maps *roles* to its columns and hands over one row at a time; nothing of a row is kept but
//! its inputs. Room grows by a quarter at a time, so that reading never holds more than 1.25 times the
//! matrix it makes (where the system moves large blocks without copying them, as Linux does).

use std::collections::HashMap;

use super::cell::{Cell, Outcome, scaled};
use super::nearest::nearest;
use super::part::Survey;
use super::schema::{Label, Missing};
use super::{ColumnReport, ImportReport, NumericScale, Part, ReadOptions, Schema};
use crate::{DataError, Dataset, Place, Records, Shape, UnitColumn};

/// Rows that could not be read are kept in words up to this many.
const BAD_KEPT: usize = 10;
/// Rows after which no more identifiers are looked at.
const LOOKED_AT: usize = 10_000;

/// The columns that reading needs, in the order in which rows hand them over.
#[derive(Clone, Debug)]
pub(crate) struct Roles {
    /// Heading of every role.
    pub(crate) columns: Vec<String>,
    label: Option<usize>,
    unit: Option<usize>,
    /// First columns, of which a missing cell leaves a row out; counted in a survey alone.
    skips: usize,
    kept: usize,
    /// Columns that nothing uses and that may be identifiers.
    identifiers: usize,
    ignored: Vec<String>,
}

impl Roles {
    /// Finds the schema's columns among a table's headings, or says which one is not there.
    pub(crate) fn find(
        file: &str,
        headings: &[String],
        schema: &Schema,
        options: &ReadOptions,
    ) -> Result<Self, DataError> {
        let mut columns: Vec<String> = schema.features.iter().map(|f| f.column.clone()).collect();
        let mut add = |wanted: bool, column: &str| {
            wanted.then(|| {
                columns.push(column.to_owned());
                columns.len() - 1
            })
        };
        let label = add(options.labelled, &schema.label_column);
        let unit_column = schema.unit.as_ref().map(|unit| unit.column.as_str());
        let unit = add(options.labelled && unit_column.is_some(), unit_column.unwrap_or_default());
        let kept = columns.len();
        columns.extend(options.keep.iter().cloned());
        if options.keep_identifiers {
            let wanted = |heading: &&String| {
                looks_like_identifier(heading) || Some(heading.as_str()) == unit_column
            };
            let free =
                |heading: &&String| !columns.contains(heading) && **heading != schema.label_column;
            let once = |heading: &&String| headings.iter().filter(|h| h == heading).count() == 1;
            let found: Vec<String> =
                headings.iter().filter(wanted).filter(free).filter(once).cloned().collect();
            columns.extend(found);
        }
        columns.iter().try_for_each(|column| one_of(file, headings, column))?;
        let used = |heading: &String| columns.contains(heading) || *heading == schema.label_column;
        let unused = headings.iter().filter(|heading| !used(heading));
        let ignored: Vec<String> = unused.cloned().collect();
        let identifiers = columns.len();
        if options.labelled && unit.is_none() {
            let found = ignored.iter().filter(|column| looks_like_identifier(column));
            let once = found.filter(|c| headings.iter().filter(|h| h == c).count() == 1);
            columns.extend(once.cloned().collect::<Vec<_>>());
        }
        let roles = Roles { columns, label, unit, skips: 0, kept, identifiers, ignored };
        Ok(if options.part == Part::Survey { roles.for_survey(schema) } else { roles })
    }

    /// Only the columns that decide which rows become records, and of which unit.
    fn for_survey(self, schema: &Schema) -> Self {
        let skipping = schema.features.iter().filter(|f| matches!(f.missing, Missing::Skip));
        let mut columns: Vec<String> = skipping.map(|feature| feature.column.clone()).collect();
        if matches!(schema.label_missing, Missing::Skip) {
            columns.push(schema.label_column.clone());
        }
        let skips = columns.len();
        columns.extend(self.unit.map(|unit| self.columns[unit].clone()));
        let (unit, identifiers) = (self.unit.map(|_| skips), columns.len());
        columns.extend_from_slice(&self.columns[self.identifiers..]);
        Roles { columns, label: None, unit, skips, kept: identifiers, identifiers, ..self }
    }
}

/// Whether a heading is that of an identifier: `id`, `patient_id`, `userId`, `customer`, …
pub(crate) fn looks_like_identifier(column: &str) -> bool {
    const WORDS: [&str; 12] = [
        "id",
        "patient",
        "user",
        "customer",
        "client",
        "person",
        "subject",
        "member",
        "account",
        "household",
        "device",
        "sensor",
    ];
    let lower = column.to_lowercase();
    let camel = column.ends_with("Id") || column.ends_with("ID");
    camel || lower.split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word))
}

/// A column must be there once.
pub(crate) fn one_of(file: &str, headings: &[String], column: &str) -> Result<(), DataError> {
    let problem = |problem| Err(DataError::Schema { file: file.to_owned(), problem });
    match headings.iter().filter(|heading| *heading == column).count() {
        1 => Ok(()),
        0 => {
            let there = headings.join(", ");
            let hint = match nearest(column, headings.iter().map(String::as_str)) {
                Some(near) => format!("; did you mean {near:?}?"),
                None => String::new(),
            };
            problem(format!(
                "has no column {column:?}, which the schema names{hint} Its columns: {there}"
            ))
        }
        _ => problem(format!("has two columns {column:?}; rename one")),
    }
}

/// A row that cannot be taken: the role of its bad cell, and what is wrong.
#[derive(Debug)]
pub(crate) struct Bad {
    pub(crate) role: usize,
    pub(crate) problem: String,
}

/// The table so far.
pub(crate) struct Builder<'a> {
    file: String,
    schema: &'a Schema,
    options: &'a ReadOptions,
    roles: Roles,
    values: Vec<f32>,
    labels: Vec<u32>,
    targets: Vec<f32>,
    unit_numbers: HashMap<Box<str>, u32>,
    unit_of: Vec<u32>,
    kept: Vec<Vec<String>>,
    places: Vec<u64>,
    seen: Vec<HashMap<String, u32>>,
    report: ImportReport,
    rows: u64,
    left_out: Vec<u64>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(
        file: &str,
        schema: &'a Schema,
        options: &'a ReadOptions,
        roles: Roles,
    ) -> Self {
        let mut columns: Vec<ColumnReport> =
            schema.features.iter().map(|f| column_report(&f.column)).collect();
        if options.labelled && matches!(schema.label, Label::Range { .. }) {
            columns.push(column_report(&schema.label_column));
        }
        let ignored = roles.ignored.clone();
        Builder {
            file: file.to_owned(),
            schema,
            options,
            kept: vec![Vec::new(); roles.identifiers - roles.kept],
            seen: vec![HashMap::new(); roles.columns.len() - roles.identifiers],
            roles,
            values: Vec::new(),
            labels: Vec::new(),
            targets: Vec::new(),
            unit_numbers: HashMap::new(),
            unit_of: Vec::new(),
            places: Vec::new(),
            report: ImportReport { columns, ignored, ..ImportReport::default() },
            rows: 0,
            left_out: Vec::new(),
        }
    }

    /// Takes a row, or leaves nothing of it behind.
    #[inline]
    pub(crate) fn row<'c>(
        &mut self,
        place: u64,
        cell: impl Fn(usize) -> Result<Cell<'c>, String>,
    ) -> Result<(), Bad> {
        if self.options.part == Part::Survey {
            return self.look(place, &cell);
        }
        let before = self.values.len();
        let result = self.take(&cell);
        match result {
            Ok(Outcome::Inputs) => {
                self.report.records += 1;
                if self.options.keep_places {
                    self.places.push(place);
                }
                Ok(())
            }
            Ok(Outcome::Skip) => {
                self.values.truncate(before);
                self.report.skipped += 1;
                Ok(())
            }
            Err(bad) => {
                self.values.truncate(before);
                Err(bad)
            }
        }
    }

    /// Finds out whether a row becomes a record, and of which unit.
    fn look<'c>(
        &mut self,
        place: u64,
        cell: &impl Fn(usize) -> Result<Cell<'c>, String>,
    ) -> Result<(), Bad> {
        self.rows = place;
        if (0..self.roles.skips).any(|role| matches!(cell(role), Ok(Cell::Missing))) {
            self.left_out.push(place);
            return Ok(());
        }
        let unit = self.unit(cell)?;
        self.note(unit, cell);
        self.report.records += 1;
        Ok(())
    }

    fn take<'c>(
        &mut self,
        cell: &impl Fn(usize) -> Result<Cell<'c>, String>,
    ) -> Result<Outcome, Bad> {
        let get = |role: usize| cell(role).map_err(|problem| Bad { role, problem });
        grow(&mut self.values, self.schema.input_len());
        let columns = self.schema.features.iter().zip(&mut self.report.columns);
        for (role, (feature, counts)) in columns.enumerate() {
            let outcome = get(role)?
                .encode(feature, self.schema.scale, counts, &mut self.values)
                .map_err(|problem| Bad { role, problem })?;
            if outcome == Outcome::Skip {
                return Ok(Outcome::Skip);
            }
        }
        let label = match self.roles.label {
            Some(role) => match self.label(get(role)?).map_err(|problem| Bad { role, problem })? {
                Some(label) => Some(label),
                None => return Ok(Outcome::Skip),
            },
            None => None,
        };
        let unit = self.unit(cell)?;
        let kept = (self.roles.kept..self.roles.identifiers).map(|role| Ok(get(role)?.text()));
        let kept = kept.collect::<Result<Vec<String>, Bad>>()?;
        // From here on nothing fails: the row is taken as a whole.
        match label {
            Some(TakenLabel::Class(class)) => self.labels.push(class),
            Some(TakenLabel::Target(target)) => self.targets.push(target),
            None => {}
        }
        self.kept.iter_mut().zip(kept).for_each(|(column, text)| column.push(text));
        self.note(unit, cell);
        Ok(Outcome::Inputs)
    }

    /// The name of a row's unit, where units are declared.
    fn unit<'c>(
        &self,
        cell: &impl Fn(usize) -> Result<Cell<'c>, String>,
    ) -> Result<Option<String>, Bad> {
        let Some(role) = self.roles.unit else { return Ok(None) };
        match cell(role).map_err(|problem| Bad { role, problem })? {
            Cell::Missing => {
                let problem = "the unit is missing; every row must name its unit".to_owned();
                Err(Bad { role, problem })
            }
            unit => Ok(Some(unit.text())),
        }
    }

    /// Numbers a row's unit, and remembers what may be identifiers.
    fn note<'c>(
        &mut self,
        unit: Option<String>,
        cell: &impl Fn(usize) -> Result<Cell<'c>, String>,
    ) {
        if let Some(unit) = unit {
            let next = self.unit_numbers.len() as u32;
            self.unit_of.push(*self.unit_numbers.entry(unit.into_boxed_str()).or_insert(next));
        }
        if (self.report.records as usize) < LOOKED_AT {
            for (seen, role) in self.seen.iter_mut().zip(self.roles.identifiers..) {
                if let Ok(cell) = cell(role) {
                    *seen.entry(cell.text()).or_default() += 1;
                }
            }
        }
    }

    /// The label of a row; `None` if the row is to be left out.
    fn label(&mut self, cell: Cell<'_>) -> Result<Option<TakenLabel>, String> {
        if cell == Cell::Missing {
            return match self.schema.label_missing {
                Missing::Skip => Ok(None),
                _ => Err("the label is missing; fill it, or declare missing = \"skip\" in [label]"
                    .to_owned()),
            };
        }
        match &self.schema.label {
            Label::Classes(classes) => Ok(Some(TakenLabel::Class(cell.class(classes)?))),
            Label::Range { range, .. } => {
                let number = cell.target()?;
                if let Some(counts) = self.report.columns.last_mut() {
                    counts.below += u64::from(number < range[0]);
                    counts.above += u64::from(number > range[1]);
                }
                Ok(Some(TakenLabel::Target(scaled(number, *range, NumericScale::Unit))))
            }
        }
    }

    /// A row that could not be taken: an error, or a line of the report where that is allowed.
    pub(crate) fn bad_row(&mut self, error: DataError) -> Result<(), DataError> {
        if !self.options.skip_bad_rows {
            return Err(error);
        }
        self.report.bad_rows += 1;
        if self.report.bad.len() < BAD_KEPT {
            self.report.bad.push(error.to_string());
        }
        Ok(())
    }

    /// Whether the next bad row will be told in words: finding its place may cost a pass over the file.
    pub(crate) fn tells_bad_rows(&self) -> bool {
        !self.options.skip_bad_rows || self.report.bad.len() < BAD_KEPT
    }

    /// An error about one cell.
    pub(crate) fn cell_error(&self, place: Place, column: usize, bad: Bad) -> DataError {
        DataError::Cell {
            file: self.file.clone(),
            place,
            column,
            name: self.roles.columns[bad.role].clone(),
            problem: bad.problem,
        }
    }

    /// Columns that look like an identifier and whose contents several rows share.
    fn shared(&self) -> Vec<String> {
        let names = &self.roles.columns[self.roles.identifiers..];
        let shared = |seen: &HashMap<String, u32>| {
            let rows: u32 = seen.values().sum();
            // A unique number a row is an index; so is a column that is one content throughout.
            seen.len() > 1 && seen.len() as f64 <= 0.9 * f64::from(rows)
        };
        let found = names.iter().zip(&self.seen).filter(|(_, seen)| shared(seen));
        found.map(|(column, _)| column.clone()).collect()
    }

    /// What a survey found.
    pub(crate) fn survey(self) -> Result<Survey, DataError> {
        if self.report.records == 0 {
            return Err(DataError::Empty { file: self.file });
        }
        let shared = self.shared();
        let unit_of = self.roles.unit.map(|_| self.unit_of);
        Ok(Survey { rows: self.rows, left_out: self.left_out, unit_of, shared })
    }

    /// Everything that was read.
    pub(crate) fn finish(mut self) -> Result<Table, DataError> {
        if self.report.records == 0 && self.options.part == Part::All {
            return Err(DataError::Empty { file: self.file });
        }
        self.report.shared = self.shared();
        self.values.shrink_to_fit();
        let shape = Shape::features(self.schema.input_len());
        let records = Records::from_floats(shape, self.values, self.schema.describe())?;
        let units = match (&self.schema.unit, self.roles.unit) {
            (Some(unit), Some(_)) => {
                Some(UnitColumn::new(unit.column.clone(), unit.most_rows, &self.unit_of)?)
            }
            _ => None,
        };
        Ok(Table {
            records,
            labels: self.labels,
            targets: self.targets,
            units,
            kept_names: self.roles.columns[self.roles.kept..self.roles.identifiers].to_vec(),
            kept: self.kept,
            places: self.places,
            report: self.report,
        })
    }
}

enum TakenLabel {
    Class(u32),
    Target(f32),
}

/// Room for so many values more, a quarter at a time.
#[inline]
fn grow(values: &mut Vec<f32>, more: usize) {
    if values.capacity() - values.len() < more {
        values.reserve_exact((values.len() / 4).max(1 << 16).max(more));
    }
}

fn column_report(column: &str) -> ColumnReport {
    ColumnReport { column: column.to_owned(), ..ColumnReport::default() }
}

/// A table that was read.
#[derive(Clone, Debug)]
pub struct Table {
    /// The inputs.
    pub records: Records,
    /// Class of each record; empty if a number is learnt or nothing was.
    pub(crate) labels: Vec<u32>,
    /// Number of each record in \[0, 1\]; empty if a class is learnt or nothing was.
    pub(crate) targets: Vec<f32>,
    pub(crate) units: Option<UnitColumn>,
    /// Headings of the columns whose contents were kept: those that [`ReadOptions::keep`] names, in
    /// that order, then identifiers.
    pub kept_names: Vec<String>,
    /// Their contents, a text a record.
    pub kept: Vec<Vec<String>>,
    /// Number of each record's row in the file, from 1 and without the headings, if
    /// [`ReadOptions::keep_places`] asks for it.
    pub places: Vec<u64>,
    /// What was clamped, unknown, missing or left out.
    pub report: ImportReport,
}

impl Table {
    /// The table as a dataset, where labels were read.
    ///
    /// # Errors
    /// If labels were not read.
    pub fn into_dataset(
        self,
        name: impl Into<String>,
        schema: &Schema,
    ) -> Result<(Dataset, ImportReport), DataError> {
        let data = match &schema.label {
            Label::Classes(names) => {
                Dataset::new(name, self.records, self.labels, names.list().to_vec())?
            }
            Label::Range { range, loss } => {
                Dataset::regression(name, self.records, self.targets, *range, *loss)?
            }
        };
        let data = match self.units {
            Some(units) => data.with_units(units)?,
            None => data,
        };
        Ok((data, self.report))
    }
}
