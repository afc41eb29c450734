//! Two arrays of which only some rows are read: from a plain file by their places, so that nothing of the
//! others is kept; a gzip file has no places and is unpacked as a whole first.

use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::plain::Opened;
use super::{Array, Layout, PairOptions, Values, read_array, to_dataset};
use crate::digest::FieldHasher;
use crate::files::{digest_into, shown};
use crate::format::array_format;
use crate::source::Source;
use crate::table::ImportReport;
use crate::{DataError, Dataset, Fingerprint};

/// A file of inputs and one of labels, to be read in part.
pub struct PairPart {
    inputs: Side,
    labels: Side,
    options: PairOptions,
}

/// One of the two files.
struct Side {
    path: PathBuf,
    /// Rows of the array.
    rows: usize,
    /// What a gzip file holds.
    unpacked: Option<Array>,
}

impl PairPart {
    /// Looks at the headers of two arrays.
    ///
    /// # Errors
    /// A bad header, or files that do not belong together.
    pub fn open(inputs: &Path, labels: &Path, options: PairOptions) -> Result<Self, DataError> {
        let (inputs, labels) = (Side::open(inputs)?, Side::open(labels)?);
        if inputs.rows != labels.rows {
            return Err(DataError::CountMismatch {
                inputs_file: shown(&inputs.path),
                inputs: inputs.rows,
                labels_file: shown(&labels.path),
                labels: labels.rows,
            });
        }
        Ok(PairPart { inputs, labels, options })
    }
}

impl Source for PairPart {
    fn units(&self) -> usize {
        self.inputs.rows
    }

    fn digest(&self) -> Result<Fingerprint, DataError> {
        let mut hasher = FieldHasher::new("geodp pair part 1");
        digest_into(&self.inputs.path, &mut hasher)?;
        digest_into(&self.labels.path, &mut hasher)?;
        Ok(hasher.finish())
    }

    fn read(&self, units: &[u32], _: bool) -> Result<(Dataset, ImportReport), DataError> {
        let Self { inputs, labels, options, .. } = self;
        let sides = ((&*inputs.path, inputs.read(units)?), (&*labels.path, labels.read(units)?));
        let data = to_dataset(sides.0, sides.1, options).map_err(|error| in_file(error, units))?;
        Ok((data, ImportReport::unchanged(units.len())))
    }
}

/// An error about a record that was read, about its place in the file.
fn in_file(error: DataError, units: &[u32]) -> DataError {
    let place = |index: usize| units.get(index).map_or(index, |&unit| unit as usize);
    match error {
        DataError::NotFinite { file, index, value } => {
            DataError::NotFinite { file, index: place(index), value }
        }
        DataError::LabelOutOfRange { file, index, label, classes } => {
            DataError::LabelOutOfRange { file, index: place(index), label, classes }
        }
        other => other,
    }
}

/// The header of a plain file; `None` if it is gzip.
fn header(path: &Path) -> Result<Option<Opened>, DataError> {
    Opened::new(path, array_format(path)?)
}

impl Side {
    fn open(path: &Path) -> Result<Self, DataError> {
        let (dims, unpacked) = match header(path)? {
            Some(Opened { layout, .. }) => (layout.dims, None),
            None => {
                let array = read_array(path)?;
                (array.dims.clone(), Some(array))
            }
        };
        match dims.first() {
            None | Some(0) => Err(DataError::Empty { file: shown(path) }),
            Some(&rows) => Ok(Side { path: path.to_owned(), rows, unpacked }),
        }
    }

    /// Some rows, in ascending order.
    fn read(&self, rows: &[u32]) -> Result<Array, DataError> {
        if let Some(array) = &self.unpacked {
            return Ok(array.rows(rows));
        }
        let Some(Opened { file, layout }) = header(&self.path)? else {
            return Err(DataError::Empty { file: shown(&self.path) });
        };
        let Layout { mut dims, decode, body_start, expected } = layout;
        let start = body_start as u64;
        let len = ((expected - start) / dims[0] as u64) as usize;
        let mut body = vec![0; rows.len() * len];
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut fill = || -> std::io::Result<()> {
            let mut at = reader.seek(SeekFrom::Start(start))?;
            for (&row, out) in rows.iter().zip(body.chunks_exact_mut(len.max(1))) {
                let place = start + u64::from(row) * len as u64;
                reader.seek_relative(place as i64 - at as i64)?;
                reader.read_exact(out)?;
                at = place + len as u64;
            }
            Ok(())
        };
        fill().map_err(DataError::io("read", &self.path))?;
        dims[0] = rows.len();
        Ok(Array { dims, values: decode(&body) })
    }
}

impl Array {
    fn rows(&self, rows: &[u32]) -> Array {
        fn picked<T: Copy>(values: &[T], rows: &[u32], len: usize) -> Vec<T> {
            let row = |&row: &u32| values[row as usize * len..][..len].iter().copied();
            rows.iter().flat_map(row).collect()
        }
        let mut dims = self.dims.clone();
        let len = dims[1..].iter().product();
        dims[0] = rows.len();
        let values = match &self.values {
            Values::Bytes(values) => Values::Bytes(picked(values, rows, len)),
            Values::Integers(values) => Values::Integers(picked(values, rows, len)),
            Values::Floats(values) => Values::Floats(picked(values, rows, len)),
        };
        Array { dims, values }
    }
}
