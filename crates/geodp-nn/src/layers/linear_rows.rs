//! Exact sums of the first layer's gradients, Σ_i y_i·u_iᵀ over the records of a block, from inputs as they
//! are stored: `[record][input]`. u and y are the 16-bit factors of [`crate::grid`].
//!
//! Decision: inputs are read a second time, from the cache, in place of keeping a transposed copy and
//! their factors, which for wide inputs would not fit it. Features stand in the lanes here: a strip of u
//! is made of two records at a time, side by side, stays in the L1 cache for all outputs, and its products
//! need no adding up over lanes. They are added in `i32` and moved to `i64` before any of them can
//! overflow, see [`groups`].

#![allow(clippy::needless_range_loop, reason = "iterators over tiles keep them out of registers")]

use super::linear_exact::{Shorts, groups};
use super::parts::parts_of;
use crate::simd::{FeatureLanes, Kernel, MOST_LANES, Quantise, Stored, Vector};
use std::marker::PhantomData;
use std::ops::Range;

/// Pairs of records of a block.
const PAIRS: usize = MOST_LANES / 2;
/// Registers of a strip, and of a register tile.
const STRIP: usize = 4;
const COLUMNS: usize = 2;
/// Bytes that come to the L1 cache at once.
const LINE: usize = 64;
/// Values of a strip at most.
const MOST_STRIP: usize = STRIP * 16;

/// Rows of register tiles: ten sums, or twenty where there are registers for them.
const fn tile_rows<V: Vector>() -> &'static [usize] {
    if V::REGISTERS > 16 { &[10, 5, 2, 1] } else { &[5, 2, 1] }
}

/// What the factors of one block are put in.
pub(crate) struct RowFactors {
    /// `[pair of records][feature of the strip][record of the pair]`.
    u: Shorts,
    /// `[pair of records][output]`, the first record in the lower half.
    y: Vec<i32>,
    inputs: usize,
}

impl RowFactors {
    pub(crate) fn new(inputs: usize, outputs: usize) -> Self {
        let u = Shorts::new(PAIRS * 2 * MOST_STRIP);
        Self { u, y: vec![0; PAIRS * outputs], inputs }
    }

    /// `sum += Σ y·uᵀ` over the first `products.len()` records of a block, u = truncate(x·a), y =
    /// truncate(dy·b), `products` a bound of |u·y| for each. Records without a gradient have a dy of 0.
    pub(crate) fn add<V: Vector, T: Stored>(
        &mut self,
        (rows, a): (&[&[T]; MOST_LANES], &[f32; MOST_LANES]),
        (dy, b): (&[V], V),
        products: &[u64],
        sum: &mut [i64],
    ) {
        V::run(StorePairs { dy, scale: b, to: &mut self.y });
        // A lane receives the products of both records.
        let groups = groups(products.chunks(2).map(|pair| pair.iter().sum()));
        let (factors, groups, pairs) = (self, &groups[..], products.len().div_ceil(2));
        let vector = PhantomData::<V::Part>;
        V::run(RowProducts { factors, rows: &rows[..2 * pairs], a, groups, sum, vector });
    }
}

/// `to[pair][output] = truncate(dy[output]·scale)`.
struct StorePairs<'a, V> {
    dy: &'a [V],
    scale: V,
    to: &'a mut [i32],
}

impl<V: Vector> Kernel for StorePairs<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let mut shorts = [0; MOST_LANES];
        let outputs = self.dy.len();
        for (output, dy) in self.dy.iter().enumerate() {
            let scaled = [dy.mul(self.scale)];
            let lanes = V::Part::LANES;
            for (part, to) in V::parts(&scaled).iter().zip(shorts.chunks_exact_mut(lanes)) {
                part.store_shorts(to);
            }
            let to = self.to[output..].iter_mut().step_by(outputs);
            for (to, [low, high]) in to.zip(shorts.as_chunks::<2>().0) {
                *to = i32::from(*low) & 0xffff | i32::from(*high) << 16;
            }
        }
    }
}

struct RowProducts<'a, V, T> {
    factors: &'a mut RowFactors,
    rows: &'a [&'a [T]],
    a: &'a [f32; MOST_LANES],
    /// Of pairs of records.
    groups: &'a [Range<usize>],
    sum: &'a mut [i64],
    vector: PhantomData<V>,
}

