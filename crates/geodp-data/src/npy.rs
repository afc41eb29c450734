//! NumPy's NPY format, versions 1 to 3
//! ([specification](https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html)).
//!
//! `\x93NUMPY`, two version bytes, the header's length (u16, from version 2 u32, little-endian), a
//! Python dictionary with `descr`, `fortran_order` and `shape`, then the values. Read here: integers
//! and bool, float32 and float64, little-endian, C order; everything else is an error that says how
//! to store it instead. As in `idx`, the length is compared before anything is allocated.

use std::path::Path;

use crate::array::{
    Array, Decode, Layout, PairOptions, Values, byte_count, to_dataset, to_records,
};
use crate::digest::hex;
use crate::{DataError, Dataset, Records, Scaling};

mod header;

use header::Header;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Loads a file of inputs and a file of labels.
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

/// Reads the bytes of an NPY file; `file` is its name in messages.
pub fn parse(file: &str, bytes: &[u8]) -> Result<Array, DataError> {
    Array::parse(file, bytes, layout)
}

/// What the header says.
pub(crate) fn layout(file: &str, bytes: &[u8]) -> Result<Layout, DataError> {
    if bytes.is_empty() {
        return Err(DataError::Empty { file: file.to_owned() });
    }
    let unsupported = |problem: String| DataError::Unsupported { file: file.to_owned(), problem };
    let truncated = |expected: usize| DataError::Truncated {
        file: file.to_owned(),
        expected: expected as u64,
        found: bytes.len() as u64,
    };
    let Some(after_magic) = bytes.strip_prefix(MAGIC) else {
        let found = hex(&bytes[..bytes.len().min(MAGIC.len())]);
        return Err(DataError::WrongMagic {
            file: file.to_owned(),
            expected: "an NPY file",
            found,
        });
    };
    let (header_len, header_start) = match *after_magic {
        [1, _, low, high, ..] => (usize::from(u16::from_le_bytes([low, high])), 10),
        [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([a, b, c, d]) as usize, 12),
        [1..=3, ..] | [] => return Err(truncated(12)),
        [version, ..] => {
            return Err(unsupported(format!("NPY version {version}; 1 to 3 are read")));
        }
    };
    let body_start = header_start + header_len;
    let Some(header) = bytes.get(header_start..body_start) else {
        return Err(truncated(body_start));
    };
    let header = std::str::from_utf8(header).ok().and_then(header::parse);
    let Header { descr, fortran_order, dims } = header.ok_or_else(|| {
        unsupported(
            "an NPY header that cannot be read; plain arrays only, no structures".to_owned(),
        )
    })?;
    if fortran_order && dims.len() > 1 {
        return Err(unsupported(
            "an array in Fortran order; store np.ascontiguousarray(x)".to_owned(),
        ));
    }
    let Some((element, decode)) = decoder(&descr) else {
        return Err(unsupported(format!(
            "values of type {descr}; store little-endian integers, float32 or float64 (in numpy: x.astype('<f4'))"
        )));
    };
    let expected = byte_count(&dims, element).and_then(|body| body.checked_add(body_start));
    let expected = expected.map_or(u64::MAX, |length| length as u64);
    Ok(Layout { dims, decode, body_start, expected })
}

/// Size of an element and the function that reads a body of them.
fn decoder(descr: &str) -> Option<(usize, Decode)> {
    /// Reads elements of `N` bytes, each by `$read`.
    macro_rules! elements {
        ($size:literal, $variant:ident, $read:expr) => {
            ($size, |body| {
                let chunks = body.as_chunks::<$size>().0;
                Values::$variant(chunks.iter().copied().map($read).collect())
            })
        };
    }
    // A byte has no order: numpy writes '|', other programs '<' or '>'.
    let single_byte = descr.len() == 3 && descr.starts_with(['|', '<', '>', '=']);
    Some(match descr {
        _ if single_byte && descr.ends_with("u1") => (1, |body| Values::Bytes(body.to_vec())),
        _ if single_byte && descr.ends_with("i1") => {
            elements!(1, Integers, |b| i64::from(i8::from_le_bytes(b)))
        }
        _ if single_byte && descr.ends_with("b1") => {
            elements!(1, Integers, |b: [u8; 1]| i64::from(b != [0]))
        }
        "<u2" => elements!(2, Integers, |b| i64::from(u16::from_le_bytes(b))),
        "<i2" => elements!(2, Integers, |b| i64::from(i16::from_le_bytes(b))),
        "<u4" => elements!(4, Integers, |b| i64::from(u32::from_le_bytes(b))),
        "<i4" => elements!(4, Integers, |b| i64::from(i32::from_le_bytes(b))),
        // Above 2⁶³ it is no label either way.
        "<u8" => {
            elements!(8, Integers, |b| { i64::try_from(u64::from_le_bytes(b)).unwrap_or(i64::MAX) })
        }
        "<i8" => elements!(8, Integers, i64::from_le_bytes),
        "<f4" => elements!(4, Floats, f32::from_le_bytes),
        "<f8" => elements!(8, Floats, |b| f64::from_le_bytes(b) as f32),
        _ => return None,
    })
}
