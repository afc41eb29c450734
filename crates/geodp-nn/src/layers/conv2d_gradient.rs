//! Per-sample gradient of a convolution's weights, left in the lanes:
//! `dW[o][c][j][i] = Σ_{v,u} dy[o][v][u] · x[c][v·s + j − p][u·s + i − p]`, `db[o] = Σ dy[o]`.
//!
//! It costs exactly the multiply-adds of the ordinary weight gradient; what makes it private is
//! that the lanes are not summed yet. A register tile is O outputs × T taps of one kernel row;
//! bands of rows are so high that the O rows of dy stay in the L1 cache while all channels pass. At the
//! edges, taps that see padding are left out: x is read where it stands, and nothing is multiplied by 0.

#![allow(clippy::needless_range_loop, reason = "iterators over tiles keep them out of registers")]

use super::conv_shape::ConvShape;
use super::parts::{even_parts, parts_of};
use crate::simd::{Kernel, Vector};
use std::ops::Range;

/// Values of dy and x that one band should touch: 20 KiB with vectors of 32 bytes, and with vectors of 64
/// bytes 40 KiB, because the L1 cache beside them mostly has 48. Bands do not change the order of additions.
const BAND_VALUES: usize = 640;

/// Outputs of a register tile of so many taps: at most twelve accumulators of 16 registers, and 24 of
/// 32. Each sum is a chain of its own, so that no bit depends on it.
const fn outputs_for(taps: usize, registers: usize) -> &'static [usize] {
    match (taps > 3, registers >= 32) {
        (false, true) => &[8, 4, 2, 1],
        (true, true) | (false, false) => &[4, 2, 1],
        (true, false) => &[2, 1],
    }
}

/// O outputs over one band of rows, all channels and taps, T taps at a time.
struct Band<'a, V, const O: usize, const T: usize> {
    shape: &'a ConvShape,
    channels: Range<usize>,
    /// From the first of the channels on.
    x: &'a [V],
    /// From the first of the O outputs on, like `weights`.
    dy: &'a [V],
    weights: &'a mut [V],
    rows: Range<usize>,
    /// Of dy: length of a row and of a plane.
    columns: usize,
    plane: usize,
    tap_x: usize,
    /// Columns of dy from which every one of the T taps sees x.
    inner: Range<usize>,
    /// Start from 0 instead of from what stands in `weights`.
    fresh: bool,
}

/// The gradient of the weights of some input channels, of which `x` has the planes.
pub(crate) fn weight_gradient<V: Vector>(
    shape: &ConvShape,
    channels: Range<usize>,
    x: &[V],
    dy: &[V],
    weights: &mut [V],
    accumulate: bool,
) {
    let (rows, columns) = (shape.out_height(), shape.out_width());
    let per_output = shape.channels * shape.kernel * shape.kernel;
    let taps_sizes: &[usize] = if shape.kernel == 5 { &[5] } else { &[3, 2, 1] };
    let mut tap_x = 0;
    for taps in parts_of(shape.kernel, taps_sizes) {
        let outputs_for = outputs_for(taps, V::REGISTERS);
        let tile_rows = (outputs_for[0] + 2 * shape.stride) * columns;
        let inner = inner_columns(shape, tap_x, taps);
        let mut band_first = 0;
        for band in even_parts(rows, (BAND_VALUES / tile_rows).max(1)) {
            let band_rows = band_first..band_first + band;
            let fresh = band_first == 0 && !accumulate;
            band_first += band;
            let mut first = 0;
            for outputs in parts_of(shape.outputs, outputs_for) {
                let dy = &dy[first * rows * columns..];
                let weights = &mut weights[first * per_output..];
                first += outputs;
                macro_rules! band_of {
                    ($(($o:literal, $t:literal))*) => {
                        match (outputs, taps) {
                            $(($o, $t) => V::run(Band::<V, $o, $t> {
                                shape, channels: channels.clone(), x, dy, weights, rows: band_rows.clone(),
                                columns, plane: rows * columns, tap_x, inner: inner.clone(), fresh,
                            }),)*
                            _ => unreachable!("parts have no other sizes"),
                        }
                    };
                }
                band_of! {
                    (1, 1) (2, 1) (4, 1) (8, 1) (1, 2) (2, 2) (4, 2) (8, 2)
                    (1, 3) (2, 3) (4, 3) (8, 3) (1, 5) (2, 5) (4, 5)
                }
            }
        }
        tap_x += taps;
    }
}

/// Columns u with 0 ≤ u·s + i − p < width for all of the taps i from `tap_x` on.
fn inner_columns(shape: &ConvShape, tap_x: usize, taps: usize) -> Range<usize> {
    let first = shape.padding.saturating_sub(tap_x).div_ceil(shape.stride);
    let end = (shape.width + shape.padding + 1).saturating_sub(tap_x + taps);
    let end = end.div_ceil(shape.stride).min(shape.out_width());
    first.min(end)..end
}

