//! An array as it lies in an IDX or NPY file, and how two of them become a dataset.
//!
//! Inputs are N × features, N × height × width or N × channels × height × width; labels are N
//! integers (N × 1 is accepted). Bytes stay bytes and are scaled on reading; other numbers are taken
//! as inputs as they are. The number of classes is declared, not looked up in the labels.

mod part;
mod plain;

use std::path::Path;
use std::sync::Arc;

pub use part::PairPart;

use crate::files::{read_maybe_gzip, shown};
use crate::format::array_format;
use crate::{DataError, Dataset, Records, Scaling, Shape};

/// Values of an array in C order, with its dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Length along each dimension, outermost first.
    pub dims: Vec<usize>,
    /// The values; as many as the product of `dims`.
    pub values: Values,
}

/// Values by the type they are kept in.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Unsigned bytes.
    Bytes(Vec<u8>),
    /// All other integers.
    Integers(Vec<i64>),
    /// Floating-point numbers, rounded to f32.
    Floats(Vec<f32>),
}

/// What an array's header says.
pub(crate) struct Layout {
    pub(crate) dims: Vec<usize>,
    /// Makes values of the bytes after the header.
    pub(crate) decode: Decode,
    /// Where those begin.
    pub(crate) body_start: usize,
    /// Length of the whole file.
    pub(crate) expected: u64,
}

pub(crate) type Decode = fn(&[u8]) -> Values;

/// Reads a format's header off the first bytes of a file, whose name is for messages.
pub(crate) type ReadLayout = fn(file: &str, first: &[u8]) -> Result<Layout, DataError>;

impl Array {
    /// Reads the bytes of a file.
    pub(crate) fn parse(file: &str, bytes: &[u8], layout: ReadLayout) -> Result<Self, DataError> {
        let Layout { dims, decode, body_start, expected } = layout(file, bytes)?;
        DataError::check_length(file, expected, bytes.len() as u64)?;
        Ok(Array { dims, values: decode(&bytes[body_start..]) })
    }

    /// Reads a file: a plain one block by block, gzip and what is no file on a disk as a whole.
    pub(crate) fn read(path: &Path, layout: ReadLayout) -> Result<Self, DataError> {
        let array = match plain::Opened::new(path, layout)? {
            Some(opened) => opened.read(path)?,
            None => {
                let announced = |file: &str, first: &[u8]| Ok(layout(file, first)?.expected);
                Self::parse(&shown(path), &read_maybe_gzip(path, announced)?, layout)?
            }
        };
        match array.dims.first() {
            Some(0) => Err(DataError::Empty { file: shown(path) }),
            _ => Ok(array),
        }
    }
}

/// How a pair of arrays is to be understood.
#[derive(Clone, Debug, PartialEq)]
pub struct PairOptions {
    /// What the dataset is called in reports.
    pub name: String,
    /// Names of the classes, in the order of their labels.
    pub class_names: Vec<String>,
    /// Scaling of inputs that are bytes; others are taken as they are.
    pub scaling: Scaling,
}

impl PairOptions {
    /// Classes named "0", "1", …, bytes scaled to \[0, 1\].
    pub fn numbered(name: impl Into<String>, classes: u32) -> Self {
        PairOptions {
            name: name.into(),
            class_names: (0..classes).map(|class| class.to_string()).collect(),
            scaling: Scaling::Unit,
        }
    }
}

/// Loads a file of inputs and a file of labels, each in whichever format its ending names.
///
/// # Errors
/// A bad file, or two that do not belong together.
pub fn load_pair(
    inputs: &Path,
    labels: &Path,
    options: &PairOptions,
) -> Result<Dataset, DataError> {
    to_dataset((inputs, read_array(inputs)?), (labels, read_array(labels)?), options)
}

/// Loads a file of inputs alone, for prediction.
///
/// # Errors
/// A bad file.
pub fn load_inputs(inputs: &Path, scaling: &Scaling) -> Result<Records, DataError> {
    to_records(inputs, read_array(inputs)?, scaling)
}

