//! A table of which only some rows are read.
//!
//! A first pass looks at no more than decides which rows become records, and of which unit: cells that
//! may be missing where that skips a row, the unit's, and identifiers. The second reads the rows of the
//! chosen units.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ImportReport, ReadOptions, Schema, read::name_of};
use crate::digest::FieldHasher;
use crate::files::digest_into;
use crate::format::table_format;
use crate::source::Source;
use crate::{DataError, Dataset, Fingerprint};

/// Which rows of a table are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// All of them.
    #[default]
    All,
    /// None: rows are looked at to find out which become records.
    Survey,
    /// These.
    Rows(Arc<RowSet>),
}

impl Part {
    /// Whether this row, counted from 1, is read or looked at.
    #[inline]
    pub(crate) fn has(&self, row: u64) -> bool {
        match self {
            Part::Rows(rows) => rows.has(row),
            _ => true,
        }
    }

    /// Whether any row from `first` to before `end` is.
    pub(crate) fn has_any(&self, first: u64, end: u64) -> bool {
        match self {
            Part::Rows(rows) => (first..end).any(|row| rows.has(row)),
            _ => true,
        }
    }
}

/// Some rows, a bit each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSet(Vec<u64>);

impl RowSet {
    fn add(&mut self, row: u64) {
        let word = (row / 64) as usize;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (row % 64);
    }

    fn has(&self, row: u64) -> bool {
        self.0.get((row / 64) as usize).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }
}

/// What the first pass found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Rows of the table.
    pub(crate) rows: u64,
    /// Those that become no record, counted from 1.
    pub(crate) left_out: Vec<u64>,
    /// Unit of every record, where units are declared.
    pub(crate) unit_of: Option<Vec<u32>>,
    /// Columns that look like an identifier shared by several rows.
    pub(crate) shared: Vec<String>,
}

/// A labelled table to be read in part.
pub struct TablePart {
    path: PathBuf,
    schema: Schema,
    survey: Survey,
    units: usize,
}

impl TablePart {
    /// Looks at a table.
    ///
    /// # Errors
    /// A table that cannot be read, or does not fit the schema.
    pub fn open(path: &Path, schema: &Schema) -> Result<Self, DataError> {
        let options = ReadOptions { labelled: true, part: Part::Survey, ..Default::default() };
        let survey = (table_format(path)?.scan)(path, schema, &options)?.survey()?;
        let records = survey.rows as usize - survey.left_out.len();
        let units = survey
            .unit_of
            .as_ref()
            .map_or(records, |units| units.iter().max().map_or(0, |&last| last as usize + 1));
        Ok(TablePart { path: path.to_owned(), schema: schema.clone(), survey, units })
    }

    /// The rows of these units.
    fn rows(&self, units: &[u32], others: bool) -> RowSet {
        let (mut rows, mut chosen) = (RowSet::default(), RowSet::default());
        units.iter().for_each(|&unit| chosen.add(u64::from(unit)));
        let mut left_out = self.survey.left_out.iter().copied().peekable();
        let mut record = 0;
        for row in 1..=self.survey.rows {
            if left_out.next_if_eq(&row).is_some() {
                if others {
                    rows.add(row);
                }
                continue;
            }
            let unit = self.survey.unit_of.as_ref().map_or(record as u32, |units| units[record]);
            if chosen.has(u64::from(unit)) {
                rows.add(row);
            }
            record += 1;
        }
        rows
    }
}

impl Source for TablePart {
    fn units(&self) -> usize {
        self.units
    }

    fn digest(&self) -> Result<Fingerprint, DataError> {
        let mut hasher = FieldHasher::new("geodp table part 1");
        hasher.field(self.schema.text().as_bytes());
        digest_into(&self.path, &mut hasher)?;
        Ok(hasher.finish())
    }

    fn read(&self, units: &[u32], others: bool) -> Result<(Dataset, ImportReport), DataError> {
        let part = Part::Rows(Arc::new(self.rows(units, others)));
        let options = ReadOptions { labelled: true, part, ..Default::default() };
        let scanned = (table_format(&self.path)?.scan)(&self.path, &self.schema, &options)?;
        let (data, report) = scanned.finish()?.into_dataset(name_of(&self.path), &self.schema)?;
        Ok((data, ImportReport { shared: self.survey.shared.clone(), ..report }))
    }
}
