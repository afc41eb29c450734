//! round(S·Z) for standard normals Z, in blocks: what f64 can decide, and a mark where it cannot.
//!
//! A pair of words gives U = first·2⁻⁶⁴ and an angle of q + r quarter turns: q the two top bits of
//! the second word, r + ½ the other 62. Z₁ = √(−2 ln U)·cos, Z₂ = √(−2 ln U)·sin. The words are the
//! leading bits of real uniforms, so the interval in which S·Z lies must cover what follows them.
//! An integer is certain if that interval holds no half-integer; else the pair is a suspect.
//!
//! # Error of Z before it is multiplied by S
//! Pairs with −2 ln U outside [[`SMALLEST_SQUARE`], [`LARGEST_SQUARE`]], i.e. U < 2⁻¹⁸ or
//! U > 1 − 2⁻¹⁸, are suspects whatever they give. For the others, R = √(−2 ln U) lies in
//! [2⁻⁸·⁵, 5], and
//! - U is rounded once: at most 2⁻⁵⁴ where U ≥ ½, relative 2⁻⁵³ below; the bits behind the word
//!   are worth at most 2⁻⁶⁴, relative 2⁻⁴⁶. With dR = dU/(U·R): at most 2⁻⁴⁵·⁵ where R is smallest,
//!   2⁻⁴⁸ where it is largest.
//! - ln: polynomial 2⁻⁵¹ relative, roundings: relative 2⁻⁴⁹, so 2⁻⁵⁰·R ≤ 2⁻⁴⁷·⁶ in R.
//! - r keeps 52 bits: at most 2⁻⁵²·(π/2)·R ≤ 2⁻⁴⁹. Polynomials of sine and cosine: 2⁻⁵³, and
//!   roundings of 2⁻⁵¹ of their size; with the root and two products less than 2⁻⁴⁷·⁵.
//!
//! Where R is smallest the first item rules and the others vanish with R; elsewhere all of them
//! together stay below 2⁻⁴⁵·². [`ERROR`] is 2⁻⁴⁴; tests hold the kernel to half of it against
//! 192-bit arithmetic.
//!
//! The polynomials interpolate at Chebyshev nodes; `tests/golden/make_polynomials.py` makes them.

use super::multiversion;
use super::normal::{BLOCK, HALF, word};
use super::rotate::sum_of_squares_by;

/// Bound on the error of Z.
pub(crate) const ERROR: f64 = 1.0 / (1_u64 << 44) as f64;
/// Just above 2·2⁻¹⁸.
const SMALLEST_SQUARE: f64 = 8e-6;
/// Just below 36·ln 2.
const LARGEST_SQUARE: f64 = 24.9;
/// Largest S: S·|Z| stays below 2⁵¹, where the rounding below is exact.
pub(crate) const LARGEST_SCALE: f64 = (1_u64 << 40) as f64;

/// Adding 1.5·2⁵² rounds to the nearest integer and leaves it in the low bits.
const ROUND_MAGIC: f64 = 6_755_399_441_055_744.0;

multiversion!(
    /// Fills `out` with round(S·Z). True if a pair is a suspect: then [`suspects`] says which, and
    /// its two integers mean nothing.
    round_block = round_block_source;
    (words: &[u8; 8 * BLOCK], scale: f64, margin: f64, out: &mut [i64; BLOCK]) -> bool
);

multiversion!(
    /// Which pairs of a block are suspects.
    suspects = suspects_source;
    (words: &[u8; 8 * BLOCK], scale: f64, margin: f64, out: &mut [bool; HALF])
);

multiversion!(
    /// sum·`unit`, rounded to f32 once, for any sums.
    mean = mean_source; (sums: &[i64], unit: f64, out: &mut [f32])
);

multiversion!(
    /// (sum + noise)·`unit`, rounded to f32 once. Sums are held to ±2⁵⁰ first: that moves two
    /// neighbouring sums no further apart.
    release = release_source; (sums: &[i64], noise: &[i64], unit: f64, out: &mut [f32])
);

multiversion!(
    /// (round(sum·`shrink`) + noise)·`unit`, rounded to f32 once; sums as in [`release`].
    release_shrunk = release_shrunk_source;
    (sums: &[i64], shrink: f64, noise: &[i64], unit: f64, out: &mut [f32])
);

multiversion!(
    /// The first integer of the pair of these words; `None` if the pair is a suspect.
    round_first = round_first_source;
    (first: u64, second: u64, scale: f64, margin: f64) -> Option<i64>
);

multiversion!(
    /// Σ of squares of integers, by eight chains; each is held to ±2⁵⁰ first.
    sum_of_squares = sum_of_squares_source; (sums: &[i64]) -> f64
);

multiversion!(
    /// Σ of squares of a release, by eight chains.
    squares_of_release = squares_of_release_source; (release: &[f32]) -> f64
);

