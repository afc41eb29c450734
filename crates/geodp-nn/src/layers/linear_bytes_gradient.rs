//! Exact sums of the gradients of [`super::linear_bytes`]: n = z·p + c of each record and output, added over a block.
//!
//! z = truncate(dy·a·w·(2³⁰/C)·(1 − 2⁻²¹)) and c = round(z·r), so that n is z·x̂/a but for the rounding of c. Both are
//! whole, hence Σ_i n_i = Σ_i z_i·p_i + Σ_i c_i exactly, and bytes need no scaling.
//!
//! # Guarantee
//! With N² = ‖dy‖²·(‖x̂‖² + 1), the 1 for a bias, and |w|·N ≤ C, the vectors z·x̂/a and the bias's whole number together
//! are no longer than 2³⁰·(1 − 2⁻²¹), as [`crate::grid`] shows. Rounding c adds at most ½ to each entry, of which there are 2¹⁵ at
//! most: a vector of length 2⁶·√2 at most, where 1 − 2⁻²¹ leaves 2⁹, half of it to all else.

#![allow(clippy::needless_range_loop, reason = "iterators over tiles keep them out of registers")]

use super::linear_bytes::{ByteScaling, MOST_OUTPUTS, PLACES, starts};
use crate::grid::Grid;
use crate::simd::{FeatureLanes, Kernel, MOST_LANES, Vector};

/// |z| at most: a limit that shortens, and that only records with ‖p + r‖ below some 2⁸ can meet. z is split in two
/// parts that 16-bit products can take: |Σ z·p| of each part over 64 records is below 2²⁶.
const LARGEST: f64 = 4_194_303.0;
/// Bits of the lower part.
const LOW_BITS: u32 = 11;
/// Pairs of records of a block.
const PAIRS: usize = MOST_LANES / 2;

/// `sum += Σ n` over the records of a block, `[output][input]`.
pub(crate) struct AddBytes<'a, V> {
    /// An even number, the last perhaps without a record.
    pub(crate) rows: &'a [&'a [u8]],
    pub(crate) scaling: &'a ByteScaling,
    pub(crate) dy: &'a [V],
    pub(crate) grid: &'a Grid,
    /// Cut weights w, 0 where there is no record.
    pub(crate) weights: &'a [f64; MOST_LANES],
    pub(crate) sum: &'a mut [i64],
}

/// z of two records side by side, and Σ c.
#[derive(Clone, Copy)]
struct Factors {
    low: [i32; PAIRS],
    high: [i32; PAIRS],
    total: i64,
}

impl<V: Vector> Kernel for AddBytes<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut scales = [0.0; MOST_LANES];
        for (scale, weight) in scales.iter_mut().zip(self.weights) {
            *scale = self.grid.byte_scale(*weight) * self.scaling.factor();
        }
        let nothing = Factors { low: [0; PAIRS], high: [0; PAIRS], total: 0 };
        let mut factors = [nothing; MOST_OUTPUTS];
        for (factors, dy) in factors.iter_mut().zip(self.dy) {
            let mut of_records = [0.0; MOST_LANES];
            dy.store(&mut of_records[..V::LANES]);
            *factors = whole(&of_records, &scales, self.scaling);
        }
        let (pairs, sum) = (self.rows.as_chunks::<2>().0, self.sum);
        match self.dy.len() {
            1 => add::<V::Part, 1>(pairs, &[factors[0]], sum),
            _ => add::<V::Part, MOST_OUTPUTS>(pairs, &factors, sum),
        }
    }
}

/// z and c of a block, of one output.
#[inline(always)]
fn whole(dy: &[f32; MOST_LANES], scales: &[f64; MOST_LANES], scaling: &ByteScaling) -> Factors {
    let mut z = [0i32; MOST_LANES];
    let mut total = 0;
    for lane in 0..MOST_LANES {
        let real = f64::from(dy[lane]) * scales[lane];
        z[lane] = real.clamp(-LARGEST, LARGEST) as i32;
        // To the nearest, by an arithmetic shift.
        total += (i64::from(z[lane]) * scaling.offset + (1 << (PLACES - 1))) >> PLACES;
    }
    let (mut low, mut high) = ([0; PAIRS], [0; PAIRS]);
    for (pair, [first, second]) in z.as_chunks::<2>().0.iter().enumerate() {
        let mask = (1 << LOW_BITS) - 1;
        low[pair] = first & mask | (second & mask) << 16;
        high[pair] = first >> LOW_BITS & 0xffff | second >> LOW_BITS << 16;
    }
    Factors { low, high, total }
}

