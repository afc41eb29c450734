//! Convolutions 3×3 of stride 1 with a quarter of the multiplications (Winograd 1980, as Lavin & Gray 2016
//! use it): a tile of 4×4 results comes from 6×6 sources by 36 products in place of 144,
//! `Y = Aᵀ[(G W Gᵀ) ⊙ (Bᵀ X B)]A`, summed over source channels before Aᵀ·A. Forward it is the layer, backward to
//! the input the same with W turned round.
//!
//! Bᵀ, Aᵀ and G belong to the points 0, ±1, ±2, ∞; their numbers are small whole ones but for G, whose sums are
//! made in double precision when weights are packed. What single precision loses is some 10⁻⁶ of a
//! typical value. It is no approximation that privacy rests on: a record's gradient is what these kernels leave,
//! and that is what is measured and clipped.
//!
//! Shapes: tiles pass in strips of [`STRIP`] at most; for each of the 36 places, V `[channel][tile]` of the
//! sources (in lanes) meets U `[channel][target of the tile]` of the weights (broadcast) in registers. Only wide
//! layers gain ([`Winograd::pays`]): transforms cost as much as some twenty channels save.

#![allow(clippy::needless_range_loop, reason = "iterators over tiles keep them out of registers")]

use super::correlate::channel_tiles;
use super::parts::parts_of;
use crate::simd::{Kernel, Vector};
use std::ops::Range;

/// Side of a tile of sources, and of one of results.
pub(crate) const SIDE: usize = 6;
pub(crate) const STEP: usize = 4;
/// Places of a tile of sources.
pub(crate) const PLACES: usize = SIDE * SIDE;
/// Tiles that pass at a time.
const STRIP: usize = 4;
/// Channels on both sides from which on this pays.
const WIDE: usize = 32;

/// One correlation with kernels 3×3, step 1: `target[o][v][u] = start[o] + Σ W[o][c][j][i]·source[c][v+j−p][u+i−p]`.
#[derive(Debug)]
pub(crate) struct Winograd {
    pub(crate) channels: usize,
    pub(crate) outputs: usize,
    pub(crate) source: Planes,
    pub(crate) target: Planes,
    /// p: rows and columns of zeros before the source.
    pub(crate) padding: usize,
}

/// Height and width of planes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planes {
    pub(crate) height: usize,
    pub(crate) width: usize,
}

impl Planes {
    pub(crate) fn len(&self) -> usize {
        self.height * self.width
    }

    /// Tiles of results that cover a plane.
    pub(crate) fn tiles(&self) -> usize {
        self.height.div_ceil(STEP) * self.width.div_ceil(STEP)
    }

    /// First row and column of a tile.
    #[inline(always)]
    pub(crate) fn tile(&self, at: usize) -> [usize; 2] {
        let across = self.width.div_ceil(STEP);
        [at / across * STEP, at % across * STEP]
    }
}

impl Winograd {
    /// Whether a layer with so many channels on its two sides gains by it.
    pub(crate) fn pays(channels: usize, outputs: usize) -> bool {
        channels.min(outputs) >= WIDE
    }

    /// Vectors of scratch space.
    pub(crate) fn scratch(&self) -> usize {
        STRIP * PLACES * (self.channels + self.outputs)
    }

    /// Numbers that [`Self::pack`] makes.
    pub(crate) fn packed(&self) -> usize {
        PLACES * self.channels * self.outputs
    }

    /// Appends G W Gᵀ as `[place][tile of targets][channel][target of the tile]`.
    pub(crate) fn pack(
        &self,
        weight: impl Fn(usize, usize, usize, usize) -> f32,
        packed: &mut Vec<f32>,
    ) {
        let from = packed.len();
        packed.resize(from + self.packed(), 0.0);
        let packed = &mut packed[from..];
        let (of_place, mut first) = (self.channels * self.outputs, 0);
        for tile in channel_tiles(self.outputs) {
            for c in 0..self.channels {
                for o in 0..tile {
                    let taps: [[f64; 3]; 3] = std::array::from_fn(|j| {
                        std::array::from_fn(|i| f64::from(weight(first + o, c, j, i)))
                    });
                    let at = first * self.channels + c * tile + o;
                    for (place, value) in of_weights(&taps).into_iter().enumerate() {
                        packed[place * of_place + at] = value as f32;
                    }
                }
            }
            first += tile;
        }
    }

