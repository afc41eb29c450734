//! Exact sums of a linear layer's gradients: Σ_i y_i·u_iᵀ over the records of a chunk, u and y 16-bit
//! factors of each record's gradient (see [`crate::grid`]).
//!
//! Products are added in `i32`, a register of records to a step, and moved to `i64` before any of them can
//! overflow: [`groups`] cuts the chunk by a bound of each record's largest product. Mostly one group
//! is enough; at worst each step is a group of its own, and its pair of products fits by itself. A layer
//! that reads wide inputs of the network goes another way: [`super::linear_rows`].

#![allow(clippy::needless_range_loop, reason = "iterators over tiles keep them out of registers")]

use super::parts::parts_of;
use crate::simd::{Kernel, Quantise, Vector};
use std::marker::PhantomData;
use std::ops::Range;

/// Columns of a register tile; features are padded to a multiple of it.
const COLUMNS: usize = 4;
/// Rows of a register tile at most.
const MOST_ROWS: usize = 5;

/// Rows of register tiles: twelve sums, or twenty where there are registers for them.
const fn tile_rows<V: Vector>() -> &'static [usize] {
    if V::REGISTERS > 16 { &[5, 3, 1] } else { &[3, 1] }
}

/// Outputs whose y over a chunk stay in the L1 cache while all u pass.
const PANEL: usize = 24;

/// The factors of one layer for the records of a chunk, `[feature][record]`.
pub(crate) struct Factors {
    u: Shorts,
    y: Shorts,
    /// A bound of |u·y| for each record.
    products: Vec<u64>,
    inputs: usize,
    outputs: usize,
    /// Places between one feature and the next.
    room: usize,
    /// Records of the chunk so far, in whole blocks.
    records: usize,
}

/// 16-bit values from a cache line's start.
pub(super) struct Shorts(Vec<i16>);

/// Values of one cache line.
const LINE: usize = 32;

impl Shorts {
    pub(super) fn new(len: usize) -> Self {
        Self(vec![0; len + LINE])
    }

    fn start(&self) -> usize {
        self.0.as_ptr().align_offset(2 * LINE).min(LINE)
    }

    fn get(&self) -> &[i16] {
        &self.0[self.start()..]
    }

    pub(super) fn get_mut(&mut self) -> &mut [i16] {
        let start = self.start();
        &mut self.0[start..]
    }
}

impl Factors {
    /// For `records` records, a multiple of a register's.
    pub(crate) fn new(inputs: usize, outputs: usize, records: usize) -> Self {
        // An odd number of cache lines, so that features do not meet in the same few cache sets.
        let room = records.next_multiple_of(2 * LINE) + LINE;
        let padded = inputs.next_multiple_of(COLUMNS);
        let (u, y) = (Shorts::new(padded * room), Shorts::new(outputs * room));
        Self { u, y, products: vec![0; records], inputs, outputs, room, records: 0 }
    }

    /// Forgets what was stored.
    pub(crate) fn clear(&mut self) {
        self.records = 0;
    }

    /// Stores truncate(x·a) and truncate(dy·b) of one block, and a bound of |u·y| for each record. When the
    /// chunk is full, it is multiplied.
    pub(crate) fn store<V: Vector>(
        &mut self,
        x: (&[V], V),
        dy: (&[V], V),
        products: &[u64],
        sum: &mut [i64],
    ) {
        let (at, room) = (self.records, self.room);
        V::run(Store { from: x.0, scale: x.1, to: &mut self.u.get_mut()[at..], room });
        V::run(Store { from: dy.0, scale: dy.1, to: &mut self.y.get_mut()[at..], room });
        self.products[at..at + V::LANES].copy_from_slice(&products[..V::LANES]);
        self.records += V::LANES;
        if self.records + V::LANES > self.products.len() {
            self.multiply::<V>(sum);
        }
    }

    /// `sum += Σ y·uᵀ` over the records of the chunk, and starts a new one.
    pub(crate) fn multiply<V: Vector>(&mut self, sum: &mut [i64]) {
        let records = std::mem::take(&mut self.records);
        // The last step's places without a record hold what was there before.
        let end = records.next_multiple_of(V::SHORTS);
        for y in self.y.get_mut().chunks_exact_mut(self.room).take(self.outputs) {
            y[records..end].fill(0);
        }
        self.products[records..end].fill(0);
        // A lane receives two products a step.
        let steps = self.products[..end].chunks_exact(V::SHORTS);
        let bounds = steps.map(|step| 2 * step.iter().copied().max().unwrap_or(0));
        for group in groups(bounds) {
            let range = group.start * V::SHORTS..group.end * V::SHORTS;
            let vector = PhantomData::<V>;
            V::run(Products { factors: self, range, sum, vector });
        }
    }
}

/// Steps whose products can be added in `i32`: Σ over steps of a bound of what a step adds to a lane must
/// stay below 2³¹. A single step always fits, because it adds two products and |u·y| < 2³⁰.
pub(super) fn groups(bounds: impl Iterator<Item = u64>) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut total = 0;
    for (step, bound) in bounds.enumerate() {
        total += bound;
        match groups.last_mut() {
            Some(group) if total < 1 << 31 => group.end = step + 1,
            _ => {
                groups.push(step..step + 1);
                total = bound;
            }
        }
    }
    groups
}

/// `to[feature·room..] = truncate(from[feature]·scale)`.
struct Store<'a, V> {
    from: &'a [V],
    scale: V,
    to: &'a mut [i16],
    room: usize,
}

