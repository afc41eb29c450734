//! Reading a table by its schema, in whichever format its ending names.

use std::path::Path;

use super::{ImportReport, Part, Schema, Table};
use crate::format::table_format;
use crate::{DataError, Dataset};

/// What is read of a table besides its features.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Whether the label and the unit are read; where they are not, their columns need not be there.
    pub labelled: bool,
    /// Whether rows that cannot be read are left out and counted, instead of refusing the table.
    pub skip_bad_rows: bool,
    /// Columns whose contents are kept as text, for passing identifiers through a prediction.
    pub keep: Vec<String>,
    /// Whether columns that look like identifiers, and the unit's, are kept as well.
    pub keep_identifiers: bool,
    /// Whether the number of each record's row is kept.
    pub keep_places: bool,
    /// Which rows are read.
    pub part: Part,
}

/// Reads a labelled table. Its name in reports is the file's.
pub fn read(path: &Path, schema: &Schema) -> Result<(Dataset, ImportReport), DataError> {
    let options = ReadOptions { labelled: true, ..ReadOptions::default() };
    read_with(path, schema, &options)?.into_dataset(name_of(path), schema)
}

/// What a table is called: its file, without folders and endings.
pub(crate) fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Reads a table with everything that `options` asks for; by default for prediction, where the label
/// column need not be there and is not looked at if it is.
pub fn read_with(path: &Path, schema: &Schema, options: &ReadOptions) -> Result<Table, DataError> {
    (table_format(path)?.scan)(path, schema, options)?.finish()
}
