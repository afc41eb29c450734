//! A linear first layer with one or two outputs, in exact sums, of inputs that are all stored as bytes p with one
//! scaling, x = p·a + b: bytes are multiplied as they stand, and never become floats in memory.
//!
//! With r = b/a on a grid of 2⁻¹⁴ the layer's input is x̂ = a·(p + r). Forward, y = a·Σ_j W_j·p_j + (b·Σ_j W_j + bias).
//! A record's ‖x̂‖² = a²·(Σp² + 2r·Σp + n·r²) is a whole number times (a·2⁻¹⁴)², and only that product is rounded; its
//! gradient: [`super::linear_bytes_gradient`].
//!
//! Features stand in the lanes. A sum of the forward pass is sixteen chains, of the features j mod 16 of a strip,
//! whatever a register holds: the same bits on every instruction set. Packed: of each output its weights by strips,
//! then Σ_j W_j of each. The last strip ends with the inputs; where it meets the one before, its weights are 0.

#![allow(clippy::needless_range_loop, reason = "iterators over tiles keep them out of registers")]

use super::linear::Linear;
use super::linear_read::{CHAINS, RowMeasure, added_up};
use crate::simd::{FeatureLanes, Kernel, MOST_LANES};
use std::marker::PhantomData;

/// Features of a strip.
const STRIP: usize = 64;
/// Bytes that come from memory at once.
const LINE: usize = 64;
/// Records that pass at a time, a divisor of every vector's lanes.
pub(crate) const RECORDS: usize = 8;
/// Outputs up to which this is faster than turning blocks round.
pub(crate) const MOST_OUTPUTS: usize = 2;
/// Inputs that it is made for: a strip at least, and so few that lengths fit 64 bits: 2¹⁴·(2¹⁴·1,279)² < 2⁶³.
const INPUTS: std::ops::RangeInclusive<usize> = STRIP..=1 << 14;
/// |b/a| at most.
const MOST_OFFSET: f64 = 1024.0;
/// Binary places of r.
pub(super) const PLACES: u32 = 14;

/// Whether a first layer can go this way.
pub(crate) fn fits(layer: &Linear) -> bool {
    INPUTS.contains(&layer.inputs) && layer.outputs <= MOST_OUTPUTS
}

/// x̂ = a·(p + offset·2⁻¹⁴), which is p·a + b to 2⁻¹⁵·a.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ByteScaling {
    pub(crate) affine: (f32, f32),
    pub(super) offset: i64,
}

impl ByteScaling {
    /// Nothing where b is too large beside a, or either is no number.
    pub(crate) fn new(affine: (f32, f32)) -> Option<Self> {
        let ratio = f64::from(affine.1) / f64::from(affine.0);
        let usable = affine.0.is_normal() && ratio.abs() <= MOST_OFFSET;
        let offset = (ratio * f64::from(1 << PLACES)).round() as i64;
        usable.then_some(Self { affine, offset })
    }

    /// a.
    pub(super) fn factor(&self) -> f64 {
        self.affine.0.into()
    }

    /// ‖x̂‖² of a record of `inputs` bytes with these sums.
    fn squares(&self, inputs: usize, sum: i64, sum_of_squares: i64) -> f64 {
        let whole = (sum_of_squares << (2 * PLACES))
            + ((2 * self.offset * sum) << PLACES)
            + inputs as i64 * self.offset * self.offset;
        whole as f64 * (self.factor() / f64::from(1 << PLACES)).powi(2)
    }
}

/// W as the forward pass wants it, see the head of the file.
pub(crate) fn pack(layer: &Linear, weight: &[f32]) -> Vec<f32> {
    let (inputs, mut packed, mut totals) = (layer.inputs, Vec::new(), Vec::new());
    for row in weight.chunks_exact(inputs) {
        let whole = inputs / STRIP * STRIP;
        packed.extend_from_slice(&row[..whole]);
        if whole < inputs {
            packed.resize(packed.len() + STRIP - (inputs - whole), 0.0);
            packed.extend_from_slice(&row[whole..]);
        }
        totals.push(row.iter().map(|weight| f64::from(*weight)).sum::<f64>() as f32);
    }
    packed.append(&mut totals);
    packed
}

/// Where strips start.
#[inline(always)]
pub(super) fn starts(inputs: usize, strip: usize) -> impl Iterator<Item = usize> {
    (0..inputs).step_by(strip).map(move |at| at.min(inputs - strip))
}

