//! A linear first layer with one or two outputs, in exact sums, of inputs that are all stored as bytes p with one
//! scaling, x = p·a + b: bytes are multiplied as they stand, and never become floats in memory.
//!
//! With r = b/a on a grid of 2⁻¹⁴ the layer's input is x̂ = a·(p + r). Forward, y = s·(a·Σ_j w_j·p_j + b·Σ_j w_j) + bias,
//! where W_j is s·w_j and w_j a whole number of 21 bits: sums are exact, hence the same on every instruction set, and
//! four bytes take as long to multiply as one float. Only the product with s is rounded, in double precision. A record's
//! ‖x̂‖² = a²·(Σp² + 2r·Σp + n·r²) is a whole number times (a·2⁻¹⁴)², and only that product is rounded; its gradient:
//! [`super::linear_bytes_gradient`].
//!
//! Rounding W to 2⁻²¹ of the largest moves a logit of unit inputs by some 1e-5 of that weight: it is the gradient at a
//! point so near that no noise can tell, and what is measured and cut is the gradient as it stands.

#![allow(clippy::needless_range_loop, reason = "iterators over tiles keep them out of registers")]

use super::linear::Linear;
use super::linear_read::RowMeasure;
use crate::simd::{FeatureLanes, Kernel, MOST_LANES, Vector};
use std::marker::PhantomData;

/// Features of a strip.
const STRIP: usize = 64;
/// Records that pass at a time, a divisor of every vector's lanes.
pub(crate) const RECORDS: usize = 8;
/// Outputs up to which this is faster than turning blocks round.
pub(crate) const MOST_OUTPUTS: usize = 2;
/// Inputs that it is made for: a strip at least, and so few that sums of bytes' squares fit 32 bits, and lengths 64:
/// 2¹⁴·(2¹⁴·1,279)² < 2⁶³.
const INPUTS: std::ops::RangeInclusive<usize> = STRIP..=1 << 14;
/// |b/a| at most.
const MOST_OFFSET: f64 = 1024.0;
/// Binary places of r.
pub(super) const PLACES: u32 = 14;
/// Signed digits of a weight, from −64 to 63, the lowest first: what all instruction sets can multiply bytes by.
const DIGITS: usize = 3;
const DIGIT_BITS: u32 = 7;
/// The largest weight that these digits write.
const LARGEST_WEIGHT: f32 = 1_040_319.0;
/// Adding it leaves a number below 2²² rounded to the nearest in the lowest bits.
const ROUNDING: f32 = 12_582_912.0;

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

/// The weights of an output: w·s, and what s stands for.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    /// s.
    step: f64,
    /// Σ w.
    total: i64,
}

/// W as the forward pass wants it, see the head of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteWeights {
    /// `[output][strip][digit][feature]`; the last strip ends with the inputs.
    digits: Vec<u8>,
    rows: [Row; MOST_OUTPUTS],
}

impl ByteWeights {
    /// Of a layer that [`fits`].
    pub(crate) fn new<V: Vector>(layer: &Linear, weight: &[f32]) -> Self {
        let strips = layer.inputs.div_ceil(STRIP);
        let mut packed = Self {
            digits: vec![0; layer.outputs * strips * DIGITS * STRIP],
            rows: [Row::default(); MOST_OUTPUTS],
        };
        let rows = weight.chunks_exact(layer.inputs).zip(&mut packed.rows);
        for ((from, row), digits) in
            rows.zip(packed.digits.chunks_exact_mut(strips * DIGITS * STRIP))
        {
            *row = V::run(PackRow { from, digits });
        }
        packed
    }
}

/// One output's weights.
struct PackRow<'a> {
    from: &'a [f32],
    /// Zeros.
    digits: &'a mut [u8],
}

