//! ln, sin, cos and 1/√ without branches, so that loops over them become vector code.
//!
//! ln x: x = 2^k·m with m in [√½, √2), ln m = 2·atanh(s), s = (m − 1)/(m + 1).
//! sin, cos: reduce to r in [−π/4, π/4] and a quadrant, then two short polynomials.
//! 1/√x: a guess from the bits of x, then twice the series of 1/√(1 − e): a vector of roots and
//! divisions takes the machine three times as long.
//! The coefficients are the minimax ones of Sun's fdlibm (`e_log.c`, `k_sin.c`, `k_cos.c`).
//! Errors stay below 2 ulp on the ranges used here (tested against the standard library).

/// Adding and subtracting 1.5·2⁵² rounds to the nearest integer, and leaves it in the low bits.
const ROUND_MAGIC: f64 = 6_755_399_441_055_744.0;

/// Largest |x| in radians that [`sin_cos_radians`] reduces accurately.
pub(crate) const MAX_REDUCED_RADIANS: f64 = 1_048_576.0;

/// Largest |x| in radians that [`sin_cos_near_zero`] takes.
pub(crate) const MAX_NEAR_ZERO_RADIANS: f64 = std::f64::consts::FRAC_PI_4;

/// π/2 in three parts; the first has 33 significant bits, so that k·part is exact for k < 2²⁰.
const HALF_PI_PARTS: [f64; 3] =
    [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_6e-21];

/// Natural logarithm of a positive normal number.
#[inline(always)]
pub(crate) fn ln(x: f64) -> f64 {
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const SQRT_HALF_BITS: u64 = 0x3fe6_a09e_667f_3bcd;
    const ONE_BITS: u64 = 0x3ff0_0000_0000_0000;
    const MANTISSA: u64 = (1 << 52) - 1;

    let shifted = x.to_bits().wrapping_add(ONE_BITS - SQRT_HALF_BITS);
    // The exponent as a float: its integer bits placed in the mantissa of the rounding constant.
    let exponent = f64::from_bits((shifted >> 52) + ROUND_MAGIC.to_bits()) - (ROUND_MAGIC + 1023.0);
    let mantissa = f64::from_bits((shifted & MANTISSA) + SQRT_HALF_BITS);

    let f = mantissa - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let mut poly = 1.479_819_860_511_658_6e-1;
    for coefficient in [
        1.531_383_769_920_937_3e-1,
        1.818_357_216_161_805e-1,
        2.222_219_843_214_978_4e-1,
        2.857_142_874_366_239e-1,
        3.999_999_999_940_942e-1,
        6.666_666_666_666_735e-1,
    ] {
        poly = f64::mul_add(poly, z, coefficient);
    }
    let half_f2 = 0.5 * f * f;
    let tail = f64::mul_add(s, f64::mul_add(poly, z, half_f2), exponent * LN2_LOW);
    f64::mul_add(exponent, LN2_HIGH, f - (half_f2 - tail))
}

/// (sin, cos) of `quarter_turns`·π/2 for 0 ≤ `quarter_turns` ≤ 4; the reduction is exact.
#[inline(always)]
pub(crate) fn sin_cos_quarter_turns(quarter_turns: f64) -> (f64, f64) {
    let rounded = quarter_turns + ROUND_MAGIC;
    let r = (quarter_turns - (rounded - ROUND_MAGIC)) * std::f64::consts::FRAC_PI_2;
    in_quadrant(r, rounded.to_bits())
}

/// (sin, cos) of an angle with |angle| ≤ [`MAX_REDUCED_RADIANS`].
#[inline(always)]
pub(crate) fn sin_cos_radians(angle: f64) -> (f64, f64) {
    let rounded = f64::mul_add(angle, std::f64::consts::FRAC_2_PI, ROUND_MAGIC);
    let k = rounded - ROUND_MAGIC;
    let mut r = angle;
    for part in HALF_PI_PARTS {
        r = f64::mul_add(-k, part, r);
    }
    in_quadrant(r, rounded.to_bits())
}

/// 1/√x of a positive normal number; a large finite number for 0.
#[inline(always)]
pub(crate) fn reciprocal_root(x: f64) -> f64 {
    // Halves and negates the exponent: within 3.5 % of the result.
    let mut y = f64::from_bits(0x5fe6_eb50_c7b5_37a9 - (x.to_bits() >> 1));
    for _ in 0..2 {
        // 1/√x = y/√(1 − e); what is cut off is 35/128·e⁴, with e < 0.07 and then e < 2e-5.
        let e = f64::mul_add(-(x * y), y, 1.0);
        let series = f64::mul_add(f64::mul_add(0.3125, e, 0.375), e, 0.5);
        y = f64::mul_add(y * e, series, y);
    }
    y
}

