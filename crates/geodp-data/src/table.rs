//! Tables: CSV files read by a schema that is public.
//!
//! ```toml
//! scale = "unit"                 # numbers go to [0, 1]; "symmetric": to [-1, 1]
//! delimiter = ","
//!
//! [label]
//! column = "diagnosis"
//! classes = ["benign", "malignant"]
//!
//! [[feature]]
//! column = "age"
//! range = [0, 120]               # outside: clamped, and counted
//!
//! [[feature]]
//! column = "sex"
//! values = ["f", "m"]            # one input each, and one for "other"
//! ```
//!
//! Ranges and values are declared, never looked up in the data: scaling by the data's own minimum or
//! its own categories would release them without paying. Values and classes that are numbers match as
//! numbers: `1.0` in the table is the `1` of the schema. A cell outside what was declared is clamped
//! or goes to "other" and is counted in the [`ImportReport`]; an empty or malformed cell is an error
//! with file, line and column.

mod names;
mod read;
mod report;
mod schema;

pub use names::Names;
pub use read::{read, read_unlabelled};
pub use report::{ColumnReport, ImportReport};
pub use schema::{Feature, FeatureKind, NumericScale, Schema};