impl Kernel for PackRow<'_> {
    type Output = Row;

    #[inline(always)]
    fn run(self) -> Row {
        // Of numbers without a sign, the order of their bits is their own; NaN is above all.
        let largest = self.from.iter().fold(0, |most, w| most.max(w.to_bits() & 0x7fff_ffff));
        let largest = f32::from_bits(largest);
        let scale = LARGEST_WEIGHT / largest;
        if !scale.is_normal() {
            // Nothing, or next to it; of what is not a number nothing can be told, and y says so.
            let step = if largest.is_finite() { 0.0 } else { f64::NAN };
            return Row { step, total: 0 };
        }
        let whole = |w: f32| (w * scale + ROUNDING).to_bits() as i32 - ROUNDING.to_bits() as i32;
        let total = self.from.iter().map(|&w| i64::from(whole(w))).sum();
        let strips = starts(self.from.len(), STRIP)
            .zip(self.digits.as_chunks_mut::<STRIP>().0.chunks_exact_mut(DIGITS));
        for (start, digits) in strips {
            let weights = &self.from[start..][..STRIP];
            for at in 0..STRIP {
                let mut rest = whole(weights[at]);
                for digit in 0..DIGITS {
                    let low = ((rest + 64) & 127) - 64;
                    digits[digit][at] = low as u8;
                    rest = (rest - low) >> DIGIT_BITS;
                }
            }
        }
        Row { step: f64::from(largest) / f64::from(LARGEST_WEIGHT), total }
    }
}

/// Where strips start; the last ends with the inputs.
#[inline(always)]
pub(super) fn starts(inputs: usize, strip: usize) -> impl Iterator<Item = usize> {
    (0..inputs).step_by(strip).map(move |at| at.min(inputs - strip))
}

/// y = W·x + bias of some records, a multiple of [`RECORDS`], `y[output][record]`; and Σ x̂² of each.
pub(crate) struct ReadBytes<'a, V> {
    pub(crate) rows: &'a [&'a [u8]],
    pub(crate) scaling: &'a ByteScaling,
    pub(crate) weights: &'a ByteWeights,
    pub(crate) biases: &'a [f32],
    pub(crate) y: &'a mut [[f32; MOST_LANES]],
    pub(crate) measure: &'a mut RowMeasure,
    pub(crate) vector: PhantomData<V>,
}

/// Sums that are made of a record: a product with each digit, then Σp and Σp·(p − 128).
const SUMS: usize = DIGITS + 2;

impl<V: FeatureLanes> Kernel for ReadBytes<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let inputs = self.rows.first().map_or(STRIP, |row| row.len());
        // What is new in the last strip.
        let mut new = [0u8; STRIP];
        new[STRIP - (inputs - 1) % STRIP - 1..].fill(0xff);
        let (a, b) = (self.scaling.factor(), f64::from(self.scaling.affine.1));
        let strips = self.weights.digits.as_chunks::<STRIP>().0.as_chunks::<DIGITS>().0;
        let of_output = strips.chunks_exact(inputs.div_ceil(STRIP));
        let mut sums = [[V::pairs_zero(); RECORDS]; SUMS];
        for (at, rows) in self.rows.chunks_exact(RECORDS).enumerate() {
            let first = at * RECORDS;
            let ahead = self.rows.get(first + RECORDS..).unwrap_or(&[]);
            let outputs = self.y.iter_mut().zip(of_output.clone());
            for (o, ((y, digits), row)) in outputs.zip(&self.weights.rows).enumerate() {
                let (rows, place) = ((rows, ahead), &mut sums);
                match (V::REGISTERS > 16, o) {
                    (true, 0) => tiles::<V, 4, true>(rows, digits, &new, place),
                    (true, _) => tiles::<V, 4, false>(rows, digits, &new, place),
                    (false, 0) => tiles::<V, 2, true>(rows, digits, &new, place),
                    (false, _) => tiles::<V, 2, false>(rows, digits, &new, place),
                }
                let digits = [V::totals(sums[0]), V::totals(sums[1]), V::totals(sums[2])];
                let rest = b * row.step * row.total as f64 + f64::from(self.biases[o]);
                for r in 0..RECORDS {
                    let digit = |at: usize| i64::from(digits[at][r]) << (at as u32 * DIGIT_BITS);
                    let whole = digit(0) + digit(1) + digit(2);
                    y[first + r] = (whole as f64 * (row.step * a) + rest) as f32;
                }
            }
            let (sums, centred) = (V::totals(sums[DIGITS]), V::totals(sums[DIGITS + 1]));
            for r in 0..RECORDS {
                let sum = i64::from(sums[r]);
                let squares = i64::from(centred[r]) + 128 * sum;
                self.measure.squares[first + r] = self.scaling.squares(inputs, sum, squares);
            }
        }
    }
}

