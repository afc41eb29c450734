//! Records without labels: what prediction needs, and the inputs of a [`Dataset`](crate::Dataset).
//!
//! Inputs are kept as they were stored (bytes with an affine map applied on reading, f32 or f16), shared
//! behind an `Arc`, with a list of row numbers over them: a subset or a validation part costs four
//! bytes a record, and MNIST stays 47 MB however many views of it exist.

use std::sync::Arc;

use geodp_nn::{StoredInput, half};

use crate::DataError;
use crate::digest::FieldHasher;
use crate::scaling::{Scaling, Shape};

/// Inputs of one shape, in order.
#[derive(Clone, Debug)]
pub struct Records {
    shape: Shape,
    input_len: usize,
    store: Store,
    /// Which stored row each record is.
    rows: Arc<[u32]>,
    preprocessing: String,
}

#[derive(Clone, Debug)]
enum Store {
    Bytes { pixels: Arc<Vec<u8>>, affine: Vec<(f32, f32)> },
    Floats(Arc<Vec<f32>>),
    Halves(Arc<Vec<u16>>),
}

impl Records {
    /// Bytes, channel by channel, scaled as they are read.
    pub fn from_bytes(
        shape: Shape,
        pixels: Arc<Vec<u8>>,
        scaling: &Scaling,
    ) -> Result<Self, DataError> {
        let affine = scaling.affine(shape.channels)?;
        let rows = rows_of(shape, pixels.len())?;
        Self::new(shape, Store::Bytes { pixels, affine }, rows, scaling.describe())
    }

    /// Numbers that are network inputs already; `preprocessing` says in a line how they were made.
    pub fn from_floats(
        shape: Shape,
        values: Vec<f32>,
        preprocessing: impl Into<String>,
    ) -> Result<Self, DataError> {
        let rows = rows_of(shape, values.len())?;
        let found = values.iter().position(|value| !value.is_finite());
        if let (Some(at), Some(input_len)) = (found, shape.checked_len()) {
            let (index, value) = (at / input_len, f64::from(values[at]));
            return Err(DataError::NotFinite { file: "inputs".to_owned(), index, value });
        }
        Self::new(shape, Store::Floats(Arc::new(values)), rows, preprocessing.into())
    }

    /// Finite numbers in half precision.
    pub(crate) fn from_halves(
        shape: Shape,
        values: Vec<u16>,
        preprocessing: impl Into<String>,
    ) -> Result<Self, DataError> {
        let rows = rows_of(shape, values.len())?;
        Self::new(shape, Store::Halves(Arc::new(values)), rows, preprocessing.into())
    }

    fn new(
        shape: Shape,
        store: Store,
        rows: Arc<[u32]>,
        preprocessing: String,
    ) -> Result<Self, DataError> {
        let input_len = checked_input_len(shape)?;
        Ok(Records { shape, input_len, store, rows, preprocessing })
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Shape of one input.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Values in one input.
    pub fn input_len(&self) -> usize {
        self.input_len
    }

    /// How the inputs were made, in a line.
    pub fn preprocessing(&self) -> &str {
        &self.preprocessing
    }

    /// (a, b) of p·a + b, one pair for all channels or one for each; `None` if inputs are not bytes.
    pub fn byte_scaling(&self) -> Option<&[(f32, f32)]> {
        match &self.store {
            Store::Bytes { affine, .. } => Some(affine),
            _ => None,
        }
    }

    /// Writes input `index` to `out`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len) or `out` is not [`input_len`](Self::input_len) long.
    pub fn read_input(&self, index: usize, out: &mut [f32]) {
        assert_eq!(out.len(), self.input_len, "output slice of the wrong length");
        let start = self.rows[index] as usize * self.input_len;
        match &self.store {
            Store::Floats(values) => out.copy_from_slice(&values[start..start + self.input_len]),
            Store::Halves(values) => {
                for (out, &value) in out.iter_mut().zip(&values[start..start + self.input_len]) {
                    *out = half::decode(value);
                }
            }
            Store::Bytes { pixels, affine } => {
                let plane = self.input_len / affine.len();
                let input = &pixels[start..start + self.input_len];
                let planes = input.chunks_exact(plane).zip(out.chunks_exact_mut(plane));
                for ((source, target), &(a, b)) in planes.zip(affine) {
                    for (value, &pixel) in target.iter_mut().zip(source) {
                        *value = f32::from(pixel) * a + b;
                    }
                }
            }
        }
    }

    /// Input `index` as it is stored.
    pub(crate) fn stored_input(&self, index: usize) -> StoredInput<'_> {
        let start = self.rows[index] as usize * self.input_len;
        let place = start..start + self.input_len;
        match &self.store {
            Store::Floats(values) => StoredInput::Floats(&values[place]),
            Store::Bytes { pixels, affine } => StoredInput::Bytes(&pixels[place], affine),
            Store::Halves(values) => StoredInput::Halves(&values[place]),
        }
    }

