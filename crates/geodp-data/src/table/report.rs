//! What reading data did to cells outside the schema.
//!
//! Counts of the private data: for its owner, not for release.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Counts of one column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnReport {
    /// The column's heading.
    pub column: String,
    /// Numbers below the declared range, raised to its lower end.
    pub below: u64,
    /// Numbers above the declared range, lowered to its upper end.
    pub above: u64,
    /// Values that were not declared and went to "other".
    pub other: u64,
    /// Cells that were missing.
    #[serde(default)]
    pub missing: u64,
}

/// What was read, and what was changed on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportReport {
    /// Records read.
    pub records: u64,
    /// Rows left out because a cell was missing whose column says `missing = "skip"`.
    #[serde(default)]
    pub skipped: u64,
    /// Rows left out because they could not be read, where that was allowed.
    #[serde(default)]
    pub bad_rows: u64,
    /// The first of those rows, each with its place and what is wrong.
    #[serde(default)]
    pub bad: Vec<String>,
    /// Feature columns in the order of the schema; after them the label's, if it is a number.
    pub columns: Vec<ColumnReport>,
    /// Columns of the file that the schema does not use.
    pub ignored: Vec<String>,
    /// Of those, columns that look like an identifier shared by several rows: if they name people, the
    /// privacy unit should be declared.
    #[serde(default)]
    pub shared: Vec<String>,
}

/// A column is remarkable from this share of its cells on.
const LOUD: f64 = 0.5;

impl ImportReport {
    /// A report of records that were taken as they are.
    pub fn unchanged(records: usize) -> Self {
        ImportReport { records: records as u64, ..ImportReport::default() }
    }

    /// Adds what reading other rows of the same table did.
    pub fn add(&mut self, other: &ImportReport) {
        self.records += other.records;
        self.skipped += other.skipped;
        self.bad_rows += other.bad_rows;
        self.bad.extend(other.bad.iter().cloned());
        for (own, other) in self.columns.iter_mut().zip(&other.columns) {
            own.below += other.below;
            own.above += other.above;
            own.other += other.other;
            own.missing += other.missing;
        }
    }

    /// How many cells were clamped or went to "other".
    pub fn changed_cells(&self) -> u64 {
        self.columns.iter().map(|column| column.below + column.above + column.other).sum()
    }

    /// What should not be overlooked, a sentence each: columns of which most cells are outside the
    /// schema or missing, rows left out, and a unit that was not declared.
    pub fn warnings(&self) -> Vec<String> {
        let rows = self.records + self.skipped + self.bad_rows;
        let percent = |count: u64| 100.0 * count as f64 / rows.max(1) as f64;
        let mut found = Vec::new();
        for ColumnReport { column, below, above, other, missing } in &self.columns {
            let mut loud = |count: u64, what: &str| {
                if count as f64 > LOUD * rows as f64 {
                    let percent = percent(count);
                    found.push(format!("column {column:?}: {percent:.0} % of its cells {what}"));
                }
            };
            loud(below + above, "are outside the declared range and were clamped; check the range");
            loud(*other, "are none of the declared values; check how the table writes them");
            loud(*missing, "are missing");
        }
        if self.skipped + self.bad_rows > 0 {
            let percent = percent(self.skipped + self.bad_rows);
            found.push(format!(
                "{} rows were left out for missing cells and {} that could not be read ({percent:.1} %)",
                self.skipped, self.bad_rows
            ));
        }
        for column in &self.shared {
            found.push(format!(
                "several rows share a content of {column:?}; if that is a person, declare [unit] column = {column:?}, or the promise covers one row only"
            ));
        }
        found
    }
}

impl fmt::Display for ImportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records, {} cells outside the schema", self.records, self.changed_cells())?;
        for ColumnReport { column, below, above, other, missing } in &self.columns {
            if below + above > 0 {
                write!(f, "\n  {column}: {below} raised to the range, {above} lowered to it")?;
            }
            if *other > 0 {
                write!(f, "\n  {column}: {other} counted as \"other\"")?;
            }
            if *missing > 0 {
                write!(f, "\n  {column}: {missing} missing")?;
            }
        }
        if self.skipped > 0 {
            write!(f, "\n  rows left out for missing cells: {}", self.skipped)?;
        }
        if self.bad_rows > 0 {
            write!(f, "\n  rows that could not be read: {}", self.bad_rows)?;
            self.bad.iter().try_for_each(|row| write!(f, "\n    {row}"))?;
        }
        if !self.ignored.is_empty() {
            write!(f, "\n  columns not used: {}", self.ignored.join(", "))?;
        }
        Ok(())
    }
}