/// The sums of all rows with one output's digits, R rows at a time; the first time also what measures them, and the
/// rows that come next are asked for.
#[inline(always)]
fn tiles<V: FeatureLanes, const R: usize, const FIRST: bool>(
    (rows, ahead): (&[&[u8]], &[&[u8]]),
    digits: &[[[u8; STRIP]; DIGITS]],
    new: &[u8; STRIP],
    sums: &mut [[V::Pairs; RECORDS]; SUMS],
) {
    for (at, rows) in rows.as_chunks::<R>().0.iter().enumerate() {
        let whole = rows[0].len() / STRIP;
        let mut strips = [&rows[0].as_chunks::<STRIP>().0[..whole]; R];
        let mut next = strips;
        for r in 0..R {
            strips[r] = &rows[r].as_chunks::<STRIP>().0[..whole];
            if let Some(ahead) = ahead.get(at * R + r) {
                next[r] = &ahead.as_chunks::<STRIP>().0[..whole];
            }
        }
        let mut own = [[V::pairs_zero(); R]; SUMS];
        let mut bytes = [new; R];
        for (strip, digits) in digits[..whole].iter().enumerate() {
            for r in 0..R {
                bytes[r] = &strips[r][strip];
                if FIRST {
                    V::prefetch(&next[r][strip]);
                }
            }
            add_strip::<V, R, FIRST, false>(bytes, digits, new, &mut own);
        }
        if let Some(digits) = digits.get(whole) {
            for r in 0..R {
                bytes[r] = rows[r].last_chunk().expect("a row is a strip at least");
            }
            add_strip::<V, R, FIRST, true>(bytes, digits, new, &mut own);
        }
        let made = if FIRST { SUMS } else { DIGITS };
        for (sums, own) in sums[..made].iter_mut().zip(own) {
            sums[at * R..][..R].copy_from_slice(&own);
        }
    }
}

