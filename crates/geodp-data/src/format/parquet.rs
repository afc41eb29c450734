//! Tables in Parquet, batch by batch of one row group: what is held at once are the current pages.
//!
//! Every typed value becomes the cell that its text in a CSV file would be: a float32 is taken as the
//! shortest decimal that names it, as programs print it, and a decimal as its digits. That is why both
//! formats give the same bits. Nested columns and types without a plain value are refused where they
//! are used, and ignored where not. No page is unpacked to more than 1 MB or 1,032 times its bytes in the
//! file, whichever is more, and no more rows are read than 2²⁰ and 1,032 for each byte ([`pages`]).

mod decoding;
mod pages;

use std::fs::File;
use std::path::Path;

use decoding::decoding;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::{NamedGuess, TableFormat};
use crate::files::shown;
use crate::table::build::{Builder, Roles};
use crate::table::cell::Cell;
use crate::table::date::Moment;
use crate::table::draft::{Guess, Seen};
use crate::table::{DraftOptions, Names, ReadOptions, Schema};
use crate::{DataError, Place};

/// Rows decoded at a time.
const BATCH: usize = 4096;
/// Rows that a file of any size may have: equal ones take no room.
const FEW_ROWS: u64 = 1 << 20;
const A_DAY: i64 = 86_400;

/// Parquet, without Arrow.
pub(crate) const FORMAT: TableFormat = TableFormat { scan, columns };

/// A file whose footer was read.
struct Opened {
    reader: SerializedFileReader<File>,
    /// The same file opened on its own, for looking at headers.
    file: File,
    bytes: u64,
}

/// Opens a file and reads its footer; refuses one that announces more rows than it can hold.
fn open(path: &Path) -> Result<Opened, DataError> {
    let open = || File::open(path).map_err(DataError::io("read", path));
    let (file, again) = (open()?, open()?);
    let bytes = file.metadata().map_err(DataError::io("read", path))?.len();
    let reader =
        decoding(|| SerializedFileReader::new(again)).map_err(|error| broken(path, &error))?;
    let groups = reader.metadata().row_groups().iter();
    let rows = groups.map(|group| u64::try_from(group.num_rows()).unwrap_or(u64::MAX));
    let rows = rows.fold(0, u64::saturating_add);
    if rows > FEW_ROWS + pages::MOST_UNPACKED * bytes {
        let error = format!("{rows} rows are announced in {bytes} bytes");
        return Err(broken(path, &ParquetError::General(error)));
    }
    Ok(Opened { reader, file, bytes })
}

fn broken(path: &Path, error: &ParquetError) -> DataError {
    DataError::Unsupported {
        file: shown(path),
        problem: format!(
            "not a Parquet file that can be read ({error}); copy it again, or write it with flat columns and Snappy, gzip or no compression (pandas and polars: compression='snappy')"
        ),
    }
}

/// Headings of the leaf columns: of a nested column, its whole path.
fn headings(file: &Opened) -> Vec<String> {
    let columns = file.reader.metadata().file_metadata().schema_descr().columns();
    columns.iter().map(|column| column.path().string().replace('"', "")).collect()
}

/// Goes over the rows of a table; pages of rows that are not read are passed over.
fn scan<'a>(
    path: &Path,
    schema: &'a Schema,
    options: &'a ReadOptions,
) -> Result<Builder<'a>, DataError> {
    let file = shown(path);
    let opened = open(path)?;
    let reader = &opened.reader;
    let headings: Vec<String> =
        headings(&opened).iter().map(|heading| heading.trim().to_owned()).collect();
    let roles = Roles::find(&file, &headings, schema, options)?;
    let at = |column: &String| headings.iter().position(|heading| heading == column).unwrap_or(0);
    let places: Vec<usize> = roles.columns.iter().map(at).collect();
    let descriptor = reader.metadata().file_metadata().schema_descr_ptr();
    let columns = places.iter().map(|&place| Column::new(path, &descriptor.column(place)));
    let mut columns = columns.collect::<Result<Vec<_>, _>>()?;
    let mut builder = Builder::new(&file, schema, options, roles);
    let mut row_number = 0;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(|error| broken(path, &error))?;
        let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        if !options.part.has_any(row_number + 1, row_number + left as u64 + 1) {
            row_number += left as u64;
            continue;
        }
        let mut readers = open_columns(path, &opened, &*group, &places)?;
        while left > 0 {
            let count = left.min(BATCH);
            let read = options.part.has_any(row_number + 1, row_number + count as u64 + 1);
            for (column, reader) in columns.iter_mut().zip(&mut readers) {
                let pass = || if read { column.fill(reader, count) } else { skip(reader, count) };
                decoding(pass).map_err(|error| broken(path, &error))?;
            }
            for row in 0..count {
                row_number += 1;
                if !options.part.has(row_number) {
                    continue;
                }
                let cell = |role: usize| columns[role].cell(row, &schema.na);
                if let Err(bad) = builder.row(row_number, cell) {
                    let column = places[bad.role] + 1;
                    let error = builder.cell_error(Place::Row(row_number), column, bad);
                    builder.bad_row(error)?;
                }
            }
            left -= count;
        }
    }
    Ok(builder)
}

