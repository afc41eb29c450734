//! What reading a table did to cells outside the schema.
//!
//! Counts of the private data: for its owner, not for release.

use std::fmt;

use serde::Serialize;

/// Counts of one feature column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ColumnReport {
    /// The column's heading.
    pub column: String,
    /// Numbers below the declared range, raised to its lower end.
    pub below: u64,
    /// Numbers above the declared range, lowered to its upper end.
    pub above: u64,
    /// Values that were not declared and went to "other".
    pub other: u64,
}

/// What was read, and what was changed on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// Records read.
    pub records: u64,
    /// Feature columns, in the order of the schema.
    pub columns: Vec<ColumnReport>,
    /// Columns of the file that the schema does not use.
    pub ignored: Vec<String>,
}

impl ImportReport {
    /// How many cells were clamped or went to "other".
    pub fn changed_cells(&self) -> u64 {
        self.columns.iter().map(|column| column.below + column.above + column.other).sum()
    }
}

impl fmt::Display for ImportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records, {} cells outside the schema", self.records, self.changed_cells())?;
        for ColumnReport { column, below, above, other } in &self.columns {
            if below + above > 0 {
                write!(f, "\n  {column}: {below} raised to the range, {above} lowered to it")?;
            }
            if *other > 0 {
                write!(f, "\n  {column}: {other} counted as \"other\"")?;
            }
        }
        if !self.ignored.is_empty() {
            write!(f, "\n  columns not used: {}", self.ignored.join(", "))?;
        }
        Ok(())
    }
}
