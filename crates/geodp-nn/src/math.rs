//! exp, ln and tanh that give the same bits on every machine.
//!
//! The system's library differs from one to the next, so nothing here asks it. These are computed in double precision with
//! plain multiplications and additions, which IEEE 754 fixes to the bit, and rounded once to single
//! precision, so that they are right to a hair over half an ulp.

use core::f64::consts::{LN_2, LOG2_E, SQRT_2};

#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    exp_f64(f64::from(x)) as f32
}

/// ln x of a positive x.
#[inline(always)]
pub(crate) fn ln(x: f32) -> f32 {
    ln_f64(f64::from(x)) as f32
}

/// ln(1 + x) = 2·artanh(x/(2 + x)), x/(2 + x) ≤ 1/3 for x in [0, 1].
#[inline(always)]
pub(crate) fn ln_1p(x: f32) -> f32 {
    let x = f64::from(x);
    ln_ratio(x / (2.0 + x)) as f32
}

/// tanh x = sign x·(1 − t)/(1 + t), t = e^(−2|x|); near 0, where 1 − t cancels, its series.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let x = f64::from(x);
    let size = x.abs();
    let square = x * x;
    let t = exp_f64(-2.0 * size);
    let far = (1.0 - t) / (1.0 + t);
    let near = size * polynomial([-17.0 / 315.0, 2.0 / 15.0, -1.0 / 3.0, 1.0], square);
    (if size < 0.01 { near } else { far }).copysign(x) as f32
}

/// Coefficients from the highest power d
#[inline(always)]
fn polynomial<const N: usize>(coefficients: [f64; N], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// e^x = 2^k·e^r, |r| ≤ ln 2/2, and e^r by its series to r¹¹ (relative error below 1e-14). Beyond ±200
/// the result is that of ±200: zero and infinity in single precision.
#[inline(always)]
fn exp_f64(x: f64) -> f64 {
    // Comparisons that are false for NaN, which passes through.
    let x = if x < -200.0 { -200.0 } else { x };
    let x = if x > 200.0 { 200.0 } else { x };
    // Adding and taking away 1.5·2⁵² rounds to an integer.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let shifted = x * LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = x - k * LN_2;
    let series = polynomial(
        [
            1.0 / 39_916_800.0,
            1.0 / 3_628_800.0,
            1.0 / 362_880.0,
            1.0 / 40_320.0,
            1.0 / 5_040.0,
            1.0 / 720.0,
            1.0 / 120.0,
            1.0 / 24.0,
            1.0 / 6.0,
            0.5,
            1.0,
            1.0,
        ],
        r,
    );
    // The low bits of `shifted` are k; |k| ≤ 289 keeps the exponent in range.
    let power = f64::from_bits((shifted.to_bits().wrapping_add(1023)) << 52);
    series * power
}

/// ln x = e·ln 2 + 2·artanh((m − 1)/(m + 1)), m in [√½, √2].
#[inline(always)]
fn ln_f64(x: f64) -> f64 {
    if !(x > 0.0 && x < f64::INFINITY) {
        // Only NaN, zero and infinity come here: ln of them is exact in any library.
        return if x == 0.0 { f64::NEG_INFINITY } else { x };
    }
    let bits = x.to_bits();
    let exponent = ((bits >> 52) as i64 - 1023) as f64;
    let m = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    let (m, exponent) = if m > SQRT_2 { (m * 0.5, exponent + 1.0) } else { (m, exponent) };
    exponent * LN_2 + ln_ratio((m - 1.0) / (m + 1.0))
}

/// 2·artanh s by its series to s²¹, for |s| ≤ 1/3 (relative error below 1e-11).
#[inline(always)]
fn ln_ratio(s: f64) -> f64 {
    let square = s * s;
    let series = polynomial(
        [
            1.0 / 21.0,
            1.0 / 19.0,
            1.0 / 17.0,
            1.0 / 15.0,
            1.0 / 13.0,
            1.0 / 11.0,
            1.0 / 9.0,
            1.0 / 7.0,
            0.2,
            1.0 / 3.0,
            1.0,
        ],
        square,
    );
    2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every few thousandth single-precision number within [from, to].
    fn numbers(from: f32, to: f32) -> impl Iterator<Item = f32> {
        (0..=u32::MAX / 4099)
            .map(|n| f32::from_bits(n * 4099))
            .filter(move |x| *x >= from && *x <= to)
    }

    fn assert_right(got: f32, expected: f64, x: f32) {
        let nearest = expected as f32;
        let ulp = f64::from((f32::from_bits(nearest.to_bits() + 1) - nearest).abs());
        let off = (f64::from(got) - expected).abs() / ulp;
        assert!(off <= 0.501 || got == nearest, "of {x}: {got} is {off} ulp from {expected}");
    }

    #[test]
    fn right_to_half_an_ulp() {
        for x in numbers(-120.0, 88.0) {
            assert_right(exp(x), f64::from(x).exp(), x);
        }
        for x in numbers(f32::MIN_POSITIVE, f32::MAX) {
            assert_right(ln(x), f64::from(x).ln(), x);
        }
        for x in numbers(0.0, 1.0) {
            assert_right(ln_1p(x), f64::from(x).ln_1p(), x);
        }
        for x in numbers(-20.0, 20.0) {
            assert_right(tanh(x), f64::from(x).tanh(), x);
        }
    }

    #[test]
    fn edges() {
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(ln(f32::INFINITY), f32::INFINITY);
        assert_eq!((ln_1p(0.0), tanh(0.0)), (0.0, 0.0));
        assert_eq!((tanh(f32::INFINITY), tanh(f32::NEG_INFINITY)), (1.0, -1.0));
        for broken in [exp(f32::NAN), ln(f32::NAN), tanh(f32::NAN)] {
            assert!(broken.is_nan());
        }
    }
}