/// (sin, cos) of r + quadrant·π/2 for |r| ≤ π/4; only the two lowest bits of `quadrant` count.
#[inline(always)]
fn in_quadrant(r: f64, quadrant: u64) -> (f64, f64) {
    let (sine, cosine) = sin_cos_near_zero(r);
    // Odd quadrants swap sine and cosine; signs flip by XOR of the sign bit.
    let odd = quadrant & 1 == 1;
    let (s, c) = if odd { (cosine, sine) } else { (sine, cosine) };
    let s_sign = (quadrant & 2) << 62;
    let c_sign = (quadrant.wrapping_add(1) & 2) << 62;
    (f64::from_bits(s.to_bits() ^ s_sign), f64::from_bits(c.to_bits() ^ c_sign))
}

/// (sin, cos) of an angle with |r| ≤ [`MAX_NEAR_ZERO_RADIANS`].
#[inline(always)]
pub(crate) fn sin_cos_near_zero(r: f64) -> (f64, f64) {
    let z = r * r;
    let mut sine = 1.589_690_995_211_55e-10;
    for coefficient in [
        -2.505_076_025_340_686_3e-8,
        2.755_731_370_707_006_8e-6,
        -1.984_126_982_985_795e-4,
        8.333_333_333_322_49e-3,
        -1.666_666_666_666_663_2e-1,
    ] {
        sine = f64::mul_add(sine, z, coefficient);
    }
    let sine = f64::mul_add(sine * z, r, r);

    let mut cosine = -1.135_964_755_778_819_5e-11;
    for coefficient in [
        2.087_572_321_298_175e-9,
        -2.755_731_435_139_066_3e-7,
        2.480_158_728_947_673e-5,
        -1.388_888_888_887_411e-3,
        4.166_666_666_666_66e-2,
        -0.5,
    ] {
        cosine = f64::mul_add(cosine, z, coefficient);
    }
    (sine, f64::mul_add(cosine, z, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ulps(a: f64, b: f64) -> f64 {
        (a - b).abs() / (b.abs().max(f64::MIN_POSITIVE) * f64::EPSILON)
    }

    proptest! {
        #[test]
        fn ln_is_within_two_ulp(mantissa in 1.0f64..2.0, exponent in -70i32..3) {
            let x = mantissa * f64::powi(2.0, exponent);
            // Near 1 the result is near 0: compare there on the scale of x − 1.
            let scale = x.ln().abs().max(f64::EPSILON);
            prop_assert!((ln(x) - x.ln()).abs() <= 2.0 * f64::EPSILON * scale);
        }

        #[test]
        fn quarter_turns_agree_with_the_standard_library(turn in 0.0f64..=4.0) {
            let (s, c) = sin_cos_quarter_turns(turn);
            let (s0, c0) = (turn * std::f64::consts::FRAC_PI_2).sin_cos();
            prop_assert!((s - s0).abs() < 1e-15 && (c - c0).abs() < 1e-15);
        }

        #[test]
        fn small_angles_keep_relative_precision(exponent in -60i32..-1, mantissa in 1.0f64..2.0) {
            let x = mantissa * f64::powi(2.0, exponent);
            let (s, c) = sin_cos_radians(x);
            prop_assert!(ulps(s, x.sin()) <= 2.0 && ulps(c, x.cos()) <= 2.0);
        }

        #[test]
        fn angles_near_zero_need_no_reduction(x in -MAX_NEAR_ZERO_RADIANS..=MAX_NEAR_ZERO_RADIANS) {
            let (s, c) = sin_cos_near_zero(x);
            prop_assert!(ulps(s, x.sin()) <= 2.0 && ulps(c, x.cos()) <= 2.0, "{x}: {s} {c}");
        }

        #[test]
        fn large_angles_keep_absolute_precision(x in -MAX_REDUCED_RADIANS..MAX_REDUCED_RADIANS) {
            let (s, c) = sin_cos_radians(x);
            let (s0, c0) = x.sin_cos();
            prop_assert!((s - s0).abs() < 1e-15 && (c - c0).abs() < 1e-15, "{x}: {s} {s0} {c} {c0}");
        }

        #[test]
        fn reciprocal_root_is_within_two_ulp(mantissa in 1.0f64..2.0, exponent in -1022i32..=1023) {
            let x = mantissa * f64::powi(2.0, exponent);
            prop_assert!(ulps(reciprocal_root(x), 1.0 / x.sqrt()) <= 2.0, "{x}");
            prop_assert!(ulps(x * reciprocal_root(x), x.sqrt()) <= 2.0, "{x}");
        }
    }

    #[test]
    fn exact_points() {
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(sin_cos_radians(0.0), (0.0, 1.0));
        assert_eq!(reciprocal_root(4.0), 0.5);
        assert!(reciprocal_root(0.0).is_finite());
        assert_eq!(sin_cos_quarter_turns(1.0), (1.0, 0.0));
        assert_eq!(sin_cos_quarter_turns(2.0).1, -1.0);
        assert_eq!(sin_cos_quarter_turns(4.0).1, 1.0);
    }
}
