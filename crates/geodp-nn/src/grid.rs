//! The grid on which exact sums live, and the scales that put a record on it.
//!
//! γ = C·2⁻³⁰. A record contributes integers n with ‖n‖₂ ≤ 2³⁰, so that its contribution n·γ has a
//! norm of at most C *exactly*, whatever was rounded on the way. The argument is made entry by entry.
//! Let g be the record's gradient as it stands in memory (for a linear layer the outer product of the
//! single-precision vectors dy and x, taken as real numbers), N its norm and w its weight. Then
//!
//!   |n_j| ≤ |g_j|·|w|·(2³⁰/C)   for every j, so   ‖n‖₂ ≤ |w|·N·(2³⁰/C) ≤ 2³⁰.
//!
//! - Parameters in lanes: n = 2⁸·truncate(g·s), s = w·(2²²/C)·(1 − 2⁻²¹).
//! - Linear layers: n = u·y, u = truncate(x·a), y = truncate(dy·b), a·b = w·(2³⁰/C)·(1 − 2⁻²¹).
//! - Linear layers that take bytes as they are have an argument of their own, of the whole vector instead of its
//!   entries: [`crate::layers::linear_bytes_gradient`].
//!
//! Truncation toward zero only shortens. What may lengthen: s, or b given a, is rounded to single
//! precision (a factor of at most 1 + 2⁻²⁴), and so are one or two products (1 + 2⁻²⁴ each); N is a
//! sum of squares, each exact in double precision, of at most 2²⁹ terms (1 + 2⁻²⁵ after the root);
//! the rest are a dozen roundings of 2⁻⁵³. Together less than 1 + 2⁻²², which 1 − 2⁻²¹ covers.
//! The relative errors hold because scales outside [2⁻¹⁰⁰, 2¹⁰⁰] are not used and because a product
//! that is subnormal truncates to 0. |w|·N ≤ C is not left to the caller: w is cut to C/N.

use crate::error::Error;

/// A public bound C on the norm of a record's contribution, and the integers it is measured in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    bound: f64,
}

/// Bits of what stands in lanes: 511 records fit an `i32`.
const LANE_BITS: u32 = 22;
/// `n` of a lane to `n` of the grid.
pub(crate) const LANE_SHIFT: u32 = Grid::BITS - LANE_BITS;
/// Records whose truncated gradients an `i32` holds: 511·2²² < 2³¹.
pub(crate) const LANE_RECORDS: usize = (1 << (31 - LANE_BITS)) - 1;
/// The largest factor: what an `i16` holds on both sides of 0.
const LARGEST_FACTOR: f64 = 32_767.0;
/// Covers every rounding, see the head of the file.
const SHRINK: f64 = 1.0 - 1.0 / 2_097_152.0;
/// Scales beyond are cut to it, which shortens; below its inverse they are 0.
const LARGEST_SCALE: f64 = 1_267_650_600_228_229_401_496_703_205_376.0;

impl Grid {
    /// A contribution of norm C has the integer norm 2³⁰: fine enough that truncation is lost beside
    /// any noise, coarse enough that a product of two 16-bit factors is on it.
    pub const BITS: u32 = 30;

    /// The grid of a bound C.
    ///
    /// # Errors
    /// [`Error::Bound`] if it is not a positive number within 2^±80.
    pub fn new(bound: f64) -> Result<Self, Error> {
        let limit = 2f64.powi(80);
        if bound >= 1.0 / limit && bound <= limit {
            Ok(Self { bound })
        } else {
            Err(Error::Bound(bound.to_string()))
        }
    }

    /// C: no record's contribution is longer.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// γ: what an integer of 1 stands for; C·2⁻³⁰, exactly.
    pub fn step(&self) -> f64 {
        self.bound / f64::from(1u32 << Self::BITS)
    }

    /// Adds one record's whole gradient g, weighed by w of its norm, to a sum on the grid: n_j =
    /// truncate(g_j·w·(2³⁰/C)·(1 − 2⁻²¹)). Returns ‖g‖. For engines that form gradients one by one.
    ///
    /// # Guarantee
    /// ‖n‖₂ ≤ 2^[`Grid::BITS`], whatever w answers; a gradient or weight that is not finite adds 0.
    /// n depends on the gradient and its weight alone.
    pub fn add_gradient(
        &self,
        gradient: &[f32],
        weight_of: impl FnOnce(f64) -> f64,
        sum: &mut [i64],
    ) -> f64 {
        let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        if !norm.is_finite() {
            return norm;
        }
        let scale = self.cut(weight_of(norm), norm) / self.step() * SHRINK;
        for (sum, g) in sum.iter_mut().zip(gradient) {
            *sum += (f64::from(*g) * scale) as i64;
        }
        norm
    }