impl<V: FeatureLanes, T: Stored> Kernel for RowProducts<'_, V, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let RowFactors { u, y, inputs } = self.factors;
        let (u, y, inputs) = (u.get_mut(), &y[..], *inputs);
        let outputs = y.len() / PAIRS;
        for first in (0..inputs).step_by(STRIP * V::LANES) {
            let strip = first..inputs.min(first + STRIP * V::LANES);
            quantise::<V, T>(self.rows, self.a, strip.clone(), u);
            for group in self.groups {
                let registers = strip.len().div_ceil(V::LANES);
                for column in (0..registers).step_by(COLUMNS) {
                    let (u, first) = (&u[column * V::SHORTS..], first + column * V::LANES);
                    let mut row = 0;
                    for rows in parts_of(outputs, tile_rows::<V>()) {
                        let (y, sum) = ((&y[row..], outputs), &mut self.sum[row * inputs..]);
                        let place = (first, inputs);
                        match rows {
                            10 if V::REGISTERS > 16 => {
                                tile::<V, 10>(u, y, group.clone(), sum, place);
                            }
                            5 => tile::<V, 5>(u, y, group.clone(), sum, place),
                            2 => tile::<V, 2>(u, y, group.clone(), sum, place),
                            _ => tile::<V, 1>(u, y, group.clone(), sum, place),
                        }
                        row += rows;
                    }
                }
            }
        }
    }
}

/// truncate(x·a) of a strip of all records; 0 beyond the inputs.
#[inline(always)]
fn quantise<V: FeatureLanes, T: Stored>(
    rows: &[&[T]],
    a: &[f32; MOST_LANES],
    strip: Range<usize>,
    u: &mut [i16],
) {
    let width = STRIP * V::LANES;
    let mut short = [[T::ZERO; MOST_STRIP]; 2];
    let pairs = rows.as_chunks::<2>().0.iter().zip(a.as_chunks::<2>().0);
    for ((rows, a), u) in pairs.zip(u.chunks_exact_mut(2 * width)) {
        let (first, second) = if strip.len() == width {
            (&rows[0][strip.clone()], &rows[1][strip.clone()])
        } else {
            for (short, row) in short.iter_mut().zip(rows) {
                short[..strip.len()].copy_from_slice(&row[strip.clone()]);
            }
            let [first, second] = &short;
            (&first[..width], &second[..width])
        };
        for row in rows {
            let next = row.get(strip.end..).unwrap_or(&[]);
            for line in next.iter().take(width).step_by(LINE / size_of::<T>()) {
                V::prefetch(line);
            }
        }
        let (of_first, of_second) = (V::splat(a[0]), V::splat(a[1]));
        let values = first.chunks_exact(V::LANES).zip(second.chunks_exact(V::LANES));
        for ((first, second), u) in values.zip(u.chunks_exact_mut(V::SHORTS)) {
            let (first, second) =
                (T::load::<V>(first).mul(of_first), T::load::<V>(second).mul(of_second));
            V::shorts_store(first.side_by_side(second), u);
        }
    }
}