/// Readers of some columns, whose pages announce nothing that cannot be.
fn open_columns(
    path: &Path,
    opened: &Opened,
    group: &dyn RowGroupReader,
    places: &[usize],
) -> Result<Vec<ColumnReader>, DataError> {
    let open = |&place: &usize| {
        let column = group.metadata().column(place);
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let range = (u64::try_from(start), u64::try_from(column.compressed_size()));
        let checked = match range {
            (Ok(start), Ok(length)) if start.saturating_add(length) <= opened.bytes => {
                pages::check(&mut &opened.file, start, length)
            }
            _ => Err("a column lies beyond the end of the file".to_owned()),
        };
        checked
            .map_err(ParquetError::General)
            .and_then(|()| decoding(|| group.get_column_reader(place)))
            .map_err(|error| broken(path, &error))
    };
    places.iter().map(open).collect()
}

/// What a stored number means.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meaning {
    Plain,
    Unsigned,
    Date,
    /// Ticks since 1970, so many a day.
    Ticks(i64),
    /// Digits, so many of them after the point.
    Decimal(u32),
    Text,
}

/// What a column's type means, or the type's name if it has no plain value.
fn meaning(column: &ColumnDescriptor) -> Result<Meaning, String> {
    if column.max_rep_level() > 0 || column.path().parts().len() != 1 {
        return Err("a nested column".to_owned());
    }
    let physical = column.physical_type();
    if matches!(physical, Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY) {
        return Err(format!("a column of type {physical}"));
    }
    let text = physical == Physical::BYTE_ARRAY;
    let unusable = |name: &dyn std::fmt::Debug| Err(format!("a column of type {name:?}"));
    if let Some(logical) = column.logical_type_ref() {
        return Ok(match logical {
            LogicalType::String | LogicalType::Enum | LogicalType::Json if text => Meaning::Text,
            LogicalType::Decimal(decimal) if !text => {
                Meaning::Decimal(u32::try_from(decimal.scale).unwrap_or(0))
            }
            LogicalType::Date => Meaning::Date,
            LogicalType::Timestamp(stamp) => Meaning::Ticks(match stamp.unit {
                TimeUnit::MILLIS => A_DAY * 1_000,
                TimeUnit::MICROS => A_DAY * 1_000_000,
                TimeUnit::NANOS => A_DAY * 1_000_000_000,
            }),
            LogicalType::Integer(integer) if integer.is_signed => Meaning::Plain,
            LogicalType::Integer(_) => Meaning::Unsigned,
            LogicalType::Unknown if !text => Meaning::Plain,
            other => return unusable(other),
        });
    }
    Ok(match column.converted_type() {
        ConvertedType::UINT_8
        | ConvertedType::UINT_16
        | ConvertedType::UINT_32
        | ConvertedType::UINT_64 => Meaning::Unsigned,
        ConvertedType::DATE => Meaning::Date,
        ConvertedType::TIMESTAMP_MILLIS => Meaning::Ticks(A_DAY * 1_000),
        ConvertedType::TIMESTAMP_MICROS => Meaning::Ticks(A_DAY * 1_000_000),
        ConvertedType::DECIMAL if !text => {
            Meaning::Decimal(u32::try_from(column.type_scale()).unwrap_or(0))
        }
        _ if text => Meaning::Text,
        ConvertedType::NONE
        | ConvertedType::INT_8
        | ConvertedType::INT_16
        | ConvertedType::INT_32
        | ConvertedType::INT_64 => Meaning::Plain,
        other => return unusable(&other),
    })
}

