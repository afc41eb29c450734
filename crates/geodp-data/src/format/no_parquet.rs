//! In the place of Parquet where the feature is off: says what to do.

use std::path::Path;

use super::TableFormat;
use crate::DataError;

pub(crate) const FORMAT: TableFormat =
    TableFormat { scan: |path, _, _| Err(refused(path)), columns: |path, _| Err(refused(path)) };

fn refused(path: &Path) -> DataError {
    DataError::Unsupported {
        file: crate::files::shown(path),
        problem: "this program was built without Parquet; write the table as CSV".to_owned(),
    }
}