/// y = W·x + bias of some records, a multiple of [`RECORDS`], `y[output][record]`; and Σ x̂² of each.
pub(crate) struct ReadBytes<'a, V> {
    pub(crate) rows: &'a [&'a [u8]],
    pub(crate) scaling: &'a ByteScaling,
    /// As [`pack`] left it.
    pub(crate) weights: &'a [f32],
    pub(crate) biases: &'a [f32],
    pub(crate) y: &'a mut [[f32; MOST_LANES]],
    pub(crate) measure: &'a mut RowMeasure,
    pub(crate) vector: PhantomData<V>,
}

impl<V: FeatureLanes> Kernel for ReadBytes<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let inputs = self.rows.first().map_or(STRIP, |row| row.len());
        for (at, rows) in self.rows.chunks_exact(RECORDS).enumerate() {
            let first = at * RECORDS;
            match (V::LANES == CHAINS, self.y.len()) {
                (true, 1) => self.tiles::<8, 1, 1>(rows, first),
                (true, _) => self.tiles::<8, 2, 1>(rows, first),
                (false, 1) => self.tiles::<4, 1, 2>(rows, first),
                (false, _) => self.tiles::<2, 2, 2>(rows, first),
            }
            for (record, row) in (first..).zip(rows) {
                for line in self.rows.get(record + RECORDS).unwrap_or(row).iter().step_by(LINE) {
                    V::prefetch(line);
                }
                let (sum, sum_of_squares) = sums::<V>(row);
                self.measure.squares[record] = self.scaling.squares(inputs, sum, sum_of_squares);
            }
        }
    }
}

impl<V: FeatureLanes> ReadBytes<'_, V> {
    /// The O outputs of all rows, R at a time, P registers to a sum; the first is record `first`.
    #[inline(always)]
    fn tiles<const R: usize, const O: usize, const P: usize>(
        &mut self,
        rows: &[&[u8]],
        first: usize,
    ) {
        let row = rows[0].len().next_multiple_of(STRIP);
        let (weights, totals) = self.weights.split_at(O * row);
        let (a, b) = self.scaling.affine;
        for (at, rows) in rows.as_chunks::<R>().0.iter().enumerate() {
            let sums = multiply::<V, R, O, P>(rows, weights);
            for r in 0..R {
                for o in 0..O {
                    let mut chains = [0.0; CHAINS];
                    for p in 0..P {
                        sums[r][o][p].store(&mut chains[p * V::LANES..]);
                    }
                    let rest = b * totals[o] + self.biases[o];
                    self.y[o][first + at * R + r] = added_up(chains) * a + rest;
                }
            }
        }
    }
}

/// Σ_j W_j·p_j in chains.
#[inline(always)]
fn multiply<V: FeatureLanes, const R: usize, const O: usize, const P: usize>(
    rows: &[&[u8]; R],
    weights: &[f32],
) -> [[[V; P]; O]; R] {
    let mut sums = [[[V::zero(); P]; O]; R];
    let row = weights.len() / O;
    for (strip, start) in starts(rows[0].len(), STRIP).enumerate() {
        let (mut bytes, mut of_outputs) = ([&rows[0][..STRIP]; R], [&weights[..STRIP]; O]);
        for r in 0..R {
            bytes[r] = &rows[r][start..][..STRIP];
        }
        for o in 0..O {
            of_outputs[o] = &weights[o * row + strip * STRIP..][..STRIP];
        }
        for at in (0..STRIP).step_by(CHAINS) {
            for p in 0..P {
                let place = at + p * V::LANES;
                let mut values = [V::zero(); R];
                for r in 0..R {
                    values[r] = V::from_bytes(&bytes[r][place..]);
                }
                for o in 0..O {
                    let weight = V::load(&of_outputs[o][place..]);
                    for r in 0..R {
                        sums[r][o][p] = weight.fma(values[r], sums[r][o][p]);
                    }
                }
            }
        }
    }
    sums
}

