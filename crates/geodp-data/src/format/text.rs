//! Tables as text: CSV, TSV and whatever else separates cells by one character, plain or gzip.
//!
//! The file streams through a small buffer and is never held as a whole. The line of a bad cell is
//! found by reading the file once more up to it: that costs nothing where all is well.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use csv::{ByteRecord, ReaderBuilder};
use flate2::read::MultiGzDecoder;

use super::rows::Rows;
use super::{NamedGuess, TableFormat};
use crate::files::{is_gzip, shown};
use crate::table::build::{Builder, Roles};
use crate::table::cell::Cell;
use crate::table::draft::{Guess, Seen};
use crate::table::{DraftOptions, ReadOptions, Schema};
use crate::{DataError, Place};

const BUFFER: usize = 1 << 16;

/// CSV and its relatives.
pub(crate) const FORMAT: TableFormat = TableFormat { scan, columns };

/// The columns of a file for a draft.
fn columns(path: &Path, options: &DraftOptions) -> Result<Vec<NamedGuess>, DataError> {
    let delimiter = delimiter(path, options.delimiter);
    let names = headings(path, delimiter)?;
    if !options.look {
        return Ok(names.into_iter().map(|name| (name, Guess::Unknown)).collect());
    }
    let mut seen = vec![Seen::new(); names.len()];
    let mut reader = reader(path, delimiter)?;
    let mut row = ByteRecord::new();
    while reader.read_byte_record(&mut row).map_err(|error| row_error(path, error))? {
        for (seen, cell) in seen.iter_mut().zip(&row) {
            seen.add(&String::from_utf8_lossy(cell));
        }
    }
    Ok(names.into_iter().zip(seen.into_iter().map(Guess::Seen)).collect())
}

/// The file as a stream of text, unpacked if it is gzip.
fn open(path: &Path) -> Result<Box<dyn Read>, DataError> {
    let file = File::open(path).map_err(DataError::io("read", path))?;
    let mut file = BufReader::with_capacity(BUFFER, file);
    let gzip = is_gzip(file.fill_buf().map_err(DataError::io("read", path))?);
    Ok(if gzip {
        Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    })
}

/// The character between cells: the schema's, else by the file's ending.
fn delimiter(path: &Path, declared: Option<u8>) -> u8 {
    let name = path.to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let tabs = name.ends_with(".tsv") || name.ends_with(".tab");
    declared.unwrap_or(if tabs { b'\t' } else { b',' })
}

/// The headings of a table.
fn headings(path: &Path, delimiter: u8) -> Result<Vec<String>, DataError> {
    let mut reader = reader(path, delimiter)?;
    let headings = reader.byte_headers().map_err(|error| row_error(path, error))?;
    let text = |cell: &[u8]| String::from_utf8_lossy(cell.trim_ascii()).into_owned();
    Ok(headings.iter().map(text).collect())
}

fn reader(path: &Path, delimiter: u8) -> Result<csv::Reader<Box<dyn Read>>, DataError> {
    Ok(ReaderBuilder::new().delimiter(delimiter).from_reader(open(path)?))
}

/// Goes over the rows of a table.
fn scan<'a>(
    path: &Path,
    schema: &'a Schema,
    options: &'a ReadOptions,
) -> Result<Builder<'a>, DataError> {
    let file = shown(path);
    let delimiter = delimiter(path, schema.delimiter);
    let headings = headings(path, delimiter)?;
    let roles = Roles::find(&file, &headings, schema, options)
        .map_err(|error| other_delimiter(error, &headings, delimiter))?;
    let at = |column: &String| headings.iter().position(|heading| heading == column).unwrap_or(0);
    let columns: Vec<usize> = roles.columns.iter().map(at).collect();
    let mut builder = Builder::new(&file, schema, options, roles);
    let io = |error| crate::files::broken_gzip(&file, &error);
    let mut rows = Rows::new(open(path)?, delimiter).map_err(io)?;
    rows.advance().map_err(io)?;
    let mut number = 0;
    while rows.advance().map_err(io)? {
        number += 1;
        if !options.part.has(number) {
            continue;
        }
        if rows.len() != headings.len() {
            let tells = builder.tells_bad_rows();
            let place = Place::Line(if tells { line_at(path, rows.position()) } else { 0 });
            let (found, wanted) = (rows.len(), headings.len());
            let problem = format!("{found} cells where the first line has {wanted}");
            builder.bad_row(DataError::Row { file: file.clone(), place, problem })?;
            continue;
        }
        let cell = |role: usize| Cell::of_bytes(rows.cell(columns[role]), &schema.na);
        if let Err(bad) = builder.row(number, cell) {
            let tells = builder.tells_bad_rows();
            let place = if tells { line_at(path, rows.position()) } else { 0 };
            let column = columns[bad.role] + 1;
            let error = builder.cell_error(Place::Line(place), column, bad);
            builder.bad_row(error)?;
        }
    }
    Ok(builder)
}

/// A table whose first line is one long cell most likely has another delimiter.
fn other_delimiter(error: DataError, headings: &[String], delimiter: u8) -> DataError {
    let [only] = headings else { return error };
    let found =
        [';', '\t', ',', '|'].into_iter().find(|&c| c != delimiter.into() && only.contains(c));
    match (found, error) {
        (Some(found), DataError::Schema { file, problem }) => {
            let problem = format!(
                "{problem}; if {found:?} separates its cells, write delimiter = {found:?} in the schema"
            );
            DataError::Schema { file, problem }
        }
        (_, error) => error,
    }
}

/// The line a row starts on. The reader's position is where the row before it ended, so blank lines
/// (and the second half of a Windows line end) between the two are still to be counted.
fn line_at(path: &Path, position: u64) -> u64 {
    let Ok(stream) = open(path) else { return 1 };
    let (mut line, mut offset) = (1, 0);
    for byte in BufReader::with_capacity(BUFFER, stream).bytes() {
        let Ok(byte) = byte else { break };
        if offset >= position && !matches!(byte, b'\r' | b'\n') {
            break;
        }
        line += u64::from(byte == b'\n');
        offset += 1;
    }
    line
}

fn row_error(path: &Path, error: csv::Error) -> DataError {
    if let csv::ErrorKind::Io(_) = error.kind() {
        let csv::ErrorKind::Io(source) = error.into_kind() else {
            return DataError::Empty { file: shown(path) };
        };
        // The file was opened; what fails now is its gzip stream or the disk.
        return crate::files::broken_gzip(&shown(path), &source);
    }
    let place = Place::Line(line_at(path, error.position().map_or(0, csv::Position::byte)));
    let problem = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} cells where the first line has {expected_len}")
        }
        _ => error.to_string(),
    };
    DataError::Row { file: shown(path), place, problem }
}