impl<V: Vector> Kernel for Store<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (from, to) in self.from.iter().zip(self.to.chunks_mut(self.room)) {
            from.mul(self.scale).store_shorts(&mut to[..V::LANES]);
        }
    }
}

/// One group's products.
struct Products<'a, V> {
    factors: &'a Factors,
    range: Range<usize>,
    sum: &'a mut [i64],
    vector: PhantomData<V>,
}

impl<V: Vector> Kernel for Products<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Factors { inputs, outputs, room, .. } = *self.factors;
        let (u, y) = (self.factors.u.get(), self.factors.y.get());
        for panel in (0..outputs).step_by(PANEL) {
            for column in (0..inputs).step_by(COLUMNS) {
                let columns = COLUMNS.min(inputs - column);
                let mut row = panel;
                for rows in parts_of(PANEL.min(outputs - panel), tile_rows::<V>()) {
                    let (y, u) = (&y[row * room..], &u[column * room..]);
                    let mut totals = [[0; COLUMNS]; MOST_ROWS];
                    match rows {
                        5 if V::REGISTERS > 16 => {
                            tile::<V, 5>(y, u, room, self.range.clone(), &mut totals);
                        }
                        3 => tile::<V, 3>(y, u, room, self.range.clone(), &mut totals),
                        _ => tile::<V, 1>(y, u, room, self.range.clone(), &mut totals),
                    }
                    for (r, totals) in totals[..rows].iter().enumerate() {
                        let sums = &mut self.sum[(row + r) * inputs + column..][..columns];
                        for (sum, total) in sums.iter_mut().zip(totals) {
                            *sum += total;
                        }
                    }
                    row += rows;
                }
            }
        }
    }
}

/// Sums of `ROWS` rows of y with [`COLUMNS`] rows of u.
#[inline(always)]
fn tile<V: Quantise, const ROWS: usize>(
    y: &[i16],
    u: &[i16],
    room: usize,
    range: Range<usize>,
    totals: &mut [[i64; COLUMNS]; MOST_ROWS],
) {
    let (mut ys, mut us) = ([&y[..0]; ROWS], [&u[..0]; COLUMNS]);
    for r in 0..ROWS {
        ys[r] = &y[r * room..][range.clone()];
    }
    for c in 0..COLUMNS {
        us[c] = &u[c * room..][range.clone()];
    }
    let mut sums = [[V::pairs_zero(); COLUMNS]; ROWS];
    for at in (0..range.len()).step_by(V::SHORTS) {
        for r in 0..ROWS {
            let y = V::shorts_load(&ys[r][at..]);
            for c in 0..COLUMNS {
                let u = V::shorts_load(&us[c][at..]);
                sums[r][c] = V::multiply_add(y, u, sums[r][c]);
            }
        }
    }
    for r in 0..ROWS {
        totals[r] = V::pairs_sums(sums[r]);
    }
}

#[cfg(test)]
mod tests {
    use super::{Factors, groups};
    use crate::simd::portable::Portable;
    #[cfg(target_arch = "x86_64")]
    use crate::simd::{InstructionSet, avx2::F32x8, avx512::F32x16};

    #[test]
    fn groups_never_overflow_and_cover_every_step() {
        for largest in [0u64, 1, 1 << 20, (1 << 26) - 1, 1 << 26, 1 << 29, 1 << 30] {
            let groups = groups([2 * largest; 8].into_iter());
            let mut next = 0;
            for group in &groups {
                assert_eq!(group.start, next);
                assert!(group.len() == 1 || group.len() as u64 * 2 * largest < 1 << 31);
                next = group.end;
            }
            assert_eq!(next, 8);
        }
        assert_eq!(groups([1 << 31; 4].into_iter()).len(), 4);
        assert_eq!(groups([1 << 21; 8].into_iter()).len(), 1);
        assert_eq!(groups(std::iter::empty()).len(), 0);
    }

    /// The largest factors at every place, against plain 128-bit sums.
    #[test]
    fn sums_are_exact_at_the_largest_factors() {
        for (inputs, outputs, records) in [(1, 1, 128), (5, 4, 128), (9, 26, 37), (4, 3, 8)] {
            let mut factors = Factors::new(inputs, outputs, 128);
            let room = factors.room;
            let sign = |at: usize| if at.is_multiple_of(3) { -1 } else { 1 };
            factors.u.get_mut().fill(32_767);
            for (at, y) in factors.y.get_mut().iter_mut().enumerate() {
                *y = sign(at / room * 7) * 32_766;
            }
            factors.products.fill(1 << 30);
            let expected: Vec<i64> = (0..inputs * outputs)
                .map(|at| i64::from(sign(at / inputs * 7)) * 32_767 * 32_766 * records as i64)
                .collect();
            let mut sum = vec![0; inputs * outputs];
            factors.records = records;
            factors.multiply::<Portable>(&mut sum);
            assert_eq!(sum, expected);
            #[cfg(target_arch = "x86_64")]
            if InstructionSet::available().contains(&InstructionSet::Avx2) {
                sum.fill(0);
                factors.records = records;
                factors.multiply::<F32x8>(&mut sum);
                assert_eq!(sum, expected);
            }
            #[cfg(target_arch = "x86_64")]
            if InstructionSet::available().contains(&InstructionSet::Avx512) {
                sum.fill(0);
                factors.records = records;
                factors.multiply::<F32x16>(&mut sum);
                assert_eq!(sum, expected);
            }
        }
    }
}