    /// The weight of a gradient of this norm, cut so that weight·norm ≤ C; 0 for what is not finite
    /// and for a zero gradient.
    ///
    /// Without branches, as all that is done to each record of a block, so that it runs on vectors of them.
    #[inline(always)]
    pub(crate) fn cut(&self, weight: f64, norm: f64) -> f64 {
        let most = self.bound / norm;
        let cut = larger(smaller(weight, most), -most);
        let usable = weight.is_finite() & norm.is_finite() & (norm != 0.0);
        if usable { cut } else { 0.0 }
    }

    /// s of a cut weight.
    #[inline(always)]
    pub(crate) fn lane_scale(&self, weight: f64) -> f32 {
        usable(weight / self.bound * f64::from(1u32 << LANE_BITS) * SHRINK)
    }

    /// w·(2³⁰/C)·(1 − 2⁻²¹) of a cut weight.
    #[inline(always)]
    pub(crate) fn byte_scale(&self, weight: f64) -> f64 {
        weight / self.bound * f64::from(1u32 << Self::BITS) * SHRINK
    }

    /// a and b of a cut weight, for a linear layer with these factors. Split so that u and y have the
    /// same root mean square, which makes the error of truncation smallest, unless an `i16` would
    /// overflow.
    #[inline(always)]
    pub(crate) fn factor_scales(&self, weight: f64, x: &Factor, dy: &Factor) -> (f32, f32) {
        let product = weight.abs() / self.bound * f64::from(1u32 << Self::BITS) * SHRINK;
        let (most_a, most_b) = (LARGEST_FACTOR / x.largest, LARGEST_FACTOR / dy.largest);
        let balanced = (product * (dy.mean_square() / x.mean_square()).sqrt()).sqrt();
        // b at its limit leaves a = product/b, which its own limit may cut again: both only shorten.
        let a = usable(smaller(larger(balanced, product / most_b), most_a));
        let b = usable(smaller(product / f64::from(a), most_b));
        let b = if weight < 0.0 { -b } else { b };
        // Of what is 0 the quotients above mean nothing.
        let zero = (product == 0.0) | (x.squares == 0.0) | (dy.squares == 0.0) | (a == 0.0);
        (if zero { 0.0 } else { a }, if zero { 0.0 } else { b })
    }
}

/// One of the two factors of a linear layer's gradient, of one record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factor {
    /// ‖·‖².
    pub(crate) squares: f64,
    /// ‖·‖_∞.
    pub(crate) largest: f64,
    pub(crate) len: usize,
}

impl Factor {
    #[inline(always)]
    fn mean_square(&self) -> f64 {
        self.squares / self.len as f64
    }
}

/// A scale as single precision within the range where its rounding is relative.
#[inline(always)]
fn usable(scale: f64) -> f32 {
    let cut = larger(smaller(scale, LARGEST_SCALE), -LARGEST_SCALE) as f32;
    if scale.abs() >= 1.0 / LARGEST_SCALE { cut } else { 0.0 }
}

/// Of two numbers; one comparison each, which `max` and `min`, minding NaN, are not.
#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