    /// Fills `target`, which starts from `start`, or from 0 if that is empty.
    #[inline(always)]
    pub(crate) fn run<V: Vector>(
        &self,
        source: &[V],
        weights: &[f32],
        start: &[f32],
        target: &mut [V],
        scratch: &mut [V],
    ) {
        // At most 24 accumulators, or twelve. Each sum is a chain of its own, so that no bit depends on it.
        let strips: &[usize] = if V::REGISTERS > 16 { &[STRIP, 2, 1] } else { &[2, 1] };
        let mut first = 0;
        for strip in parts_of(self.target.tiles(), strips) {
            macro_rules! strip_of {
                ($($p:literal)*) => {
                    match strip {
                        $($p => V::run(Strip::<V, $p> {
                            shape: self, first, source, weights, start, target, scratch,
                        }),)*
                        _ => unreachable!("parts have no other sizes"),
                    }
                };
            }
            strip_of!(1 2 4);
            first += strip;
        }
    }
}

/// The tiles `first` to `first + P`.
struct Strip<'a, V, const P: usize> {
    shape: &'a Winograd,
    first: usize,
    source: &'a [V],
    weights: &'a [f32],
    start: &'a [f32],
    target: &'a mut [V],
    scratch: &'a mut [V],
}

impl<V: Vector, const P: usize> Kernel for Strip<'_, V, P> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { shape, first, .. } = self;
        let (v, rest) = self.scratch.split_at_mut(PLACES * shape.channels * P);
        let products = &mut rest[..PLACES * shape.outputs * P];
        let mut x = [[V::zero(); SIDE]; SIDE];
        for (c, plane) in self.source.chunks_exact(shape.source.len()).enumerate() {
            for p in 0..P {
                let tile = shape.target.tile(first + p);
                of_sources(plane, shape.source, tile, shape.padding, &mut x);
                for (place, value) in x.as_flattened().iter().enumerate() {
                    v[(place * shape.channels + c) * P + p] = *value;
                }
            }
        }
        let of_place = shape.channels * shape.outputs;
        for (place, v) in v.chunks_exact(shape.channels * P).enumerate() {
            let mut weights = &self.weights[place * of_place..][..of_place];
            let mut o = 0;
            for tile in channel_tiles(shape.outputs) {
                let of_tile;
                (of_tile, weights) = weights.split_at(tile * shape.channels);
                let products = &mut products[o * P * PLACES + place..];
                o += tile;
                macro_rules! multiply_of {
                    ($($o:literal)*) => {
                        match tile {
                            $($o => multiply::<V, $o, P>(v, of_tile, products),)*
                            _ => unreachable!("channel_tiles has no other"),
                        }
                    };
                }
                multiply_of!(1 2 3 4 5 6);
            }
        }
        let planes = self.target.chunks_exact_mut(shape.target.len());
        for (o, (plane, products)) in planes.zip(products.chunks_exact(PLACES * P)).enumerate() {
            // No closure makes a vector: it would be compiled without the instruction set's features.
            let start = V::splat(self.start.get(o).copied().unwrap_or(0.0));
            for (p, products) in products.chunks_exact(PLACES).enumerate() {
                put_results(products, start, plane, shape.target, shape.target.tile(first + p));
            }
        }
    }
}

/// `products[o][p][·] = Σ_c weights[c][o]·v[c][p]`.
#[inline(always)]
fn multiply<V: Vector, const O: usize, const P: usize>(
    v: &[V],
    weights: &[f32],
    products: &mut [V],
) {
    let mut sums = [[V::zero(); P]; O];
    let (v, weights) = (v.as_chunks::<P>().0, weights.as_chunks::<O>().0);
    for (v, weights) in v.iter().zip(weights) {
        for o in 0..O {
            let weight = V::splat(weights[o]);
            for p in 0..P {
                sums[o][p] = weight.fma(v[p], sums[o][p]);
            }
        }
    }
    for o in 0..O {
        for p in 0..P {
            products[(o * P + p) * PLACES] = sums[o][p];
        }
    }
}

/// Places along one side that lie inside a plane: of `SIDE` from `first − padding` on.
#[inline(always)]
fn inside(first: usize, padding: usize, length: usize) -> Range<usize> {
    let from = padding.saturating_sub(first).min(SIDE);
    from..(length + padding).saturating_sub(first).clamp(from, SIDE)
}