fn read_array(path: &Path) -> Result<Array, DataError> {
    Array::read(path, array_format(path)?)
}

/// The product of dimensions times the size of an element, if it fits.
pub(crate) fn byte_count(dims: &[usize], element: usize) -> Option<usize> {
    dims.iter().try_fold(element, |product, &dim| product.checked_mul(dim))
}

/// Makes inputs of an array.
pub(crate) fn to_records(
    file: &Path,
    array: Array,
    scaling: &Scaling,
) -> Result<Records, DataError> {
    let file = shown(file);
    let shape = input_shape(&file, &array.dims)?;
    let as_is = "as stored";
    let records = match array.values {
        Values::Bytes(pixels) => Records::from_bytes(shape, Arc::new(pixels), scaling),
        Values::Integers(values) => {
            Records::from_floats(shape, values.iter().map(|&v| v as f32).collect(), as_is)
        }
        Values::Floats(values) => Records::from_floats(shape, values, as_is),
    };
    records.map_err(|error| match error {
        DataError::NotFinite { index, value, .. } => DataError::NotFinite { file, index, value },
        other => other,
    })
}

/// Puts an array of inputs and an array of labels together.
pub(crate) fn to_dataset(
    (inputs_file, inputs): (&Path, Array),
    (labels_file, labels): (&Path, Array),
    options: &PairOptions,
) -> Result<Dataset, DataError> {
    let records = to_records(inputs_file, inputs, &options.scaling)?;
    let labels = to_labels(labels_file, labels, options.class_names.len())?;
    if records.len() != labels.len() {
        return Err(DataError::CountMismatch {
            inputs_file: shown(inputs_file),
            inputs: records.len(),
            labels_file: shown(labels_file),
            labels: labels.len(),
        });
    }
    Dataset::new(options.name.clone(), records, labels, options.class_names.clone())
}

fn input_shape(file: &str, dims: &[usize]) -> Result<Shape, DataError> {
    let unsupported = |problem| Err(DataError::Unsupported { file: file.to_owned(), problem });
    match *dims {
        [_, features] => Ok(Shape::features(features)),
        [_, height, width] => Ok(Shape::image(1, height, width)),
        [_, channels, height, width] => {
            let few = |count| (1..=4).contains(&count);
            if !few(channels) && few(width) {
                return unsupported(format!(
                    "dimensions {dims:?} look like N × height × width × channels; store the channels second (in numpy: x.transpose(0, 3, 1, 2))"
                ));
            }
            Ok(Shape::image(channels, height, width))
        }
        _ => unsupported(format!(
            "inputs of dimensions {dims:?}; N × features, N × height × width or N × channels × height × width is needed"
        )),
    }
}

fn to_labels(file: &Path, labels: Array, classes: usize) -> Result<Vec<u32>, DataError> {
    let unsupported = |problem: String| DataError::Unsupported { file: shown(file), problem };
    if !matches!(labels.dims[..], [_] | [_, 1]) {
        let dims = &labels.dims;
        return Err(unsupported(format!("labels of dimensions {dims:?}; N or N × 1 is needed")));
    }
    let classes = u32::try_from(classes).unwrap_or(u32::MAX);
    let in_range = |(index, label): (usize, i64)| {
        u32::try_from(label)
            .ok()
            .filter(|&label| label < classes)
            .ok_or_else(|| DataError::LabelOutOfRange { file: shown(file), index, label, classes })
    };
    match labels.values {
        Values::Bytes(bytes) => {
            bytes.into_iter().map(i64::from).enumerate().map(in_range).collect()
        }
        Values::Integers(integers) => integers.into_iter().enumerate().map(in_range).collect(),
        Values::Floats(_) => Err(unsupported(
            "labels are floating-point; store integers (in numpy: y.astype('int64'))".to_owned(),
        )),
    }
}
