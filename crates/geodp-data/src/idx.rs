//! The IDX format of MNIST and the sets made in its image (Fashion-MNIST, KMNIST, EMNIST).
//!
//! Two zero bytes, a type code, the number of dimensions, each dimension as a big-endian u32, then
//! the values in C order, big-endian ([LeCun's description](http://yann.lecun.com/exdb/mnist/)).
//! Files may be gzip. The length must match the header exactly, and is compared before anything is
//! allocated, so a lying header costs nothing.

use std::path::Path;

use crate::array::{
    Array, Decode, Layout, PairOptions, Values, byte_count, to_dataset, to_records,
};
use crate::{DataError, Dataset, Records, Scaling};

/// Loads a file of inputs and a file of labels, each plain or gzip.
pub fn load_pair(
    inputs: &Path,
    labels: &Path,
    options: &PairOptions,
) -> Result<Dataset, DataError> {
    to_dataset(
        (inputs, Array::read(inputs, layout)?),
        (labels, Array::read(labels, layout)?),
        options,
    )
}

/// Loads a file of inputs alone, for prediction.
pub fn load_inputs(inputs: &Path, scaling: &Scaling) -> Result<Records, DataError> {
    to_records(inputs, Array::read(inputs, layout)?, scaling)
}

/// Whether a file's records are images of at least 4 × 4 pixels. `false` too where it cannot be read:
/// loading it says why.
pub fn holds_images(inputs: &Path) -> bool {
    let large = |height: usize, width: usize| height.min(width) >= 4;
    Array::read(inputs, layout).is_ok_and(|array| match array.dims[..] {
        [_, height, width] | [_, _, height, width] => large(height, width),
        _ => false,
    })
}

/// Reads the (uncompressed) bytes of an IDX file; `file` is its name in messages.
pub fn parse(file: &str, bytes: &[u8]) -> Result<Array, DataError> {
    Array::parse(file, bytes, layout)
}

/// How long a file is, by its first bytes.
pub(crate) fn announced(file: &str, first: &[u8]) -> Result<u64, DataError> {
    layout(file, first).map(|layout| layout.expected)
}

/// What stands before the values.
pub(crate) fn layout(file: &str, bytes: &[u8]) -> Result<Layout, DataError> {
    if bytes.is_empty() {
        return Err(DataError::Empty { file: file.to_owned() });
    }
    let Some((&[zero_high, zero_low, type_code, rank], after)) = bytes.split_first_chunk::<4>()
    else {
        return Err(truncated(file, 4, bytes));
    };
    let (0, 0, Some((element, decode)), 1..=8) = (zero_high, zero_low, decoder(type_code), rank)
    else {
        return Err(DataError::WrongMagic {
            file: file.to_owned(),
            expected: "an IDX file",
            found: crate::digest::hex(&bytes[..4]),
        });
    };
    let length = 4 + 4 * usize::from(rank);
    if bytes.len() < length {
        return Err(truncated(file, length, bytes));
    }
    let dims: Vec<usize> = after[..length - 4]
        .chunks_exact(4)
        .map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize)
        .collect();
    let expected = byte_count(&dims, element).and_then(|body| body.checked_add(length));
    let expected = expected.map_or(u64::MAX, |length| length as u64);
    Ok(Layout { dims, decode, body_start: length, expected })
}

fn truncated(file: &str, expected: usize, bytes: &[u8]) -> DataError {
    let (expected, found) = (expected as u64, bytes.len() as u64);
    DataError::Truncated { file: file.to_owned(), expected, found }
}

/// Size of an element and the function that reads a body of them.
fn decoder(type_code: u8) -> Option<(usize, Decode)> {
    Some(match type_code {
        0x08 => (1, |body| Values::Bytes(body.to_vec())),
        0x09 => (1, |body| Values::Integers(body.iter().map(|&b| i64::from(b as i8)).collect())),
        0x0b => (2, |body| {
            let all = body.as_chunks().0.iter();
            Values::Integers(all.map(|b| i64::from(i16::from_be_bytes(*b))).collect())
        }),
        0x0c => (4, |body| {
            let all = body.as_chunks().0.iter();
            Values::Integers(all.map(|b| i64::from(i32::from_be_bytes(*b))).collect())
        }),
        0x0d => (4, |body| {
            let all = body.as_chunks().0.iter();
            Values::Floats(all.map(|b| f32::from_be_bytes(*b)).collect())
        }),
        0x0e => (8, |body| {
            let all = body.as_chunks().0.iter();
            Values::Floats(all.map(|b| f64::from_be_bytes(*b) as f32).collect())
        }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idx(type_code: u8, dims: &[u32], body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, type_code, dims.len() as u8];
        dims.iter().for_each(|dim| bytes.extend(dim.to_be_bytes()));
        bytes.extend(body);
        bytes
    }

    #[test]
    fn every_type_is_read_big_endian() {
        let values = |code, body: &[u8]| parse("t", &idx(code, &[1], body)).unwrap().values;
        assert_eq!(values(0x08, &[200]), Values::Bytes(vec![200]));
        assert_eq!(values(0x09, &[0xff]), Values::Integers(vec![-1]));
        assert_eq!(values(0x0b, &(-2i16).to_be_bytes()), Values::Integers(vec![-2]));
        assert_eq!(values(0x0c, &70_000i32.to_be_bytes()), Values::Integers(vec![70_000]));
        assert_eq!(values(0x0d, &1.5f32.to_be_bytes()), Values::Floats(vec![1.5]));
        assert_eq!(values(0x0e, &(-0.25f64).to_be_bytes()), Values::Floats(vec![-0.25]));
    }

    #[test]
    fn dimensions_and_order_are_kept() {
        let array = parse("t", &idx(8, &[2, 1, 3], &[1, 2, 3, 4, 5, 6])).unwrap();
        assert_eq!(array.dims, [2, 1, 3]);
        assert_eq!(array.values, Values::Bytes(vec![1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn bad_files_have_their_own_errors() {
        let good = idx(8, &[2, 2], &[1, 2, 3, 4]);
        assert!(matches!(parse("t", &[]), Err(DataError::Empty { .. })));
        assert!(matches!(parse("t", &good[..3]), Err(DataError::Truncated { .. })));
        assert!(matches!(parse("t", &good[..9]), Err(DataError::Truncated { expected: 12, .. })));
        assert!(matches!(
            parse("t", &good[..15]),
            Err(DataError::Truncated { expected: 16, found: 15, .. })
        ));
        let long = [&good[..], &[0]].concat();
        assert!(matches!(parse("t", &long), Err(DataError::TrailingBytes { .. })));
        for (at, value) in [(0, 1), (1, 1), (2, 7), (3, 0), (3, 9)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert!(matches!(parse("t", &bad), Err(DataError::WrongMagic { .. })), "{at} {value}");
        }
        let huge = idx(0x0e, &[u32::MAX, u32::MAX, u32::MAX], &[]);
        assert!(matches!(parse("t", &huge), Err(DataError::Truncated { .. })));
    }
}
