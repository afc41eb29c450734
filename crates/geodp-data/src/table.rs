//! Tables: CSV, TSV and Parquet files read by a schema that is public.
//!
//! ```toml
//! scale = "unit"                 # numbers go to [0, 1]; "symmetric": to [-1, 1]
//! delimiter = ","                # if it is neither a comma nor, in a .tsv, a tab
//! na = ["NA", -999]              # cells that mean "missing", besides empty ones
//! missing = "refuse"             # what is done with them where a column says nothing
//!
//! [label]
//! column = "diagnosis"
//! classes = ["benign", "malignant"]   # or range = [0, 100], to learn a number
//! missing = "skip"
//!
//! [unit]                         # if one patient has several rows
//! column = "patient"
//! most_rows = 10                 # how many of them a step uses at most
//!
//! [[feature]]
//! column = "age"
//! range = [0, 120]               # outside: clamped, and counted
//! missing = 45                   # this value, and an input that says it was missing
//!
//! [[feature]]
//! column = "sex"
//! values = ["f", "m"]            # one input each, and one for "other"
//! missing = "category"           # and one for "missing"
//!
//! [[feature]]
//! column = "admitted"
//! dates = ["2010-01-01", "2025-12-31"]
//! missing = "skip"               # the row is left out, and counted
//!
//! [[feature]]
//! column = "smoker"
//! boolean = true
//! ```
//!
//! Ranges and values are declared, never looked up in the data: scaling by the data's own minimum or
//! its own categories would release them without paying. Values and classes that are numbers match as
//! numbers: `1.0` in the table is the `1` of the schema. A cell outside what was declared is clamped
//! or goes to "other" and is counted in the [`ImportReport`]; an empty or malformed cell is an error
//! with file, line and column, unless the schema says what to do. [`draft`] writes a schema to start
//! from.

#![cfg_attr(
    not(feature = "parquet"),
    allow(dead_code, reason = "typed cells come from Parquet alone")
)]

pub(crate) mod build;
pub(crate) mod cell;
pub(crate) mod date;
mod decimal;
pub(crate) mod draft;
mod file;
mod names;
mod nearest;
mod part;
mod read;
mod report;
mod schema;

pub use build::Table;
pub use draft::{DraftOptions, draft};
pub use names::Names;
pub use part::{Part, RowSet, TablePart};
pub use read::{ReadOptions, read, read_with};
pub use report::{ColumnReport, ImportReport};
pub use schema::{Feature, FeatureKind, Label, Missing, NumericScale, Schema, Unit};