/// Σ z·p, strip by strip, and Σ c.
#[inline(always)]
fn add<V: FeatureLanes, const O: usize>(
    pairs: &[[&[u8]; 2]],
    factors: &[Factors; O],
    sum: &mut [i64],
) {
    let (inputs, strip) = (sum.len() / O, 4 * V::LANES);
    let mut done = 0;
    for start in starts(inputs, strip) {
        let (mut low, mut high) = ([[V::pairs_zero(); 4]; O], [[V::pairs_zero(); 4]; O]);
        for (at, [first, second]) in pairs.iter().enumerate() {
            let p = V::byte_pairs(&first[start..][..strip], &second[start..][..strip]);
            for o in 0..O {
                let of_low = V::shorts_splat(factors[o].low[at]);
                let of_high = V::shorts_splat(factors[o].high[at]);
                for q in 0..4 {
                    low[o][q] = V::multiply_add(of_low, p[q], low[o][q]);
                    high[o][q] = V::multiply_add(of_high, p[q], high[o][q]);
                }
            }
        }
        for o in 0..O {
            let (mut of_low, mut of_high) = ([0i32; 4 * 16], [0i32; 4 * 16]);
            V::byte_pairs_store(low[o], &mut of_low);
            V::byte_pairs_store(high[o], &mut of_high);
            let new = done - start..strip;
            let parts = of_low[new.clone()].iter().zip(&of_high[new.clone()]);
            let to = &mut sum[o * inputs + done..][..new.len()];
            for (to, (&low, &high)) in to.iter_mut().zip(parts) {
                *to += (i64::from(high) << LOW_BITS) + i64::from(low) + factors[o].total;
            }
        }
        done = start + strip;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Wide;
    use crate::simd::portable::Portable;
    #[cfg(target_arch = "x86_64")]
    use crate::simd::{InstructionSet, avx2::F32x8, avx512::F32x16};

    /// Against 128-bit sums; `size` is that of the largest z.
    fn check<V: Vector>(inputs: usize, outputs: usize, size: f64, affine: (f32, f32)) {
        let byte =
            |at: usize| if at.is_multiple_of(5) { 255 } else { (at * at * 31 + at / 3) as u8 };
        let records = V::LANES - 1;
        let bytes: Vec<Vec<u8>> = (0..V::LANES)
            .map(|record| (0..inputs).map(|at| byte(record * inputs + at)).collect())
            .collect();
        let rows: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let scaling = ByteScaling::new(affine).unwrap();
        let mut lanes = vec![[0.0f32; MOST_LANES]; outputs];
        for (o, lanes) in lanes.iter_mut().enumerate() {
            for (record, dy) in lanes.iter_mut().enumerate() {
                *dy = [0.9999, -1.0, 1.0, -1e-3][(record + o) % 4];
            }
        }
        let dy: Vec<V> = lanes.iter().map(|lanes| V::load(&lanes[..])).collect();
        // A bound of 2³⁰ leaves of a scale what rounding takes.
        let grid = Grid::new(f64::from(1 << 30)).unwrap();
        let mut weights = [0.0; MOST_LANES];
        weights[..records].fill(size / scaling.factor());
        let scale = grid.byte_scale(weights[0]) * scaling.factor();
        let mut sum = vec![7; inputs * outputs];
        let (rows, scaling) = (&rows[..], &scaling);
        let (grid, weights) = (&grid, &weights);
        V::run(AddBytes { rows, scaling, dy: &dy, grid, weights, sum: &mut sum });
        for (at, sum) in sum.into_iter().enumerate() {
            let n = |record: usize| {
                let real = f64::from(lanes[at / inputs][record]) * scale;
                let z = real.clamp(-LARGEST, LARGEST).trunc();
                let c = (z * scaling.offset as f64 / 16_384.0 + 0.5).floor();
                z as i128 * i128::from(rows[record][at % inputs]) + c as i128
            };
            assert_eq!(i128::from(sum), 7 + (0..records).map(n).sum::<i128>(), "{inputs}, {at}");
        }
    }

    #[test]
    fn sums_are_exact_up_to_the_largest_factors() {
        for (inputs, outputs) in [(64, 1), (65, 2), (130, 1), (784, 2)] {
            for size in [0.7, 3_000.0, 2_000_000.0, 1e9] {
                for affine in [(1.0 / 255.0, 0.0), (0.0127, -0.4242), (-0.5, 90.25)] {
                    check::<Portable>(inputs, outputs, size, affine);
                    check::<Wide<Portable>>(inputs, outputs, size, affine);
                    #[cfg(target_arch = "x86_64")]
                    if InstructionSet::available().contains(&InstructionSet::Avx2) {
                        check::<Wide<F32x8>>(inputs, outputs, size, affine);
                    }
                    #[cfg(target_arch = "x86_64")]
                    if InstructionSet::available().contains(&InstructionSet::Avx512) {
                        check::<Wide<F32x16>>(inputs, outputs, size, affine);
                    }
                }
            }
        }
    }
}