#[inline(always)]
fn smaller(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// A bound of |u·y| of one record: the rounding of both products is covered by far.
#[inline(always)]
pub(crate) fn largest_product((a, b): (f32, f32), x: &Factor, dy: &Factor) -> u64 {
    let (u, y) = (f64::from(a) * x.largest, f64::from(b.abs()) * dy.largest);
    (u * y * (1.0 + 1e-6)) as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the weight asks for, a contribution is no longer than 2³⁰, in whole numbers.
        #[test]
        fn one_gradient_is_no_longer_than_its_bound(
            gradient in prop::collection::vec(prop_oneof![
                -1e3f32..1e3, -1e-30f32..1e-30, Just(f32::MAX), Just(f32::MIN_POSITIVE), Just(0.0)
            ], 1..40),
            weight in prop_oneof![0.0..10.0, Just(1e300), Just(-3.0), Just(f64::NAN)],
            bound in 1e-3..1e3,
        ) {
            let grid = Grid::new(bound).unwrap();
            let mut sum = vec![0; gradient.len()];
            grid.add_gradient(&gradient, |_| weight, &mut sum);
            let squares: i128 = sum.iter().map(|n| i128::from(*n).pow(2)).sum();
            prop_assert!(squares <= 1_i128 << (2 * Grid::BITS));
        }
    }

    #[test]
    fn a_gradient_lands_where_its_weight_puts_it() {
        let grid = Grid::new(0.5).unwrap();
        let mut sum = vec![7, 0];
        let norm = grid.add_gradient(&[3.0, -4.0], |norm| 0.25 / norm, &mut sum);
        assert_eq!(norm, 5.0);
        let back: Vec<f64> = sum.iter().map(|n| *n as f64 * grid.step()).collect();
        assert!((back[0] - 0.15).abs() < 1e-6 && (back[1] + 0.2).abs() < 1e-6, "{back:?}");
        let before = sum.clone();
        assert!(grid.add_gradient(&[f32::NAN, 1.0], |_| 1.0, &mut sum).is_nan());
        grid.add_gradient(&[f32::INFINITY, 1.0], |_| 1.0, &mut sum);
        assert_eq!(sum, before);
    }

    /// Numbers of many sizes, and of every last digit.
    fn numbers() -> impl Iterator<Item = f64> {
        let mut state = 7u64;
        (0..20_000).map(move |at| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mantissa = 1.0 + (state >> 12) as f64 / (1u64 << 52) as f64;
            mantissa * 2f64.powi(at % 61 - 30)
        })
    }

    /// What a norm may be too small by.
    const NORM: f64 = 0.6 / 16_777_216.0;
    /// The roundings of single precision that may lengthen, once.
    const UP: f64 = 1.0 + 1.0 / 16_777_216.0;

    #[test]
    fn scales_leave_room_for_every_rounding() {
        let mut closest: f64 = 0.0;
        for (norm, bound) in numbers().zip(numbers().skip(1)) {
            let grid = Grid::new(bound).unwrap();
            for asked in [bound / norm, 3.0 * bound / norm, -bound / norm, 1e300] {
                let weight = grid.cut(asked, norm);
                let length = f64::from(grid.lane_scale(weight)).abs() * UP * norm;
                assert!(length <= 4_194_304.0 * (1.0 - NORM), "{norm}, {bound}: {length}");
                closest = closest.max(length);
            }
        }
        assert!(closest > 4_194_304.0 * (1.0 - 2e-6), "needlessly short: {closest}");
    }

    #[test]
    fn factors_leave_room_for_every_rounding() {
        let full = f64::from(1u32 << Grid::BITS);
        for ((of_x, of_dy), bound) in numbers().zip(numbers().skip(9)).zip(numbers().skip(2)) {
            let grid = Grid::new(bound).unwrap();
            for (spread_x, spread_dy) in [(1.0, 1.0), (30.0, 3.0), (1.5, 900.0)] {
                let x = Factor { squares: of_x * of_x, largest: of_x / spread_x, len: 1000 };
                let dy = Factor { squares: of_dy * of_dy, largest: of_dy / spread_dy, len: 10 };
                let weight = grid.cut(f64::INFINITY.min(1e300), of_x * of_dy);
                let (a, b) = grid.factor_scales(weight, &x, &dy);
                let (a, b) = (f64::from(a), f64::from(b));
                let length = a * b * UP * UP * of_x * of_dy;
                assert!(length <= full * (1.0 - NORM), "{x:?}, {dy:?}: {length}");
                assert!(length >= full * (1.0 - 1e-4), "needlessly short: {x:?}, {dy:?}: {length}");
                assert!(a * x.largest * UP < 32_767.5 && b * dy.largest * UP < 32_767.5);
                let product = largest_product((a as f32, b as f32), &x, &dy) as f64;
                assert!(product >= a * x.largest * UP * b * dy.largest * UP);
            }
        }
    }

    #[test]
    fn what_is_not_a_number_has_no_weight() {
        let grid = Grid::new(1.0).unwrap();
        for (weight, norm) in [(f64::NAN, 1.0), (f64::INFINITY, 1.0), (1.0, f64::NAN), (1.0, 0.0)] {
            assert_eq!(grid.cut(weight, norm), 0.0);
        }
        assert_eq!(grid.lane_scale(0.0), 0.0);
        assert_eq!(grid.lane_scale(1e-60), 0.0);
        assert!(grid.lane_scale(1e60).is_finite());
    }
}