    /// The same records read with other constants; `None` if they are not bytes.
    pub fn rescaled(&self, scaling: &Scaling) -> Option<Result<Self, DataError>> {
        let Store::Bytes { pixels, .. } = &self.store else { return None };
        Some(scaling.affine(self.shape.channels).map(|affine| Records {
            store: Store::Bytes { pixels: Arc::clone(pixels), affine },
            preprocessing: scaling.describe(),
            ..self.clone()
        }))
    }

    /// The records at these positions, in this order, sharing the stored inputs.
    pub fn subset(&self, indices: &[usize]) -> Result<Self, DataError> {
        if let Some(&index) = indices.iter().find(|&&index| index >= self.len()) {
            return Err(DataError::Argument(format!(
                "record {index} was asked for, but there are only {}",
                self.len()
            )));
        }
        let rows = indices.iter().map(|&index| self.rows[index]).collect();
        Ok(Records { rows, ..self.clone() })
    }

    /// The same records, stored on their own.
    pub(crate) fn copied(&self) -> Result<Self, DataError> {
        fn picked<T: Copy>(values: &[T], rows: &[u32], len: usize) -> Arc<Vec<T>> {
            let mut own = Vec::with_capacity(rows.len() * len);
            rows.iter().for_each(|&row| own.extend(&values[row as usize * len..][..len]));
            Arc::new(own)
        }
        let (rows, len) = (&self.rows, self.input_len);
        let store = match &self.store {
            Store::Bytes { pixels, affine } => {
                Store::Bytes { pixels: picked(pixels, rows, len), affine: affine.clone() }
            }
            Store::Floats(values) => Store::Floats(picked(values, rows, len)),
            Store::Halves(values) => Store::Halves(picked(values, rows, len)),
        };
        let rows = (0..rows.len() as u32).collect();
        Self::new(self.shape, store, rows, self.preprocessing.clone())
    }

    /// Feeds shape and preprocessing into a digest.
    pub(crate) fn describe_into(&self, hasher: &mut FieldHasher) {
        for size in [self.shape.channels, self.shape.height, self.shape.width] {
            hasher.number(size as u64);
        }
        hasher.field(self.preprocessing.as_bytes());
    }

    /// Feeds an input, as it is stored, into a digest.
    pub(crate) fn feed(&self, index: usize, hasher: &mut FieldHasher) {
        let row = self.rows[index] as usize;
        let range = row * self.input_len..(row + 1) * self.input_len;
        match &self.store {
            Store::Bytes { pixels, .. } => hasher.field(&pixels[range]),
            Store::Floats(values) => hasher.values(values[range].iter().map(|v| v.to_le_bytes())),
            Store::Halves(values) => hasher.values(values[range].iter().map(|v| v.to_le_bytes())),
        }
    }
}

fn checked_input_len(shape: Shape) -> Result<usize, DataError> {
    shape.checked_len().filter(|&len| len > 0).ok_or_else(|| {
        DataError::Argument(format!(
            "inputs of shape {} × {} × {} hold no values or too many",
            shape.channels, shape.height, shape.width
        ))
    })
}

/// Row numbers 0, 1, … of `stored` values of this shape.
fn rows_of(shape: Shape, stored: usize) -> Result<Arc<[u32]>, DataError> {
    let input_len = checked_input_len(shape)?;
    if !stored.is_multiple_of(input_len) {
        return Err(DataError::Argument(format!(
            "{stored} values are not a whole number of inputs of {input_len}"
        )));
    }
    let count = u32::try_from(stored / input_len).map_err(|_| {
        DataError::Argument(format!("{} records are more than 2³² − 1", stored / input_len))
    })?;
    Ok((0..count).collect())
}