/// One column's values of the current batch.
struct Column {
    meaning: Meaning,
    /// Definition level of a value that is there; 0 if it always is.
    defined: i16,
    levels: Vec<i16>,
    /// Place of each row's value among those that are there; `None` where it is missing.
    slots: Vec<Option<u32>>,
    values: Values,
}

enum Values {
    Truths(Vec<bool>),
    Small(Vec<i32>),
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Texts(Vec<ByteArray>),
}

impl Column {
    fn new(path: &Path, column: &ColumnDescriptor) -> Result<Self, DataError> {
        let meaning = meaning(column).map_err(|what| DataError::Schema {
            file: shown(path),
            problem: format!(
                "column {:?}: {what} has no plain value; write numbers, text, dates or booleans",
                column.name()
            ),
        })?;
        let values = match column.physical_type() {
            Physical::BOOLEAN => Values::Truths(Vec::new()),
            Physical::INT32 => Values::Small(Vec::new()),
            Physical::INT64 => Values::Integers(Vec::new()),
            Physical::FLOAT | Physical::DOUBLE => Values::Numbers(Vec::new()),
            _ => Values::Texts(Vec::new()),
        };
        let defined = column.max_def_level();
        Ok(Column { meaning, defined, levels: Vec::new(), slots: Vec::new(), values })
    }

    /// Reads the next `count` rows.
    fn fill(&mut self, reader: &mut ColumnReader, count: usize) -> Result<(), ParquetError> {
        let (levels, defined) = (&mut self.levels, self.defined);
        levels.clear();
        let found = match (reader, &mut self.values) {
            (ColumnReader::BoolColumnReader(reader), Values::Truths(values)) => {
                fill(reader, count, defined, levels, values)?
            }
            (ColumnReader::Int32ColumnReader(reader), Values::Small(values)) => {
                fill(reader, count, defined, levels, values)?
            }
            (ColumnReader::Int64ColumnReader(reader), Values::Integers(values)) => {
                fill(reader, count, defined, levels, values)?
            }
            (ColumnReader::DoubleColumnReader(reader), Values::Numbers(values)) => {
                fill(reader, count, defined, levels, values)?
            }
            (ColumnReader::FloatColumnReader(reader), Values::Numbers(values)) => {
                let mut short = Vec::with_capacity(count);
                let found = fill(reader, count, defined, levels, &mut short)?;
                values.clear();
                values.extend(short.into_iter().map(as_printed));
                found
            }
            (ColumnReader::ByteArrayColumnReader(reader), Values::Texts(values)) => {
                fill(reader, count, defined, levels, values)?
            }
            _ => return Err(ParquetError::General("a column changes its type".to_owned())),
        };
        if found != count {
            return Err(ParquetError::General(format!("{found} values for {count} rows")));
        }
        let mut next = 0;
        self.slots.clear();
        self.slots.extend((0..count).map(|row| {
            let there = defined == 0 || self.levels.get(row) == Some(&defined);
            there.then(|| {
                next += 1;
                next - 1
            })
        }));
        Ok(())
    }

    /// The cell of a row of the batch.
    fn cell<'c>(&'c self, row: usize, na: &Names) -> Result<Cell<'c>, String> {
        let Some(slot) = self.slots[row].map(|slot| slot as usize) else {
            return Ok(Cell::Missing);
        };
        let damaged = || "the value is not there; copy the file again".to_owned();
        Ok(match &self.values {
            Values::Truths(values) => Cell::Truth(*values.get(slot).ok_or_else(damaged)?),
            Values::Numbers(values) => Cell::of_number(*values.get(slot).ok_or_else(damaged)?, na),
            Values::Texts(values) => {
                let bytes = values.get(slot).ok_or_else(damaged)?.data();
                let text = std::str::from_utf8(bytes).map_err(|_| "text that is not UTF-8")?;
                Cell::of_text(text, na)
            }
            Values::Small(values) => {
                let value = *values.get(slot).ok_or_else(damaged)?;
                match self.meaning {
                    Meaning::Unsigned => Cell::of_integer(i64::from(value as u32), na),
                    _ => self.integer(i64::from(value), na),
                }
            }
            Values::Integers(values) => self.integer(*values.get(slot).ok_or_else(damaged)?, na),
        })
    }

    fn integer(&self, value: i64, na: &Names) -> Cell<'static> {
        match self.meaning {
            Meaning::Date => Cell::Moment(Moment { day: value, nanos: 0 }),
            Meaning::Ticks(per_day) => Cell::Moment(Moment::from_ticks(value, per_day)),
            Meaning::Decimal(scale) => {
                // Through its digits, so that it is rounded once, as its text would be.
                Cell::of_number(format!("{value}e-{scale}").parse().unwrap_or(f64::NAN), na)
            }
            Meaning::Unsigned if value < 0 => Cell::of_number(value as u64 as f64, na),
            _ => Cell::of_integer(value, na),
        }
    }
}

