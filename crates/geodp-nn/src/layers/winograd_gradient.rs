//! Per-sample gradient of the weights of a wide convolution 3×3 of stride 1, left in the lanes, by the tiles of
//! [`super::winograd`]: `dW[o][c] = Σ_tiles Aᵀ[(G dY Gᵀ) ⊙ (Bᵀ X B)]A`, here with tiles of 4×4 output
//! gradients in the part of the weights. The sum over tiles comes before Aᵀ·A, so that a
//! pair of channels costs 36 products a tile in place of 144 and one transform.
//!
//! Sources of two channels are transformed into the first cache while all outputs pass; those of dy stand
//! transformed in the second. In registers stand C channels × O outputs × one row of six places: each is a chain of
//! its own over the tiles, so that no bit depends on how many there are.

#![allow(clippy::needless_range_loop, reason = "iterators over tiles keep them out of registers")]

use super::conv_shape::ConvShape;
use super::parts::{even_parts, parts_of};
use super::winograd::{PLACES, Planes, SIDE, STEP, of_sources};
use crate::simd::{Kernel, Vector};
use std::ops::Range;

/// Tiles that pass at a time: so many of two channels fill half of a first cache. Not by the vector's own
/// size, because strips decide the order of additions.
const STRIP: usize = 4;
/// Channels that are transformed at a time.
const CHANNELS: usize = 2;
/// Outputs that pass at a time where there are registers for them.
const OUTPUTS: usize = 2;
/// Side of what comes out.
const TAPS: usize = 3;

/// Vectors of scratch space.
pub(crate) fn scratch(shape: &ConvShape) -> usize {
    STRIP * PLACES * (shape.outputs + CHANNELS)
}

/// Whether there are tiles enough for the transforms to pay.
pub(crate) fn pays(target: Planes) -> bool {
    target.tiles() >= STRIP
}

/// Replaces `weights` by the gradient, or adds it.
#[inline(always)]
pub(crate) fn weight_gradient<V: Vector>(
    shape: &ConvShape,
    x: &[V],
    dy: &[V],
    weights: &mut [V],
    accumulate: bool,
    scratch: &mut [V],
) {
    let target = shape.target();
    let mut first = 0;
    for strip in even_parts(target.tiles(), STRIP) {
        let add = accumulate || first > 0;
        let tiles = first..first + strip;
        V::run(Strip { shape, tiles, x, dy, weights: &mut *weights, add, scratch: &mut *scratch });
        first += strip;
    }
}

/// Some tiles, for all weights.
struct Strip<'a, V> {
    shape: &'a ConvShape,
    tiles: Range<usize>,
    x: &'a [V],
    dy: &'a [V],
    weights: &'a mut [V],
    add: bool,
    scratch: &'a mut [V],
}

impl<V: Vector> Kernel for Strip<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { shape, x, dy, weights, add, .. } = self;
        let (source, target) = (shape.source(), shape.target());
        let of_channel = PLACES * self.tiles.len();
        let (of_dy, of_x) = self.scratch.split_at_mut(shape.outputs * of_channel);
        let planes = dy.chunks_exact(target.len());
        for (of_dy, plane) in of_dy.chunks_exact_mut(of_channel).zip(planes) {
            for (at, tile) in self.tiles.clone().enumerate() {
                let values = of_gradients(plane, target, target.tile(tile));
                arrange(&values, at, self.tiles.len(), of_dy);
            }
        }
        let mut values = [[V::zero(); SIDE]; SIDE];
        let mut rows = [[[[V::zero(); TAPS]; SIDE]; CHANNELS]; OUTPUTS];
        let mut c = 0;
        for channels in parts_of(shape.channels, &[CHANNELS, 1]) {
            for (channel, of_x) in of_x.chunks_exact_mut(of_channel).enumerate().take(channels) {
                let plane = &x[(c + channel) * source.len()..][..source.len()];
                for (at, tile) in self.tiles.clone().enumerate() {
                    let tile = target.tile(tile);
                    of_sources(plane, source, tile, shape.padding, &mut values);
                    arrange(&values, at, self.tiles.len(), of_x);
                }
            }
            let mut o = 0;
            let parts: &[usize] = if V::REGISTERS > 16 { &[OUTPUTS, 1] } else { &[1] };
            for outputs in parts_of(shape.outputs, parts) {
                let of_dy = &of_dy[o * of_channel..];
                // Gradients come to lie far apart, where no processor looks ahead by itself.
                for next in o + outputs..(o + outputs + OUTPUTS).min(shape.outputs) {
                    let at = (next * shape.channels + c) * TAPS * TAPS;
                    for weight in &weights[at..][..channels * TAPS * TAPS] {
                        V::prefetch(weight);
                    }
                }
                let to = To { weights: &mut *weights, o, c, channels: shape.channels, add };
                match (outputs, channels) {
                    (2, 2) => multiply::<V, 2, 2>(of_x, of_dy, of_channel, &mut rows, to),
                    (1, 2) => multiply::<V, 1, 2>(of_x, of_dy, of_channel, &mut rows, to),
                    (2, 1) => multiply::<V, 2, 1>(of_x, of_dy, of_channel, &mut rows, to),
                    _ => multiply::<V, 1, 1>(of_x, of_dy, of_channel, &mut rows, to),
                }
                o += outputs;
            }
            c += channels;
        }
    }
}

