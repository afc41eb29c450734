//! In the place of Parquet where the feature is off: says what to do.

use std::path::Path;

use super::TableFormat;
use crate::DataError;
use crate::table::draft::Guess;
use crate::table::{DraftOptions, ReadOptions, Schema, Table};

pub(crate) struct Parquet;

fn refused(path: &Path) -> DataError {
    DataError::Unsupported {
        file: crate::files::shown(path),
        problem: "this program was built without Parquet; write the table as CSV".to_owned(),
    }
}

impl TableFormat for Parquet {
    fn read(&self, path: &Path, _: &Schema, _: &ReadOptions) -> Result<Table, DataError> {
        Err(refused(path))
    }

    fn columns(&self, path: &Path, _: &DraftOptions) -> Result<Vec<(String, Guess)>, DataError> {
        Err(refused(path))
    }
}