/// Two draws before rounding, and the −2 ln U they come from.
struct Pair {
    cosine: f64,
    sine: f64,
    square: f64,
}

#[inline(always)]
fn pair(first: u64, second: u64, scale: f64) -> Pair {
    let square = -2.0 * ln(uniform(first));
    let radius = scale * square.sqrt();
    let (sine, cosine) = sin_cos(second);
    Pair { cosine: radius * cosine, sine: radius * sine, square }
}

/// word·2⁻⁶⁴, rounded once: the halves are placed in the mantissas of 2²⁰ and 2⁻¹².
#[inline(always)]
pub(super) fn uniform(word: u64) -> f64 {
    const HIGH: f64 = 1_048_576.0;
    const LOW: f64 = 1.0 / 4096.0;
    let high = f64::from_bits(HIGH.to_bits() | word >> 32) - (HIGH + LOW);
    high + f64::from_bits(LOW.to_bits() | word & 0xffff_ffff)
}

/// ln x = e·ln 2 + 2·atanh(s), s = (m − 1)/(m + 1), for x = m·2ᵉ with m in [√½, √2).
#[inline(always)]
pub(super) fn ln(x: f64) -> f64 {
    const SQRT_HALF_BITS: u64 = 0x3fe6_a09e_667f_3bcd;
    const ONE_BITS: u64 = 0x3ff0_0000_0000_0000;
    const MANTISSA: u64 = (1 << 52) - 1;
    let shifted = x.to_bits().wrapping_add(ONE_BITS - SQRT_HALF_BITS);
    let exponent = f64::from_bits((shifted >> 52) + ROUND_MAGIC.to_bits()) - (ROUND_MAGIC + 1023.0);
    let f = f64::from_bits((shifted & MANTISSA) + SQRT_HALF_BITS) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let mut twice_atanh = 0.168_376_599_706_804_9;
    for coefficient in [
        0.181_219_344_312_152_14,
        0.222_234_345_475_179_06,
        0.285_714_160_211_076_7,
        0.400_000_000_617_416_14,
        0.666_666_666_665_529_2,
        2.0,
    ] {
        twice_atanh = f64::mul_add(twice_atanh, z, coefficient);
    }
    f64::mul_add(exponent, std::f64::consts::LN_2, s * twice_atanh)
}

/// (sin, cos) of q + r quarter turns.
#[inline(always)]
pub(super) fn sin_cos(word: u64) -> (f64, f64) {
    const ONE_BITS: u64 = 0x3ff0_0000_0000_0000;
    let r = f64::from_bits(ONE_BITS | word >> 10 & ((1 << 52) - 1)) - 1.5;
    let z = r * r;
    let mut sine = 5.633_933_781_537_854e-8;
    for coefficient in [
        -3.598_643_352_982_31e-6,
        1.604_411_507_421_909e-4,
        -4.681_754_132_340_976e-3,
        7.969_262_624_604_301e-2,
        -6.459_640_975_062_443e-1,
        std::f64::consts::FRAC_PI_2,
    ] {
        sine = f64::mul_add(sine, z, coefficient);
    }
    let sine = sine * r;
    let mut cosine = 4.655_296_187_486_762_3e-7;
    for coefficient in [
        -2.520_013_526_428_479e-5,
        9.192_599_500_416_61e-4,
        -2.086_348_073_494_657e-2,
        2.536_695_078_998_647_5e-1,
        -1.233_700_550_136_151_3,
        1.0,
    ] {
        cosine = f64::mul_add(cosine, z, coefficient);
    }
    // Odd quadrants swap sine and cosine; signs flip by XOR of the sign bit.
    let quadrant = word >> 62;
    let (s, c) = if quadrant & 1 == 1 { (cosine, sine) } else { (sine, cosine) };
    let s_sign = (quadrant & 2) << 62;
    let c_sign = ((quadrant + 1) & 2) << 62;
    (f64::from_bits(s.to_bits() ^ s_sign), f64::from_bits(c.to_bits() ^ c_sign))
}

/// The nearest integer, and the distance from it.
#[inline(always)]
fn round(x: f64) -> (i64, f64) {
    let shifted = x + ROUND_MAGIC;
    let integer = shifted.to_bits().wrapping_sub(ROUND_MAGIC.to_bits()) as i64;
    (integer, (x - (shifted - ROUND_MAGIC)).abs())
}

/// Whether one of the pair's integers may be wrong. Written so that NaN would be a suspect.
#[inline(always)]
fn is_suspect(square: f64, distances: [f64; 2], margin: f64) -> bool {
    let certain = (distances[0] < 0.5 - margin)
        & (distances[1] < 0.5 - margin)
        & (square > SMALLEST_SQUARE)
        & (square < LARGEST_SQUARE);
    !certain
}

