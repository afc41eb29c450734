//! What can be wrong with data, one variant a kind.
//!
//! Every message names the file, the values found and expected, and what to do about it, because the
//! reader is someone with a data file in front of them. No parser of this crate panics on bytes.

use std::path::{Path, PathBuf};

/// Where a row of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A text file: the line, from 1, on which the row starts.
    Line(u64),
    /// A file without lines: the row, from 1.
    Row(u64),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// Everything that loading, importing or reshaping data can refuse.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The operating system refused a file operation.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb.
        action: &'static str,
        /// The file or folder it was attempted on.
        path: PathBuf,
        /// The system's own reason.
        source: std::io::Error,
    },
    /// The first bytes are not those of the format.
    #[error("{file}: not {expected} (it starts with {found}); check that this is the right file")]
    WrongMagic {
        /// The file.
        file: String,
        /// The format that was expected.
        expected: &'static str,
        /// The bytes found instead, in hexadecimal.
        found: String,
    },
    /// The file ends before what its header (or the format) announces.
    #[error(
        "{file}: truncated, {found} bytes where {expected} are needed; copy or download it again"
    )]
    Truncated {
        /// The file.
        file: String,
        /// Bytes that should be there.
        expected: u64,
        /// Bytes that are.
        found: u64,
    },
    /// The file goes on after what its header (or the format) announces.
    #[error("{file}: {found} bytes where its header announces {expected}; it holds something else")]
    TrailingBytes {
        /// The file.
        file: String,
        /// Bytes that should be there.
        expected: u64,
        /// Bytes that are (at least).
        found: u64,
    },
    /// The content is not the published one.
    #[error("{file}: SHA-256 is {found}, the published file has {expected}; download it again")]
    Checksum {
        /// The file.
        file: String,
        /// The published digest, in hexadecimal.
        expected: String,
        /// The digest of what is there, in hexadecimal.
        found: String,
    },
    /// There are no records.
    #[error("{file}: holds no records")]
    Empty {
        /// The file.
        file: String,
    },
    /// A label is not one of the declared classes.
    #[error("{file}: record {index} has label {label}, but the labels of {classes} classes are 0 to {}; declare more classes or repair the label", classes.saturating_sub(1))]
    LabelOutOfRange {
        /// The file.
        file: String,
        /// Position of the record, from 0.
        index: usize,
        /// The label found.
        label: i64,
        /// How many classes were declared.
        classes: u32,
    },
    /// Inputs and labels do not have the same number of records.
    #[error(
        "{inputs_file} holds {inputs} records but {labels_file} holds {labels} labels; they must belong together"
    )]
    CountMismatch {
        /// File with the inputs.
        inputs_file: String,
        /// Records in it.
        inputs: usize,
        /// File with the labels.
        labels_file: String,
        /// Labels in it.
        labels: usize,
    },
    /// A valid file of a kind that is not read here.
    #[error("{file}: {problem}")]
    Unsupported {
        /// The file.
        file: String,
        /// What it is, and what to write instead.
        problem: String,
    },
    /// An input is infinite or not a number.
    #[error("{file}: record {index} holds {value}; inputs must be finite numbers")]
    NotFinite {
        /// The file.
        file: String,
        /// Position of the record, from 0.
        index: usize,
        /// The value found.
        value: f64,
    },
    /// A cell of a table cannot be read.
    #[error("{file}, {place}, column {column} ({name}): {problem}")]
    Cell {
        /// The file.
        file: String,
        /// Where the row is.
        place: Place,
        /// Column, from 1.
        column: usize,
        /// The column's heading.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A row of a table cannot be read.
    #[error("{file}, {place}: {problem}")]
    Row {
        /// The file.
        file: String,
        /// Where the row is.
        place: Place,
        /// What is wrong with it.
        problem: String,
    },
    /// A schema file cannot be used, or does not fit the table.
    #[error("{file}: {problem}")]
    Schema {
        /// The schema file (or the table it does not fit).
        file: String,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// A dataset that is not bundled is not on this machine yet.
    #[error("{name} is not in {}: {remedy}", dir.display())]
    Missing {
        /// The dataset.
        name: &'static str,
        /// Where it was looked for.
        dir: PathBuf,
        /// How to get it.
        remedy: String,
    },
    /// A download failed; nothing was kept.
    #[error("downloading {url} failed: {problem}")]
    Download {
        /// What was asked for.
        url: String,
        /// Why it failed, and what to do.
        problem: String,
    },
    /// An argument does not fit the data.
    #[error("{0}")]
    Argument(String),
}

impl DataError {
    /// Wraps a system error with what was being done to which path.
    pub(crate) fn io(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(std::io::Error) -> DataError {
        let path = path.as_ref().to_path_buf();
        move |source| DataError::Io { action, path, source }
    }

    /// Compares a length with the announced one.
    pub(crate) fn check_length(file: &str, expected: u64, found: u64) -> Result<(), DataError> {
        let file = || file.to_owned();
        match found.cmp(&expected) {
            std::cmp::Ordering::Less => Err(DataError::Truncated { file: file(), expected, found }),
            std::cmp::Ordering::Greater => {
                Err(DataError::TrailingBytes { file: file(), expected, found })
            }
            std::cmp::Ordering::Equal => Ok(()),
        }
    }
}
