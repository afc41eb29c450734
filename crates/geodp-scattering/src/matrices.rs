//! The transform as plain matrices, for machines that know no Fourier transform (ONNX graphs).
//!
//! With F the matrix of the discrete Fourier transform of an axis, F̄ its conjugate and E every second
//! row of F̄, the padded image x of P × Q places has
//!
//! | is | by |
//! |---|---|
//! | X = x̂ | F·x·Fᵀ |
//! | \|x⋆ψ₀θ\| | \|F̄·(X∘ψ₀θ)·F̄ᵀ\|; 1/(P·Q) is part of the filter |
//! | \|x⋆ψ₁θ\| at every second pixel | \|E·(X∘ψ₁θ)·Eᵀ\| |
//! | u⋆φ at every fourth pixel, cropped | A·u·Bᵀ |
//!
//! Filters, roots of unity, reflection and low-pass are those of the fast transform; only the order of
//! the sums differs.

use crate::cascade::Cascade;
use crate::fft::root;
use crate::filters::{ANGLES, morlet};
use crate::low_pass::low_pass;
use crate::scattering::reflected;

/// A matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Rows and columns.
    pub dims: [usize; 2],
    /// Its values.
    pub values: Vec<f32>,
}

impl Matrix {
    pub(crate) fn new(dims: [usize; 2], value: impl Fn(usize, usize) -> f32) -> Self {
        let [rows, columns] = dims;
        let row = |row: usize| (0..columns).map(move |column| (row, column));
        Matrix { dims, values: (0..rows).flat_map(row).map(|(r, c)| value(r, c)).collect() }
    }

    /// Rows for columns.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let [rows, columns] = self.dims;
        Matrix::new([columns, rows], |row, column| self.values[column * columns + row])
    }
}

/// What one axis needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Pixel of the image at each place of the padded axis.
    pub reflected: Vec<usize>,
    /// Real and imaginary part of F.
    pub forward: [Matrix; 2],
    /// Real and imaginary part of F̄.
    pub inverse: [Matrix; 2],
    /// Real and imaginary part of E.
    pub inverse_half: [Matrix; 2],
    /// A for planes of every pixel.
    pub low_full: Matrix,
    /// A for planes of every second pixel.
    pub low_half: Matrix,
}

/// The transform of planes of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrices {
    /// Up and down.
    pub rows: Axis,
    /// Left and right.
    pub columns: Axis,
    /// ψ₀θ/(P·Q) of each angle, P × Q.
    pub first: Vec<Matrix>,
    /// ψ₁θ/(P·Q) of each angle, P × Q.
    pub second: Vec<Matrix>,
}

impl Axis {
    fn new(length: usize) -> Self {
        let reflected = reflected(length);
        let padded = reflected.len();
        let waves = |rows: usize, step: usize, sign: f32| {
            let at = |row: usize, column: usize| root(padded, step * row * column);
            let re = Matrix::new([rows, padded], |row, column| at(row, column).0);
            [re, Matrix::new([rows, padded], |row, column| sign * at(row, column).1)]
        };
        Axis {
            forward: waves(padded, 1, 1.0),
            inverse: waves(padded, 1, -1.0),
            inverse_half: waves(padded / 2, 2, -1.0),
            low_full: low_pass(padded, false).matrix(),
            low_half: low_pass(padded, true).matrix(),
            reflected,
        }
    }
}

impl Matrices {
    /// Of images with sides of at least 4 pixels, which the caller has seen to.
    pub(crate) fn new(height: usize, width: usize) -> Self {
        let (rows, columns) = (Axis::new(height), Axis::new(width));
        let dims = [rows.reflected.len(), columns.reflected.len()];
        let factor = Cascade::inverse_factor(dims);
        let filters = |j| {
            let filter = |theta| Matrix { dims, values: morlet(dims, j, theta, factor) };
            (0..ANGLES).map(filter).collect()
        };
        Matrices { first: filters(0), second: filters(1), rows, columns }
    }
}
