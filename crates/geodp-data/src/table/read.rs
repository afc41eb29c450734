//! Reading a CSV file by its schema, row by row.

use std::fs;
use std::path::Path;

use csv::{ReaderBuilder, StringRecord, Trim};

use super::{ColumnReport, FeatureKind, ImportReport, NumericScale, Schema};
use crate::files::shown;
use crate::{DataError, Dataset, Records, Shape};

/// Reads a labelled table. Its name in reports is the file's.
pub fn read(path: &Path, schema: &Schema) -> Result<(Dataset, ImportReport), DataError> {
    let bytes = fs::read(path).map_err(DataError::io("read", path))?;
    let (records, labels, report) = parse(&shown(path), &bytes, schema, true)?;
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
    Ok((Dataset::new(name, records, labels, schema.classes().to_vec())?, report))
}

/// Reads a table for prediction: the label column need not be there, and is not looked at if it is.
pub fn read_unlabelled(path: &Path, schema: &Schema) -> Result<(Records, ImportReport), DataError> {
    let bytes = fs::read(path).map_err(DataError::io("read", path))?;
    let (records, _, report) = parse(&shown(path), &bytes, schema, false)?;
    Ok((records, report))
}

fn parse(
    file: &str,
    bytes: &[u8],
    schema: &Schema,
    labelled: bool,
) -> Result<(Records, Vec<u32>, ImportReport), DataError> {
    let mut reader =
        ReaderBuilder::new().delimiter(schema.delimiter).trim(Trim::All).from_reader(bytes);
    let headings = reader.headers().map_err(|error| row_error(file, bytes, error))?.clone();
    let label_at = if labelled { Some(position(file, &headings, &schema.label)?) } else { None };
    let columns = schema.features.iter().map(|f| position(file, &headings, &f.column));
    let columns: Vec<usize> = columns.collect::<Result<_, _>>()?;

    let mut report = ImportReport {
        records: 0,
        columns: schema.features.iter().map(|f| column_report(&f.column)).collect(),
        ignored: (0..headings.len())
            .filter(|at| Some(*at) != label_at && !columns.contains(at))
            .map(|at| headings[at].to_owned())
            .collect(),
    };
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    let mut row = StringRecord::new();
    while reader.read_record(&mut row).map_err(|error| row_error(file, bytes, error))? {
        let line = line_of(bytes, row.position());
        let bad_cell = |at: usize, problem| DataError::Cell {
            file: file.to_owned(),
            line,
            column: at + 1,
            name: headings[at].to_owned(),
            problem,
        };
        for ((feature, &at), counts) in
            schema.features.iter().zip(&columns).zip(&mut report.columns)
        {
            encode(&row[at], &feature.kind, schema.scale, counts, &mut values)
                .map_err(|problem| bad_cell(at, problem))?;
        }
        if let Some(at) = label_at {
            labels.push(class_of(&row[at], schema).map_err(|problem| bad_cell(at, problem))?);
        }
        report.records += 1;
    }
    if report.records == 0 {
        return Err(DataError::Empty { file: file.to_owned() });
    }
    let shape = Shape::features(schema.input_len());
    Ok((Records::from_floats(shape, values, schema.describe())?, labels, report))
}

fn column_report(column: &str) -> ColumnReport {
    ColumnReport { column: column.to_owned(), below: 0, above: 0, other: 0 }
}

/// Where a column stands; it must be there once.
fn position(file: &str, headings: &StringRecord, column: &str) -> Result<usize, DataError> {
    let problem = |problem| DataError::Schema { file: file.to_owned(), problem };
    let mut found = headings.iter().enumerate().filter(|(_, heading)| *heading == column);
    let Some((at, _)) = found.next() else {
        let there = headings.iter().collect::<Vec<_>>().join(", ");
        return Err(problem(format!(
            "has no column {column:?}, which the schema names; its first line has: {there}"
        )));
    };
    match found.next() {
        Some(_) => Err(problem(format!("has two columns {column:?}; rename one"))),
        None => Ok(at),
    }
}

/// Appends the inputs of one cell.
fn encode(
    cell: &str,
    kind: &FeatureKind,
    scale: NumericScale,
    counts: &mut ColumnReport,
    inputs: &mut Vec<f32>,
) -> Result<(), String> {
    if cell.is_empty() {
        return Err("the cell is empty; fill it or leave the row out".to_owned());
    }
    match kind {
        FeatureKind::Numeric { low, high } => {
            let number = cell.parse::<f64>().ok().filter(|number| number.is_finite());
            let number = number.ok_or_else(|| format!("{} is not a number", quoted(cell)))?;
            counts.below += u64::from(number < *low);
            counts.above += u64::from(number > *high);
            let unit = (number.clamp(*low, *high) - low) / (high - low);
            inputs.push(match scale {
                NumericScale::Unit => unit as f32,
                NumericScale::Symmetric => (2.0 * unit - 1.0) as f32,
            });
        }
        FeatureKind::Categorical { values } => {
            let found = values.position(cell);
            let count = values.list().len();
            counts.other += u64::from(found.is_none());
            let hot = found.unwrap_or(count);
            inputs.extend((0..=count).map(|at| if at == hot { 1.0 } else { 0.0 }));
        }
    }
    Ok(())
}

fn class_of(cell: &str, schema: &Schema) -> Result<u32, String> {
    if cell.is_empty() {
        return Err("the label is missing; fill it or leave the row out".to_owned());
    }
    schema.classes.position(cell).map(|label| label as u32).ok_or_else(|| {
        format!("{} is not one of the declared classes {:?}", quoted(cell), schema.classes())
    })
}

/// A cell in a message: enough of it to be found.
fn quoted(cell: &str) -> String {
    let short: String = cell.chars().take(40).collect();
    if short.len() < cell.len() { format!("{short:?}…") } else { format!("{short:?}") }
}

/// The line a row starts on. The reader's position is where the row before it ended, so blank lines
/// (and the second half of a Windows line end) between the two are still to be counted.
fn line_of(bytes: &[u8], position: Option<&csv::Position>) -> u64 {
    let Some(position) = position else { return 1 };
    let from = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let between = bytes.get(from..).unwrap_or_default();
    let blank = between.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
    position.line() + blank.filter(|&&byte| byte == b'\n').count() as u64
}

fn row_error(file: &str, bytes: &[u8], error: csv::Error) -> DataError {
    let line = line_of(bytes, error.position());
    let problem = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} cells where the first line has {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "text that is not UTF-8; save the file as UTF-8".to_owned(),
        _ => error.to_string(),
    };
    DataError::Row { file: file.to_owned(), line, problem }
}