/// Adds a strip of some rows, or what is `new` of it.
#[inline(always)]
fn add_strip<V: FeatureLanes, const R: usize, const FIRST: bool, const LAST: bool>(
    bytes: [&[u8; STRIP]; R],
    digits: &[[u8; STRIP]; DIGITS],
    new: &[u8; STRIP],
    sums: &mut [[V::Pairs; R]; SUMS],
) {
    for part in (0..STRIP).step_by(V::BYTES) {
        let mut p = [V::bytes_load(&bytes[0][part..]); R];
        for r in 0..R {
            p[r] = V::bytes_load(&bytes[r][part..]);
            if LAST {
                p[r] = V::bytes_and(p[r], V::bytes_load(&new[part..]));
            }
        }
        for digit in 0..DIGITS {
            let digits = V::bytes_load(&digits[digit][part..]);
            for r in 0..R {
                sums[digit][r] = V::add_products(p[r], digits, sums[digit][r]);
            }
        }
        if FIRST {
            for r in 0..R {
                sums[DIGITS][r] = V::add_bytes(p[r], sums[DIGITS][r]);
                sums[DIGITS + 1][r] = V::add_centred_squares(p[r], sums[DIGITS + 1][r]);
            }
        }
    }
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

    fn value(at: usize) -> f32 {
        (at as f32 * 0.731 + 0.2).sin()
    }

    fn bytes(inputs: usize, records: usize) -> Vec<Vec<u8>> {
        let byte =
            |at: usize| if at.is_multiple_of(5) { 255 } else { (at * at * 31 + at / 3) as u8 };
        let record = |record| (0..inputs).map(|at| byte(record * inputs + at)).collect();
        (0..records).map(record).collect()
    }

    /// y and ‖x̂‖² of some records, on one kind of vector.
    fn read<V: FeatureLanes>(
        bytes: &[Vec<u8>],
        (weight, biases): (&[f32], &[f32]),
        affine: (f32, f32),
    ) -> (Vec<[f32; MOST_LANES]>, RowMeasure) {
        let rows: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let (inputs, outputs) = (rows[0].len(), biases.len());
        let layer = Linear { inputs, outputs, bias: true };
        let (mut y, mut measure) = (vec![[0.0; MOST_LANES]; outputs], RowMeasure::new());
        V::run(ReadBytes::<V> {
            rows: &rows,
            scaling: &ByteScaling::new(affine).unwrap(),
            weights: &ByteWeights::new::<V>(&layer, weight),
            biases,
            y: &mut y,
            measure: &mut measure,
            vector: PhantomData,
        });
        (y, measure)
    }

    /// y to the last bit of whole sums and near the real one; lengths as 128-bit sums have them.
    fn check<V: FeatureLanes>(inputs: usize, outputs: usize, records: usize, affine: (f32, f32)) {
        let bytes = bytes(inputs, records);
        let weight: Vec<f32> = (0..inputs * outputs).map(|at| value(3 * at + 5)).collect();
        let biases: Vec<f32> = (0..outputs).map(|at| value(7 * at + 2)).collect();
        let (y, measure) = read::<V>(&bytes, (&weight, &biases), affine);
        let (a, b) = (f64::from(affine.0), f64::from(affine.1));
        let offset = i128::from(ByteScaling::new(affine).unwrap().offset);
        for (record, row) in bytes.iter().enumerate() {
            for (o, weight) in weight.chunks_exact(inputs).enumerate() {
                let largest = weight.iter().fold(0.0f32, |most, w| most.max(w.abs()));
                let step = f64::from(largest) / 1_040_319.0;
                let scale = 1_040_319.0 / largest;
                let whole = |w: f32| f64::from(w * scale).round_ties_even() as i128;
                let sum: i128 =
                    weight.iter().zip(row).map(|(&w, &p)| whole(w) * i128::from(p)).sum();
                let total: i128 = weight.iter().map(|&w| whole(w)).sum();
                let rest = b * step * total as f64 + f64::from(biases[o]);
                assert_eq!(
                    y[o][record],
                    (sum as f64 * (step * a) + rest) as f32,
                    "{inputs}, {record}, {o}"
                );
                let x = |p: u8| f64::from(p) * a + b;
                let real = weight.iter().zip(row).map(|(&w, &p)| f64::from(w) * x(p)).sum::<f64>();
                let size = row.iter().map(|&p| x(p).powi(2)).sum::<f64>().sqrt();
                let distance = (f64::from(y[o][record]) - real - f64::from(biases[o])).abs();
                assert!(distance <= 2e-6 * (size * f64::from(largest) + real.abs()), "{distance}");
            }
            // Of 2⁻¹⁴·a, whole.
            let x = |p: u8| (i128::from(p) << PLACES) + offset;
            let squares: i128 = row.iter().map(|&p| x(p).pow(2)).sum();
            let real: f64 = row.iter().map(|&p| (f64::from(p) * a + b).powi(2)).sum();
            let expected = squares as f64 * (f64::from(affine.0) / 16_384.0).powi(2);
            assert_eq!(measure.squares[record], expected, "{inputs}, {record}");
            assert!((expected - real).abs() <= 1e-5 * real, "{expected}, {real}");
        }
    }

    #[test]
    fn sums_are_whole_everywhere() {
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

    /// Nothing is hidden, and nothing is made up.
    #[test]
    fn weights_of_any_size_give_what_they_are() {
        let bytes = bytes(70, 8);
        let of = |weight: &[f32]| read::<Portable>(&bytes, (weight, &[0.5]), (0.02, 0.0)).0[0][3];
        assert_eq!(of(&[0.0; 70]), 0.5);
        assert_eq!(of(&[1e-38; 70]), 0.5);
        let sum: f64 = bytes[3].iter().map(|&p| 0.02 * f64::from(p)).sum();
        assert!((f64::from(of(&[1e30; 70])) / (1e30 * sum) - 1.0).abs() < 1e-5);
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut weight = [0.3; 70];
            weight[67] = odd;
            assert!(of(&weight).is_nan());
        }
    }
}