/// Adds the products of `ROWS` rows of y, `outputs` to a pair, with [`COLUMNS`] registers of u to the sums from `place` on:
/// (first input, inputs of a row).
#[inline(always)]
fn tile<V: FeatureLanes, const ROWS: usize>(
    u: &[i16],
    (y, outputs): (&[i32], usize),
    pairs: Range<usize>,
    sum: &mut [i64],
    (first, inputs): (usize, usize),
) {
    for r in 0..ROWS {
        let row = &sum[r * inputs + first..(r + 1) * inputs];
        for line in row.iter().take(COLUMNS * V::LANES).step_by(LINE / size_of::<i64>()) {
            V::prefetch(line);
        }
    }
    let mut sums = [[V::pairs_zero(); COLUMNS]; ROWS];
    for pair in pairs {
        let u = &u[pair * STRIP * V::SHORTS..][..COLUMNS * V::SHORTS];
        let (left, right) = (V::shorts_load(u), V::shorts_load(&u[V::SHORTS..]));
        let y = &y[pair * outputs..][..ROWS];
        for r in 0..ROWS {
            let y = V::shorts_splat(y[r]);
            sums[r][0] = V::multiply_add(y, left, sums[r][0]);
            sums[r][1] = V::multiply_add(y, right, sums[r][1]);
        }
    }
    for r in 0..ROWS {
        let row = &mut sum[r * inputs + first..(r + 1) * inputs];
        for (sums, to) in sums[r].into_iter().zip(row.chunks_mut(V::LANES)) {
            if to.len() == V::LANES {
                V::pairs_add(sums, to);
                continue;
            }
            let mut last = [0; MOST_LANES];
            V::pairs_add(sums, &mut last);
            for (to, sum) in to.iter_mut().zip(last) {
                *to += sum;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::half;
    use crate::simd::Wide;
    use crate::simd::portable::Portable;
    #[cfg(target_arch = "x86_64")]
    use crate::simd::{InstructionSet, avx2::F32x8, avx512::F32x16};

    /// Against plain sums; `size` is that of the largest factors.
    fn check<V: Vector>(inputs: usize, outputs: usize, records: usize, size: f32) {
        let value = |at: usize| (at as f32 * 0.731 + 0.2).sin();
        let halves: Vec<u16> =
            (0..MOST_LANES * inputs).map(|at| half::encode(value(7 * at + 1))).collect();
        let x: Vec<f32> = halves.iter().map(|&half| half::decode(half)).collect();
        let (mut rows, mut rows_of_halves) = ([&[][..]; MOST_LANES], [&[][..]; MOST_LANES]);
        let stored = x.chunks_exact(inputs).zip(halves.chunks_exact(inputs));
        for ((row, of_halves), (x, halves)) in rows.iter_mut().zip(&mut rows_of_halves).zip(stored)
        {
            (*row, *of_halves) = (x, halves);
        }
        let mut dy = vec![V::zero(); outputs];
        let mut lanes = vec![[0.0; MOST_LANES]; outputs];
        for (output, (dy, lanes)) in dy.iter_mut().zip(&mut lanes).enumerate() {
            for (record, lane) in lanes[..records].iter_mut().enumerate() {
                *lane = value(3 * output + 5 * record);
            }
            *dy = V::load(&lanes[..]);
        }
        let (mut a, b) = ([0.0; MOST_LANES], size);
        for (record, a) in a[..records].iter_mut().enumerate() {
            *a = size - (record % 5) as f32;
        }
        let mut expected = vec![7i64; inputs * outputs];
        for record in 0..records {
            for (at, expected) in expected.iter_mut().enumerate() {
                let u = (rows[record][at % inputs] * a[record]) as i64;
                *expected += u * (lanes[at / inputs][record] * b) as i64;
            }
        }
        let products = vec![f64::from(size).powi(2) as u64 + 1; records];
        let mut sum = vec![7; inputs * outputs];
        let mut factors = RowFactors::new(inputs, outputs);
        factors.add::<V, f32>((&rows, &a), (&dy, V::splat(b)), &products, &mut sum);
        assert!(sum == expected, "{inputs} inputs, {outputs} outputs, {records} records, {size}");
        sum.fill(7);
        factors.add::<V, u16>((&rows_of_halves, &a), (&dy, V::splat(b)), &products, &mut sum);
        assert!(sum == expected, "{inputs} inputs, {outputs} outputs, {records} halves, {size}");
    }

    #[test]
    fn sums_are_exact_up_to_the_largest_factors() {
        let shapes = [(1, 1, 1), (5, 13, 8), (33, 3, 7), (64, 18, 6), (130, 1, 8), (271, 2, 5)];
        for (inputs, outputs, records) in shapes {
            for size in [0.5, 3.0, 900.0, 32_767.0] {
                check::<Portable>(inputs, outputs, records, size);
                check::<Wide<Portable>>(inputs, outputs, 4 * records - 1, size);
                #[cfg(target_arch = "x86_64")]
                if InstructionSet::available().contains(&InstructionSet::Avx2) {
                    check::<Wide<F32x8>>(inputs, outputs, 4 * records - 1, size);
                }
                #[cfg(target_arch = "x86_64")]
                if InstructionSet::available().contains(&InstructionSet::Avx512) {
                    check::<Wide<F32x16>>(inputs, outputs, 8 * records - 1, size);
                }
            }
        }
    }
}