/// Makes `x` Bᵀ X B of the sources that the tile of results at `tile` sees. It is lent because an array of
/// zeros to start from would be filled anew for each tile, a thirtieth of the time.
#[inline(always)]
pub(crate) fn of_sources<V: Vector>(
    plane: &[V],
    size: Planes,
    [row, column]: [usize; 2],
    padding: usize,
    x: &mut [[V; SIDE]; SIDE],
) {
    let rows = inside(row, padding, size.height);
    let columns = inside(column, padding, size.width);
    for j in 0..SIDE {
        let mut values = [V::zero(); SIDE];
        if rows.contains(&j) {
            let from = (row + j - padding) * size.width + column;
            for i in 0..SIDE {
                if columns.contains(&i) {
                    values[i] = plane[from + i - padding];
                }
            }
        }
        x[j] = b(values);
    }
    for i in 0..SIDE {
        let column = b([x[0][i], x[1][i], x[2][i], x[3][i], x[4][i], x[5][i]]);
        for j in 0..SIDE {
            x[j][i] = column[j];
        }
    }
}

/// Bᵀ of six values.
#[inline(always)]
fn b<V: Vector>(x: [V; SIDE]) -> [V; SIDE] {
    let (two, four, five) = (V::splat(2.0), V::splat(4.0), V::splat(5.0));
    let (minus_four, minus_five) = (V::splat(-4.0), V::zero().sub(five));
    let (even, odd) = (minus_four.fma(x[2], x[4]), minus_four.fma(x[1], x[3]));
    let (of_even, of_odd) = (x[4].sub(x[2]), x[3].sub(x[1]));
    [
        four.fma(x[0], minus_five.fma(x[2], x[4])),
        even.add(odd),
        even.sub(odd),
        two.fma(of_odd, of_even),
        V::splat(-2.0).fma(of_odd, of_even),
        four.fma(x[1], minus_five.fma(x[3], x[5])),
    ]
}

/// Writes `start` + Aᵀ M A where the tile lies in the plane.
#[inline(always)]
fn put_results<V: Vector>(
    products: &[V],
    start: V,
    plane: &mut [V],
    size: Planes,
    [row, column]: [usize; 2],
) {
    let mut across = [[V::zero(); STEP]; SIDE];
    for (across, m) in across.iter_mut().zip(products.as_chunks::<SIDE>().0) {
        *across = a(*m);
    }
    // No `from_fn`, whose closure would be compiled without the instruction set's features.
    let mut down = [[V::zero(); STEP]; STEP];
    for i in 0..STEP {
        let [r0, r1, r2, r3, r4, r5] = &across;
        down[i] = a([r0[i], r1[i], r2[i], r3[i], r4[i], r5[i]]);
    }
    let columns = STEP.min(size.width - column);
    for j in 0..STEP.min(size.height - row) {
        let to = &mut plane[(row + j) * size.width + column..][..columns];
        for i in 0..STEP {
            if i < columns {
                to[i] = down[i][j].add(start);
            }
        }
    }
}

/// Aᵀ of six values.
#[inline(always)]
fn a<V: Vector>(m: [V; SIDE]) -> [V; STEP] {
    let (ones, of_ones) = (m[1].add(m[2]), m[1].sub(m[2]));
    let (twos, of_twos) = (m[3].add(m[4]), m[3].sub(m[4]));
    [
        m[0].add(ones).add(twos),
        V::splat(2.0).fma(of_twos, of_ones),
        V::splat(4.0).fma(twos, ones),
        V::splat(8.0).fma(of_twos, of_ones).add(m[5]),
    ]
}

/// G W Gᵀ.
fn of_weights(taps: &[[f64; 3]; 3]) -> [f64; PLACES] {
    let g = |w: [f64; 3]| {
        let (ends, ends_of_two) = (w[0] + w[2], w[0] + 4.0 * w[2]);
        [
            w[0] / 4.0,
            -(ends + w[1]) / 6.0,
            -(ends - w[1]) / 6.0,
            (ends_of_two + 2.0 * w[1]) / 24.0,
            (ends_of_two - 2.0 * w[1]) / 24.0,
            w[2],
        ]
    };
    let across = taps.map(g);
    let mut both = [0.0; PLACES];
    for i in 0..SIDE {
        for (j, value) in g(std::array::from_fn(|j| across[j][i])).into_iter().enumerate() {
            both[j * SIDE + i] = value;
        }
    }
    both
}
