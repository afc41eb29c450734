//! The formats that are read: one list, by the ending of a path.
//!
//! A format is a table (rows of cells, read by a schema) or an array (inputs in one file, labels in
//! another); a folder is one of images by class. What stands outside this list knows the kind of a file
//! only. To add a format: a file with its [`TableFormat`] or a function that reads an array's [`Layout`](crate::array::Layout), and its
//! line in [`FORMATS`].

use std::path::Path;

use crate::array::ReadLayout;
use crate::table::build::Builder;
use crate::table::draft::Guess;
use crate::table::{DraftOptions, ReadOptions, Schema};
use crate::{DataError, idx, npy};

#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "no_parquet.rs"]
mod parquet;
mod rows;
mod text;

/// What a path holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rows of cells, read by a schema that names the label.
    Table,
    /// An array of inputs; the labels are in another file.
    Array,
    /// A folder of images by class.
    Images,
}

/// A heading, and what is known of its column.
type NamedGuess = (String, Guess);

/// A format of tables.
pub(crate) struct TableFormat {
    /// Goes over a table's rows by its schema.
    pub(crate) scan:
        for<'a> fn(&Path, &'a Schema, &'a ReadOptions) -> Result<Builder<'a>, DataError>,
    /// Headings, and what is known of each column: its type, or with `look` its contents.
    pub(crate) columns: fn(&Path, &DraftOptions) -> Result<Vec<NamedGuess>, DataError>,
}

enum Reader {
    Table(TableFormat),
    Array(ReadLayout),
}

struct Format {
    name: &'static str,
    /// Each also with `.gz`, and in any capitals.
    endings: &'static [&'static str],
    reader: Reader,
}

const FORMATS: &[Format] = &[
    Format {
        name: "CSV",
        endings: &[".csv", ".tsv", ".tab", ".txt"],
        reader: Reader::Table(text::FORMAT),
    },
    Format {
        name: "Parquet",
        endings: &[".parquet", ".pq"],
        reader: Reader::Table(parquet::FORMAT),
    },
    Format { name: "NPY", endings: &[".npy"], reader: Reader::Array(npy::layout) },
    Format {
        name: "IDX",
        endings: &["-ubyte", ".ubyte", ".idx"],
        reader: Reader::Array(idx::layout),
    },
];

fn format_of(path: &Path) -> Option<&'static Format> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    FORMATS.iter().find(|format| format.endings.iter().any(|ending| name.ends_with(ending)))
}

impl Kind {
    /// By the ending alone; a folder is one of images. `None` if no format has this ending.
    pub fn of(path: &Path) -> Option<Self> {
        if path.is_dir() {
            return Some(Kind::Images);
        }
        Some(match format_of(path)?.reader {
            Reader::Table(_) => Kind::Table,
            Reader::Array(_) => Kind::Array,
        })
    }

    /// Every format of this kind with its endings, for help and messages.
    pub fn formats(self) -> String {
        let of_kind = |format: &&Format| match format.reader {
            Reader::Table(_) => self == Kind::Table,
            Reader::Array(_) => self == Kind::Array,
        };
        let text = |format: &Format| format!("{} ({})", format.name, format.endings.join(", "));
        FORMATS.iter().filter(of_kind).map(text).collect::<Vec<_>>().join(", ")
    }
}

/// The format of a table; one without a known ending is taken for text.
pub(crate) fn table_format(path: &Path) -> Result<&'static TableFormat, DataError> {
    match format_of(path) {
        None => Ok(&text::FORMAT),
        Some(Format { reader: Reader::Table(format), .. }) => Ok(format),
        Some(Format { name, .. }) => Err(wrong_kind(path, name, Kind::Table)),
    }
}

/// The format of an array; a file without a known ending is taken for IDX, which has none of its own.
pub(crate) fn array_format(path: &Path) -> Result<ReadLayout, DataError> {
    match format_of(path) {
        None => Ok(idx::layout),
        Some(Format { reader: Reader::Array(layout), .. }) => Ok(*layout),
        Some(Format { name, .. }) => Err(wrong_kind(path, name, Kind::Array)),
    }
}

fn wrong_kind(path: &Path, name: &str, wanted: Kind) -> DataError {
    DataError::Unsupported {
        file: crate::files::shown(path),
        problem: format!("{name} by its ending, where one of {} is needed", wanted.formats()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_decide_in_any_case_and_packed() {
        let cases = [
            ("a.csv", Some(Kind::Table)),
            ("A.CSV", Some(Kind::Table)),
            ("b.tsv.gz", Some(Kind::Table)),
            ("c.Parquet", Some(Kind::Table)),
            ("d.npy.GZ", Some(Kind::Array)),
            ("train-images-idx3-ubyte.gz", Some(Kind::Array)),
            ("what", None),
            ("csv", None),
        ];
        for (path, kind) in cases {
            assert_eq!(Kind::of(Path::new(path)), kind, "{path}");
        }
        assert_eq!(Kind::of(&std::env::temp_dir()), Some(Kind::Images));
        assert!(Kind::Table.formats().contains("Parquet (.parquet, .pq)"));
    }

    #[test]
    fn a_file_of_another_kind_is_refused_by_name() {
        let error = array_format(Path::new("a.csv")).err().unwrap().to_string();
        assert!(error.contains("a.csv: CSV by its ending") && error.contains("NPY"), "{error}");
        assert!(table_format(Path::new("a.npy")).is_err());
    }
}