/// The gradient of the bias, where there is one.
pub(crate) fn bias_gradient<V: Vector>(
    shape: &ConvShape,
    dy: &[V],
    biases: &mut [V],
    accumulate: bool,
) {
    let plane = shape.out_height() * shape.out_width();
    V::run(BiasGradient { biases, dy, plane, accumulate });
}

/// Sum of dy over each plane.
struct BiasGradient<'a, V> {
    biases: &'a mut [V],
    dy: &'a [V],
    plane: usize,
    accumulate: bool,
}

impl<V: Vector> Kernel for BiasGradient<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (bias, dy) in self.biases.iter_mut().zip(self.dy.chunks_exact(self.plane)) {
            let mut sums = [V::zero(); 4];
            let (fours, rest) = dy.as_chunks::<4>();
            for four in fours {
                for at in 0..4 {
                    sums[at] = sums[at].add(four[at]);
                }
            }
            for dy in rest {
                sums[0] = sums[0].add(*dy);
            }
            let sum = sums[0].add(sums[1]).add(sums[2].add(sums[3]));
            *bias = if self.accumulate { bias.add(sum) } else { sum };
        }
    }
}

impl<V: Vector, const O: usize, const T: usize> Kernel for Band<'_, V, O, T> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let shape = self.shape;
        for c in self.channels.clone() {
            for tap_y in 0..shape.kernel {
                // Rows v with 0 ≤ v·s + j − p < height. A division costs as much as a row.
                let stride = shape.stride;
                let steps = |rows: usize| if stride == 1 { rows } else { rows.div_ceil(stride) };
                let from = steps(shape.padding.saturating_sub(tap_y));
                let to = steps((shape.height + shape.padding).saturating_sub(tap_y));
                self.tile(c, tap_y, from.max(self.rows.start)..to.min(self.rows.end));
            }
        }
    }
}

impl<V: Vector, const O: usize, const T: usize> Band<'_, V, O, T> {
    #[inline(always)]
    fn tile(&mut self, c: usize, tap_y: usize, rows: Range<usize>) {
        let shape = self.shape;
        let (columns, plane, stride) = (self.columns, self.plane, shape.stride);
        let per_output = shape.channels * shape.kernel * shape.kernel;
        let at = (c * shape.kernel + tap_y) * shape.kernel + self.tap_x;
        let inner = self.inner.clone();
        let mut sums = [[V::zero(); T]; O];
        if !self.fresh {
            for o in 0..O {
                for t in 0..T {
                    sums[o][t] = self.weights[o * per_output + at + t];
                }
            }
        }
        // Slices of one length, so that one check serves all of them.
        let mut planes = [&self.dy[..0]; O];
        for o in 0..O {
            planes[o] = &self.dy[o * plane..][..plane];
        }
        for v in rows {
            let row = (c - self.channels.start) * shape.height + v * stride + tap_y - shape.padding;
            let x = &self.x[row * shape.width..][..shape.width];
            let mut dy = [&self.dy[..0]; O];
            for o in 0..O {
                dy[o] = &planes[o][v * columns..][..columns];
            }
            for u in 0..inner.start {
                self.add_at_edge(x, dy, u, &mut sums);
            }
            let first = (inner.start * stride + self.tap_x).saturating_sub(shape.padding);
            let x_inner = &x[first.min(shape.width)..];
            if stride == 1 {
                // Without a multiplication and a check at each column.
                for (x, u) in x_inner.windows(T).zip(inner.clone()) {
                    add(x, dy, u, &mut sums);
                }
            } else {
                for (at, u) in inner.clone().enumerate() {
                    add(&x_inner[at * stride..][..T], dy, u, &mut sums);
                }
            }
            for u in inner.end..columns {
                self.add_at_edge(x, dy, u, &mut sums);
            }
        }
        for o in 0..O {
            for t in 0..T {
                self.weights[o * per_output + at + t] = sums[o][t];
            }
        }
    }

    /// [`add`] for those taps that see x from column `u`.
    #[inline(always)]
    fn add_at_edge(&self, x: &[V], dy: [&[V]; O], u: usize, sums: &mut [[V; T]; O]) {
        let first = u * self.shape.stride + self.tap_x;
        for t in 0..T {
            // Left of x the difference is larger than any length.
            if let Some(x) = x.get((first + t).wrapping_sub(self.shape.padding)) {
                for o in 0..O {
                    sums[o][t] = dy[o][u].fma(*x, sums[o][t]);
                }
            }
        }
    }
}

/// `sums[o][t] += dy[o][u]·x[t]`.
#[inline(always)]
fn add<V: Vector, const O: usize, const T: usize>(
    x: &[V],
    dy: [&[V]; O],
    u: usize,
    sums: &mut [[V; T]; O],
) {
    for o in 0..O {
        for t in 0..T {
            sums[o][t] = dy[o][u].fma(x[t], sums[o][t]);
        }
    }
}