#[inline(always)]
fn round_block_source(
    words: &[u8; 8 * BLOCK],
    scale: f64,
    margin: f64,
    out: &mut [i64; BLOCK],
) -> bool {
    let (cosines, sines) = out.split_at_mut(HALF);
    let mut found = 0_u64;
    for i in 0..HALF {
        let pair = pair(word(words, i), word(words, HALF + i), scale);
        let (cosine, from_cosine) = round(pair.cosine);
        let (sine, from_sine) = round(pair.sine);
        found |= u64::from(is_suspect(pair.square, [from_cosine, from_sine], margin));
        cosines[i] = cosine;
        sines[i] = sine;
    }
    found != 0
}

#[inline(always)]
fn suspects_source(words: &[u8; 8 * BLOCK], scale: f64, margin: f64, out: &mut [bool; HALF]) {
    for (i, suspect) in out.iter_mut().enumerate() {
        let pair = pair(word(words, i), word(words, HALF + i), scale);
        let distances = [round(pair.cosine).1, round(pair.sine).1];
        *suspect = is_suspect(pair.square, distances, margin);
    }
}

/// A sum held to ±2⁵⁰.
#[inline(always)]
fn held(sum: i64) -> i64 {
    const MOST: i64 = 1 << 50;
    sum.clamp(-MOST, MOST)
}

/// An integer below 2⁵¹ as a float, through the mantissa: AVX2 has no instruction for it.
#[inline(always)]
fn float(integer: i64) -> f64 {
    f64::from_bits((integer + ROUND_MAGIC.to_bits() as i64) as u64) - ROUND_MAGIC
}

/// round(sum·`shrink`), for a product below 2⁵¹.
#[inline(always)]
pub(crate) fn shrunk(sum: i64, shrink: f64) -> i64 {
    round(float(held(sum)) * shrink).0
}

/// Any integer as a float, as `as` does it: its halves are placed in the mantissas of 2⁵² and 3·2⁸³, their
/// differences from those are exact, and the sum is rounded once.
#[inline(always)]
fn float_of_any(integer: i64) -> f64 {
    const LOW: f64 = 4_503_599_627_370_496.0;
    const HIGH: f64 = LOW * LOW / 1_048_576.0 * 1.5;
    let high = f64::from_bits(HIGH.to_bits().wrapping_add((integer >> 32) as u64));
    let low = f64::from_bits(LOW.to_bits() | integer as u64 & 0xffff_ffff);
    (high - (HIGH + LOW)) + low
}

#[inline(always)]
fn mean_source(sums: &[i64], unit: f64, out: &mut [f32]) {
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = (float_of_any(*sum) * unit) as f32;
    }
}

#[inline(always)]
fn release_source(sums: &[i64], noise: &[i64], unit: f64, out: &mut [f32]) {
    for ((out, sum), noise) in out.iter_mut().zip(sums).zip(noise) {
        *out = (float(held(*sum) + noise) * unit) as f32;
    }
}

#[inline(always)]
fn release_shrunk_source(sums: &[i64], shrink: f64, noise: &[i64], unit: f64, out: &mut [f32]) {
    for ((out, sum), noise) in out.iter_mut().zip(sums).zip(noise) {
        *out = (float(shrunk(*sum, shrink) + noise) * unit) as f32;
    }
}

#[inline(always)]
fn round_first_source(first: u64, second: u64, scale: f64, margin: f64) -> Option<i64> {
    let pair = pair(first, second, scale);
    let (cosine, from_cosine) = round(pair.cosine);
    let from_sine = round(pair.sine).1;
    (!is_suspect(pair.square, [from_cosine, from_sine], margin)).then_some(cosine)
}

#[inline(always)]
fn sum_of_squares_source(sums: &[i64]) -> f64 {
    sum_of_squares_by::<_, 8>(sums, |sum| float(held(sum)))
}

#[inline(always)]
fn squares_of_release_source(release: &[f32]) -> f64 {
    sum_of_squares_by::<_, 8>(release, f64::from)
}

/// One pair of Z as the block sees it, with −2 ln U: for tests of its error.
#[cfg(test)]
pub(crate) fn unrounded(first: u64, second: u64) -> (f64, f64, f64) {
    let pair = pair(first, second, 1.0);
    (pair.cosine, pair.sine, pair.square)
}

/// Whether pairs with this −2 ln U are suspects whatever they give.
#[cfg(test)]
pub(crate) fn is_outside(square: f64) -> bool {
    is_suspect(square, [0.0; 2], 0.25)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_integer_is_rounded_as_by_the_language(integer: i64, shift in 0..64) {
            for integer in [integer >> shift, i64::MIN, i64::MAX, 0, -1, (1 << 53) + 1, -(1 << 54) - 2] {
                prop_assert_eq!(float_of_any(integer).to_bits(), (integer as f64).to_bits());
            }
        }
    }
}
