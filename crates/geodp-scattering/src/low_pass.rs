//! The low-pass as a small matrix: smooth, keep every fourth pixel, crop the border, in one product.
//!
//! φ is separable, so the outputs of an image U are A·U·Bᵀ with A of (H/4 − 2) × H and B of
//! (W/4 − 2) × W values. Eight outputs are summed at once: a value is read once for all
//! of them, and no sum waits for its last addition.

use std::f64::consts::TAU;

use crate::fft::Line;
use crate::filters::{COPIES, UNIT, frequency};
use crate::lanes::Lanes;
use crate::matrices::Matrix;

/// Outputs that are summed side by side.
const TILE: usize = 8;

/// The matrix of one axis.
#[derive(Clone, Debug)]
pub(crate) struct LowPass {
    /// Its rows.
    pub(crate) outputs: usize,
    /// Its columns.
    inputs: usize,
    /// \[tile of rows\]\[column\]\[row in the tile\]; rows beyond the last are 0.
    tiles: Vec<Vec<[f32; TILE]>>,
}

/// The matrix A of one axis of `length` pixels at full resolution, or of `length`/2 at half: row o
/// is the low-pass centred at pixel 4(o + 1), or 2(o + 1), so that the first and the last of the
/// `length`/4 places are cropped.
///
/// At half resolution the filter is cut to the frequencies below a quarter of the full ones, as
/// kymatio's `periodize_filter_fft` does; the cut is visible (the filter is 0.04 there), so it is kept.
pub(crate) fn low_pass(length: usize, half: bool) -> LowPass {
    let gaussian = |k: usize| {
        let terms = COPIES.map(|m| {
            let v = 1.6 * (frequency(k, length) + TAU * f64::from(m));
            libm::exp(-0.5 * v * v)
        });
        libm::sqrt(UNIT) * terms.sum::<f64>()
    };
    let size = if half { length / 2 } else { length };
    let step = if half { 2 } else { 4 };
    let spectrum: Vec<f64> = (0..size)
        .map(|k| if half && k >= length / 4 { gaussian(k + length / 2) } else { gaussian(k) })
        .collect();
    let tap = |centre: usize, place: usize| {
        let waves = spectrum.iter().enumerate().map(|(k, weight)| {
            let turns = (k * (size + centre - place)) % size;
            weight * libm::cos(TAU * turns as f64 / size as f64)
        });
        (waves.sum::<f64>() / size as f64) as f32
    };
    let outputs = length / 4 - 2;
    let row = |o: usize, place| if o < outputs { tap(step * (o + 1), place) } else { 0.0 };
    let tile = |first: usize| -> Vec<[f32; TILE]> {
        (0..size).map(|place| std::array::from_fn(|at| row(first + at, place))).collect()
    };
    let tiles = (0..outputs).step_by(TILE).map(tile).collect();
    LowPass { outputs, inputs: size, tiles }
}

impl LowPass {
    /// Row by row.
    pub(crate) fn matrix(&self) -> Matrix {
        let value = |row: usize, column: usize| self.tiles[row / TILE][column][row % TILE];
        Matrix::new([self.outputs, self.inputs], value)
    }

    /// The outputs of one line of values, into the line `target` of `to`.
    #[inline(always)]
    pub(crate) fn apply<V: Lanes>(&self, values: &[V], (to, target): (&mut [V], Line)) {
        for (first, tile) in (0..self.outputs).step_by(TILE).zip(&self.tiles) {
            let mut sums = [V::default(); TILE];
            for (value, weights) in values.iter().zip(tile) {
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum = *sum + *value * V::splat(*weight);
                }
            }
            for (at, sum) in (first..self.outputs).zip(sums) {
                to[target.at(at)] = sum;
            }
        }
    }

    /// The outputs of every row of `low`, one after the other.
    #[inline(always)]
    pub(crate) fn apply_rows<V: Lanes>(&self, low: &[V], out: &mut [V]) {
        for (row, out) in low.chunks_exact(self.inputs).zip(out.chunks_exact_mut(self.outputs)) {
            self.apply(row, (out, Line::WHOLE));
        }
    }
}