/// Σp and Σp².
#[inline(always)]
fn sums<V: FeatureLanes>(row: &[u8]) -> (i64, i64) {
    let ones = V::shorts_splat(0x0001_0001);
    let (mut sums, mut squares) = ([V::pairs_zero(); 2], [V::pairs_zero(); 2]);
    let pieces = row.chunks_exact(2 * V::SHORTS);
    let rest = pieces.remainder();
    for piece in pieces {
        for half in 0..2 {
            let p = V::shorts_from_bytes(&piece[half * V::SHORTS..]);
            sums[half] = V::multiply_add(p, ones, sums[half]);
            squares[half] = V::multiply_add(p, p, squares[half]);
        }
    }
    let [s, t, q, r] = V::pairs_sums([sums[0], sums[1], squares[0], squares[1]]);
    let (mut sum, mut of_squares) = (0, 0);
    for &p in rest {
        sum += u32::from(p);
        of_squares += u32::from(p) * u32::from(p);
    }
    (s + t + i64::from(sum), q + r + i64::from(of_squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::portable::Portable;
    #[cfg(target_arch = "x86_64")]
    use crate::simd::{InstructionSet, avx2::F32x8, avx512::F32x16};

    #[test]
    fn what_bytes_cannot_stand_for_is_left_to_floats() {
        for affine in [
            (0.0, 1.0),
            (0.0, 0.0),
            (1e-4, 1.0),
            (-9e-4, 1.0),
            (f32::NAN, 0.0),
            (1.0, f32::INFINITY),
        ] {
            assert_eq!(ByteScaling::new(affine), None, "{affine:?}");
        }
        assert!(ByteScaling::new((1e-3, -1.0)).is_some());
    }

    /// To the last bit of sixteen chains, and lengths as 128-bit sums have them.
    fn check<V: FeatureLanes>(inputs: usize, outputs: usize, records: usize, affine: (f32, f32)) {
        let value = |at: usize| (at as f32 * 0.731 + 0.2).sin();
        let byte =
            |at: usize| if at.is_multiple_of(5) { 255 } else { (at * at * 31 + at / 3) as u8 };
        let bytes: Vec<Vec<u8>> = (0..records)
            .map(|record| (0..inputs).map(|at| byte(record * inputs + at)).collect())
            .collect();
        let rows: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let layer = Linear { inputs, outputs, bias: true };
        let weight: Vec<f32> = (0..inputs * outputs).map(|at| value(3 * at + 5)).collect();
        let biases: Vec<f32> = (0..outputs).map(|at| value(7 * at + 2)).collect();
        let scaling = ByteScaling::new(affine).unwrap();
        let (mut y, mut measure) = (vec![[0.0; MOST_LANES]; outputs], RowMeasure::new());
        V::run(ReadBytes::<V> {
            rows: &rows,
            scaling: &scaling,
            weights: &pack(&layer, &weight),
            biases: &biases,
            y: &mut y,
            measure: &mut measure,
            vector: PhantomData,
        });
        for (record, row) in rows.iter().enumerate() {
            for (o, weight) in weight.chunks_exact(inputs).enumerate() {
                let mut chains = [0.0f32; CHAINS];
                let total: f64 = weight.iter().map(|w| f64::from(*w)).sum();
                let whole = inputs / STRIP * STRIP;
                // The last strip's chains are counted from its own start.
                let first = if whole < inputs { inputs - STRIP } else { inputs };
                for at in (0..whole).chain(whole..inputs) {
                    let from = if at < whole { 0 } else { first };
                    let chain = &mut chains[(at - from) % CHAINS];
                    *chain = weight[at].mul_add(f32::from(row[at]), *chain);
                }
                let expected = added_up(chains) * affine.0 + (affine.1 * total as f32 + biases[o]);
                assert_eq!(y[o][record], expected, "{inputs}, {record}, {o}");
            }
            // Of 2⁻¹⁴·a, whole.
            let x = |p: u8| (i128::from(p) << PLACES) + i128::from(scaling.offset);
            let squares: i128 = row.iter().map(|&p| x(p).pow(2)).sum();
            let real: f64 = row.iter().map(|&p| real(affine, p).powi(2)).sum();
            let expected = squares as f64 * (f64::from(affine.0) / 16_384.0).powi(2);
            assert_eq!(measure.squares[record], expected, "{inputs}, {record}");
            assert!((expected - real).abs() <= 1e-5 * real, "{expected}, {real}");
        }
    }

    fn real((a, b): (f32, f32), p: u8) -> f64 {
        f64::from(p) * f64::from(a) + f64::from(b)
    }

    #[test]
    fn sums_are_sixteen_chains_everywhere() {
        for (inputs, outputs, records) in [(64, 1, 64), (65, 2, 8), (130, 1, 16), (16_384, 2, 24)] {
            for affine in [(1.0 / 255.0, 0.0), (0.0127, -0.4242), (-0.5, 512.0)] {
                check::<Portable>(inputs, outputs, records, affine);
                #[cfg(target_arch = "x86_64")]
                if InstructionSet::available().contains(&InstructionSet::Avx2) {
                    check::<F32x8>(inputs, outputs, records, affine);
                }
                #[cfg(target_arch = "x86_64")]
                if InstructionSet::available().contains(&InstructionSet::Avx512) {
                    check::<F32x16>(inputs, outputs, records, affine);
                }
            }
        }
    }
}