/// Puts a tile's places as `[row][tile][column]`.
#[inline(always)]
fn arrange<V: Vector>(values: &[[V; SIDE]; SIDE], at: usize, tiles: usize, to: &mut [V]) {
    for (row, values) in values.iter().enumerate() {
        to[(row * tiles + at) * SIDE..][..SIDE].copy_from_slice(values);
    }
}

/// Where gradients go.
struct To<'a, V> {
    weights: &'a mut [V],
    o: usize,
    c: usize,
    channels: usize,
    add: bool,
}

/// The gradients of O outputs × C channels.
#[inline(always)]
fn multiply<V: Vector, const O: usize, const C: usize>(
    x: &[V],
    dy: &[V],
    of_channel: usize,
    rows: &mut [[[[V; TAPS]; SIDE]; CHANNELS]; OUTPUTS],
    to: To<'_, V>,
) {
    let of_row = of_channel / SIDE;
    for j in 0..SIDE {
        let mut sums = [[[V::zero(); SIDE]; C]; O];
        let (mut of_dy, mut of_x) = ([&[][..]; O], [&[][..]; C]);
        for o in 0..O {
            of_dy[o] = dy[o * of_channel + j * of_row..][..of_row].as_chunks::<SIDE>().0;
        }
        for c in 0..C {
            of_x[c] = x[c * of_channel + j * of_row..][..of_row].as_chunks::<SIDE>().0;
        }
        for tile in 0..of_row / SIDE {
            for i in 0..SIDE {
                for o in 0..O {
                    for c in 0..C {
                        sums[o][c][i] = of_dy[o][tile][i].fma(of_x[c][tile][i], sums[o][c][i]);
                    }
                }
            }
        }
        for o in 0..O {
            for c in 0..C {
                rows[o][c][j] = a(sums[o][c]);
            }
        }
    }
    for o in 0..O {
        for c in 0..C {
            let at = ((to.o + o) * to.channels + to.c + c) * TAPS * TAPS;
            let weights = &mut to.weights[at..at + TAPS * TAPS];
            let m = &rows[o][c];
            for i in 0..TAPS {
                let column = a([m[0][i], m[1][i], m[2][i], m[3][i], m[4][i], m[5][i]]);
                for j in 0..TAPS {
                    let weight = &mut weights[j * TAPS + i];
                    *weight = if to.add { weight.add(column[j]) } else { column[j] };
                }
            }
        }
    }
}

/// Aᵀ of six values, for three results.
#[inline(always)]
fn a<V: Vector>(m: [V; SIDE]) -> [V; TAPS] {
    let (ones, of_ones) = (m[1].add(m[2]), m[1].sub(m[2]));
    let (twos, of_twos) = (m[3].add(m[4]), m[3].sub(m[4]));
    [
        m[0].add(ones).add(twos),
        V::splat(2.0).fma(of_twos, of_ones),
        V::splat(4.0).fma(twos, ones).add(m[5]),
    ]
}

/// G dY Gᵀ of the tile at `tile`; beyond the plane there is no gradient.
#[inline(always)]
fn of_gradients<V: Vector>(
    plane: &[V],
    size: Planes,
    [row, column]: [usize; 2],
) -> [[V; SIDE]; SIDE] {
    let (rows, columns) = (STEP.min(size.height - row), STEP.min(size.width - column));
    let mut across = [[V::zero(); SIDE]; STEP];
    for j in 0..STEP {
        let mut dy = [V::zero(); STEP];
        if j < rows {
            let from = &plane[(row + j) * size.width + column..][..columns];
            for i in 0..STEP {
                if i < columns {
                    dy[i] = from[i];
                }
            }
            across[j] = g(dy);
        }
    }
    let mut both = [[V::zero(); SIDE]; SIDE];
    for i in 0..SIDE {
        let column = g([across[0][i], across[1][i], across[2][i], across[3][i]]);
        for j in 0..SIDE {
            both[j][i] = column[j];
        }
    }
    both
}

/// G of four values.
#[inline(always)]
fn g<V: Vector>(y: [V; STEP]) -> [V; SIDE] {
    let (sixth, of_24) = (V::splat(-1.0 / 6.0), V::splat(1.0 / 24.0));
    let (two, four) = (V::splat(2.0), V::splat(4.0));
    let (even, odd) = (y[0].add(y[2]), y[1].add(y[3]));
    let (even_of_two, odd_of_two) = (four.fma(y[2], y[0]), four.fma(y[3], y[1]));
    [
        V::splat(0.25).mul(y[0]),
        sixth.mul(even.add(odd)),
        sixth.mul(even.sub(odd)),
        of_24.mul(two.fma(odd_of_two, even_of_two)),
        of_24.mul(V::splat(-2.0).fma(odd_of_two, even_of_two)),
        y[3],
    ]
}