/// Passes over the next `count` rows.
fn skip(reader: &mut ColumnReader, count: usize) -> Result<(), ParquetError> {
    let passed = match reader {
        ColumnReader::BoolColumnReader(reader) => reader.skip_records(count),
        ColumnReader::Int32ColumnReader(reader) => reader.skip_records(count),
        ColumnReader::Int64ColumnReader(reader) => reader.skip_records(count),
        ColumnReader::DoubleColumnReader(reader) => reader.skip_records(count),
        ColumnReader::FloatColumnReader(reader) => reader.skip_records(count),
        ColumnReader::ByteArrayColumnReader(reader) => reader.skip_records(count),
        _ => return Err(ParquetError::General("a column changes its type".to_owned())),
    }?;
    if passed == count {
        return Ok(());
    }
    Err(ParquetError::General(format!("{passed} values for {count} rows")))
}

/// A float32 as the shortest decimal that names it.
fn as_printed(value: f32) -> f64 {
    if value.is_finite() { value.to_string().parse().unwrap_or(f64::NAN) } else { f64::NAN }
}

/// Reads rows until there are `count`; returns how many there were.
fn fill<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    count: usize,
    defined: i16,
    levels: &mut Vec<i16>,
    values: &mut Vec<T::T>,
) -> Result<usize, ParquetError> {
    values.clear();
    let mut done = 0;
    while done < count {
        let wanted = if defined > 0 { Some(&mut *levels) } else { None };
        let (records, _, _) = reader.read_records(count - done, wanted, None, values)?;
        if records == 0 {
            break;
        }
        done += records;
    }
    Ok(done)
}

/// The columns of a file for a draft: their types, or with `look` their contents.
fn columns(path: &Path, options: &DraftOptions) -> Result<Vec<NamedGuess>, DataError> {
    let opened = open(path)?;
    let descriptor = opened.reader.metadata().file_metadata().schema_descr_ptr();
    let mut found = Vec::new();
    for (place, name) in headings(&opened).into_iter().enumerate() {
        let column = descriptor.column(place);
        let Ok(meaning) = meaning(&column) else { continue };
        let guess = match (meaning, column.physical_type()) {
            _ if options.look => Guess::Seen(look_at(path, &opened, place)?),
            (Meaning::Text, _) => Guess::Text,
            (Meaning::Date | Meaning::Ticks(_), _) => Guess::Date,
            (_, Physical::BOOLEAN) => Guess::Boolean,
            _ => Guess::Number,
        };
        found.push((name, guess));
    }
    Ok(found)
}

fn look_at(path: &Path, opened: &Opened, place: usize) -> Result<Seen, DataError> {
    let reader = &opened.reader;
    let descriptor = reader.metadata().file_metadata().schema_descr_ptr();
    let mut column = Column::new(path, &descriptor.column(place))?;
    let mut seen = Seen::new();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(|error| broken(path, &error))?;
        let mut readers = open_columns(path, opened, &*group, &[place])?;
        let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        while left > 0 {
            let count = left.min(BATCH);
            decoding(|| column.fill(&mut readers[0], count))
                .map_err(|error| broken(path, &error))?;
            for row in 0..count {
                seen.add(&column.cell(row, &Names::default()).unwrap_or(Cell::Missing).text());
            }
            left -= count;
        }
    }
    Ok(seen)
}
